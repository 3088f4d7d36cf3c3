// batches: 2
package topologies;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.IntBinaryOperator;
import java.util.function.Supplier;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** What the language does unlike others: promotion, evaluation order, capture, overloads, initialization. */
public class LanguageTraps {
    private static final int WIDTH = Integer.MAX_VALUE / 2 + 1;
    private static int calls = 0;

    private final int base;
    private int total = 10;

    {
        total *= 2;
    }

    LanguageTraps(int base) {
        this.base = base;
        total += base;
    }

    static String kind(Object any) {
        return "object";
    }

    static String kind(String text) {
        return "text";
    }

    static String kind(int number) {
        return "int";
    }

    static String kind(long number) {
        return "long";
    }

    static String kind(double number) {
        return "double";
    }

    static String kind(char letter) {
        return "char";
    }

    static int next() {
        return ++calls;
    }

    class Inner {
        final int doubled = base * 2;

        int sum(int base) {
            return base + this.doubled + LanguageTraps.this.base + total;
        }
    }

    Inner inner() {
        return new Inner();
    }

    private static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    private static long collatz(long n) {
        long steps = 0;
        while (n != 1) {
            n = (n & 1) == 0 ? n >> 1 : 3 * n + 1;
            steps++;
        }
        return steps;
    }

    public static class Arithmetic extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            int n = tuple.getInteger(0);
            Object promoted = n > 0 ? 1 : 2.0;
            int narrowed = n;
            narrowed += 3.7;
            narrowed -= 0.5;
            byte small = (byte) 200;
            small += n;
            char letter = 'a';
            letter += n;
            short wide = (short) (letter * 1000);
            int mixed = 'a' + 'b';
            String text = 'a' + n + "b" + 'c' + n + 1 + null + 2.0f;
            long shifted = 1 << 33;
            long wider = 1L << 33;
            int divided = -7 / 2 * 2 + -7 % 2;
            double real = 7 / 2 + 7 / 2.0;
            int huge = WIDTH * 2 + n;
            long sum = Integer.MAX_VALUE + 1;
            long right = Integer.MAX_VALUE + 1L;
            boolean same = 0.1 + 0.2 == 0.3 || 0.1f + 0.2f == 0.3f;
            int xor = n ^ 0b1010 | 0x10 & ~1;
            collector.emit(new Values("arithmetic", Arrays.<Object>asList(promoted, narrowed, small, letter, wide, mixed, text, shifted,
                wider, divided, real, huge, sum, right, same, xor, 1_000_000 * n, 5 / 2 == 2, (char) (letter + 1), (int) letter,
                1.0 / 0 > 1e308, 0.0 / 0 != 0.0 / 0, (long) 1e19, (int) Double.NaN, 010 + n, 'x' > n)));
        }
    }

    public static class Order extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            int n = tuple.getInteger(0);
            calls = 0;
            int first = next() + next() * next();
            int i = 1;
            int[] numbers = new int[6];
            numbers[i++] = n;
            numbers[i] = n++ + ++n;
            numbers[--i] += n;
            int k = i++ + i--;
            i = i++ + 1;
            int a;
            int b;
            a = b = n;
            b -= 2;
            a += b;
            boolean both = next() > 100 && next() > 0;
            boolean either = next() > 0 || next() > 0;
            boolean eager = next() > 100 & next() > 0;
            int x = 5;
            x = x++ * 2 + x;
            String found = n > 2 ? n > 3 ? "big" : "three" : n < 0 ? "negative" : "small";
            collector.emit(new Values("order", Arrays.<Object>asList(first, numbers, i, k, a, b, both, either, eager, calls, x, found)));
        }
    }

    public static class Capture extends BaseFunction {
        private int count;

        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            int n = tuple.getInteger(0);
            List<Supplier<Integer>> suppliers = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                int square = i * i;
                suppliers.add(() -> square + n);
            }
            for (String word : new String[] {"x", "yy"}) {
                suppliers.add(() -> word.length() + ++count);
            }
            List<Integer> supplied = new ArrayList<>();
            for (Supplier<Integer> supplier : suppliers) {
                supplied.add(supplier.get());
            }
            int[] counter = {0};
            Runnable add = () -> counter[0] += n;
            add.run();
            add.run();
            IntBinaryOperator power = (base, exponent) -> {
                int result = 1;
                for (int i = 0; i < exponent; i++) {
                    result *= base;
                }
                return result;
            };
            Map<String, Function<Double, Double>> functions = new HashMap<>();
            functions.put("half", value -> value / 2);
            functions.put("root", Math::sqrt);
            collector.emit(new Values("capture", Arrays.<Object>asList(supplied, counter[0], power.applyAsInt(n, 11),
                functions.get("half").compose(functions.get("root")).apply(16.0), count)));
        }
    }

    public static class Members extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            int n = tuple.getInteger(0);
            LanguageTraps traps = new LanguageTraps(n);
            Inner inner = traps.inner();
            traps.total++;
            Object boxed = n;
            collector.emit(new Values("members", Arrays.<Object>asList(traps.total, inner.sum(1), inner.doubled, kind(n), kind(2L * n), kind(n / 2.0),
                kind('n'), kind("n"), kind(boxed), kind((Object) "n"), fibonacci(n + 3), collatz(n + 27))));
        }
    }

    public static class Loops extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            int n = tuple.getInteger(0);
            StringBuilder seen = new StringBuilder();
            for (int i = 0, j = 10; i < j; i += 2, j--) {
                if (i == 4) {
                    continue;
                }
                seen.append(i).append(j).append(' ');
            }
            int left = n;
            do {
                left -= 2;
                if (left == 1) {
                    continue;
                }
                seen.append(left);
            } while (left > 0);
            outer:
            while (true) {
                for (int i = 0; ; i++) {
                    if (i > n) {
                        break outer;
                    }
                    if (i % 2 == 1) {
                        continue;
                    }
                    switch (i) {
                        case 0:
                        case 2:
                            seen.append('t');
                            break;
                        case 6:
                            continue outer;
                        default:
                            seen.append('d');
                    }
                }
            }
            int size = 5;
            for (int i = 0; i < size; i++) {
                if (i == 2) {
                    size = 3;
                    i++;
                }
            }
            for (char c = 'a'; c <= 'e'; c += 2) {
                seen.append(c);
            }
            int digits = 0;
            for (long rest = 1234567890123L * n; rest != 0; rest /= 10) {
                digits += rest % 10;
            }
            int bits = 0;
            for (int rest = -n; rest != 0; rest >>>= 1) {
                bits++;
            }
            collector.emit(new Values("loops", Arrays.<Object>asList(seen.toString(), size, digits, bits)));
        }
    }

    public static StormTopology buildTopology() {
        TridentTopology topology = new TridentTopology();
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("n"), 2, new Values(3), new Values(-4), new Values(5));
        var numbers = topology.newStream("numbers", spout);
        BaseFunction[] functions = {new Arithmetic(), new Order(), new Capture(), new Members(), new Loops()};
        String[] names = {"arithmetic", "order", "capture", "members", "loops"};
        for (int i = 0; i < functions.length; i++) {
            numbers.each(new Fields("n"), functions[i], new Fields("trap", "found"))
                .partitionPersist(new Recorder.Factory(names[i]), new Fields("n", "found"), new Recorder.Updater());
        }
        return topology.build();
    }
}
