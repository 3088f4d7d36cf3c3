// batches: 4
package topologies;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.task.IMetricsContext;
import org.apache.storm.trident.TridentState;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.state.BaseQueryFunction;
import org.apache.storm.trident.state.BaseStateUpdater;
import org.apache.storm.trident.state.State;
import org.apache.storm.trident.state.StateFactory;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** A state of its own with bulk methods; it logs what it is told, and its changes are emitted. */
public class LocationState {
    public static class LocationDB implements State {
        private final Map<Long, String> locations = new HashMap<>();
        private Long txid;
        private int commits = 0;

        @Override
        public void beginCommit(Long txid) {
            this.txid = txid;
        }

        @Override
        public void commit(Long txid) {
            commits++;
            System.out.println("commit " + txid + " of " + this.txid + ": " + locations.size() + " locations, " + commits + " commits");
        }

        public void setLocationsBulk(List<Long> userIds, List<String> locations) {
            if (userIds.size() != locations.size()) {
                throw new IllegalArgumentException("sizes differ: " + userIds.size() + ", " + locations.size());
            }
            for (int i = 0; i < userIds.size(); i++) {
                this.locations.put(userIds.get(i), locations.get(i));
            }
        }

        public List<String> bulkGetLocations(List<Long> userIds) {
            List<String> found = new ArrayList<>(userIds.size());
            for (Long id : userIds) {
                found.add(locations.getOrDefault(id, "nowhere"));
            }
            return found;
        }
    }

    public static class LocationDBFactory implements StateFactory {
        @Override
        public State makeState(Map<String, Object> conf, IMetricsContext metrics, int partitionIndex, int numPartitions) {
            if (partitionIndex != 0 || numPartitions != 1) {
                throw new IllegalStateException("one partition, not " + numPartitions);
            }
            return new LocationDB();
        }
    }

    public static class LocationUpdater extends BaseStateUpdater<LocationDB> {
        @Override
        public void updateState(LocationDB state, List<TridentTuple> tuples, TridentCollector collector) {
            List<Long> ids = new ArrayList<Long>();
            List<String> locations = new ArrayList<String>();
            for (TridentTuple t : tuples) {
                ids.add(t.getLong(0));
                locations.add(t.getString(1));
            }
            List<String> before = state.bulkGetLocations(ids);
            state.setLocationsBulk(ids, locations);
            for (int i = 0; i < ids.size(); ++i) {
                if (!before.get(i).equals(locations.get(i))) {
                    collector.emit(new Values(ids.get(i), before.get(i), locations.get(i)));
                }
            }
        }
    }

    public static class QueryLocation extends BaseQueryFunction<LocationDB, String> {
        @Override
        public List<String> batchRetrieve(LocationDB state, List<TridentTuple> inputs) {
            List<Long> userIds = new ArrayList<Long>();
            for (TridentTuple input : inputs) {
                userIds.add(input.getLongByField("asked"));
            }
            return state.bulkGetLocations(userIds);
        }

        @Override
        public void execute(TridentTuple tuple, String location, TridentCollector collector) {
            if (location == null || "nowhere".equals(location)) {
                collector.emit(new Values(null, false));
                return;
            }
            collector.emit(new Values(location, true));
        }
    }

    /** What a query of a static state knows. */
    public static class Capital implements State, Serializable {
        final Map<String, String> capitals = new HashMap<String, String>() {{
            put("dk", "Copenhagen");
            put("fr", "Paris");
        }};

        @Override
        public void beginCommit(Long txid) {
        }

        @Override
        public void commit(Long txid) {
        }
    }

    public static StormTopology buildTopology() {
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("user", "place", "asked"), 2,
            new Values(1L, "dk", 2L), new Values(2L, "fr", 1L),
            new Values(1L, "fr", 1L), new Values(2L, "fr", 3L),
            new Values(3L, "nl", 3L), new Values(3L, "dk", 1L),
            new Values(1L, "dk", 9L));
        TridentTopology topology = new TridentTopology();
        TridentState locations = topology.newStream("moves", spout)
            .partitionPersist(new LocationDBFactory(), new Fields("user", "place"), new LocationUpdater(),
                new Fields("user", "before", "now"));
        TridentState capitals = topology.newStaticState((conf, metrics, index, count) -> new Capital());
        locations.newValuesStream()
            .stateQuery(capitals, new Fields("now"), new BaseQueryFunction<Capital, String>() {
                @Override
                public List<String> batchRetrieve(Capital state, List<TridentTuple> inputs) {
                    List<String> results = new ArrayList<>();
                    inputs.forEach(tuple -> results.add(state.capitals.get(tuple.getString(0))));
                    return Collections.unmodifiableList(results);
                }

                @Override
                public void execute(TridentTuple tuple, String result, TridentCollector collector) {
                    if (result != null) {
                        collector.emit(new Values(result));
                    }
                }
            }, new Fields("capital"))
            .partitionPersist(new Recorder.Factory("changes"), new Fields("user", "before", "now", "capital"),
                new Recorder.Updater());
        // Storm mixes up the batches of two spouts, if one static state answers both
        TridentState others = topology.newStaticState((conf, metrics, index, count) -> new Capital());
        topology.newStream("questions", new FixedBatchSpout(new Fields("user", "asked"), 1, new Values("ann", 1L)))
            .stateQuery(others, new Fields("user"), new BaseQueryFunction<Capital, Integer>() {
                @Override
                public List<Integer> batchRetrieve(Capital state, List<TridentTuple> inputs) {
                    return Collections.nCopies(inputs.size(), state.capitals.size());
                }

                @Override
                public void execute(TridentTuple tuple, Integer result, TridentCollector collector) {
                    collector.emit(new Values(result));
                }
            }, new Fields("size"))
            .partitionPersist(new Recorder.Factory("sizes"), new Fields("user", "size"), new Recorder.Updater());
        return topology.build();
    }
}
