import java.util.*;

public class Targets {
    enum Kind { A("x"); final String val; Kind(String val) { this.val = val; } String getValue() { return val; } }
    static class Totals { final Map<String, Long> totals = new HashMap<>(); void add(String k, long n) { Long old = totals.get(k); totals.put(k, old == null ? n : old + n); } }
    static String render(List<String> xs) { StringBuilder sb = new StringBuilder("rows: "); sb.append(xs); return sb.toString(); }
    static int[] data = {3, 1, 2};
    static int idx() { return counter++; }
    static int counter;
    static class Cell { int n; List<String> log = new ArrayList<>(); }
    static Cell cell = new Cell();
    static Cell take() { counter += 100; return cell; }

    public static void main(String[] args) {
        System.out.println(render(Arrays.asList("a", "b")));
        Totals t = new Totals(); t.add("q", 5); t.add("q", 6);
        System.out.println(t.totals);
        take().n += 2; take().n *= 3; take().n++;
        System.out.println(cell.n + " " + counter);
        counter = 0;
        data[idx()] -= 1; data[idx()]++;
        System.out.println(Arrays.toString(data) + counter);
        double[] ds = {1.5, 2.5, 3.5}; counter = 0;
        ds[idx()] *= 2; ds[idx()] += 1;
        System.out.println(Arrays.toString(ds) + counter);
        long[] ls = new long[3]; counter = 0;
        ls[idx()] += 5; ls[idx()] = 7; ls[idx()] += 3;
        System.out.println(Arrays.toString(ls) + counter);
        Map<String, int[]> m = new TreeMap<>();
        for (String w : "b a b".split(" ")) { m.computeIfAbsent(w, k -> new int[1])[0]++; }
        for (Map.Entry<String, int[]> e : m.entrySet()) { System.out.print(e.getKey() + e.getValue()[0] + " "); }
        System.out.println();
        System.out.println(Kind.A.val + Kind.A.getValue());
    }
}
