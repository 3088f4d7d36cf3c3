import java.util.*;
public class Initializers {
    enum Op { ADD("+"), SUB("-"); static final Map<String, Op> BY = new HashMap<>(); static int made = 3; static { for (Op o : values()) { BY.put(o.sign, o); } made++; } static final int N = BY.size(); final String sign; int rank = 1; { rank = 7; } int twice = rank * 2; Op(String s) { sign = s; } static Op of(String s) { return BY.get(s); } }
    static class I { int a; { a = 5; } int b = a * 2; I() { b++; } }
    static class S { static { v = 5; w = 6; } static int v = 3; static int w; static final int K = 4; static final String NAME = "k" + K; static List<String> made = new ArrayList<>(); static { made.add(NAME); } static int size = made.size(); static int again = twice(size); static int more = again + 1; static int twice(int n) { return n * 2; } }
    static class Chain { void go() { double d; int i; long l; d = i = 3; l = i = 4; System.out.println(d / 2 + " " + i / 2 + " " + l); } }
    public static void main(String[] args) {
        System.out.println(Op.values().length + " " + Op.of("-") + Op.made + Op.N + Op.ADD.rank + Op.ADD.twice);
        System.out.println(new I().b + " " + S.v + S.w + S.K + S.NAME + S.size + S.again + S.more);
        new Chain().go();
        System.out.println(U1.f() + U2.f());
    }
}
class U1 { static int limit = 2; static String f() { return "u1" + limit; } }
class U2 { static int limit = 3; static { limit = 9; } static int after = limit; static String f() { return "u2" + limit + after; } }
