// batches: 3
// unordered: rows
package topologies;

import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.JoinOutFieldsMode;
import org.apache.storm.trident.JoinType;
import org.apache.storm.trident.Stream;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFilter;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Orders, their customers and their payments, joined in every way. */
public class JoinedOrders {
    /** Compares what may be null. */
    public static class Paid extends BaseFilter {
        private final Set<String> trusted = new HashSet<>(Arrays.asList("bob", "eve"));

        @Override
        public boolean isKeep(TridentTuple tuple) {
            Integer amount = tuple.getIntegerByField("amount");
            Integer paid = tuple.getIntegerByField("paid");
            String customer = tuple.getStringByField("customer");
            return paid != null && amount != null && paid.compareTo(amount) >= 0 || trusted.contains(customer);
        }
    }

    public static class Debt extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            int amount = tuple.getValue(0) == null ? 0 : tuple.getInteger(0);
            int paid = tuple.getValue(1) == null ? 0 : tuple.getInteger(1);
            String note = amount == paid ? "even" : amount > paid ? "owes" : "has";
            collector.emit(new Values(Math.abs(amount - paid), note));
        }
    }

    public static StormTopology buildTopology() {
        TridentTopology topology = new TridentTopology();
        Stream orders = topology.newStream("orders", new FixedBatchSpout(new Fields("order", "customer", "amount"), 2,
            new Values(1, "ann", 10), new Values(2, "bob", 20), new Values(3, "ann", 30), new Values(4, "cid", 40),
            new Values(5, "eve", 50)));
        Stream customers = topology.newStream("customers", new FixedBatchSpout(new Fields("name", "city"), 2,
            new Values("ann", "Oslo"), new Values("dan", "Rome"), new Values("cid", "Bonn"), new Values("ann", "Kiev"),
            new Values("eve", null)));
        Stream payments = topology.newStream("payments", new FixedBatchSpout(new Fields("number", "paid"), 2,
            new Values(2, 20), new Values(1, 5), new Values(4, 60), new Values(9, 1), new Values(5, 50)));

        topology.join(orders, new Fields("customer"), customers, new Fields("name"),
                new Fields("customer", "order", "amount", "city"))
            .partitionPersist(new Recorder.Factory("inner"), new Fields("customer", "order", "amount", "city"),
                new Recorder.Updater());
        Stream settled = topology.join(orders, new Fields("order"), payments, new Fields("number"),
            new Fields("order", "customer", "amount", "paid"), JoinType.OUTER);
        settled.each(new Fields("amount", "paid"), new Debt(), new Fields("difference", "note"))
            .partitionPersist(new Recorder.Factory("outer"),
                new Fields("order", "customer", "amount", "paid", "difference", "note"), new Recorder.Updater());
        settled.filter(new Fields("customer", "amount", "paid"), new Paid())
            .partitionPersist(new Recorder.Factory("paid"), new Fields("order"), new Recorder.Updater());
        List<Stream> streams = Arrays.asList(orders, customers);
        topology.join(streams, Arrays.asList(new Fields("customer"), new Fields("name")),
                new Fields("customer", "order", "amount", "name", "city"), Arrays.asList(JoinType.INNER, JoinType.OUTER),
                JoinOutFieldsMode.PRESERVE)
            .partitionPersist(new Recorder.Factory("left"), new Fields("customer", "order", "city"), new Recorder.Updater());
        return topology.build();
    }
}
