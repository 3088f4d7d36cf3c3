import java.util.*;
import java.util.stream.*;

public class Texts {
    public static void main(String[] args) {
        float f = 0.1f;
        System.out.print(f);
        System.out.println();
        StringBuilder sb = new StringBuilder("=");
        sb.insert(0, f);
        System.out.println("sb " + sb);
        double d = f;
        System.out.println(d + " " + (f + 1) + " " + (f * 2.0));
        long big = 3_000_000_000L;
        int n = (int) big;
        Map<Long, String> m = new HashMap<>();
        for (long k = -3; k < 4; k++) { m.put(k * 7, "v"); }
        System.out.println(m);
        Set<List<Integer>> sets = new HashSet<>();
        sets.add(Arrays.asList(1, 2)); sets.add(List.of(1, 2));
        System.out.println(sets.size());
        String csv = "a;b;;c;;";
        System.out.println(csv.split(";").length + " " + csv.split(";", -1).length + " " + csv.replace(";;", ";") + " " + "x.y".replaceAll(".", "z") + " " + "a$b".replaceAll("\\$", "\\\\") + " " + "aXbX".replaceFirst("X", "\\$0"));
        System.out.println(String.format("%-8s|%8.3f|%+.2e|%08d|%x|%c|%b|%5s|%.3s", "ab", 3.14159, 12345.678, 42, 255, 'z', true, null, "abcdef"));
        System.out.println(String.format("%.2f %.2f %.2f %.1f %.0f %.0f %.3f", 0.125, 0.135, 1.115, 0.05, 0.5, 1.5, 2.0005));
        System.out.println(IntStream.range(0, 4).mapToObj(i -> "n" + i).collect(Collectors.toCollection(TreeSet::new)).first() + Stream.iterate(1, i -> i * 2).limit(5).map(String::valueOf).collect(Collectors.joining(",")) + Stream.of(5, 3, 8).mapToInt(Integer::intValue).max().getAsInt() + Stream.of("a", "b", "a").distinct().count() + Arrays.stream(new int[]{1, 2, 3}).sum() + Stream.of("x", "y").reduce("", (a, b) -> b + a));
        System.out.println(Stream.of("apple", "bob", "cat", "alice").collect(Collectors.groupingBy(s -> s.charAt(0), TreeMap::new, Collectors.mapping(String::length, Collectors.toList()))) + " " + Stream.of(1, 2, 3, 4).collect(Collectors.partitioningBy(i -> i % 2 == 0)) + " " + Stream.of(1, 2).collect(Collectors.averagingInt(i -> i)));
        System.out.println("Hello".chars().mapToObj(c -> (char) c).map(String::valueOf).collect(Collectors.joining("-")) + " " + "hello".chars().map(c -> c - 'a').sum());
        int i = 0;
        i = i++ + ++i;
        int[] arr = {0, 0, 0};
        int p = 0;
        arr[p] = p = 2;
        arr[p--]--;
        System.out.println(i + Arrays.toString(arr) + p);
        char c = 'x';
        c++;
        int ci = c;
        char[] cs = {'d', 'a'};
        Arrays.sort(cs);
        System.out.println(c + ci + " " + c + ci + new String(cs) + String.valueOf(cs) + cs[0] + (char) (cs[1] - 1) + (cs[0] + cs[1]) + Character.getNumericValue('7') + ('7' - '0') + (c == 'y' ? 1 : 'b') + (ci > 0 ? c : 0) + (ci > 0 ? c : ci));
        Map<Character, List<String>> by = new TreeMap<>();
        for (String w : new String[]{"ant", "bee", "ape"}) { by.computeIfAbsent(w.charAt(0), k -> new ArrayList<>()).add(w); }
        System.out.println(by);
        boolean b = false;
        b |= true;
        b &= !b | true;
        System.out.println(b + " " + (b ? "y" : null) + " " + (5 > 3 == true) + " " + " " + new ArrayList<>(List.of(1)).equals(Arrays.asList(1)) + " " + "a".equals("A".toLowerCase()));
        Runnable[] rs = new Runnable[3];
        for (int k = 0; k < 3; k++) { int kk = k * k; rs[k] = () -> System.out.print(kk + " "); }
        for (Runnable r : rs) { r.run(); r.run(); }
        System.out.println();
    }
}
