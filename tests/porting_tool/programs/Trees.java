import java.math.BigDecimal;
import java.util.*;
import java.util.stream.*;

public class Trees {
    static class Score implements Comparable<Score> {
        final String who; final int points;
        Score(String who, int points) { this.who = who; this.points = points; }
        @Override public int compareTo(Score o) { return Integer.compare(points, o.points); }
        @Override public String toString() { return who + points; }
    }

    static void trees() {
        Map<String, Integer> m = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        m.put("Foo", 1);
        m.put("FOO", 2);
        System.out.println("nocase " + m + m.get("foo") + m.containsKey("fOO"));
        TreeSet<String> byLength = new TreeSet<>((a, b) -> a.length() - b.length());
        byLength.add("aa");
        byLength.add("bb");
        byLength.add("c");
        System.out.println("bylength " + byLength);
        TreeSet<Score> top = new TreeSet<>();
        top.add(new Score("a", 3));
        top.add(new Score("b", 3));
        top.add(new Score("c", 1));
        System.out.println("scores " + top);
        TreeMap<Integer, String> times = new TreeMap<>();
        for (int i = 0; i < 6; i++) { times.put(i, "t" + i); }
        times.headMap(3).clear();
        System.out.println("expire " + times);
        TreeSet<Integer> seen = new TreeSet<>(Arrays.asList(1, 2, 3, 4));
        seen.headSet(3).clear();
        System.out.println("seen " + seen);
    }

    static void views() {
        Map<String, Integer> counts = new HashMap<>();
        for (String w : "a b b c c c".split(" ")) { counts.merge(w, 1, Integer::sum); }
        counts.values().removeIf(n -> n < 2);
        System.out.println("removeIf " + counts);
        counts.values().retainAll(Arrays.asList(3));
        System.out.println("remove " + counts);
        counts.values().clear();
        System.out.println("clear " + counts);
        Map<String, Integer> live = new HashMap<>();
        Collection<Integer> v = live.values();
        live.put("x", 1);
        System.out.println("live " + v.size());
        String[] arr = {"a", "b"};
        List<String> backed = Arrays.asList(arr);
        backed.set(0, "z");
        System.out.println("backed " + arr[0]);
        List<String> base = new ArrayList<>(Arrays.asList("q"));
        List<String> ro = Collections.unmodifiableList(base);
        base.add("r");
        System.out.println("ro " + ro.size());
        Map<String, Integer> w = new HashMap<>();
        w.put("k", 1);
        for (Map.Entry<String, Integer> e : w.entrySet()) { w.put(e.getKey(), 9); System.out.println("entry " + e.getValue()); }
        Iterator<Integer> it = new ArrayList<>(Arrays.asList(1, 2, 3)).iterator();
        int t = 0;
        while (it.hasNext()) { t += it.next(); }
        System.out.println(t);
    }

    static void bigs() {
        Set<BigDecimal> s = new HashSet<>();
        s.add(new BigDecimal("1.0"));
        s.add(new BigDecimal("1.00"));
        BigDecimal a = new BigDecimal("10").divide(new BigDecimal("4"));
        System.out.println(a + " " + new BigDecimal("1E+3").toPlainString() + " " + new BigDecimal("0.000000001") + " " + new BigDecimal(0.1).toString().length() + " " + BigDecimal.valueOf(2.50).setScale(1, java.math.RoundingMode.HALF_EVEN));
    }

    static class Base { protected int n = 1; static String kind() { return "base"; } Base self() { return this; } }
    static class Sub extends Base { static String kind() { return "sub"; } int get() { return n++ + n; } }

    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

    static void misc() {
        Base b = new Sub();
        System.out.println("misc " + Base.kind() + Sub.kind() + new Sub().get() + fib(10));
        int x = 7;
        x ^= x << 3;
        x = x++ * 2 + x;
        int[] h = new int[3];
        for (char c : "abcabca".toCharArray()) { h[c - 'a']++; }
        long total = 0;
        for (int i : h) { total += i * 1_000_000_000; }
        System.out.println(x + " " + Arrays.toString(h) + " " + total + " " + (5 & 6 | 1) + " " + (true ^ false) + " " + (-17 >> 2) + " " + (-17 >>> 28) + " " + (byte) (127 + 1) + " " + (short) 70000 + " " + (int) 'x' + " " + (char) 98);
        StringBuilder sb = new StringBuilder();
        int i = 0;
        while (true) {
            switch (i++) {
                case 0: sb.append("zero"); break;
                case 1:
                case 2: sb.append("few"); continue;
                default: sb.append("many");
            }
            if (i > 4) { break; }
        }
        System.out.println(sb);
        double money = 0;
        for (int k = 0; k < 10; k++) { money += 0.1; }
        System.out.println(money + " " + (float) money + " " + (int) (money * 100) + " " + Math.round(money * 100) / 100.0 + " " + 1.0 / 0 + " " + 0.0 / 0 + " " + (0.0 == -0.0) + " " + Double.valueOf(0.0).equals(-0.0) + " " + 5 % -3 + " " + -5.5 % 3);
        System.out.println(Integer.parseInt("-12") + Integer.valueOf(5) + " " + Integer.toString(255, 16) + " " + Long.parseLong("9") / 2 + " " + "a".repeat(3) + " " + "%d%%".formatted(5) + " " + Objects.hash(1, "a", null) + " " + "hello".hashCode() % 7 + " " + Arrays.asList(1, "a").hashCode());
        Object o = 5L;
        String r = o instanceof String ? "s" : "other";
        System.out.println(r + " " + Optional.of(3).map(q -> q * 2).orElse(0));
        try (Res one = new Res("1"); Res two = new Res("2")) { System.out.println("body"); throw new IllegalStateException("x"); }
        catch (IllegalStateException e) { System.out.println("caught " + e.getMessage()); }
        finally { System.out.println("finally"); }
        Integer none = null;
        Map<String, Integer> mm = new HashMap<>();
        try { Object q = "x"; Integer bad = (Integer) q; System.out.println("no cce " + bad); } catch (ClassCastException e) { System.out.println("cce"); }
        List<Integer> li = new ArrayList<>(Arrays.asList(5, 6, 7));
        li.remove(Integer.valueOf(5));
        li.remove(1);
        try { li.set(-1, 3); System.out.println("set " + li); } catch (IndexOutOfBoundsException e) { System.out.println("ioobe"); }
        System.out.println(li + " " + Collections.max(Arrays.asList(2, 9, 4)) + " " + IntStream.range(0, 5).boxed().collect(Collectors.toMap(k -> "k" + k, k -> k)));
    }

    static class Res implements AutoCloseable { final String n; Res(String n) { this.n = n; } @Override public void close() { System.out.println("close " + n); } }

    public static void main(String[] args) {
        trees();
        views();
        bigs();
        misc();
    }
}
