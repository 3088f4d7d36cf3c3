// batches: 2
package topologies;

import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** What java.util.stream makes of the words of a line. */
public class StreamsOfWords {
    private static final Set<String> STOP_WORDS = Set.of("the", "a", "of");

    public static class Words extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            List<String> words = Arrays.stream(tuple.getString(0).toLowerCase().split("[^a-z]+"))
                .filter(word -> !word.isEmpty())
                .filter(word -> !STOP_WORDS.contains(word))
                .collect(Collectors.toList());
            collector.emit(new Values(words));
        }
    }

    public static class Summaries extends BaseFunction {
        @Override
        @SuppressWarnings("unchecked")
        public void execute(TridentTuple tuple, TridentCollector collector) {
            List<String> words = (List<String>) tuple.getValueByField("words");
            Map<String, Long> counts = words.stream()
                .collect(Collectors.groupingBy(Function.identity(), TreeMap::new, Collectors.counting()));
            String top = counts.entrySet().stream()
                .sorted(Map.Entry.<String, Long>comparingByValue(Comparator.reverseOrder()).thenComparing(Map.Entry.comparingByKey()))
                .limit(2)
                .map(entry -> entry.getKey() + "=" + entry.getValue())
                .collect(Collectors.joining(", ", "{", "}"));
            int letters = words.stream().mapToInt(String::length).sum();
            double mean = words.stream().mapToInt(String::length).average().orElse(0.0);
            Optional<String> longest = words.stream().max(Comparator.comparing(String::length).thenComparing(Comparator.naturalOrder()));
            boolean anyLong = words.stream().anyMatch(word -> word.length() > 6);
            boolean allShort = words.stream().allMatch(word -> word.length() < 5);
            List<String> distinct = words.stream().distinct().sorted(Comparator.reverseOrder()).collect(Collectors.toList());
            Map<Integer, List<String>> byLength = new TreeMap<>(words.stream().collect(Collectors.groupingBy(String::length)));
            Map<Boolean, Long> parts = words.stream().collect(Collectors.partitioningBy(w -> w.contains("o"), Collectors.counting()));
            String indexed = IntStream.range(0, words.size()).filter(i -> i % 2 == 0)
                .mapToObj(i -> i + ":" + words.get(i)).collect(Collectors.joining(" "));
            collector.emit(new Values(counts, top, letters, mean, longest.orElse("none"), anyLong, allShort, distinct,
                byLength.toString(), parts.get(true), indexed));
        }
    }

    public static class Letters extends BaseFunction {
        @Override
        @SuppressWarnings("unchecked")
        public void execute(TridentTuple tuple, TridentCollector collector) {
            List<String> words = (List<String>) tuple.getValue(0);
            TreeSet<Character> letters = words.stream().flatMapToInt(String::chars).mapToObj(c -> (char) c)
                .collect(Collectors.toCollection(TreeSet::new));
            String joined = letters.stream().map(String::valueOf).reduce("", String::concat);
            int product = Stream.iterate(1, i -> i + 1).limit(words.size() % 7).reduce(1, (a, b) -> a * b);
            List<Integer> lengths = words.stream().map(String::length).collect(Collectors.toList());
            Collections.sort(lengths);
            int sum = IntStream.rangeClosed(1, lengths.isEmpty() ? 0 : lengths.get(lengths.size() - 1)).map(i -> i * i).sum();
            Map<String, Integer> first = words.stream().filter(Objects::nonNull)
                .collect(Collectors.toMap(w -> w.substring(0, 1), String::length, Integer::sum, TreeMap::new));
            collector.emit(new Values(joined, product, lengths, sum, first.toString()));
        }
    }

    public static StormTopology buildTopology() {
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("line"), 2,
            new Values("The quick brown fox, the lazy dog; the FOX again: a fox of foxes"),
            new Values("of the a"),
            new Values("One fish two fish red fish blue fish"));
        TridentTopology topology = new TridentTopology();
        topology.newStream("lines", spout)
            .each(new Fields("line"), new Words(), new Fields("words"))
            .each(new Fields("words"), new Summaries(), new Fields("counts", "top", "letters", "mean", "longest", "anyLong",
                "allShort", "distinct", "byLength", "withO", "indexed"))
            .each(new Fields("words"), new Letters(), new Fields("alphabet", "product", "lengths", "squares", "first"))
            .partitionPersist(new Recorder.Factory("lines"), new Fields("words", "counts", "top", "letters", "mean", "longest",
                "anyLong", "allShort", "distinct", "byLength", "withO", "indexed", "alphabet", "product", "lengths", "squares",
                "first"), new Recorder.Updater());
        return topology.build();
    }
}
