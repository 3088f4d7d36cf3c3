// batches: 4
// unordered: rows
package topologies;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.FailedException;
import org.apache.storm.topology.ReportedFailedException;
import org.apache.storm.trident.Stream;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.operation.builtin.Sum;
import org.apache.storm.trident.spout.ITridentSpout;
import org.apache.storm.trident.testing.MemoryMapState;
import org.apache.storm.trident.topology.TransactionAttempt;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Some payments fail at first: their batch is replayed, and the sums are exact. */
public class ReplayedPayments {
    private static final Logger LOG = LoggerFactory.getLogger(ReplayedPayments.class);
    private static final Map<String, AtomicLong> ATTEMPTS = new ConcurrentHashMap<>();

    public static class RefusedException extends Exception {
        private final int code;

        public RefusedException(String message, int code) {
            super(message);
            this.code = code;
        }

        public int getCode() {
            return code;
        }
    }

    public static class PaymentSpout implements ITridentSpout<Long> {
        @Override
        public BatchCoordinator<Long> getCoordinator(String txStateId, Map<String, Object> conf, TopologyContext context) {
            return new BatchCoordinator<Long>() {
                @Override
                public Long initializeTransaction(long txid, Long prevMetadata, Long currMetadata) {
                    if (currMetadata != null) {
                        return currMetadata;
                    }
                    return prevMetadata == null ? 10L : prevMetadata + 10;
                }

                @Override
                public void success(long txid) {
                    LOG.info("batch {} has succeeded", txid);
                }

                @Override
                public boolean isReady(long txid) {
                    return true;
                }

                @Override
                public void close() {
                }
            };
        }

        @Override
        public Emitter<Long> getEmitter(String txStateId, Map<String, Object> conf, TopologyContext context) {
            return new Emitter<Long>() {
                private final Map<Long, List<Values>> cache = new HashMap<>();

                @Override
                public void emitBatch(TransactionAttempt tx, Long coordinatorMeta, TridentCollector collector) {
                    List<Values> batch = cache.computeIfAbsent(tx.getTransactionId(), txid -> {
                        List<Values> made = new ArrayList<>();
                        for (long id = coordinatorMeta; id < coordinatorMeta + 4; id++) {
                            made.add(new Values(id, id % 3 == 0 ? "visa" : "cash", id * 100));
                        }
                        return made;
                    });
                    LOG.info("batch {} attempt {}: {} payments", tx.getTransactionId(), tx.getAttemptId(), batch.size());
                    batch.forEach(collector::emit);
                }

                @Override
                public void success(TransactionAttempt tx) {
                    cache.remove(tx.getTransactionId());
                }

                @Override
                public void close() {
                    cache.clear();
                }
            };
        }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return null;
        }

        @Override
        public Fields getOutputFields() {
            return new Fields("id", "how", "cents");
        }
    }

    /** Refuses some ids at first. */
    public static class Charge extends BaseFunction {
        private static final Set<Long> REFUSED = Set.of(11L, 23L, 42L);

        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            long id = tuple.getLong(0);
            try {
                charge(id);
                collector.emit(new Values("charged"));
            } catch (RefusedException e) {
                if (e.getCode() == 2) {
                    throw new ReportedFailedException(e);
                }
                throw new FailedException("payment " + id + ": " + e.getMessage(), e);
            } finally {
                ATTEMPTS.get("all").incrementAndGet();
            }
        }

        private void charge(long id) throws RefusedException {
            ATTEMPTS.putIfAbsent("all", new AtomicLong());
            if (REFUSED.contains(id)) {
                long attempt = ATTEMPTS.computeIfAbsent("id" + id, key -> new AtomicLong(0)).incrementAndGet();
                if (attempt < 3) {
                    LOG.warn("{} is refused at attempt {}", id, attempt);
                    throw new RefusedException("refused", (int) attempt);
                }
            }
        }
    }

    public static StormTopology buildTopology() {
        ATTEMPTS.clear();
        TridentTopology topology = new TridentTopology();
        Stream charged = topology.newStream("payments", new PaymentSpout())
            .each(new Fields("id"), new Charge(), new Fields("result"));
        charged.groupBy(new Fields("how"))
            .persistentAggregate(new MemoryMapState.Factory(), new Fields("cents"), new Sum(), new Fields("sum"))
            .newValuesStream()
            .partitionPersist(new Recorder.Factory("sums"), new Fields("how", "sum"), new Recorder.Updater());
        charged.partitionPersist(new Recorder.Factory("charged"), new Fields("id", "result"), new Recorder.Updater());
        return topology.build();
    }
}
