// batches: 3
// unordered: rows
package topologies;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.grouping.CustomStreamGrouping;
import org.apache.storm.task.WorkerTopologyContext;
import org.apache.storm.trident.Stream;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseAggregator;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.operation.TridentOperationContext;
import org.apache.storm.trident.operation.builtin.Count;
import org.apache.storm.trident.operation.builtin.Sum;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Work that is spread over partitions in every way. */
public class SpreadWork {
    public static class Partition extends BaseFunction {
        private int index;
        private int count;

        @Override
        public void prepare(Map<String, Object> conf, TridentOperationContext context) {
            this.index = context.getPartitionIndex();
            this.count = context.numPartitions();
        }

        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            collector.emit(new Values(index, count));
        }
    }

    /** Kinds with an even number of letters to the first task, the others to the last. */
    public static class EvenOdd implements CustomStreamGrouping {
        private List<Integer> targets;

        @Override
        public void prepare(WorkerTopologyContext context, GlobalStreamId stream, List<Integer> targetTasks) {
            this.targets = targetTasks;
        }

        @Override
        public List<Integer> chooseTasks(int taskId, List<Object> values) {
            String kind = (String) values.get(values.size() - 1);
            return Collections.singletonList(kind.length() % 2 == 0 ? targets.get(0) : targets.get(targets.size() - 1));
        }
    }

    public static class Load extends BaseAggregator<long[]> {
        @Override
        public long[] init(Object batchId, TridentCollector collector) {
            return new long[2];
        }

        @Override
        public void aggregate(long[] load, TridentTuple tuple, TridentCollector collector) {
            load[0] += tuple.getInteger(0);
            load[1]++;
        }

        @Override
        public void complete(long[] load, TridentCollector collector) {
            if (load[1] != 0) {
                collector.emit(new Values(load[0], load[1]));
            }
        }
    }

    public static StormTopology buildTopology() {
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("job", "kind"), 4,
            new Values(1, "build"), new Values(2, "test"), new Values(3, "build"), new Values(4, "ship"),
            new Values(5, "test"), new Values(6, "test"), new Values(7, "ship"), new Values(9, "build"),
            new Values(10, "rest"));
        TridentTopology topology = new TridentTopology();
        Stream jobs = topology.newStream("jobs", spout);
        jobs.partition(new EvenOdd())
            .each(new Fields("job"), new Partition(), new Fields("index", "count"))
            .parallelismHint(3)
            .partitionAggregate(new Fields("job"), new Load(), new Fields("load", "jobs"))
            .partitionPersist(new Recorder.Factory("evenOdd"), new Fields("load", "jobs"), new Recorder.Updater());
        jobs.broadcast()
            .each(new Fields("job"), new Partition(), new Fields("index", "count"))
            .parallelismHint(2)
            .partitionPersist(new Recorder.Factory("broadcast"), new Fields("job", "index", "count"), new Recorder.Updater());
        jobs.global()
            .each(new Fields("job"), new Partition(), new Fields("index", "count"))
            .parallelismHint(2)
            .partitionPersist(new Recorder.Factory("global"), new Fields("job", "index", "count"), new Recorder.Updater());
        jobs.partitionBy(new Fields("kind"))
            .partitionAggregate(new Fields("job"), new Sum(), new Fields("sum"))
            .parallelismHint(2)
            .aggregate(new Fields("sum"), new Sum(), new Fields("total"))
            .partitionPersist(new Recorder.Factory("total"), new Fields("total"), new Recorder.Updater());
        jobs.shuffle()
            .each(new Fields("job"), new Partition(), new Fields("index", "count"))
            .parallelismHint(3)
            .project(new Fields("job", "count"))
            .groupBy(new Fields("count"))
            .aggregate(new Count(), new Fields("jobs"))
            .partitionPersist(new Recorder.Factory("shuffled"), new Fields("count", "jobs"), new Recorder.Updater());
        return topology.build();
    }
}
