// batches: 3
package topologies;

import java.util.Map;
import net.minidev.json.JSONArray;
import net.minidev.json.JSONObject;
import net.minidev.json.JSONValue;
import net.minidev.json.parser.JSONParser;
import net.minidev.json.parser.ParseException;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.StormSubmitter;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFilter;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.operation.TridentOperationContext;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Orders as JSON, with lines; what is no JSON is logged and left out. */
public class JsonOrders {
    private static final Logger logger = LoggerFactory.getLogger(JsonOrders.class);

    public static class ParseOrder extends BaseFunction {
        private transient JSONParser parser;

        @Override
        public void prepare(Map<String, Object> conf, TridentOperationContext context) {
            parser = new JSONParser(JSONParser.MODE_PERMISSIVE);
        }

        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            String text = tuple.getString(0);
            try {
                JSONObject order = (JSONObject) parser.parse(text);
                String customer = (String) order.get("customer");
                boolean paid = order.containsKey("paid") && (Boolean) order.get("paid");
                JSONArray lines = (JSONArray) order.get("lines");
                for (Object line : lines) {
                    JSONObject item = (JSONObject) line;
                    Number amount = (Number) item.get("amount");
                    Double price = ((Number) item.get("price")).doubleValue();
                    collector.emit(new Values(customer, paid, item.get("item"), amount.intValue(), price));
                }
            } catch (ParseException | ClassCastException e) {
                logger.warn("not an order: {}", text);
            }
        }
    }

    public static class Invoice extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            JSONObject invoice = new JSONObject();
            invoice.put("total", tuple.getIntegerByField("amount") * tuple.getDoubleByField("price"));
            collector.emit(new Values(invoice.toJSONString()));
        }
    }

    public static class IsPaid extends BaseFilter {
        @Override
        public boolean isKeep(TridentTuple tuple) {
            return tuple.getBoolean(0);
        }
    }

    public static class LogLine extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            Object total = ((JSONObject) JSONValue.parse(tuple.getStringByField("invoice"))).get("total");
            logger.info(tuple.getStringByField("customer") + " pays " + total);
            collector.emit(new Values());
        }
    }

    public static StormTopology buildTopology() {
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("str"), 2,
            new Values("{\"customer\": \"ann\", \"paid\": true, \"lines\": [{\"item\": \"tea\", \"amount\": 2, \"price\": 3.5},"
                + " {\"item\": \"cup\", \"amount\": 1, \"price\": 12}]}"),
            new Values("{\"customer\": \"bob\", \"lines\": [{\"item\": \"jar\", \"amount\": 3, \"price\": 0.1}]}"),
            new Values("no { json"),
            new Values("{\"customer\": \"cid\", \"paid\": true, \"lines\": []}"),
            new Values("[1, 2]"),
            new Values("{\"customer\": null, \"paid\": true, \"lines\": [{\"item\": \"\u00e9clair\", \"amount\": 7, \"price\": 1e2}]}"));
        TridentTopology topology = new TridentTopology();
        topology.newStream("orders", spout)
            .each(new Fields("str"), new ParseOrder(), new Fields("customer", "paid", "item", "amount", "price"))
            .each(new Fields("paid"), new IsPaid())
            .each(new Fields("amount", "price"), new Invoice(), new Fields("invoice"))
            .each(new Fields("customer", "invoice"), new LogLine(), new Fields(""))
            .partitionPersist(new Recorder.Factory("invoices"),
                new Fields("customer", "paid", "item", "amount", "price", "invoice"), new Recorder.Updater());
        return topology.build();
    }

    public static void main(String[] args) throws Exception {
        Config conf = new Config();
        if (args != null && args.length > 0) {
            conf.setNumWorkers(3);
            StormSubmitter.submitTopologyWithProgressBar(args[0], conf, buildTopology());
        } else {
            conf.setMaxTaskParallelism(3);
            LocalCluster cluster = new LocalCluster();
            cluster.submitTopology("orders", conf, buildTopology());
        }
    }
}
