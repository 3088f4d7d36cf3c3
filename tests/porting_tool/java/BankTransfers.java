// batches: 4
// unordered: rows
package topologies;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.task.IMetricsContext;
import org.apache.storm.topology.FailedException;
import org.apache.storm.trident.TridentState;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.CombinerAggregator;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.operation.builtin.Count;
import org.apache.storm.trident.state.OpaqueValue;
import org.apache.storm.trident.state.State;
import org.apache.storm.trident.state.StateFactory;
import org.apache.storm.trident.state.TransactionalValue;
import org.apache.storm.trident.state.map.IBackingMap;
import org.apache.storm.trident.state.map.OpaqueMap;
import org.apache.storm.trident.state.map.TransactionalMap;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Transfers in exact amounts, into opaque and transactional maps; a write fails once, and the batch is replayed. */
public class BankTransfers {
    static class TransferException extends RuntimeException {
        TransferException(String message) {
            super(message);
        }
    }

    static class LimitException extends TransferException {
        final BigDecimal limit;

        LimitException(BigDecimal limit) {
            super("above " + limit);
            this.limit = limit;
        }
    }

    public static class Check extends BaseFunction {
        private static final BigDecimal LIMIT = new BigDecimal("1000.00");
        private static final BigDecimal FEE = BigDecimal.valueOf(1, 2);

        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            String text = tuple.getString(0);
            String result;
            BigDecimal amount = BigDecimal.ZERO;
            try {
                amount = check(new BigDecimal(text));
                result = "ok";
            } catch (LimitException e) {
                amount = e.limit;
                result = e.getMessage();
            } catch (TransferException e) {
                result = "refused: " + e.getMessage();
            } catch (NumberFormatException e) {
                result = "no amount";
            }
            BigDecimal fee = amount.multiply(FEE).setScale(2, RoundingMode.HALF_UP);
            BigDecimal share = amount.divide(new BigDecimal("3"), 4, RoundingMode.HALF_EVEN);
            BigInteger cents = amount.movePointRight(2).toBigInteger();
            collector.emit(new Values(result, amount, fee.toString(), share.toPlainString(), cents.mod(BigInteger.valueOf(97)).intValue(),
                amount.compareTo(BigDecimal.TEN) > 0, amount.add(fee).negate().signum()));
        }

        private BigDecimal check(BigDecimal amount) {
            if (amount.signum() < 0) {
                throw new TransferException("negative");
            }
            if (amount.compareTo(LIMIT) > 0) {
                throw new LimitException(LIMIT);
            }
            return amount;
        }
    }

    public static class SumOf implements CombinerAggregator<BigDecimal> {
        @Override
        public BigDecimal init(TridentTuple tuple) {
            return (BigDecimal) tuple.getValue(0);
        }

        @Override
        public BigDecimal combine(BigDecimal val1, BigDecimal val2) {
            return val1.add(val2);
        }

        @Override
        public BigDecimal zero() {
            return BigDecimal.ZERO;
        }
    }

    /** A store that refuses the second write. */
    static class Store<T> implements IBackingMap<T> {
        private final Map<String, T> rows = new TreeMap<>();
        private final String name;
        private int writes;

        Store(String name) {
            this.name = name;
        }

        @Override
        public List<T> multiGet(List<List<Object>> keys) {
            List<T> found = new ArrayList<>();
            for (Iterator<List<Object>> it = keys.iterator(); it.hasNext();) {
                found.add(rows.get(String.valueOf(it.next().get(0))));
            }
            return found;
        }

        @Override
        public void multiPut(List<List<Object>> keys, List<T> vals) {
            int i = 0;
            for (List<Object> key : keys) {
                rows.put((String) key.get(0), vals.get(i++));
            }
            if (++writes == 2) {
                System.out.println(name + " fails with " + rows.size() + " rows");
                throw new FailedException("write " + writes);
            }
            for (Map.Entry<String, T> row : rows.entrySet()) {
                System.out.println(name + " " + row.getKey() + " " + show(row.getValue()));
            }
        }

        private String show(T value) {
            if (value instanceof OpaqueValue) {
                OpaqueValue<?> opaque = (OpaqueValue<?>) value;
                return "txid " + opaque.getCurrTxid() + " " + opaque.getCurr() + " before " + opaque.getPrev();
            }
            TransactionalValue<?> transactional = (TransactionalValue<?>) value;
            return "txid " + transactional.getTxid() + " " + transactional.getVal();
        }
    }

    static class OpaqueFactory implements StateFactory {
        @Override
        public State makeState(Map<String, Object> conf, IMetricsContext metrics, int partitionIndex, int numPartitions) {
            return OpaqueMap.build(new Store<OpaqueValue>("opaque"));
        }
    }

    static class TransactionalFactory implements StateFactory {
        @Override
        public State makeState(Map<String, Object> conf, IMetricsContext metrics, int partitionIndex, int numPartitions) {
            return TransactionalMap.build(new Store<TransactionalValue>("transactional"));
        }
    }

    private static FixedBatchSpout transfers() {
        return new FixedBatchSpout(new Fields("account", "text"), 2,
            new Values("a", "10.50"), new Values("b", "-1"), new Values("a", "0.1"), new Values("c", "2000"),
            new Values("b", "999.995"), new Values("a", "ten"), new Values("c", "1E+2"));
    }

    public static StormTopology buildTopology() {
        TridentTopology topology = new TridentTopology();
        TridentState sums = topology.newStream("transfers", transfers())
            .each(new Fields("text"), new Check(), new Fields("result", "amount", "fee", "share", "check", "more", "sign"))
            .groupBy(new Fields("account"))
            .persistentAggregate(new OpaqueFactory(), new Fields("amount"), new SumOf(), new Fields("sum"));
        sums.newValuesStream()
            .each(new Fields("sum"), new BaseFunction() {
                @Override
                public void execute(TridentTuple tuple, TridentCollector collector) {
                    collector.emit(new Values(tuple.getValue(0).toString()));
                }
            }, new Fields("total"))
            .partitionPersist(new Recorder.Factory("sums"), new Fields("account", "total"), new Recorder.Updater());
        topology.newStream("checked", transfers())
            .each(new Fields("text"), new Check(), new Fields("result", "amount", "fee", "share", "check", "more", "sign"))
            .partitionPersist(new Recorder.Factory("checked"), new Fields("account", "result", "fee", "share", "check", "more", "sign"),
                new Recorder.Updater());
        return topology.build();
    }
}
