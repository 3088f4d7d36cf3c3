// batches: 3
// unordered: rows
package topologies;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.Stream;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseAggregator;
import org.apache.storm.trident.operation.CombinerAggregator;
import org.apache.storm.trident.operation.ReducerAggregator;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.operation.builtin.Count;
import org.apache.storm.trident.operation.builtin.Sum;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.testing.MemoryMapState;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Aggregates of every kind: over a batch, a partition, groups and states. */
public class SalesAggregates {
    /** Sums and counts for a mean. */
    static class MeanState {
        double sum = 0;
        int count;
    }

    public static class Mean extends BaseAggregator<MeanState> {
        @Override
        public MeanState init(Object batchId, TridentCollector collector) {
            return new MeanState();
        }

        @Override
        public void aggregate(MeanState state, TridentTuple tuple, TridentCollector collector) {
            state.sum += tuple.getDoubleByField("price");
            state.count++;
        }

        @Override
        public void complete(MeanState state, TridentCollector collector) {
            if (state.count > 0) {
                collector.emit(new Values(state.sum / state.count));
            }
        }
    }

    public static class CountByShop extends BaseAggregator<Map<String, Integer>> {
        @Override
        public Map<String, Integer> init(Object batchId, TridentCollector collector) {
            return new HashMap<String, Integer>();
        }

        @Override
        public void aggregate(Map<String, Integer> val, TridentTuple tuple, TridentCollector collector) {
            String shop = tuple.getStringByField("shop");
            Integer previousValue = val.get(shop);
            previousValue = previousValue == null ? 0 : previousValue;
            val.put(shop, previousValue + 1);
        }

        @Override
        public void complete(Map<String, Integer> val, TridentCollector collector) {
            collector.emit(new Values(val));
        }
    }

    public static class Names implements CombinerAggregator<String> {
        @Override
        public String init(TridentTuple tuple) {
            return tuple.getString(0).toUpperCase();
        }

        @Override
        public String combine(String left, String right) {
            if (left == null) {
                return right;
            } else if (right == null) {
                return left;
            }
            return left.compareTo(right) <= 0 ? left : right;
        }

        @Override
        public String zero() {
            return null;
        }
    }

    public static class Collect implements ReducerAggregator<List<Double>> {
        @Override
        public List<Double> init() {
            return new ArrayList<>();
        }

        @Override
        public List<Double> reduce(List<Double> list, TridentTuple tuple) {
            List<Double> next = new ArrayList<>(list);
            next.add(tuple.getDouble(0));
            return next;
        }
    }

    public static class Dearest implements ReducerAggregator<Map<String, Double>> {
        @Override
        public Map<String, Double> init() {
            return null;
        }

        @Override
        public Map<String, Double> reduce(Map<String, Double> old, TridentTuple tuple) {
            Map<String, Double> next = old == null ? new HashMap<>() : new HashMap<>(old);
            next.merge(tuple.getString(0), tuple.getDouble(1), Math::max);
            return next;
        }
    }

    public static StormTopology buildTopology() {
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("shop", "item", "amount", "price"), 4,
            new Values("north", "tea", 2, 3.5), new Values("south", "cup", 1, 12.0), new Values("north", "cup", 3, 11.5),
            new Values("north", "jar", 5, 0.5),
            new Values("west", "tea", 1, 4.25), new Values("south", "tea", 9, 3.75), new Values("south", "jar", 2, 0.75),
            new Values("west", "cup", 1, 13.0),
            new Values("north", "tea", 4, 3.0));
        TridentTopology topology = new TridentTopology();
        Stream sales = topology.newStream("sales", spout);

        sales.aggregate(new Fields("price"), new Mean(), new Fields("mean"))
            .partitionPersist(new Recorder.Factory("mean"), new Fields("mean"), new Recorder.Updater());
        sales.partitionAggregate(new Fields("shop"), new CountByShop(), new Fields("shops"))
            .partitionPersist(new Recorder.Factory("shops"), new Fields("shops"), new Recorder.Updater());
        sales.groupBy(new Fields("shop"))
            .aggregate(new Fields("price"), new Mean(), new Fields("mean"))
            .partitionPersist(new Recorder.Factory("meanByShop"), new Fields("shop", "mean"), new Recorder.Updater());
        sales.groupBy(new Fields("item"))
            .aggregate(new Fields("shop"), new Names(), new Fields("first"))
            .partitionPersist(new Recorder.Factory("firstByItem"), new Fields("item", "first"), new Recorder.Updater());
        sales.chainedAgg()
            .partitionAggregate(new Count(), new Fields("count"))
            .partitionAggregate(new Fields("amount"), new Sum(), new Fields("sum"))
            .chainEnd()
            .partitionPersist(new Recorder.Factory("chained"), new Fields("count", "sum"), new Recorder.Updater());
        sales.groupBy(new Fields("shop")).chainedAgg()
            .aggregate(new Count(), new Fields("count"))
            .aggregate(new Fields("amount"), new Sum(), new Fields("sum"))
            .chainEnd()
            .partitionPersist(new Recorder.Factory("chainedByShop"), new Fields("shop", "count", "sum"), new Recorder.Updater());
        sales.aggregate(new Fields("price"), new Collect(), new Fields("prices"))
            .partitionPersist(new Recorder.Factory("prices"), new Fields("prices"), new Recorder.Updater());
        sales.groupBy(new Fields("shop"))
            .persistentAggregate(new MemoryMapState.Factory(), new Fields("item", "price"), new Dearest(), new Fields("dearest"))
            .newValuesStream()
            .partitionPersist(new Recorder.Factory("dearest"), new Fields("shop", "dearest"), new Recorder.Updater());
        sales.persistentAggregate(new MemoryMapState.Factory(), new Fields("amount"), new Sum(), new Fields("total"))
            .newValuesStream()
            .partitionPersist(new Recorder.Factory("total"), new Fields("total"), new Recorder.Updater());
        return topology.build();
    }
}
