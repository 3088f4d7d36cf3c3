// batches: 4
package topologies;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.trident.Stream;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFilter;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.Function;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.spout.IBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Orders that come in batches of some size; a batch is kept until it is acknowledged.
 */
public class OrderBatches {
    private static final Logger LOG = LoggerFactory.getLogger(OrderBatches.class);
    private static final int BATCH_SIZE = 3;
    private static final String[] CUSTOMERS = {"ann", "bob", "cid", "dora"};
    private static final double VAT = 0.25;

    @SuppressWarnings({"serial", "rawtypes"})
    public static class OrderSpout implements IBatchSpout {
        private final int batchSize;
        private HashMap<Long, List<List<Object>>> batchesMap = new HashMap<Long, List<List<Object>>>();
        private int next = 0;

        public OrderSpout() {
            this(BATCH_SIZE);
        }

        public OrderSpout(int batchSize) {
            this.batchSize = batchSize;
        }

        @Override
        public void open(Map<String, Object> conf, TopologyContext context) {
            LOG.info("opened with batches of {}", batchSize);
        }

        @Override
        public void emitBatch(long batchId, TridentCollector collector) {
            List<List<Object>> batch = this.batchesMap.get(batchId);
            if (batch == null) {
                batch = new ArrayList<List<Object>>();
                for (int i = 0; i < this.batchSize; i++) {
                    batch.add(this.getNextOrder());
                }
                this.batchesMap.put(batchId, batch);
            }
            for (List<Object> order : batch) {
                collector.emit(order);
            }
        }

        private Values getNextOrder() {
            int id = next++;
            String customer = CUSTOMERS[id % CUSTOMERS.length];
            return new Values(id, customer, (id * 37) % 11 + 1, 2.5 * id);
        }

        @Override
        public void ack(long batchId) {
            this.batchesMap.remove(batchId);
        }

        @Override
        public void close() {
        }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            Config conf = new Config();
            conf.setMaxTaskParallelism(1);
            return conf;
        }

        @Override
        public Fields getOutputFields() {
            return new Fields("id", "customer", "amount", "price");
        }
    }

    public static class AmountFilter extends BaseFilter {
        private final int least;

        public AmountFilter(int least) {
            this.least = least;
        }

        @Override
        public boolean isKeep(TridentTuple tuple) {
            return tuple.getInteger(0) >= this.least;
        }
    }

    /** Prints, and passes all. */
    public static class Print extends BaseFilter {
        @Override
        public boolean isKeep(TridentTuple tuple) {
            System.out.println(tuple);
            return true;
        }
    }

    public static StormTopology build() {
        TridentTopology topology = new TridentTopology();
        Stream orders = topology.newStream("orders", new OrderSpout());

        Function total = new BaseFunction() {
            @Override
            public void execute(TridentTuple tuple, TridentCollector collector) {
                int amount = tuple.getIntegerByField("amount");
                double price = tuple.getDoubleByField("price");
                double net = amount * price;
                collector.emit(new Values(net, net * (1 + VAT)));
            }
        };
        orders.each(new Fields("amount"), new AmountFilter(4))
            .each(new Fields("amount", "price"), total, new Fields("net", "gross"))
            .each(new Fields("customer", "gross"), new Print())
            .project(new Fields("id", "customer", "net", "gross"))
            .partitionPersist(new Recorder.Factory("orders"),
                new Fields("id", "customer", "net", "gross"), new Recorder.Updater(), new Fields());
        return topology.build();
    }

    public static void main(String[] args) throws Exception {
        Config conf = new Config();
        conf.setDebug(false);
        LocalCluster cluster = new LocalCluster();
        cluster.submitTopology("orders", conf, build());
        Thread.sleep(10000);
        cluster.shutdown();
    }
}
