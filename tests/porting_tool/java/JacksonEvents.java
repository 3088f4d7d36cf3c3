// batches: 3
// conf: {"events.kinds": "click,view"}
package topologies;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.storm.Config;
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

/** Events as JSON, read and written by Jackson. */
public class JacksonEvents {
    public static class ParseEvent extends BaseFunction {
        private static final Logger LOG = LoggerFactory.getLogger(ParseEvent.class);
        private static final ObjectMapper MAPPER = new ObjectMapper();

        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            try {
                JsonNode event = MAPPER.readTree(tuple.getString(0));
                String kind = event.get("kind").asText();
                JsonNode user = event.path("user");
                int age = user.path("age").asInt(-1);
                String name = user.has("name") && !user.get("name").isNull() ? user.get("name").asText() : "anonymous";
                List<String> tags = new ArrayList<>();
                for (JsonNode tag : event.path("tags")) {
                    tags.add(tag.asText());
                }
                collector.emit(new Values(kind, name, age, tags, event.path("value").asDouble()));
            } catch (JsonProcessingException e) {
                LOG.warn("bad event {} of {}", tuple.getString(0), tuple.size());
            }
        }
    }

    public static class ToJson extends BaseFunction {
        private transient ObjectMapper mapper;

        @Override
        public void prepare(Map<String, Object> conf, TridentOperationContext context) {
            mapper = new ObjectMapper();
        }

        @Override
        @SuppressWarnings("unchecked")
        public void execute(TridentTuple tuple, TridentCollector collector) {
            try {
                Map<String, Object> out = new LinkedHashMap<>();
                out.put("name", tuple.getStringByField("name"));
                out.put("tags", tuple.getValueByField("tags"));
                out.put("value", tuple.getDoubleByField("value"));
                String json = mapper.writeValueAsString(out);
                ObjectNode node = mapper.createObjectNode();
                node.put("age", tuple.getIntegerByField("age"));
                ArrayNode array = node.putArray("tags");
                for (String tag : (List<String>) tuple.getValueByField("tags")) {
                    array.add(tag.toUpperCase());
                }
                Map<String, Object> back = mapper.readValue(json, Map.class);
                back.remove("tags");
                HashMap<String, Integer> numbers = mapper.readValue("{\"a\": 1, \"b\": 2}", new TypeReference<HashMap<String, Integer>>() {});
                collector.emit(new Values(json, node.toString(), back.size(), numbers.get("b")));
            } catch (IOException e) {
                throw new RuntimeException(e);
            }
        }
    }

    public static class KindFilter extends BaseFilter {
        private Set<String> kinds;

        @Override
        public void prepare(Map<String, Object> conf, TridentOperationContext context) {
            kinds = new LinkedHashSet<>(Arrays.asList(((String) conf.get("events.kinds")).split(",")));
        }

        @Override
        public boolean isKeep(TridentTuple tuple) {
            return kinds.contains(tuple.getStringByField("kind"));
        }
    }

    public static StormTopology buildTopology(Config conf) {
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("json"), 2,
            new Values("{\"kind\": \"click\", \"user\": {\"name\": \"ann\", \"age\": 31}, \"tags\": [\"a\", \"b\"], \"value\": 2}"),
            new Values("{\"kind\": \"view\", \"user\": {\"name\": null}, \"value\": 1.5e3}"),
            new Values("{\"kind\": \"click\""),
            new Values("{\"kind\": \"sale\", \"value\": 9}"),
            new Values("{\"kind\": \"click\", \"tags\": [\"\u00fc\", \"x \\\"y\\\"\"], \"user\": {\"age\": 7}}"));
        TridentTopology topology = new TridentTopology();
        topology.newStream("events", spout)
            .each(new Fields("json"), new ParseEvent(), new Fields("kind", "name", "age", "tags", "value"))
            .each(new Fields("kind"), new KindFilter())
            .each(new Fields("name", "age", "tags", "value"), new ToJson(), new Fields("out", "node", "size", "two"))
            .partitionPersist(new Recorder.Factory("events"), new Fields("kind", "name", "age", "tags", "value", "out", "node", "size", "two"),
                new Recorder.Updater());
        return topology.build();
    }
}
