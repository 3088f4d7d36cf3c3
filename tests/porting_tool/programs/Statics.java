import java.util.*;

public class Statics {
    static int calls = 0;
    interface Shape { double area(); default String describe() { return "shape " + area(); } }
    static class Sq implements Shape { final double s; Sq(double s) { this.s = s; } public double area() { return s * s; } }
    static abstract class Tmpl { Tmpl() { init(); } void init() { calls++; } String run() { return step() + 1; } protected abstract String step(); }
    static class T extends Tmpl { int x = 5; @Override void init() { x = 7; calls += 10; } protected String step() { return "s" + x; } }
    static int count = 3;
    static { count = 5; }
    static int late = count * 2;
    static class S2 { static { v = 5; } static int v = 3; }
    class Inner { int outer = 4; int get() { return outer; } }
    static String trim(String s) { return s.trim() + "!"; }
    static int compare(int a, int b) { return a - b; }
    static String f(Object o) { return "O"; }
    static String f(String s) { return "S"; }
    static String f(Integer i) { return "I"; }
    static String g(long l) { return "long"; }
    static String g(Object l) { return "Object"; }
    static String h(int a, double b) { return "id"; }
    static String h(double a, int b) { return "di"; }
    static int len(String s) { int len = s.length(); int max = Math.max(len, 3); int list = max; return list; }
    static void fill(List<Integer> q, int n) { if (n < 3) { q.add(n + 1); } }
    static class Acc { long total; int n; void add(double amount, int qty) { total += (long) (amount * 100) * qty; n += 1; } double mean() { return total / n; } }
    static class Point { int x, y; Point(int x, int y) { this.x = x; this.y = y; } @Override public boolean equals(Object o) { if (!(o instanceof Point)) return false; Point p = (Point) o; return x == p.x && y == p.y; } @Override public int hashCode() { return 31 * x + y; } }
    static class PlainKey { int x; PlainKey(int x) { this.x = x; } }
    static int depth(int n) { try { return n / 0; } catch (ArithmeticException e) { return -1; } finally { calls += 100; } }

    public static void main(String[] args) {
        System.out.println(new Sq(2).describe() + " " + new T().run() + " " + calls);
        System.out.println("static " + count + late + S2.v);
        System.out.println("trim " + trim(" a ") + compare(3, 1) + len("abcd"));
        Object o = "x";
        System.out.println("over " + f(o) + f("x") + f(5) + f((Object) 5) + " " + g(5) + g("x") + " " + h(1, 2.0) + h(1.0, 2));
        List<Integer> q = new ArrayList<>();
        q.add(0);
        int seen = 0;
        for (int i = 0; i < q.size(); i++) { fill(q, q.get(i)); seen++; }
        System.out.println("worklist " + seen);
        Acc a = new Acc();
        a.add(19.99, 3);
        a.add(-0.29, 2);
        System.out.println("acc " + a.total + " " + a.mean());
        double d = -0.5;
        int up = (int) d + 1;
        long big = (long) (d * 3) * 10;
        System.out.println("neg " + up + " " + big);
        Map<Point, String> m = new HashMap<>();
        m.put(new Point(1, 2), "a");
        Set<PlainKey> ps = new HashSet<>();
        ps.add(new PlainKey(1));
        ps.add(new PlainKey(1));
        System.out.println("points " + m.get(new Point(1, 2)) + ps.size() + new Point(1, 2).equals(new Point(1, 2)));
        System.out.println(depth(3) + " " + calls);
        int[][] grid = new int[2][3];
        grid[1][2] = 5;
        int[] row = grid[1];
        row[0] = 9;
        System.out.println(Arrays.deepToString(grid) + grid[1][0]);
        String s = "hello";
        switch (s) { case "hi": System.out.println("hi"); break; case "hello": { int z = 4; System.out.println("he" + z); break; } default: System.out.println("?"); }
        int day = 3;
        String name = switch (day) { case 1, 7 -> "weekend"; case 3 -> { String t = "mid"; yield t + day; } default -> "week"; };
        System.out.println(name);
        long ms = 1000 * 60 * 60 * 24 * 30;
        int sum = 0;
        for (int i = 0; i < 70000; i++) { sum += i * i; }
        short sh = 10;
        sh *= 4000;
        int mixed = 10;
        mixed -= 2.5;
        mixed /= 2;
        byte bb = (byte) 0x80;
        System.out.println(ms + " " + sum + " " + sh + " " + mixed + " " + bb + " " + (bb & 0xFF) + " " + (bb >>> 1) + " " + (char) (bb & 0x7F | 0x41) + " " + ('a' < 98) + " " + (char) ('a' + 2) + 'b');
        StringBuilder sb = new StringBuilder();
        for (char c = 'e'; c >= 'a'; c--) { sb.append(c); }
        for (int i = 0, j = 10; i < j; i += 3, j--) { sb.append(i).append(j); }
        String t2 = "a-b-c";
        int at = -1;
        while ((at = t2.indexOf('-', at + 1)) >= 0) { sb.append('@').append(at); }
        System.out.println(sb);
        Integer i1 = 5;
        int i2 = 5;
        Long l1 = 5L;
        System.out.println((i1 == i2) + " " + l1.equals(5L) + " " + (l1 == i2) + " " + i1.equals(i2) + " " + Integer.compare(3, 5) + " " + "b".compareTo("a") + " " + Boolean.compare(true, false) + " " + Character.compare('a', 'c') + " " + new int[0].length);
        LinkedHashMap<String, Integer> lru = new LinkedHashMap<String, Integer>(16, 0.75f, true) { @Override protected boolean removeEldestEntry(Map.Entry<String, Integer> e) { return size() > 2; } };
        lru.put("a", 1); lru.put("b", 2); lru.get("a"); lru.put("c", 3);
        System.out.println(lru);
        PriorityQueue<int[]> pq = new PriorityQueue<>((p, r) -> r[0] - p[0]);
        pq.add(new int[]{1, 2}); pq.add(new int[]{5, 6});
        System.out.println(pq.poll()[1] + " " + pq.size());
        List<String> names = new ArrayList<>(Arrays.asList("b", "a", "C"));
        Collections.sort(names, String.CASE_INSENSITIVE_ORDER);
        names.sort(Comparator.reverseOrder());
        System.out.println(names + " " + String.join("/", names) + " " + names.indexOf("a") + names.contains("c"));
        ListIterator<String> li = names.listIterator();
        while (li.hasNext()) { String n = li.next(); if (n.equals("b")) { li.remove(); } }
        System.out.println(names);
        int x = 5;
        int y = x++ + x-- - --x;
        int k = x = y;
        System.out.println(x + " " + y + " " + k + " " + (x > 3 ? x < 6 ? "in" : "hi" : "lo"));
        double avg = (double) (1 + 2) / 2;
        double bad = (1 + 2) / 2;
        float fl = 5 / 2f;
        System.out.println(avg + " " + bad + " " + fl + " " + 7 / 2 * 2.0 + " " + 1e-5 + " " + 123456789.0 + " " + 100.0f + " " + (long) 1e19 + " " + 0 + " " + 3.0e-10f);
    }
}
