import java.util.*;
import java.util.stream.*;

public class Exceptions {
    static class A { static String who() { return "A"; } private String secret() { return "A"; } String call() { return secret() + who(); } int id() { return 1; } }
    static class B extends A { static String who() { return "B"; } String secret() { return "B"; } @Override int id() { return super.id() + 1; } }
    static class Opt { final String host; final int port; Opt() { this("h", 1); } Opt(String host) { this(host, 2); } Opt(String host, int port) { this.host = host; this.port = port; }  @Override public String toString() { return host + port; } }
    enum Op { ADD("+") { int run(int a, int b) { return a + b; } }, SUB("-") { int run(int a, int b) { return a - b; } }; final String sign; Op(String sign) { this.sign = sign; } abstract int run(int a, int b); static Op of(String s) { for (Op o : values()) { if (o.sign.equals(s)) { return o; } } throw new IllegalArgumentException("no " + s); } }
    record Pair(String k, int v) implements Comparable<Pair> { public int compareTo(Pair o) { return Integer.compare(v, o.v); } Pair plus(int n) { return new Pair(k, v + n); } }
    static class MyEx extends RuntimeException { final int code; MyEx(String m, int code) { super(m); this.code = code; } }
    static String tryAll(int n) {
        StringBuilder sb = new StringBuilder();
        try {
            try { if (n == 0) throw new MyEx("mine", 7); if (n == 1) { int[] a = new int[1]; a[n] = 2; } if (n == 2) { Object o = "s"; Integer i = (Integer) o; } if (n == 3) { String s = null; s.length(); } if (n == 4) { List.of(1).iterator().next(); new ArrayList<Integer>().iterator().next(); } sb.append("ok"); }
            catch (MyEx e) { sb.append(e.getMessage()).append(e.code); throw new IllegalStateException("wrapped", e); }
            finally { sb.append("F"); }
        } catch (IllegalStateException e) { sb.append(e.getMessage()).append(e.getCause().getMessage()); }
        catch (ArrayIndexOutOfBoundsException | ClassCastException e) { sb.append("AC"); }
        catch (RuntimeException e) { sb.append("R"); }
        return sb.toString();
    }
    static int counter;
    static int bump() { return ++counter; }
    static int pick(int... xs) { return xs.length == 0 ? -1 : xs[xs.length - 1]; }
    static String join(String sep, Object... xs) { StringBuilder b = new StringBuilder(); for (Object x : xs) { if (b.length() > 0) b.append(sep); b.append(x); } return b.toString(); }
    int f = 1;
    class In { int f = 2; int all() { int f = 3; return f + this.f + Exceptions.this.f; } void up() { Exceptions.this.f++; } }
    static List<Integer> order = new ArrayList<>();

    public static void main(String[] args) {
        System.out.println(new B().call() + B.who() + new B().id());
        System.out.println(new Opt() + " " + new Opt("x") + " " + new Opt("y", 5));
        System.out.println(Op.of("-").run(5, 3) + Op.ADD.sign + Op.ADD + Op.valueOf("SUB").ordinal());
        System.out.println(new Pair("a", 1).plus(2) + " " + new Pair("a", 1).equals(new Pair("a", 1)) + Collections.max(List.of(new Pair("q", 3), new Pair("r", 9))));
        for (int n = 0; n < 6; n++) { if (n == 3) { continue; } System.out.print(tryAll(n) + " "); }
        System.out.println();
        int[] slots = {0, 0, 0, 0, 0};
        slots[bump()] = bump();
        slots[bump() % 5] += 7;
        int v = bump() * 10 + bump();
        System.out.println(Arrays.toString(slots) + v + pick() + pick(1, 2) + join("-", 1, null, 'c', 2.5) + join("+"));
        Exceptions t = new Exceptions(); Exceptions.In in = t.makeIn(); in.up();
        System.out.println(in.all() + " " + t.f);
        Map<String, Double> prices = new LinkedHashMap<>();
        prices.put("tea", 2.5); prices.put("cake", 3.75);
        double sum = 0; int qty = 3;
        for (Map.Entry<String, Double> e : prices.entrySet()) { sum += e.getValue() * qty; int whole = (int) (e.getValue() * 10) % 7; System.out.print(whole + " "); }
        System.out.println(String.format("%.2f", sum) + " " + (int) sum / 2 + " " + (int) sum % 4 + " " + -(int) sum + " " + (long) sum / 4);
        String text = "a1b22c333"; int digits = 0, letters = 0, run = 0;
        for (int i = 0; i < text.length(); i++) { char c = text.charAt(i); if (Character.isDigit(c)) { digits = digits * 10 + (c - '0'); digits %= 1000; run++; } else { letters += c; } }
        System.out.println(digits + " " + letters + " " + run);
        char up = (char) ('a' - 32); up += 2; int ix = "ABCDEF".indexOf(up); String hex = Integer.toHexString((int) up) + Integer.toHexString(-5).toUpperCase();
        System.out.println(up + hex + ix + (char) (up | 0x20) + (up > 'B') + (up == 67));
        List<Integer> list = new ArrayList<>(List.of(1, 2, 3)); List<Integer> alias = list; alias.add(4); List<Integer> copy = new ArrayList<>(list); copy.add(5);
        Integer[] arr = list.toArray(new Integer[0]); arr[0] = 9;
        System.out.println(list + "" + copy + arr.length + list.equals(copy.subList(0, 4)) + list.contains(4) + Collections.frequency(list, 2));
        Map<String, List<String>> index = new HashMap<>();
        for (String w : List.of("tea", "ten", "dog")) { index.computeIfAbsent(w.substring(0, 2), k -> new ArrayList<>()).add(w); }
        System.out.println(index + " " + index.entrySet().stream().filter(e -> e.getValue().size() > 1).map(Map.Entry::getKey).collect(Collectors.toList()));
        Object[] objs = {1, 2L, 3.0, "4", 'c', null, new int[0].length};
        int nulls = 0; for (Object o : objs) { if (o == null) nulls++; }
        long bits = 0; for (int i = 0; i < 70; i += 7) { bits |= 1L << i; } bits ^= 0xFFL; bits >>>= 1;
        System.out.println(nulls + " " + Long.toBinaryString(bits) + " " + Long.bitCount(bits) + " " + (bits > 0 ? "pos" : "neg") + " " + (int) bits + " " + (short) bits + " " + (1 << -1) + " " + (-1L >>> 60));
        StringBuilder sb = new StringBuilder("hello"); sb.setCharAt(0, 'J'); sb.replace(1, 3, "EE").append(1).append('c').append(2.0).insert(2, true); sb.setLength(8); sb.delete(6, 100);
        System.out.println(sb + " " + sb.length() + sb.indexOf("E") + sb.reverse() + sb.charAt(0));
        int i = 10; i -= 3 - 1; i *= 2 + 1; i /= 4 - 1; i %= 5; i <<= 2; i |= 1; i ^= 3; int j = i-- - --i; boolean flag = i++ > 3 && j-- > 0 || ++j > 0;
        System.out.println(i + " " + j + flag + " " + (i > 2 ? i < 9 ? 1 : 2 : 3) + (5 - 3 - 1) + (2 * 3 % 4) + (7 - (3 - 2)) + -7 / 2 * 2 + (-7 % 2));
        Stack<Integer> st = new Stack<>(); st.push(1); st.push(2); Deque<Integer> dq = new ArrayDeque<>(); dq.push(1); dq.push(2); dq.addLast(3); Queue<Integer> qu = new LinkedList<>(List.of(1, 2)); qu.offer(3);
        System.out.println(st + "" + st.peek() + dq + dq.peekLast() + qu.poll() + qu + st.pop() + dq.pop());
    }
    In makeIn() { return new In(); }
}
