// batches: 6
package topologies;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.Stream;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.Aggregator;
import org.apache.storm.trident.operation.BaseAggregator;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.operation.TridentOperationContext;
import org.apache.storm.trident.testing.CountAsAggregator;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.trident.windowing.InMemoryWindowsStoreFactory;
import org.apache.storm.trident.windowing.WindowsStoreFactory;
import org.apache.storm.trident.windowing.config.SlidingCountWindow;
import org.apache.storm.trident.windowing.config.TumblingCountWindow;
import org.apache.storm.trident.windowing.config.WindowConfig;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Windows by count over clicks: tumbling and sliding. */
public class WindowedClicks {
    /** Which pages a window has, in the order of their first click. */
    public static class Pages implements Aggregator<Map<String, Integer>> {
        private int windows;

        @Override
        public void prepare(Map<String, Object> conf, TridentOperationContext context) {
            windows = 0;
        }

        @Override
        public void cleanup() {
        }

        @Override
        public Map<String, Integer> init(Object batchId, TridentCollector collector) {
            windows++;
            return new LinkedHashMap<>();
        }

        @Override
        public void aggregate(Map<String, Integer> val, TridentTuple tuple, TridentCollector collector) {
            val.compute(tuple.getStringByField("page"), (page, count) -> count == null ? 1 : count + 1);
        }

        @Override
        public void complete(Map<String, Integer> val, TridentCollector collector) {
            for (Map.Entry<String, Integer> entry : val.entrySet()) {
                collector.emit(new Values(entry.getKey(), entry.getValue()));
            }
        }
    }

    public static class Spread extends BaseAggregator<List<Long>> {
        @Override
        public List<Long> init(Object batchId, TridentCollector collector) {
            return new ArrayList<>();
        }

        @Override
        public void aggregate(List<Long> times, TridentTuple tuple, TridentCollector collector) {
            times.add(tuple.getLong(0));
        }

        @Override
        public void complete(List<Long> times, TridentCollector collector) {
            long least = Long.MAX_VALUE;
            long most = Long.MIN_VALUE;
            for (long time : times) {
                least = Math.min(least, time);
                most = Math.max(most, time);
            }
            collector.emit(new Values(times.size(), most - least));
        }
    }

    private static Stream clicks(TridentTopology topology, String name) {
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("page", "time"), 3,
            new Values("home", 10L), new Values("shop", 12L), new Values("home", 15L),
            new Values("cart", 17L), new Values("shop", 18L), new Values("shop", 30L),
            new Values("home", 31L), new Values("help", 33L), new Values("home", 40L),
            new Values("cart", 41L), new Values("pay", 43L), new Values("home", 47L),
            new Values("shop", 48L), new Values("shop", 49L));
        return topology.newStream(name, spout);
    }

    public static StormTopology buildTopology() {
        TridentTopology topology = new TridentTopology();
        WindowsStoreFactory store = new InMemoryWindowsStoreFactory();
        clicks(topology, "tumbling")
            .tumblingWindow(4, store, new Fields("page"), new Pages(), new Fields("page", "count"))
            .partitionPersist(new Recorder.Factory("tumbling"), new Fields("page", "count"), new Recorder.Updater());
        clicks(topology, "sliding")
            .slidingWindow(5, 3, new InMemoryWindowsStoreFactory(), new Fields("time"), new Spread(), new Fields("clicks", "spread"))
            .partitionPersist(new Recorder.Factory("sliding"), new Fields("clicks", "spread"), new Recorder.Updater());
        WindowConfig config = TumblingCountWindow.of(6);
        clicks(topology, "config")
            .window(config, new InMemoryWindowsStoreFactory(), new Fields("page"), new CountAsAggregator(), new Fields("count"))
            .partitionPersist(new Recorder.Factory("config"), new Fields("count"), new Recorder.Updater());
        clicks(topology, "bare")
            .window(SlidingCountWindow.of(4, 2), new Fields("page"), new CountAsAggregator(), new Fields("count"))
            .partitionPersist(new Recorder.Factory("bare"), new Fields("count"), new Recorder.Updater());
        return topology.build();
    }
}
