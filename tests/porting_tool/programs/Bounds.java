import java.util.*;
import java.util.regex.*;

public class Bounds {
    static int limit = 3;
    static void grow(List<String> q) { if (q.size() < 4) { q.add("n"); } }
    public static void main(String[] args) {
        String regex = "(\\w+)-(\\d+)"; Matcher m = Pattern.compile(regex).matcher("ab-12 cd-34");
        StringBuilder sb = new StringBuilder(); while (m.find()) { sb.append(m.group(1)).append(m.start()); }
        System.out.println(sb + " " + "x1y22".replaceAll("(\\d)(\\d)?", "[$1]") + " " + "a.b".split("\\.").length + " " + "ab12".matches("[a-z]+\\d{2}") + " " + Pattern.matches("\\p{Alpha}+", "abc") + " " + "tel: 5\n6".replaceAll("(?m)^.", "#") + " " + "a\tb  c".split("\\s+").length + "É".matches("\\w") + "x".matches("[^\\d\\s]"));
        System.out.println("äöü".toUpperCase() + "İ".length() + " " + "a\u0301".length() + " " + "ﬁ".toUpperCase() + " " + Character.isLetter('ß') + Character.isLetterOrDigit('_') + Character.isUpperCase('É') + (int) Character.toUpperCase('ß') + Character.isWhitespace('\u00a0'));
        int n = 0; for (int i = 0; i < limit; i++) { if (i == 1) { limit = 5; } n++; } System.out.println("limit " + n);
        List<String> q = new ArrayList<>(List.of("s")); int rounds = 0; for (int i = 0; i < q.size(); i++) { grow(q); rounds++; } System.out.println("grow " + rounds);
        List<String> other = q; int r2 = 0; for (int i = 0; i < q.size(); i++) { if (r2 < 2) { other.add("o"); } r2++; } System.out.println("alias " + r2);
        LinkedList<Integer> ll = new LinkedList<>(List.of(1, 2, 3, 4)); int left = 0; for (int i = 0; i < ll.size(); i++) { ll.removeFirst(); left++; } System.out.println("first " + left);
        Object[] xs = {1, "a", null}; System.out.println(Arrays.asList(xs) + " " + String.format("%s %s %s", xs) + " " + Arrays.toString(xs));
        StringBuilder p = new StringBuilder(); p.append("k=").append(List.of("v", "w")).append(Map.of("a", 1)).append(new TreeSet<>(List.of(2, 1))); System.out.println(p);
        System.out.println(String.valueOf((Object) null) + "z" + (char) 65 + (1 + 'a') + (char) (1 + 'a'));
        long id = 9007199254740993L; double asDouble = id; System.out.println((long) asDouble + " " + (asDouble == id) + " " + (id > asDouble) + " " + (double) id / 3);
        int a = 7, b = 2; double ratio = a / b; double exact = (double) a / b; int pct = (int) (exact * 100) / 7; int cents = (int) (ratio * 3.7) + (int) (exact * 1.3); System.out.println(ratio + " " + exact + " " + pct + " " + cents);
    }
}
