// batches: 4
// unordered: rows
package topologies;

import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.ReducerAggregator;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.spout.IOpaquePartitionedTridentSpout;
import org.apache.storm.trident.spout.ISpoutPartition;
import org.apache.storm.trident.testing.MemoryMapState;
import org.apache.storm.trident.topology.TransactionAttempt;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** An opaque spout whose metadata is a map, as that of the Kafka spout. */
public class OpaqueReadings {
    static final String FIRST = "firstOffset";
    static final String LAST = "lastOffset";

    public record Topic(String name) implements ISpoutPartition {
        @Override
        public String getId() {
            return name;
        }
    }

    public static class TopicSpout implements IOpaquePartitionedTridentSpout<List<String>, Topic, Map<String, Object>> {
        private final Map<String, String[]> topics = new LinkedHashMap<>();

        public TopicSpout with(String topic, String... records) {
            topics.put(topic, records);
            return this;
        }

        @Override
        public Emitter<List<String>, Topic, Map<String, Object>> getEmitter(Map<String, Object> conf, TopologyContext context) {
            return new TopicEmitter();
        }

        @Override
        public Coordinator<List<String>> getCoordinator(Map<String, Object> conf, TopologyContext context) {
            return new Coordinator<List<String>>() {
                @Override
                public boolean isReady(long txid) {
                    return txid > 0;
                }

                @Override
                public List<String> getPartitionsForBatch() {
                    return Arrays.asList(topics.keySet().toArray(new String[0]));
                }

                @Override
                public void close() {
                }
            };
        }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return null;
        }

        @Override
        public Fields getOutputFields() {
            return new Fields("topic", "offset", "record");
        }

        class TopicEmitter implements Emitter<List<String>, Topic, Map<String, Object>> {
            private long emitted;

            @Override
            public Map<Topic, Map<String, Object>> emitBatchNew(TransactionAttempt tx, TridentCollector collector,
                                                                Set<Topic> partitions,
                                                                Map<Topic, Map<String, Object>> lastPartitionMetaMap) {
                return partitions.stream().collect(Collectors.toMap(
                    topic -> topic, topic -> emitTopic(collector, topic, lastPartitionMetaMap.get(topic))));
            }

            private Map<String, Object> emitTopic(TridentCollector collector, Topic topic, Map<String, Object> lastMeta) {
                long first = 0;
                if (lastMeta != null && lastMeta.containsKey(LAST)) {
                    first = ((Number) lastMeta.get(LAST)).longValue() + 1;
                }
                String[] records = topics.get(topic.getId());
                long last = first - 1;
                for (int i = (int) first; i < records.length && i < first + 2; i++) {
                    collector.emit(new Values(topic.name(), (long) i, records[i]));
                    last = i;
                    emitted += 1;
                }
                Map<String, Object> meta = new HashMap<>();
                meta.put(FIRST, first);
                meta.put(LAST, last);
                return meta;
            }

            @Override
            public void refreshPartitions(List<Topic> partitionResponsibilities) {
            }

            @Override
            public List<Topic> getPartitionsForTask(int taskId, int numTasks, List<Topic> allPartitions) {
                List<Topic> mine = new java.util.ArrayList<>();
                for (int i = taskId; i < allPartitions.size(); i += numTasks) {
                    mine.add(allPartitions.get(i));
                }
                return mine;
            }

            @Override
            public List<Topic> getOrderedPartitions(List<String> allPartitionInfo) {
                List<Topic> all = new java.util.LinkedList<>();
                for (String topic : allPartitionInfo) {
                    all.add(new Topic(topic));
                }
                return all;
            }

            @Override
            public void close() {
            }
        }
    }

    public static class Joined implements ReducerAggregator<String> {
        @Override
        public String init() {
            return "";
        }

        @Override
        public String reduce(String curr, TridentTuple tuple) {
            if (curr.isEmpty()) {
                return tuple.getString(0);
            }
            return curr + "|" + tuple.getStringByField("record");
        }
    }

    public static StormTopology buildTopology() {
        TopicSpout spout = new TopicSpout()
            .with("tea", "assam", "darjeeling", "ceylon")
            .with("coffee", "java", "mocha", "bourbon", "kona", "java")
            .with("cocoa");
        TridentTopology topology = new TridentTopology();
        topology.newStream("topics", spout)
            .parallelismHint(2)
            .groupBy(new Fields("topic"))
            .persistentAggregate(new MemoryMapState.Factory(), new Fields("record"), new Joined(), new Fields("records"))
            .newValuesStream()
            .partitionPersist(new Recorder.Factory("records"), new Fields("topic", "records"), new Recorder.Updater());
        return topology.build();
    }
}
