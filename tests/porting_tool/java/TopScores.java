// batches: 3
package topologies;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.ListIterator;
import java.util.Map;
import java.util.NavigableMap;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.TreeMap;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.Stream;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseAggregator;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.operation.builtin.Debug;
import org.apache.storm.trident.operation.builtin.FirstN;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** The best of a batch: by queues, sorted maps and Trident's own. */
public class TopScores {
    public static class TopN extends BaseAggregator<PriorityQueue<Map.Entry<String, Integer>>> {
        private final int n;

        public TopN(int n) {
            this.n = n;
        }

        @Override
        public PriorityQueue<Map.Entry<String, Integer>> init(Object batchId, TridentCollector collector) {
            return new PriorityQueue<>(n, new Comparator<Map.Entry<String, Integer>>() {
                @Override
                public int compare(Map.Entry<String, Integer> a, Map.Entry<String, Integer> b) {
                    int result = a.getValue() - b.getValue();
                    return result == 0 ? b.getKey().compareTo(a.getKey()) : result;
                }
            });
        }

        @Override
        public void aggregate(PriorityQueue<Map.Entry<String, Integer>> queue, TridentTuple tuple, TridentCollector collector) {
            queue.offer(Map.entry(tuple.getString(0), tuple.getInteger(1)));
            if (queue.size() > n) {
                queue.poll();
            }
        }

        @Override
        public void complete(PriorityQueue<Map.Entry<String, Integer>> queue, TridentCollector collector) {
            LinkedList<String> best = new LinkedList<>();
            while (!queue.isEmpty()) {
                Map.Entry<String, Integer> entry = queue.poll();
                best.addFirst(entry.getKey() + ":" + entry.getValue());
            }
            collector.emit(new Values(best, best.isEmpty() ? null : best.getFirst()));
        }
    }

    public static class Totals extends BaseAggregator<Map<String, Integer>> {
        @Override
        public Map<String, Integer> init(Object batchId, TridentCollector collector) {
            return new HashMap<>();
        }

        @Override
        public void aggregate(Map<String, Integer> totals, TridentTuple tuple, TridentCollector collector) {
            String player = tuple.getString(0);
            if (totals.containsKey(player)) {
                totals.put(player, totals.get(player) + tuple.getInteger(1));
            } else {
                totals.put(player, tuple.getInteger(1));
            }
        }

        @Override
        public void complete(Map<String, Integer> totals, TridentCollector collector) {
            List<Map.Entry<String, Integer>> list = new ArrayList<Map.Entry<String, Integer>>(totals.entrySet());
            Collections.sort(list, new Comparator<Map.Entry<String, Integer>>() {
                public int compare(Map.Entry<String, Integer> o1, Map.Entry<String, Integer> o2) {
                    return o2.getValue().compareTo(o1.getValue()) != 0 ? o2.getValue().compareTo(o1.getValue())
                        : o1.getKey().compareTo(o2.getKey());
                }
            });
            Map<String, Integer> sorted = new LinkedHashMap<>();
            for (Map.Entry<String, Integer> entry : list) {
                sorted.put(entry.getKey(), entry.getValue());
            }
            int place = 1;
            for (String player : sorted.keySet()) {
                collector.emit(new Values(place++, player, sorted.get(player)));
            }
        }
    }

    /** Grades from a table of limits, and the last scores seen. */
    public static class Grade extends BaseFunction {
        private static final NavigableMap<Integer, String> GRADES = new TreeMap<>();
        private final Deque<Integer> last = new ArrayDeque<>();
        private final Queue<String> log = new LinkedList<>();
        private final Map<String, Integer> recent = new LinkedHashMap<String, Integer>(16, 0.75f, true) {
            @Override
            protected boolean removeEldestEntry(Map.Entry<String, Integer> eldest) {
                return size() > 2;
            }
        };

        static {
            GRADES.put(Integer.MIN_VALUE, "F");
            GRADES.put(20, "C");
            GRADES.put(40, "B");
            GRADES.put(60, "A");
        }

        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            String player = tuple.getStringByField("player");
            int score = tuple.getIntegerByField("score");
            last.addLast(score);
            if (last.size() > 3) {
                last.removeFirst();
            }
            log.add(player);
            recent.put(player, score);
            Map.Entry<Integer, String> floor = GRADES.floorEntry(score);
            Integer higher = GRADES.higherKey(score);
            List<Integer> numbers = new ArrayList<>(last);
            Iterator<Integer> iterator = numbers.iterator();
            while (iterator.hasNext()) {
                if (iterator.next() % 2 == 0) {
                    iterator.remove();
                }
            }
            numbers.add(0, numbers.size());
            numbers.remove(Integer.valueOf(score));
            for (ListIterator<Integer> it = numbers.listIterator(); it.hasNext();) {
                int value = it.next();
                it.set(value * 10);
            }
            Collections.reverse(numbers);
            collector.emit(new Values(floor.getValue(), floor.getKey() == Integer.MIN_VALUE ? 0 : score - floor.getKey(),
                higher == null ? "top" : higher.toString(), last.peekFirst(), last.peekLast(), log.peek(), log.size(), numbers,
                new ArrayList<>(recent.keySet()), GRADES.headMap(score, true).size(), GRADES.lastEntry().getValue()));
        }
    }

    public static class ScoreComparator implements Comparator<TridentTuple>, java.io.Serializable {
        @Override
        public int compare(TridentTuple o1, TridentTuple o2) {
            return Integer.compare(o1.getIntegerByField("score"), o2.getIntegerByField("score"));
        }
    }

    static class ByLetters implements Comparator<String>, java.io.Serializable {
        @Override
        public int compare(String a, String b) {
            return a.compareTo(b);
        }
    }

    public static StormTopology buildTopology() {
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("player", "score"), 4,
            new Values("ann", 35), new Values("bob", 61), new Values("ann", 40), new Values("cid", 35),
            new Values("dan", 7), new Values("bob", 22), new Values("bob", 60), new Values("eve", 7),
            new Values("ann", 19), new Values("fay", -4));
        TridentTopology topology = new TridentTopology();
        Stream scores = topology.newStream("scores", spout);
        scores.aggregate(new Fields("player", "score"), new TopN(2), new Fields("best", "first"))
            .partitionPersist(new Recorder.Factory("best"), new Fields("best", "first"), new Recorder.Updater());
        scores.aggregate(new Fields("player", "score"), new Totals(), new Fields("place", "player", "total"))
            .partitionPersist(new Recorder.Factory("totals"), new Fields("place", "player", "total"), new Recorder.Updater());
        scores.each(new Fields("player", "score"), new Grade(), new Fields("grade", "above", "next", "oldest", "newest", "head", "size",
                "odd", "recent", "below", "best"))
            .partitionPersist(new Recorder.Factory("grades"), new Fields("player", "grade", "above", "next", "oldest", "newest", "head",
                "size", "odd", "recent", "below", "best"), new Recorder.Updater());
        scores.maxBy("score")
            .partitionPersist(new Recorder.Factory("maxBy"), new Fields("player", "score"), new Recorder.Updater());
        scores.min(new ScoreComparator())
            .partitionPersist(new Recorder.Factory("min"), new Fields("player", "score"), new Recorder.Updater());
        scores.maxBy("player", new ByLetters())
            .partitionPersist(new Recorder.Factory("last"), new Fields("player", "score"), new Recorder.Updater());
        scores.applyAssembly(new FirstN(2, "score", true))
            .partitionPersist(new Recorder.Factory("firstN"), new Fields("player", "score"), new Recorder.Updater());
        return topology.build();
    }
}
