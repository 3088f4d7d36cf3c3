// batches: 2
package topologies;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Optional;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** What throws in Java: bad indexes, nulls, casts, numbers, resources. */
public class ExceptionTraps {
    static class Resource implements AutoCloseable {
        private final List<String> log;
        private final String name;

        Resource(String name, List<String> log) {
            this.name = name;
            this.log = log;
            log.add("open " + name);
        }

        void use(int n) {
            if (n < 0) {
                throw new IllegalArgumentException(name + " got " + n);
            }
            log.add("use " + name);
        }

        @Override
        public void close() {
            log.add("close " + name);
        }
    }

    interface Step {
        Object run() throws Exception;
    }

    static String outcome(Step step) {
        try {
            return "fine: " + step.run();
        } catch (ArithmeticException e) {
            return "arithmetic: " + e.getMessage();
        } catch (IndexOutOfBoundsException e) {
            return "index";
        } catch (NumberFormatException e) {
            return "number: " + e.getMessage();
        } catch (NullPointerException e) {
            return "null";
        } catch (ClassCastException e) {
            return "cast";
        } catch (NoSuchElementException e) {
            return "element";
        } catch (UnsupportedOperationException e) {
            return "unsupported";
        } catch (IllegalArgumentException | IllegalStateException e) {
            return "illegal: " + e.getMessage();
        } catch (RuntimeException e) {
            return "runtime: " + e.getMessage() + " by " + (e.getCause() == null ? "nothing" : e.getCause().getMessage());
        } catch (Exception e) {
            return "checked: " + e.getMessage();
        }
    }

    private static int finished = 0;

    static int withFinally(int n) {
        try {
            if (n > 2) {
                return n;
            }
            finished += 10;
        } finally {
            finished++;
        }
        return -n;
    }

    public static class Indexes extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            int n = tuple.getInteger(0);
            int[] array = {1, 2, 3};
            List<String> list = new ArrayList<>(Arrays.asList("a", "b", "c"));
            String text = "abc";
            List<String> found = new ArrayList<>();
            found.add(outcome(() -> array[n]));
            found.add(outcome(() -> array[n - 4]));
            found.add(outcome(() -> list.get(n)));
            found.add(outcome(() -> list.get(n - 4)));
            found.add(outcome(() -> text.charAt(n)));
            found.add(outcome(() -> text.charAt(n - 4)));
            found.add(outcome(() -> text.substring(n)));
            found.add(outcome(() -> text.substring(1, n)));
            found.add(outcome(() -> 10 / (n - 2)));
            found.add(outcome(() -> 10 % (n - 2)));
            found.add(outcome(() -> 10.0 / (n - 2)));
            found.add(outcome(() -> list.remove(n)));
            found.add(outcome(() -> list.set(n, "d")));
            found.add(outcome(() -> list.subList(n - 1, 2).size()));
            found.add(outcome(() -> Math.addExact(Integer.MAX_VALUE, n)));
            collector.emit(new Values(found));
        }
    }

    public static class Nulls extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            int n = tuple.getInteger(0);
            String none = n > 0 ? null : "some";
            Integer boxed = n > 2 ? null : Integer.valueOf(n);
            Object any = n % 2 == 0 ? "text" : Integer.valueOf(n);
            List<String> found = new ArrayList<>();
            found.add(outcome(() -> none.length()));
            found.add(outcome(() -> boxed + 1));
            found.add(outcome(() -> any.equals(none)));
            found.add(outcome(() -> "x" + none));
            found.add(outcome(() -> Integer.parseInt(" 5")));
            found.add(outcome(() -> Integer.parseInt("+" + n)));
            found.add(outcome(() -> Integer.parseInt("99999999999")));
            found.add(outcome(() -> Long.parseLong("12L")));
            found.add(outcome(() -> Double.parseDouble("1.5d")));
            found.add(outcome(() -> Double.parseDouble("x")));
            found.add(outcome(() -> Boolean.parseBoolean("TRUE")));
            found.add(outcome(() -> Optional.ofNullable(none).map(String::length).orElse(-1)));
            found.add(outcome(() -> Optional.ofNullable(none).get()));
            found.add(outcome(() -> Optional.of(n).filter(v -> v > 2).isPresent()));
            collector.emit(new Values(found));
        }
    }

    public static class Flow extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            int n = tuple.getInteger(0);
            List<String> log = new ArrayList<>();
            finished = 0;
            String result = outcome(() -> {
                try (Resource first = new Resource("first", log); Resource second = new Resource("second", log)) {
                    first.use(n);
                    second.use(n - 2);
                    return "used";
                } finally {
                    log.add("finally");
                }
            });
            List<String> found = new ArrayList<>();
            found.add(result);
            found.add(log.toString());
            found.add(outcome(() -> withFinally(n)) + finished);
            found.add(outcome(() -> {
                throw new RuntimeException("outer", new IllegalStateException("inner"));
            }));
            found.add(outcome(() -> {
                throw new Exception("n is " + n);
            }));
            found.add(outcome(() -> {
                try {
                    Integer.parseInt("n" + n);
                    return "parsed";
                } catch (NumberFormatException e) {
                    throw new IllegalStateException("no number", e);
                }
            }));
            found.add(outcome(() -> {
                Iterator<Integer> iterator = List.of(1).iterator();
                iterator.next();
                return iterator.next();
            }));
            collector.emit(new Values(found));
        }
    }

    public static StormTopology buildTopology() {
        TridentTopology topology = new TridentTopology();
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("n"), 2, new Values(2), new Values(3), new Values(-1));
        var numbers = topology.newStream("numbers", spout);
        numbers.each(new Fields("n"), new Indexes(), new Fields("found"))
            .partitionPersist(new Recorder.Factory("indexes"), new Fields("n", "found"), new Recorder.Updater());
        numbers.each(new Fields("n"), new Nulls(), new Fields("found"))
            .partitionPersist(new Recorder.Factory("nulls"), new Fields("n", "found"), new Recorder.Updater());
        numbers.each(new Fields("n"), new Flow(), new Fields("found"))
            .partitionPersist(new Recorder.Factory("flow"), new Fields("n", "found"), new Recorder.Updater());
        return topology.build();
    }
}
