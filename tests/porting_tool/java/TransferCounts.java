// batches: 4
package topologies;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.IMetricsContext;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.FailedException;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.builtin.Count;
import org.apache.storm.trident.state.State;
import org.apache.storm.trident.state.StateFactory;
import org.apache.storm.trident.state.TransactionalValue;
import org.apache.storm.trident.state.map.IBackingMap;
import org.apache.storm.trident.state.map.TransactionalMap;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Counts in a transactional map whose second write fails after it has written: the replay counts nothing twice. */
public class TransferCounts {
    static class Store implements IBackingMap<TransactionalValue> {
        private static final Map<Object, TransactionalValue> ROWS = new TreeMap<>();
        private static int writes = 0;

        @Override
        public List<TransactionalValue> multiGet(List<List<Object>> keys) {
            List<TransactionalValue> found = new ArrayList<>();
            for (List<Object> key : keys) {
                found.add(ROWS.get(key.get(0)));
            }
            return found;
        }

        @Override
        public void multiPut(List<List<Object>> keys, List<TransactionalValue> vals) {
            for (int i = 0; i < keys.size(); i++) {
                ROWS.put(keys.get(i).get(0), vals.get(i));
            }
            writes++;
            StringBuilder sb = new StringBuilder("write ").append(writes).append(':');
            for (Object key : ROWS.keySet()) {
                TransactionalValue value = ROWS.get(key);
                sb.append(' ').append(key).append('=').append(value.getVal()).append('@').append(value.getTxid());
            }
            System.out.println(sb);
            if (writes == 2) {
                throw new FailedException("write " + writes);
            }
        }
    }

    public static class Factory implements StateFactory {
        @Override
        public State makeState(Map<String, Object> conf, IMetricsContext metrics, int partitionIndex, int numPartitions) {
            return TransactionalMap.build(new Store());
        }
    }

    /** Tickets, one for each call. */
    public static class TicketSpout extends BaseRichSpout {
        private SpoutOutputCollector collector;
        private int ticket;
        private final List<Object> acked = new ArrayList<>();

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
            this.collector = collector;
        }

        @Override
        public void nextTuple() {
            if (ticket < 5) {
                ticket++;
                collector.emit(new Values("t" + ticket, ticket % 2 == 1), ticket);
            }
        }

        @Override
        public void ack(Object msgId) {
            acked.add(msgId);
        }

        @Override
        public void fail(Object msgId) {
            throw new IllegalStateException("ticket " + msgId);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("ticket", "odd"));
        }
    }

    public static StormTopology buildTopology() {
        Store.ROWS.clear();
        Store.writes = 0;
        TridentTopology topology = new TridentTopology();
        topology.newStream("transfers", new FixedBatchSpout(new Fields("account"), 3, new Values("a"), new Values("b"), new Values("a"),
                new Values("b"), new Values("c"), new Values("b"), new Values("a")))
            .groupBy(new Fields("account"))
            .persistentAggregate(new Factory(), new Count(), new Fields("count"));
        topology.newStream("tickets", new TicketSpout())
            .partitionPersist(new Recorder.Factory("tickets"), new Fields("ticket", "odd"), new Recorder.Updater());
        return topology.build();
    }
}
