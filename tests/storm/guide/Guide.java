// What the Java blocks of the porting guide take for granted. tests/storm/test_guide.py puts the blocks at the last line.
import com.codahale.metrics.Counter;
import com.codahale.metrics.Histogram;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.LocalDRPC;
import org.apache.storm.StormSubmitter;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.grouping.CustomStreamGrouping;
import org.apache.storm.metric.api.CountMetric;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.IMetricsContext;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.task.WorkerTopologyContext;
import org.apache.storm.topology.FailedException;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.topology.base.BaseWindowedBolt;
import org.apache.storm.trident.*;
import org.apache.storm.trident.operation.*;
import org.apache.storm.trident.operation.builtin.*;
import org.apache.storm.trident.spout.*;
import org.apache.storm.trident.state.*;
import org.apache.storm.trident.state.map.*;
import org.apache.storm.trident.testing.*;
import org.apache.storm.trident.topology.TransactionAttempt;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.trident.tuple.TridentTupleView;
import org.apache.storm.trident.windowing.*;
import org.apache.storm.trident.windowing.config.*;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

public class Guide {
    static TridentTopology topology;
    static Stream stream, sales, left, right;
    static IBatchSpout spout, questions;
    static TridentState counts;

    static class Add extends BaseFunction {
        public void execute(TridentTuple tuple, TridentCollector collector) { }
    }

    static class Above extends BaseFilter {
        Above(int limit) { }
        public boolean isKeep(TridentTuple tuple) { return true; }
    }

    static class SplitLine implements FlatMapFunction {
        public Iterable<Values> execute(TridentTuple tuple) { return null; }
    }

    static class WithLength implements MapFunction {
        public Values execute(TridentTuple tuple) { return null; }
    }

    static class LongWords extends BaseFilter {
        public boolean isKeep(TridentTuple tuple) { return true; }
    }

    static class ByItem implements Comparator<TridentTuple> {
        public int compare(TridentTuple a, TridentTuple b) { return 0; }
    }

    static class LocationState implements State {
        public void beginCommit(Long txid) { }
        public void commit(Long txid) { }
    }

    static class LocationStateFactory implements StateFactory {
        public State makeState(Map<String, Object> conf, IMetricsContext metrics, int partition, int partitions) { return null; }
    }

    static class LocationUpdater extends BaseStateUpdater<LocationState> {
        public void updateState(LocationState state, List<TridentTuple> tuples, TridentCollector collector) { }
    }

    static class QueryLocation extends BaseQueryFunction<LocationState, Integer> {
        public List<Integer> batchRetrieve(LocationState state, List<TridentTuple> tuples) { return null; }
        public void execute(TridentTuple tuple, Integer result, TridentCollector collector) { }
    }

    // BLOCKS
}
