import java.util.*;
import java.util.function.*;
import java.util.stream.*;

public class Spreads {
    static int seq = 0;
    int field;
    int[] items = new int[4];
    static int next() { return ++seq; }
    static int[] numbers(int... all) { return all; }
    static String name(int x) { return "n" + switch (x) { case 1 -> "one"; default -> "more"; } + x; }
    void keep(int v) {
        field = switch (next()) { case 1 -> v; default -> v + 1; };
        items[2] = switch (v) { case 1 -> 5; default -> 6; };
    }

    public static void main(String[] args) {
        System.out.println(Stream.of("a b c".split(" ")).count() + " " + Stream.of("a,b", "c").flatMap(x -> Stream.of(x.split(","))).collect(Collectors.toList()));
        System.out.println(IntStream.of(numbers(3, 4)).sum() + " " + Stream.of(numbers(1, 2)).count() + " " + Stream.of(new Integer[]{4, 5}).mapToInt(x -> x).sum());
        List<String> words = new ArrayList<>();
        Collections.addAll(words, "x y".split(" "));
        System.out.println(words + " " + List.of("p q".split(" ")).size() + " " + Objects.hash((Object[]) "a b".split(" ")));
        int x = 4;
        int first = switch (next()) { case 1 -> 100; default -> 300; } + next();
        int sum = x + switch (x) { case 4 -> 1; default -> 2; };
        Function<Integer, String> letter = q -> switch (q) { case 1 -> "a"; default -> "b" + q; };
        System.out.println(first + " " + sum + " " + name(1) + letter.apply(1) + letter.apply(2));
        Spreads kept = new Spreads();
        kept.keep(1);
        System.out.println(kept.field + " " + kept.items[2]);
        int y = 2000000000;
        y = y + 0x5a827999;
        System.out.println(y + " " + (0x7fffffff + 1));
    }
}
