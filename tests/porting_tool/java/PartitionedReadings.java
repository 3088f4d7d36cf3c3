// batches: 4
// unordered: rows
package topologies;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.CombinerAggregator;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.spout.IPartitionedTridentSpout;
import org.apache.storm.trident.spout.ISpoutPartition;
import org.apache.storm.trident.testing.MemoryMapState;
import org.apache.storm.trident.topology.TransactionAttempt;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Three logs, of which each batch takes two lines: a transactional spout with an offset as metadata. */
public class PartitionedReadings {
    private static final List<List<String>> LOGS = Collections.unmodifiableList(Arrays.asList(
        Arrays.asList("a 1.5", "b 2", "a 0.25", "c -3", "b 8"),
        Arrays.asList("c 4", "a 9.75"),
        Arrays.asList("b 1", "b 1", "c 7.125", "a 3", "a 3", "c 0", "b 6")));

    public static class LogPartition implements ISpoutPartition, Serializable {
        private final int number;

        public LogPartition(int number) {
            this.number = number;
        }

        @Override
        public String getId() {
            return "log-" + number;
        }

        @Override
        public boolean equals(Object o) {
            if (this == o) {
                return true;
            }
            if (o == null || getClass() != o.getClass()) {
                return false;
            }
            LogPartition that = (LogPartition) o;
            return number == that.number;
        }

        @Override
        public int hashCode() {
            return Objects.hash(number);
        }
    }

    public static class LogSpout implements IPartitionedTridentSpout<Integer, LogPartition, Long> {
        private static final int MAX_LINES = 2;

        @Override
        public Coordinator<Integer> getCoordinator(Map<String, Object> conf, TopologyContext context) {
            return new LogCoordinator();
        }

        @Override
        public Emitter<Integer, LogPartition, Long> getEmitter(Map<String, Object> conf, TopologyContext context) {
            return new LogEmitter();
        }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return null;
        }

        @Override
        public Fields getOutputFields() {
            return new Fields("log", "offset", "name", "value");
        }

        static class LogCoordinator implements Coordinator<Integer> {
            @Override
            public Integer getPartitionsForBatch() {
                return LOGS.size();
            }

            @Override
            public boolean isReady(long txid) {
                return true;
            }

            @Override
            public void close() {
            }
        }

        static class LogEmitter implements Emitter<Integer, LogPartition, Long> {
            @Override
            public List<LogPartition> getOrderedPartitions(Integer allPartitionInfo) {
                List<LogPartition> partitions = new ArrayList<>(allPartitionInfo);
                for (int number = 0; number < allPartitionInfo; ++number) {
                    partitions.add(new LogPartition(number));
                }
                return partitions;
            }

            @Override
            public Map<LogPartition, Long> emitBatchNew(TransactionAttempt tx, TridentCollector collector,
                                                        Set<LogPartition> partitions, Map<LogPartition, Long> lastMeta) {
                Map<LogPartition, Long> newMeta = new HashMap<>();
                for (LogPartition partition : partitions) {
                    Long last = lastMeta.get(partition);
                    long offset = last == null ? 0L : last;
                    List<String> log = LOGS.get(partition.number);
                    long end = Math.min(offset + MAX_LINES, log.size());
                    emit(collector, partition, offset, end);
                    newMeta.put(partition, end);
                }
                return newMeta;
            }

            @Override
            public void refreshPartitions(List<LogPartition> partitionResponsibilities) {
            }

            @Override
            public void reEmitPartitionBatch(TransactionAttempt tx, TridentCollector collector, LogPartition partition,
                                             Long partitionMeta) {
                emit(collector, partition, Math.max(0, partitionMeta - MAX_LINES), partitionMeta);
            }

            private void emit(TridentCollector collector, LogPartition partition, long from, long to) {
                for (long i = from; i < to; i++) {
                    String[] parts = LOGS.get(partition.number).get((int) i).split("\\s+");
                    collector.emit(new Values(partition.getId(), i, parts[0], Double.parseDouble(parts[1])));
                }
            }

            @Override
            public void close() {
            }
        }
    }

    public static class Greatest implements CombinerAggregator<Double> {
        @Override
        public Double init(TridentTuple tuple) {
            return tuple.getDouble(0);
        }

        @Override
        public Double combine(Double val1, Double val2) {
            return val1 > val2 ? val1 : val2;
        }

        @Override
        public Double zero() {
            return Double.NEGATIVE_INFINITY;
        }
    }

    public static StormTopology buildTopology() {
        TridentTopology topology = new TridentTopology();
        var lines = topology.newStream("logs", new LogSpout());
        lines.partitionPersist(new Recorder.Factory("lines"), new Fields("log", "offset", "name", "value"),
            new Recorder.Updater());
        lines.groupBy(new Fields("name"))
            .persistentAggregate(new MemoryMapState.Factory(), new Fields("value"), new Greatest(), new Fields("greatest"))
            .newValuesStream()
            .partitionPersist(new Recorder.Factory("greatest"), new Fields("name", "greatest"), new Recorder.Updater());
        return topology.build();
    }
}
