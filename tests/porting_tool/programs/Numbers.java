import java.util.*;
import java.util.function.*;
import java.util.stream.*;

public class Numbers {
    static class Node { int v; List<Node> kids = new ArrayList<>(); Node(int v) { this.v = v; } }
    static int sumAll(Node n) { int t = n.v; for (Node k : n.kids) { t += sumAll(k); } return t; }
    static class Window {
        private final Deque<Long> times = new ArrayDeque<>();
        int add(long now) { times.addLast(now); while (!times.isEmpty() && times.peekFirst() < now - 10) { times.pollFirst(); } return times.size(); }
    }
    static class Bucket { int[] slots = new int[4]; int head = 0; void tick(int n) { slots[head++ % 4] += n; slots[head % 4] = 0; } }
    static class Cfg { static final Map<String, Integer> M = new HashMap<>(); static { M.put("a", 1); M.put("b", 2); } static final int SIZE = M.size(); static final String NAME = "n" + SIZE; }
    static <T extends Comparable<T>> T best(List<? extends T> xs) { T b = null; for (T x : xs) { if (b == null || x.compareTo(b) > 0) { b = x; } } return b; }
    static int parse(String s, int otherwise) { try { return Integer.parseInt(s.trim()); } catch (NumberFormatException e) { return otherwise; } finally { seen++; } }
    static int seen;
    static String classify(Object o) { if (o instanceof String) { return "s" + ((String) o).length(); } else if (o instanceof Double) { return "d" + o; } else if (o instanceof List) { return "l" + ((List<?>) o).size(); } return "?"; }
    static boolean side(String s) { seen += 10; return s.isEmpty(); }
    static long checksum(String s) { long h = 1125899906842597L; for (int i = 0; i < s.length(); i++) { h = 31 * h + s.charAt(i); } return h; }
    static int crc(byte[] b) { int c = 0; for (byte x : b) { c = (c << 5) ^ (c >>> 27) ^ (x & 0xff); } return c; }
    static int add(int a, int b) { return a + b; }
    static long avg(long[] xs) { long t = 0; for (long x : xs) { t += x; } return t / xs.length; }

    public static void main(String[] args) {
        Node root = new Node(1); root.kids.add(new Node(2)); root.kids.get(0).kids.add(new Node(3));
        System.out.println(sumAll(root));
        Window w = new Window(); for (long t : new long[]{1, 5, 12, 30}) { System.out.print(w.add(t) + " "); }
        Bucket b = new Bucket(); for (int i = 1; i < 7; i++) { b.tick(i); }
        System.out.println(Arrays.toString(b.slots) + " " + Cfg.SIZE + Cfg.NAME + " " + best(Arrays.asList(3, 9, 2)) + best(Arrays.asList("a", "c", "b")));
        System.out.println(parse(" 12 ", 0) + parse("x", 7) + " " + seen + classify("abc") + classify(1.5) + classify(Arrays.asList(1, 2)) + classify(null));
        boolean r = side("") | side("x"); boolean q = side("") || side("x"); boolean z = side("a") & side("");
        System.out.println(r + " " + q + z + " " + seen + " " + checksum("hello world, this is long") + " " + crc("payload".getBytes()));
        int big = Integer.MAX_VALUE; int mid = (big + big) / 2;
        System.out.println(mid + " " + (big + 1 > big) + " " + Math.abs(Integer.MIN_VALUE) + " " + -Integer.MIN_VALUE);
        int h = "some key".hashCode(); int bucket = Math.abs(h) % 7; int b2 = (h & Integer.MAX_VALUE) % 7; int b3 = h % 7;
        System.out.println(h + " " + bucket + b2 + b3 + " " + (h ^ (h >>> 16)) + " " + (h * 31 + 17) + " " + (h << 7) + " " + (h >> 3) + " " + (~h));
        Map<String, Map<String, Integer>> nested = new TreeMap<>();
        nested.computeIfAbsent("x", k -> new TreeMap<>()).merge("y", 2, Integer::sum);
        nested.computeIfAbsent("x", k -> new TreeMap<>()).merge("y", 3, Integer::sum);
        nested.computeIfPresent("x", (k, v) -> v.isEmpty() ? null : v);
        System.out.println(nested + " " + nested.getOrDefault("q", new TreeMap<>()).size());
        Map<String, Integer> counts = new HashMap<>();
        for (String s : "the cow jumped over the moon and the dog laughed at such sport zebra apple".split(" ")) { counts.put(s, counts.containsKey(s) ? counts.get(s) + 1 : 1); }
        System.out.println(counts);
        Iterator<Map.Entry<String, Integer>> it = counts.entrySet().iterator();
        while (it.hasNext()) { Map.Entry<String, Integer> e = it.next(); if (e.getValue() == 1) { it.remove(); } else { e.setValue(e.getValue() * 10); } }
        System.out.println(counts);
        List<Map.Entry<String, Integer>> es = new ArrayList<>(Map.of("k", 3).entrySet());
        es.sort(Map.Entry.<String, Integer>comparingByValue().reversed());
        System.out.println(es);
        List<int[]> pairs = new ArrayList<>(); for (int i = 0; i < 3; i++) { pairs.add(new int[]{i, i * i}); }
        int total = 0; for (int[] p : pairs) { total += p[0] * p[1]; }
        System.out.println(total);
        String s = "2024-01-05T10:11:12"; String date = s.substring(0, s.indexOf('T')); String[] parts = date.split("-");
        System.out.println(date + Integer.parseInt(parts[1]) * 2 + parts[2] + s.charAt(4) + s.lastIndexOf(":") + s.replace('-', '/') + s.toLowerCase().contains("t10"));
        List<Integer> nums = new ArrayList<>(Arrays.asList(1, 2, 3, 4, 5, 6));
        for (int i = 0; i < nums.size(); i++) { if (nums.get(i) % 2 == 0) { nums.remove(i); } }
        for (int i = nums.size() - 1; i >= 0; i--) { if (nums.get(i) == 3) { nums.remove(i); } }
        nums.removeIf(n -> n > 4); nums.add(0, 99); nums.subList(0, 1).clear(); Collections.reverse(nums);
        System.out.println(nums);
        StringBuilder out = new StringBuilder();
        for (Map.Entry<Integer, List<String>> e : Stream.of("a", "bb", "cc", "d").collect(Collectors.groupingBy(String::length)).entrySet()) { out.append(e.getKey()).append(e.getValue()); }
        System.out.println(out + " " + avg(new long[]{-3, -4}) + " " + (char) ('A' + 25) + " " + (int) Math.signum(-3.2) + " " + (5 + -7) / 2 + " " + 1.0 * 7 / 2 + " " + (long) 2.9 + (int) -2.9f + " " + Math.round(2.4f) + Math.ceil(-0.5) + Math.pow(2, 0.5) + " " + 0.1f * 3 + " " + (0.1 + 0.2) + " " + 100 * 1.1);
        Double dd = 3.0; Integer ii = 3; Object oo = dd; Number nn = ii;
        System.out.println(dd.equals(3.0) + " " + oo.equals(ii) + " " + nn.doubleValue() + " " + dd.intValue() + " " + dd.compareTo(2.0) + " " + ii.hashCode() + dd.hashCode() + " " + Double.compare(0.0, -0.0) + " " + Double.toString(1e21) + " " + new ArrayList<Object>(Arrays.asList(1, "x", null, 2.5, 'c', true)));
        double fee = 12.345; double rate = 0.07;
        long tax = (long) (fee * rate * 100) + (long) (fee * 100);
        int pct = (int) (fee * 10) - (int) (rate * 10);
        int steps = (int) (fee / rate) * 2 + 1;
        System.out.println("money " + tax + " " + pct + " " + steps);
    }
}
