import java.util.*;

public class Members {
    static class A {
        private int f() { return 1; }
        int g() { return f(); }
    }
    static class B extends A {
        private int f() { return 2; }
        int h() { return f(); }
    }
    static class C {
        int x = 1;
        int getX() { return x; }
    }
    static class D extends C {
        int x = 2;
        int own() { return x; }
    }
    static class P {
        String add(int n) { return "P.int"; }
        String add(String s) { return "P.String"; }
    }
    static class Q extends P {
        @Override
        String add(String s) { return "Q.String"; }
    }

    static String show(double d) { return "double " + d; }
    static String show(long l) { return "long " + l; }

    static class Work {
        List<Integer> queue = new ArrayList<>();
        int at = 0;
        String[] parts = {"a", "b", "c"};
        int[] numbers = {1, 2, 3, 4};
        int limit = 4;
        int next() { return at++; }
        void expand(int n) { if (n < 3) { queue.add(n + 1); } }
        void shrink() { limit--; }
        String run() {
            queue.add(0);
            StringBuilder seen = new StringBuilder();
            for (int i = 0; i < queue.size(); i++) {
                seen.append(queue.get(i));
                expand(queue.get(i));
            }
            int rounds = 0;
            for (int i = 0; i < limit; i++) {
                shrink();
                rounds++;
            }
            parts[next()] += "x"; at = 0;
            numbers[next()] *= 5; at += 0;
            return seen + " " + rounds + " " + Arrays.toString(parts) + Arrays.toString(numbers) + at;
        }
    }

    static void casts() {
        double price = 19.99;
        int qty = 3;
        long cents = (long) (price * 100) * qty;
        double d = 2.7;
        double e = 2.7;
        int sum = (int) d + (int) e;
        Double boxed = 2.7;
        int both = boxed.intValue() + boxed.intValue();
        Number n = 3.9;
        long twice = n.longValue() * 2;
        System.out.println("casts " + cents + " " + sum + " " + both + " " + twice);
    }

    static void copies() {
        List<Integer> items = new ArrayList<>(Arrays.asList(1, 2, 3, 4, 5, 6));
        for (Integer x : new ArrayList<>(items)) {
            if (x < 5) {
                items.remove(x);
            }
        }
        System.out.println("copies " + items);
    }

    static void builders() {
        StringBuilder sb = new StringBuilder("abcd");
        for (int i = 1; i < sb.length(); i += 2) {
            sb.insert(i, '-');
        }
        Deque<Integer> dq = new ArrayDeque<>(Arrays.asList(1, 2, 3, 4, 5, 6));
        for (int i = 0; i < dq.size(); i++) {
            dq.pollFirst();
        }
        System.out.println("builders " + sb + " " + dq);
    }

    static void chars() {
        String s = "ab";
        int last = 1 < s.length() ? s.charAt(1) : -1;
        System.out.println("chars " + last);
        try {
            int none = 2 < s.length() ? s.charAt(2) : -1;
            System.out.println("chars " + none);
        } catch (RuntimeException ex) {
            System.out.println("chars failed");
        }
    }

    static void floats() {
        float f = 0.1f;
        System.out.print(f);
        System.out.println();
        StringBuilder sb = new StringBuilder("=");
        sb.insert(0, f);
    }

    public static void main(String[] args) {
        casts();
        B b = new B();
        System.out.println("private " + b.g() + b.h());
        D d = new D();
        System.out.println("hiding " + d.getX() + d.own());
        P p = new Q();
        System.out.println("overload " + p.add(5) + " " + p.add("x"));
        System.out.println("show " + show(5) + " " + show(5.5) + " " + show('a'));
        System.out.println("work " + new Work().run());
        copies();
        builders();
        chars();
        floats();
    }
}
