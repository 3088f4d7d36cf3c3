// batches: 3
// unordered: rows
package topologies;

import java.util.HashMap;
import java.util.Map;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.Stream;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.MultiReducer;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.operation.TridentMultiReducerContext;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.testing.Split;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Feeds of news that are merged, and reduced together. */
public class MergedFeeds {
    private static final int LEFT = 0;

    public static class Balance implements MultiReducer<Map<String, Integer>> {
        @Override
        public void prepare(Map<String, Object> conf, TridentMultiReducerContext context) {
        }

        @Override
        public Map<String, Integer> init(TridentCollector collector) {
            return new HashMap<>();
        }

        @Override
        public void execute(Map<String, Integer> state, int streamIndex, TridentTuple input, TridentCollector collector) {
            String word = input.getString(0);
            int sign = streamIndex == LEFT ? 1 : -1;
            state.put(word, state.getOrDefault(word, 0) + sign);
        }

        @Override
        public void complete(Map<String, Integer> state, TridentCollector collector) {
            state.entrySet().removeIf(entry -> entry.getValue() == 0);
            state.forEach((word, balance) -> collector.emit(new Values(word, balance)));
        }

        @Override
        public void cleanup() {
        }
    }

    public static class Tag extends BaseFunction {
        private final String tag;

        public Tag(String tag) {
            this.tag = tag;
        }

        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            collector.emit(new Values(tag + "#" + tuple.getString(0).length()));
        }
    }

    public static StormTopology buildTopology() {
        FixedBatchSpout politics = new FixedBatchSpout(new Fields("text"), 1, new Values("vote now"), new Values("no vote"),
            new Values("news of the vote"));
        FixedBatchSpout sports = new FixedBatchSpout(new Fields("headline"), 1, new Values("goal now"), new Values("no goal no news"));
        TridentTopology topology = new TridentTopology();
        Stream left = topology.newStream("politics", politics).each(new Fields("text"), new Split(), new Fields("word"))
            .project(new Fields("word"));
        Stream right = topology.newStream("sports", sports).each(new Fields("headline"), new Split(), new Fields("term"))
            .project(new Fields("term"));

        topology.merge(new Fields("any"), left, right)
            .each(new Fields("any"), new Tag("w"), new Fields("tag"))
            .partitionPersist(new Recorder.Factory("merged"), new Fields("any", "tag"), new Recorder.Updater());
        topology.multiReduce(new Fields("word"), left, new Fields("term"), right, new Balance(), new Fields("word", "balance"))
            .partitionPersist(new Recorder.Factory("balance"), new Fields("word", "balance"), new Recorder.Updater());
        return topology.build();
    }
}
