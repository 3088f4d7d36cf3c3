// batches: 3
// conf: {"totals.fields": ["team", "player"], "totals.kind": "sum", "totals.factor": 3, "totals.strict": true}
// unordered: rows
package topologies;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.StormSubmitter;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.Stream;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.fluent.GroupedStream;
import org.apache.storm.trident.operation.BaseFilter;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.operation.TridentOperationContext;
import org.apache.storm.trident.operation.builtin.Count;
import org.apache.storm.trident.operation.builtin.Sum;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.ObjectReader;

/** What is grouped, and how it is totalled, is configured. */
public class ConfiguredTotals {
    public static final String FIELDS = "totals.fields";
    public static final String KIND = "totals.kind";
    private static final List<String> ALL_FIELDS = new ArrayList<>(Arrays.asList("team", "player", "points"));

    public static class Scale extends BaseFunction {
        private int factor = 1;
        private boolean strict;
        private String worker;

        @Override
        public void prepare(Map<String, Object> conf, TridentOperationContext context) {
            Object configured = conf.get("totals.factor");
            if (configured instanceof Number) {
                factor = ((Number) configured).intValue();
            } else if (configured != null) {
                factor = Integer.parseInt(configured.toString());
            }
            strict = Boolean.TRUE.equals(conf.get("totals.strict"));
            worker = (String) conf.getOrDefault("totals.worker", "worker") + "-" + context.getPartitionIndex() + "/" + context.numPartitions();
        }

        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            int points = ObjectReader.getInt(tuple.getValueByField("points"), 0);
            if (strict && points < 0) {
                return;
            }
            collector.emit(new Values(points * factor, worker));
        }

        @Override
        public void cleanup() {
        }
    }

    public static class TeamFilter extends BaseFilter {
        private final List<String> teams;

        public TeamFilter(String... teams) {
            this.teams = Arrays.asList(teams);
        }

        @Override
        public boolean isKeep(TridentTuple tuple) {
            return teams.isEmpty() || teams.contains(tuple.getStringByField("team"));
        }
    }

    @SuppressWarnings("unchecked")
    public static StormTopology buildTopology(Config conf) {
        List<Values> rows = Arrays.asList(
            new Values("red", "ann", 1), new Values("blue", "bob", 5), new Values("red", "cid", null), new Values("green", "eve", 9),
            new Values("red", "ann", -2), new Values("blue", "dan", 7), new Values("blue", "bob", 2));
        FixedBatchSpout spout = new FixedBatchSpout(new Fields(ALL_FIELDS), 3, rows.toArray(new Values[0]));
        List<String> groups = (List<String>) conf.get(FIELDS);
        String kind = conf.containsKey(KIND) ? (String) conf.get(KIND) : "count";

        TridentTopology topology = new TridentTopology();
        Stream stream = topology.newStream("points", spout)
            .each(new Fields("team"), new TeamFilter("red", "blue"))
            .each(new Fields("points"), new Scale(), new Fields("scaled", "worker"));
        GroupedStream grouped = stream.groupBy(new Fields(groups));
        Stream totals;
        switch (kind) {
            case "sum":
                totals = grouped.aggregate(new Fields("scaled"), new Sum(), new Fields("total"));
                break;
            case "count":
                totals = grouped.aggregate(new Count(), new Fields("total"));
                break;
            default:
                throw new IllegalArgumentException("unknown kind " + kind);
        }
        List<String> out = new ArrayList<>(groups);
        out.add("total");
        totals.partitionPersist(new Recorder.Factory("totals"), new Fields(out), new Recorder.Updater());
        if (Boolean.parseBoolean(String.valueOf(conf.get("totals.strict")))) {
            List<String> rest = new ArrayList<>();
            for (String field : stream.getOutputFields()) {
                if (!groups.contains(field)) {
                    rest.add(field);
                }
            }
            stream.project(new Fields(rest))
                .partitionPersist(new Recorder.Factory("rest"), new Fields(rest), new Recorder.Updater());
        }
        return topology.build();
    }

    public static void main(String[] args) throws Exception {
        Config conf = new Config();
        conf.put(FIELDS, Arrays.asList("team"));
        StormSubmitter.submitTopology(args[0], conf, buildTopology(conf));
    }
}
