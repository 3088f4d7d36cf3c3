// batches: 2
package topologies;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Collections: the order of hash maps, views, keys of several types, what fails. */
public class CollectionTraps {
    static class Point {
        final int x;
        final int y;

        Point(int x, int y) {
            this.x = x;
            this.y = y;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Point && ((Point) other).x == x && ((Point) other).y == y;
        }

        @Override
        public int hashCode() {
            return 31 * x + y;
        }

        @Override
        public String toString() {
            return "(" + x + "," + y + ")";
        }
    }

    public static class HashOrders extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            int n = tuple.getInteger(0);
            Map<String, Integer> words = new HashMap<>();
            for (String word : "the quick brown fox jumps over the lazy dog and runs far away from here to there 0 1 10 100 Aa BB".split(" ")) {
                words.merge(word, n, Integer::sum);
            }
            Set<Integer> numbers = new HashSet<>();
            for (int i = 0; i < 20; i++) {
                numbers.add(i * i * n * 17 - 40);
            }
            Set<Object> mixed = new HashSet<>(Arrays.<Object>asList(4L, 2.5, "two", 'c', true, 1L << 40, -3, null, 0.1));
            Map<Point, String> points = new HashMap<>();
            for (int i = 0; i < 5; i++) {
                points.put(new Point(n % 3, i * i), "p" + i);
            }
            points.put(new Point(n % 3, 4), "again");
            Set<List<Integer>> lists = new HashSet<>();
            lists.add(Arrays.asList(3, n));
            lists.add(List.of(3, n));
            lists.add(Collections.singletonList(n));
            StringBuilder keys = new StringBuilder();
            for (Map.Entry<String, Integer> entry : words.entrySet()) {
                keys.append(entry.getKey()).append(entry.getValue()).append(' ');
            }
            collector.emit(new Values(Arrays.<Object>asList(keys.toString(), numbers.toString(), mixed.toString(), points.toString(),
                new ArrayList<>(words.values()), lists.size(), lists.toString(), points.get(new Point(n % 3, 9)))));
        }
    }

    public static class Keys extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            int n = tuple.getInteger(0);
            Map<Object, String> any = new LinkedHashMap<>();
            any.put(1, "int");
            any.put(2.5, "double");
            any.put("1", "text");
            any.put(false, "boolean");
            any.put(null, "null");
            Map<String, List<Integer>> groups = new TreeMap<>(Collections.reverseOrder());
            for (int i = 0; i < 6; i++) {
                groups.computeIfAbsent(i % n == 0 ? "yes" : "no", key -> new ArrayList<>()).add(i);
            }
            groups.computeIfPresent("yes", (key, list) -> list.size() > 2 ? null : list);
            Map<Character, Integer> letters = new TreeMap<>();
            for (char c : "mississippi".toCharArray()) {
                letters.put(c, letters.containsKey(c) ? letters.get(c) + 1 : 1);
            }
            String before = any.put(1, "changed");
            String gone = any.remove("1");
            String none = any.putIfAbsent("x", "new");
            Map<Integer, Integer> counts = new HashMap<>();
            for (int i = 0; i < 5; i++) {
                Integer count = counts.get(i % 2);
                counts.put(i % 2, count == null ? 1 : count + 1);
            }
            Map<String, Integer> sorted = counts.entrySet().stream().sorted((a, b) -> b.getValue() - a.getValue())
                .collect(Collectors.toMap(e -> "k" + e.getKey(), Map.Entry::getValue, (a, b) -> a, LinkedHashMap::new));
            collector.emit(new Values(Arrays.<Object>asList(any.toString(), any.size(), any.get(1), any.get(false), groups.toString(), letters.toString(),
                before, gone, none, any.containsValue("null"), sorted.toString(), new TreeSet<>(Arrays.asList("b", "B", "a")).toString(),
                new TreeMap<>(Map.of(3, "c", 1, "a", 2, "b")).descendingMap().toString())));
        }
    }

    public static class Lists extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            int n = tuple.getInteger(0);
            List<Integer> numbers = new ArrayList<>(List.of(5, 3, 8, 3, n));
            numbers.remove(1);
            numbers.remove(Integer.valueOf(8));
            numbers.add(1, 7);
            List<Integer> view = numbers.subList(1, 3);
            int sum = 0;
            for (int number : view) {
                sum += number;
            }
            view.set(0, 70);
            List<Integer> copy = new ArrayList<>(numbers);
            Collections.swap(copy, 0, 1);
            Collections.addAll(copy, 1, 2);
            copy.removeAll(Arrays.asList(1, 3));
            copy.retainAll(new HashSet<>(Arrays.asList(5, 70, 2, n)));
            copy.replaceAll(value -> value * 2);
            boolean removed = copy.removeIf(value -> value > 100);
            Integer[] array = copy.toArray(new Integer[0]);
            int[][] matrix = {{1, 2, 3}, {4, 5, 6}};
            int[] row = matrix[1].clone();
            row[0] = 40;
            List<List<Integer>> nested = new ArrayList<>();
            for (int[] line : matrix) {
                List<Integer> one = new ArrayList<>();
                for (int value : line) {
                    one.add(value * n);
                }
                nested.add(one);
            }
            Integer[] ordered = {3, 1, 2};
            Arrays.sort(ordered, Collections.reverseOrder());
            String[] words = {"pear", "fig", "apple"};
            Arrays.sort(words, (a, b) -> a.length() - b.length());
            double[] zeros = new double[2];
            boolean[] flags = new boolean[2];
            String[] nulls = new String[2];
            long[] filled = new long[3];
            Arrays.fill(filled, 7L);
            Set<Integer> union = new LinkedHashSet<>(numbers);
            union.addAll(copy);
            boolean added = union.add(n);
            collector.emit(new Values(Arrays.<Object>asList(numbers, sum, copy, removed, array.length, nested, Arrays.toString(ordered),
                Arrays.asList(words), zeros, flags, nulls, filled, union.toString(), added, Arrays.deepToString(matrix), row[0] + matrix[1][0],
                numbers.indexOf(3), numbers.contains(70), numbers.equals(new ArrayList<>(numbers)), Collections.frequency(numbers, 3),
                Collections.max(numbers), Collections.disjoint(numbers, copy), Arrays.stream(row).max().getAsInt(), Arrays.equals(row, matrix[1]),
                Arrays.asList(1, 2).hashCode(), List.of().isEmpty(), numbers.subList(0, 2).toString())));
        }
    }

    public static StormTopology buildTopology() {
        TridentTopology topology = new TridentTopology();
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("n"), 2, new Values(2), new Values(3), new Values(-5));
        var numbers = topology.newStream("numbers", spout);
        numbers.each(new Fields("n"), new HashOrders(), new Fields("found"))
            .partitionPersist(new Recorder.Factory("hashes"), new Fields("n", "found"), new Recorder.Updater());
        numbers.each(new Fields("n"), new Keys(), new Fields("found"))
            .partitionPersist(new Recorder.Factory("keys"), new Fields("n", "found"), new Recorder.Updater());
        numbers.each(new Fields("n"), new Lists(), new Fields("found"))
            .partitionPersist(new Recorder.Factory("lists"), new Fields("n", "found"), new Recorder.Updater());
        return topology.build();
    }
}
