import java.util.*;

public class Hiding {
    static int limit = 3;
    static void setLimit(int limit) { Hiding.limit = limit; }
    static int gcd(int a, int b) { return b == 0 ? a : gcd(b, a % b); }
    static List<String> words(String text) { return Arrays.asList(text.split(" ")); }
    static int two() { return 2; }

    public static void main(String[] args) {
        setLimit(8);
        System.out.println(limit);
        int gcd = gcd(12, 18);
        List<String> words = words("a b");
        for (String one : words(words.get(0) + " z")) { System.out.println(one + gcd + words); }
        Runnable run = () -> { int two = two(); System.out.println(two); };
        run.run();
        for (int two = 0; two < two(); two++) { System.out.println(two); }
        { int limit = 5; Hiding.limit++; limit++; System.out.println(limit + " " + Hiding.limit); }
        int limit = Hiding.limit * 2;
        System.out.println(limit + " " + Hiding.limit);
    }
}
