// batches: 1
// asks: reach "/shop"
// asks: reach "/blog"
// asks: reach "/none"
package topologies;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.LocalDRPC;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.task.IMetricsContext;
import org.apache.storm.trident.TridentState;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.CombinerAggregator;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.operation.builtin.MapGet;
import org.apache.storm.trident.operation.builtin.Sum;
import org.apache.storm.trident.state.ReadOnlyState;
import org.apache.storm.trident.state.State;
import org.apache.storm.trident.state.StateFactory;
import org.apache.storm.trident.state.map.ReadOnlyMapState;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** How many people a page can reach: those who follow the ones that link to it. */
public class ReachOfPages {
    public static Map<String, List<String>> LINKERS_DB = new HashMap<String, List<String>>() {{
        put("/shop", Arrays.asList("sally", "bob", "tim", "george", "nathan"));
        put("/blog", Arrays.asList("adam", "david", "sally", "nathan"));
    }};

    public static Map<String, List<String>> FOLLOWERS_DB = new HashMap<String, List<String>>() {{
        put("sally", Arrays.asList("bob", "tim", "alice", "adam", "jim", "chris", "jai"));
        put("bob", Arrays.asList("sally", "nathan", "jim", "mary", "david", "vivian"));
        put("tim", Arrays.asList("alex"));
        put("nathan", Arrays.asList("sally", "bob", "adam", "harry", "chris", "vivian", "emily", "jordan"));
        put("adam", Arrays.asList("david", "carissa"));
        put("david", Arrays.asList("john", "bob"));
    }};

    public static class StaticSingleKeyMapState extends ReadOnlyState implements ReadOnlyMapState<Object> {
        private final Map<String, ?> map;

        public StaticSingleKeyMapState(Map<String, ?> map) {
            this.map = map;
        }

        @Override
        public List<Object> multiGet(List<List<Object>> keys) {
            List<Object> ret = new ArrayList<>();
            for (List<Object> key : keys) {
                Object singleKey = key.get(0);
                ret.add(map.get(singleKey));
            }
            return ret;
        }

        public static class Factory implements StateFactory {
            private final Map<String, ?> map;

            public Factory(Map<String, ?> map) {
                this.map = map;
            }

            @Override
            public State makeState(Map<String, Object> conf, IMetricsContext metrics, int partitionIndex, int numPartitions) {
                return new StaticSingleKeyMapState(map);
            }
        }
    }

    public static class ExpandList extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            List<?> l = (List<?>) tuple.getValue(0);
            if (l != null) {
                for (Object o : l) {
                    collector.emit(new Values(o));
                }
            }
        }
    }

    public static class One implements CombinerAggregator<Integer> {
        @Override
        public Integer init(TridentTuple tuple) {
            return 1;
        }

        @Override
        public Integer combine(Integer val1, Integer val2) {
            return 1;
        }

        @Override
        public Integer zero() {
            return 1;
        }
    }

    public static StormTopology buildTopology(LocalDRPC drpc) {
        TridentTopology topology = new TridentTopology();
        TridentState pagesToLinkers = topology.newStaticState(new StaticSingleKeyMapState.Factory(LINKERS_DB));
        TridentState linkersToFollowers = topology.newStaticState(new StaticSingleKeyMapState.Factory(FOLLOWERS_DB));

        topology.newDRPCStream("reach", drpc)
            .stateQuery(pagesToLinkers, new Fields("args"), new MapGet(), new Fields("linkers"))
            .each(new Fields("linkers"), new ExpandList(), new Fields("linker"))
            .shuffle()
            .stateQuery(linkersToFollowers, new Fields("linker"), new MapGet(), new Fields("followers"))
            .each(new Fields("followers"), new ExpandList(), new Fields("follower"))
            .groupBy(new Fields("follower"))
            .aggregate(new One(), new Fields("one"))
            .aggregate(new Fields("one"), new Sum(), new Fields("reach"));
        topology.newStream("hits", new FixedBatchSpout(new Fields("page"), 1, new Values("/shop")))
            .stateQuery(topology.newStaticState(new StaticSingleKeyMapState.Factory(LINKERS_DB)), new Fields("page"), new MapGet(),
                new Fields("linkers"))
            .partitionPersist(new Recorder.Factory("hits"), new Fields("page", "linkers"), new Recorder.Updater());
        return topology.build();
    }

    public static void main(String[] args) throws Exception {
        LocalDRPC drpc = new LocalDRPC();
        Config conf = new Config();
        LocalCluster cluster = new LocalCluster();
        cluster.submitTopology("reach", conf, buildTopology(drpc));
        Thread.sleep(2000);
        System.out.println("REACH: " + drpc.execute("reach", "/shop"));
        System.out.println("REACH: " + drpc.execute("reach", "/blog"));
        cluster.shutdown();
        drpc.shutdown();
    }
}
