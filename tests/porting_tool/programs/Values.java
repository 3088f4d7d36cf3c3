import java.util.*;
import java.util.regex.*;
import java.util.stream.*;

public class Values {
    enum Coin {
        PENNY(1) { int twice() { return 20; } }, DIME(10);
        final int cents;
        Coin(int cents) { this.cents = cents; }
        int twice() { return 2 * cents; }
    }

    interface Named { default String name2() { return "named"; } }
    static class Thing implements Named { int v = 3; class In { int v = 4; int sum() { return v + Values.Thing.this.v; } } }

    static int sum(int... xs) { int t = 0; for (int x : xs) { t += x; } return t; }

    @SuppressWarnings("finally")
    static int fin() { try { return 1; } finally { return 2; } }

    static int order = 0;
    static int tick() { return ++order; }

    static void arithmetic() {
        int a = -7;
        byte b = 100;
        b += 300;
        short s = (short) 40000;
        int i = 5;
        i += 3.7;
        int j = 3;
        j = j++ + ++j;
        long big = Long.MAX_VALUE + 1;
        int h = Integer.MAX_VALUE;
        h++;
        char c = 'a';
        c += 1;
        c++;
        int diff = c - 'a';
        System.out.println("arith " + a / 2 + " " + a % 3 + " " + Math.floorMod(a, 3) + " " + b + " " + s + " " + i + " " + j + " " + big + " " + h + " " + c + diff + " " + (char) (c + 1) + ('a' + 1) + 'a' + 1);
        System.out.println("casts " + (int) 3.99e10 + " " + (byte) 200 + " " + (int) -2.5 + " " + (long) Double.NaN + " " + (-8 >>> 28) + " " + (-8 >> 1) + " " + (1 << 33) + " " + 0xFFFFFFFF + " " + 010);
        long l = 9007199254740993L;
        double dd = 9007199254740992.0;
        System.out.println("mixed " + (l == dd) + " " + (0.1f == 0.1) + " " + (float) 16777217);
        float ff = 16777217;
        System.out.println("float " + (ff == 16777216) + " " + 1.0f / 3 + " " + (0.1f + 0.2f));
        Object o = true ? 1 : 2.0;
        Integer in = 7;
        Double du = 1.5;
        Object p = order == 0 ? in : du;
        System.out.println("ternary " + o + " " + p + " " + (order == 0 ? 'x' : 98) + " " + (order == 0 ? 'x' : i));
        System.out.println("round " + Math.round(-2.5) + Math.round(2.5) + Math.round(0.49999999999999994) + " " + String.format("%.2f %.1f %.0f %.3f %5.1f|%-6d|%06d|%,d %x %+d", 1.005, 0.25, 2.5, 1.0005, -0.04, 5, -42, 1234567, 255, 3));
    }

    static void boxes() {
        Long one = 1L;
        Map<Long, Integer> m = new HashMap<>();
        for (long k = -3; k < 4; k++) { m.put(k, 1); }
        System.out.println("longkeys " + m);
        Map<Double, Integer> d = new HashMap<>();
        for (int k = 0; k < 6; k++) { d.put(k * 0.5, k); }
        System.out.println("doublekeys " + d);
        Map<List<String>, Integer> lists = new HashMap<>();
        lists.put(Arrays.asList("a", "b"), 1);
        lists.merge(new ArrayList<>(Arrays.asList("a", "b")), 5, Integer::sum);
        Map<Character, Integer> cs = new HashMap<>();
        for (char c : "hello".toCharArray()) { cs.merge(c, 1, Integer::sum); }
        System.out.println("keys " + lists + cs);
        Integer[] boxed = {1, 2};
        System.out.println("copy " + Arrays.toString(Arrays.copyOf(boxed, 3)) + Arrays.toString(Arrays.copyOf(new int[0], 2)) + Arrays.toString(Arrays.copyOf(new boolean[]{true}, 2)));
        int[] x = {1}, y = {1};
        System.out.println("arrays " + x.equals(y) + Arrays.equals(x, y));
        Map<String, Integer> live = new TreeMap<>();
        Collection<Integer> values = live.values();
        Set<String> names = live.keySet();
        live.put("z", 1);
        names.remove("q");
        System.out.println("views " + values.size() + names.size());
    }

    static void texts() {
        Matcher m = Pattern.compile("[a-z]+").matcher("abc");
        System.out.println("matcher " + m.matches() + m.find());
        System.out.println("class " + "a[b]".replaceAll("[\\[\\]]", "_"));
        System.out.println("split " + Arrays.toString("a,b,,c,,".split(",")) + Arrays.toString("".split(",")) + Arrays.toString("a|b".split("|")) + Arrays.toString("a1b2".split("(?<=\\d)")));
        StringBuilder sb = new StringBuilder();
        sb.append('a' + 1).append((char) ('a' + 1)).append(1.0f).append(true).append((Object) null).insert(0, 12).reverse().deleteCharAt(0);
        System.out.println("sb " + sb + " " + "abc".indexOf('c', -5) + "abc".lastIndexOf("") + "abc".startsWith("c", -1));
        System.out.println("trim [" + "\u00a0 x \u2003".trim() + "][" + "\u2003x".strip() + "] " + "Straße".toUpperCase() + " " + "a".compareTo("abc") + " " + "x".equals(null));
        String s = null;
        s += "x";
        s += 'a' + 1;
        System.out.println(s + 1 + 2 + (1 + 2) + 'c' + 1.0 + 1e7 + 100f + null);
        try { System.out.println(Short.parseShort("40000")); } catch (NumberFormatException e) { System.out.println("no short"); }
    }

    static void flow() {
        StringBuilder out = new StringBuilder();
        outer:
        for (int i = 0; i < 4; i++) {
            for (int j = 0; j < 4; j++) {
                if (j == 2) { continue outer; }
                if (i == 3) { break outer; }
                out.append(i).append(j).append(' ');
            }
        }
        int k = 0;
        do { k++; if (k == 2) { continue; } out.append(k); } while (k < 4);
        List<Runnable> rs = new ArrayList<>();
        for (int i = 0; i < 3; i++) { final int q = i; rs.add(() -> out.append("r").append(q)); }
        for (String w : Arrays.asList("u", "v")) { rs.add(() -> out.append(w)); }
        for (Runnable r : rs) { r.run(); }
        System.out.println("flow " + out + fin() + sum() + sum(1, 2) + sum(new int[]{4, 5}));
        int[] arr = {1, 2, 3};
        int i = 0;
        arr[i++] += 10;
        arr[i] = i = 2;
        System.out.println("order " + Arrays.toString(arr) + i + (tick() + tick() * tick()));
        for (Coin c : Coin.values()) { System.out.print(c + "=" + c.twice() + " "); }
        System.out.println(Coin.valueOf("DIME").cents + " " + new Thing().name2());
    }

    static void streams() {
        System.out.println("streams " + IntStream.rangeClosed(1, 5).mapToObj(n -> n * n).collect(Collectors.toList())
            + Stream.of("bb", "a", "ccc").sorted(Comparator.comparing(String::length).reversed()).collect(Collectors.joining("|"))
            + Stream.of("x", "yy", "z").collect(Collectors.groupingBy(String::length, Collectors.counting()))
            + IntStream.of(1, 2).average().getAsDouble() + " " + Stream.of(3, 1, 2).max(Integer::compare).get());
        System.out.println("ints " + IntStream.of(Integer.MAX_VALUE, 1).sum() + " " + "banana".chars().filter(c -> c == 'a').count());
    }

    public static void main(String[] args) {
        arithmetic();
        boxes();
        texts();
        flow();
        streams();
    }
}
