// batches: 3
// unordered: printed
package topologies;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.StormSubmitter;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.Stream;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFilter;
import org.apache.storm.trident.operation.Consumer;
import org.apache.storm.trident.operation.FlatMapFunction;
import org.apache.storm.trident.operation.MapFunction;
import org.apache.storm.trident.operation.builtin.Count;
import org.apache.storm.trident.operation.builtin.Debug;
import org.apache.storm.trident.operation.builtin.FilterNull;
import org.apache.storm.trident.operation.builtin.Negate;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.testing.StringLength;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** map, flatMap, filter and peek, by lambdas and by classes; the whole topology in main. */
public class PipedWords {
    private static final Map<String, Integer> SEEN = new ConcurrentHashMap<>();

    private static MapFunction toUpper = new MapFunction() {
        @Override
        public Values execute(TridentTuple input) {
            return new Values(input.getStringByField("word").toUpperCase(Locale.ROOT));
        }
    };

    static class Shout implements FlatMapFunction {
        private final String mark;
        private final int times;

        Shout(String mark, int times) {
            this.mark = mark;
            this.times = times;
        }

        @Override
        public Iterable<Values> execute(TridentTuple input) {
            return Arrays.stream(new int[] {1, times}).mapToObj(n -> new Values(input.getString(0) + mark.repeat(n), n))
                .collect(Collectors.toList());
        }
    }

    static class Short extends BaseFilter {
        @Override
        public boolean isKeep(TridentTuple tuple) {
            return tuple.getString(0).length() <= 4;
        }
    }

    private static void note(TridentTuple tuple) {
        SEEN.merge(tuple.getString(0), 1, Integer::sum);
        System.out.printf("%s for the %d. time%n", tuple.getString(0), SEEN.get(tuple.getString(0)));
    }

    public static void main(String[] args) throws Exception {
        SEEN.clear();
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("sentence"), 1, new Values("the cow jumped"),
            new Values("over the moon"), new Values(""));
        TridentTopology topology = new TridentTopology();
        Stream words = topology.newStream("sentences", spout)
            .flatMap(tuple -> {
                List<Values> values = new java.util.ArrayList<>();
                for (String word : tuple.getString(0).split(" ")) {
                    if (!word.isEmpty()) {
                        values.add(new Values(word));
                    }
                }
                return values;
            }, new Fields("word"))
            .peek(PipedWords::note)
            .filter(new Short());
        words.map(toUpper, new Fields("upper"))
            .flatMap(new Shout("!", 3), new Fields("shout", "n"))
            .filter(new BaseFilter() {
                @Override
                public boolean isKeep(TridentTuple tuple) {
                    return tuple.getInteger(1) != 3 || tuple.getString(0).charAt(0) != 'T';
                }
            })
            .peek(new Consumer() {
                @Override
                public void accept(TridentTuple input) {
                    System.out.println("shout: " + input.getValues() + " " + input.getFields());
                }
            })
            .partitionPersist(new Recorder.Factory("shouts"), new Fields("shout", "n"), new Recorder.Updater());
        words.each(new Fields("word"), new StringLength(), new Fields("length"))
            .map(tuple -> new Values(tuple.getValue(1), tuple.getString(0).indexOf("o") < 0 ? null : tuple.getString(0)),
                new Fields("length", "o"))
            .each(new Fields("o"), new FilterNull())
            .partitionPersist(new Recorder.Factory("withO"), new Fields("length", "o"), new Recorder.Updater());
        words.each(new Fields("word"), new Negate(new FilterNull()))
            .partitionAggregate(new Count(), new Fields("nulls"))
            .partitionPersist(new Recorder.Factory("nulls"), new Fields("nulls"), new Recorder.Updater());

        Config conf = new Config();
        conf.setDebug(false);
        if (args.length == 0) {
            LocalCluster cluster = new LocalCluster();
            cluster.submitTopology("words", conf, topology.build());
        } else {
            conf.setNumWorkers(1);
            StormSubmitter.submitTopology(args[0], conf, topology.build());
        }
    }
}
