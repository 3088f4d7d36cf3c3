import java.util.*;
import java.util.stream.*;

public class Windows {
    static class Item { final String k; double w; Item(String k, double w) { this.k = k; this.w = w; } String getK() { return k; } double getW() { return w; } }
    static class Counter { private final Map<String, Integer> m = new HashMap<>(); void inc(String k) { m.compute(k, (a, b) -> b == null ? 1 : b + 1); } Collection<Integer> all() { return m.values(); } Set<String> keys() { return m.keySet(); } }
    static class Ring { final long[] buf; int pos; Ring(int n) { buf = new long[n]; } void put(long v) { buf[pos] = v; pos = (pos + 1) % buf.length; } long sum() { long s = 0; for (long v : buf) { s += v; } return s; } }
    static final int A = 2; static final int B = A * 3; static int hits; static final List<String> WORDS = new ArrayList<>(); static { for (String w : "x,y,z".split(",")) { WORDS.add(w + B); } hits = WORDS.size(); }
    static String pad(String s, int n) { while (s.length() < n) { s = " " + s; } return s; }
    static boolean isPrime(int n) { for (int i = 2; i * i <= n; i++) { if (n % i == 0) { return false; } } return n > 1; }

    public static void main(String[] args) {
        System.out.println(B + " " + hits);
        Counter c = new Counter(); Collection<Integer> live = c.all(); Set<String> ks = c.keys(); c.inc("a"); c.inc("a"); c.inc("b");
        System.out.println(live.size() + " " + ks.size() + " " + c.all().stream().mapToInt(Integer::intValue).sum());
        List<Item> items = Arrays.asList(new Item("a", 1.5), new Item("b", 2.5), new Item("a", 3));
        Map<String, Double> byK = items.stream().collect(Collectors.groupingBy(Item::getK, TreeMap::new, Collectors.summingDouble(Item::getW)));
        Optional<Item> top = items.stream().max(Comparator.comparingDouble(Item::getW).thenComparing(Item::getK));
        System.out.println(byK + top.get().k + items.stream().sorted(Comparator.comparing(Item::getK).thenComparing(Item::getW, Comparator.reverseOrder())).map(i -> i.k + i.w).collect(Collectors.toList()));
        System.out.println(pad("7", 3) + isPrime(97) + isPrime(91));
        List<List<Integer>> nested = new ArrayList<>(); for (int i = 0; i < 3; i++) { nested.add(new ArrayList<>(Collections.nCopies(2, i))); } nested.get(1).set(0, 9);
        StringBuilder sb = new StringBuilder(); sb.append(nested.size()).append(new int[]{1}.length); sb.append("|").append(new char[]{'x', 'y'}).append(Optional.of(3)); 
        System.out.println(sb);
        TreeMap<Long, Integer> win = new TreeMap<>(); for (long t = 0; t < 5; t++) { win.put(t * 10, 1); }
        SortedMap<Long, Integer> old = win.headMap(20L); int expired = old.size(); old.clear();
        System.out.println(expired + " " + win.size() + " " + win.tailMap(30L, false) + win.floorKey(35L));
        Iterator<Long> it = win.keySet().iterator(); while (it.hasNext()) { if (it.next() < 30) { it.remove(); } }
        win.entrySet().removeIf(e -> e.getKey() > 30); win.keySet().retainAll(Arrays.asList(30L)); System.out.println(win);
        Integer boxed = 127, other = 127; int prim = boxed + other; boxed++; boxed += 5; System.out.println(prim + " " + boxed);
        Ring r = new Ring(3); for (long v : new long[]{5, 6, 7, 8}) { r.put(v); } System.out.println(r.sum());
        double[] ws = {1.1, 2.2}; double acc = 0; for (double w : ws) { acc += w; } int cents = (int) (acc * 100); int dimes = (int) (acc * 10) * 10; long micro = (long) (acc * 1e6) / 7 * 7; double back = (int) (acc * 100) / 100.0; double frac = acc - (int) acc; int sub = 100 - (int) (acc * 10); int neg = -(int) (acc * 10) + 1;
        System.out.println(acc + " " + cents + " " + dimes + " " + micro + " " + back + " " + frac + " " + sub + " " + neg);
        int total = 0; for (Item i : items) { total += (int) (i.w * 3) * 2; } System.out.println(total);
        long start = 1_700_000_000_123L; long minute = start / 60000 * 60000; int sec = (int) (start / 1000 % 60); int bucket = (int) (start / 1000) % 300; int hash = (int) (start ^ (start >>> 32)); System.out.println(minute + " " + sec + " " + bucket + " " + hash);
        String[] grid = {"ab", "cd"}; String res = ""; for (int i = 0; i < grid.length; i++) for (int j = grid[i].length() - 1; j >= 0; j--) res += grid[i].charAt(j) + (j == 0 ? ";" : ""); System.out.println(res);
        Set<Double> ds = new TreeSet<>(Arrays.asList(2.5, -1.0, 2.5)); Set<Object> mix = new LinkedHashSet<>(Arrays.asList(1, 2.5, "1")); System.out.println(ds + " " + mix.size());
        List<Long> longs = new ArrayList<>(); longs.add(5L); System.out.println(longs.contains(5L) + " " + longs.indexOf(5L) + " " + longs.equals(Arrays.asList(5L)) + " " + longs.hashCode());
        Map<String, Integer> mm = new HashMap<>(); mm.put("a", null); System.out.println(mm.getOrDefault("a", 5) + " " + mm.containsKey("a") + mm.putIfAbsent("a", 3) + mm.get("a") + mm.merge("a", 1, (x, y) -> null) + mm);
    }
}
