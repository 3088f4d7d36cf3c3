import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Random;

/** Prints what Java makes of some values, as JSON lines: what is computed, of what, and the result. `java Semantics.java`. */
public class Semantics {
    static final int[] WHOLE = {0, 1, -1, -7, 7, 31, -32, 46341, Integer.MAX_VALUE, Integer.MIN_VALUE};
    static final double[] DOUBLES = {0.0, -0.0, 1.0, -1.5, 2.5, 0.1, 1e-3, 9.999e-4, 1e7, 12345678.9, 5e-324, 1.0 / 3, -2.345,
        1e300, 0.30000000000000004, 123.0, Double.NaN, Double.POSITIVE_INFINITY};
    static final String[] TEXTS = {"", "a", "hello", "the cow jumped", "b,,a,,", ",x", " 12 ", "-7", "2147483648", "é€", "1.5", "0x1f"};

    static void say(String what, Object result, Object... arguments) {
        StringBuilder line = new StringBuilder("[\"" + what + "\", [");
        for (int i = 0; i < arguments.length; i++) {
            line.append(i > 0 ? ", " : "").append(json(arguments[i]));
        }
        System.out.println(line + "], " + json(result) + "]");
    }

    static String json(Object value) {
        if (value instanceof List) {
            List<String> parts = new ArrayList<>();
            for (Object one : (List<?>) value) {
                parts.add(json(one));
            }
            return "[" + String.join(", ", parts) + "]";
        }
        if (value instanceof String) {
            StringBuilder text = new StringBuilder("\"");
            for (char c : ((String) value).toCharArray()) {
                text.append(c < 32 || c > 126 || c == '"' || c == '\\' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
            }
            return text.append('"').toString();
        }
        return String.valueOf(value);
    }

    public static void main(String[] args) {
        Locale.setDefault(Locale.ROOT);
        for (int a : WHOLE) {
            for (int b : WHOLE) {
                if (b != 0 && !(a == Integer.MIN_VALUE && b == -1)) {
                    say("quotient", a / b, a, b);
                    say("remainder", a % b, a, b);
                }
                say("to_int *", a * b, a, b);
                say("shift_right", a >>> b, a, b);
            }
        }
        for (double a : DOUBLES) {
            say("to_text", String.valueOf(a), a);
            say("to_int", (int) a, a);
            say("to_long", (long) a, a);
            say("round_half_up", Math.round(a), a);
            say("hash_code", Double.hashCode(a), a);
            say("float_text", String.valueOf((float) a), a);
            say("%.2f", String.format("%.2f", a), a);
            say("%,10.1f", String.format("%,10.1f", a), a);
            say("%e", String.format("%e", a), a);
            for (double b : new double[] {0.0, -0.0, 1.0, -1.5, 1e300, Double.NaN, Double.POSITIVE_INFINITY}) {
                say("divide", a / b, a, b);
                say("remainder", a % b, a, b);
                say("compare_doubles", Double.compare(a, b), a, b);
                say("power", Math.pow(a, b), a, b);
            }
        }
        for (String text : TEXTS) {
            say("hash_code", text.hashCode(), text);
            say("split ,", List.of(text.split(",")), text);
            say("split ,-1", List.of(text.split(",", -1)), text);
            say("split empty", List.of(text.split("")), text);
            say("trim", text.trim(), text);
            say("%-6s|%6.3s", String.format("%-6s|%6.3s", text, text), text);
            say("parse_int", parsed(text), text);
            say("replace_all", text.replaceAll("([a-z])([a-z])", "$2$1"), text);
        }
        List<String> words = List.of("the cow jumped over the moon and went to the store for some candy four score and seven years ago".split(" "));
        say("HashSet", new ArrayList<>(new HashSet<>(words)), words);
        HashMap<String, Integer> counts = new HashMap<>();
        for (String word : words) {
            counts.merge(word, 1, Integer::sum);
        }
        say("HashMap", counts.toString(), words);
        Random random = new Random(42);
        List<Object> drawn = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            Collections.addAll(drawn, random.nextInt(), random.nextInt(10), random.nextInt(16), random.nextLong(), random.nextDouble(),
                random.nextBoolean(), random.nextGaussian());
        }
        say("Random", drawn, 42);
        List<Integer> order = new ArrayList<>(List.of(1, 2, 3, 4, 5, 6, 7));
        Collections.shuffle(order, new Random(7));
        say("shuffle", order, 7);
    }

    static Object parsed(String text) {
        try {
            return Integer.parseInt(text);
        } catch (NumberFormatException e) {
            return e.getMessage();
        }
    }
}
