import java.util.*;
import java.util.function.*;
public class Overloads {
    static String a(int n) { return "int"; } static String a(long n) { return "long"; } static String a(double n) { return "double"; } static String a(Object n) { return "Object"; }
    static String b(long n) { return "long"; } static String b(Integer n) { return "Integer"; } static String b(Object n) { return "Object"; }
    static String c(Object o) { return "Object"; } static String c(String s) { return "String"; } static String c(List<String> s) { return "List"; }
    static String d(int... xs) { return "varargs" + xs.length; } static String d(int x) { return "one"; } static String d(long x, long y) { return "two longs"; }
    static String e(Collection<Integer> c) { return "Collection"; } static String e(List<Integer> c) { return "List"; } static String e(Iterable<Integer> c) { return "Iterable"; }
    interface Handler<T> { String handle(T t); default String handle(T t, int n) { return handle(t) + n; } }
    static class Words implements Handler<String> { public String handle(String s) { return "w" + s; } String handle(Integer i) { return "i" + i; } }
    static class Base { protected int n = 1; private String secret() { return "base"; } String tell() { return secret() + n; } String m(Object o) { return "Base.O"; } String m(String s) { return "Base.S"; } static String kind() { return "base"; } String viaKind() { return kind(); } }
    static class Child extends Base { protected int n = 2; String secret() { return "child"; } String own() { return n + "" + ((Base) this).n; } @Override String m(Object o) { return "Child.O"; } String m(Integer i) { return "Child.I"; } static String kind() { return "child"; } }
    static class Grand extends Child { int n = 3; private String secret2() { return "x"; } String all() { return n + tell() + secret(); } @Override String m(Integer i) { return "Grand.I" + super.m(i); } }
    enum Level { LOW(1, "low"), HIGH(2, "high") { @Override String say(int n) { return "H" + n; } }; final int value; final String name; Level(int value, String name) { this.value = value; this.name = name; } String say(int n) { return "L" + n + name; } String say(String s) { return "S" + s + value; } }
    static class Shape { String area(double w) { return "d" + w; } String area(int w) { return "i" + w; } String area(char c) { return "c" + c; } }
    public static void main(String[] args) {
        byte by = 1; short sh = 2; char ch = 'c'; long lo = 4; float fl = 1.5f; Integer boxed = 7; Long lbox = 8L;
        System.out.println(a(by) + a(sh) + a(ch) + a(lo) + a(fl) + a(boxed) + a(lbox) + a("x") + a('x') + a(1 + 2L));
        System.out.println(b(1) + b(boxed) + b(lbox) + b("s") + b(ch));
        System.out.println(c(null == args ? "q" : "r") + c(new ArrayList<String>()) + c((Object) "x") + c(5));
        System.out.println(d() + d(1) + d(1, 2) + d(1, 2, 3) + d(new int[]{4}));
        Collection<Integer> col = new ArrayList<>(); Iterable<Integer> it = col; LinkedList<Integer> ll = new LinkedList<>(); Set<Integer> set = new HashSet<>();
        System.out.println(e(col) + e(it) + e(ll) + e(set) + e(new ArrayList<>(col)));
        Words w = new Words(); Handler<String> h = w; System.out.println(w.handle("a") + w.handle(1) + h.handle("b") + h.handle("c", 3));
        Base p = new Child(); Child q = new Grand(); Grand g = new Grand();
        System.out.println(p.tell() + q.tell() + q.own() + g.all() + p.n + q.n + g.n);
        System.out.println(p.m("s") + p.m((Object) "s") + p.m(1) + q.m(1) + q.m("s") + q.m((Object) 1) + g.m(2) + p.viaKind() + Child.kind() + Base.kind());
        System.out.println(Level.LOW.say(1) + Level.HIGH.say(1) + Level.HIGH.say("s") + Level.HIGH.value + Level.LOW.name + Level.HIGH.ordinal() + Level.valueOf("LOW").name());
        Shape s = new Shape(); Shape anon = new Shape() { @Override String area(int w) { return "anon" + w; } };
        System.out.println(s.area(1) + s.area(1L) + s.area('c') + s.area(1.5f) + anon.area(2) + anon.area(2.0) + anon.area(by));
    }
}
