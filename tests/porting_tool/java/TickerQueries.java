// batches: 4
// unordered: rows
// asks: price "acme,umbrella,none"
// asks: all "x"
// asks: range "10..30"
// asks: echo "upside down"
package topologies;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.storm.ILocalDRPC;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.trident.TridentState;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.CombinerAggregator;
import org.apache.storm.trident.operation.ReducerAggregator;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.operation.builtin.FilterNull;
import org.apache.storm.trident.operation.builtin.MapGet;
import org.apache.storm.trident.operation.builtin.TupleCollectionGet;
import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.testing.MemoryMapState;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/** Prices of shares, asked by DRPC. */
public class TickerQueries {
    public static class Last implements ReducerAggregator<Double> {
        @Override
        public Double init() {
            return null;
        }

        @Override
        public Double reduce(Double curr, TridentTuple tuple) {
            return tuple.getDouble(0);
        }
    }

    static class SplitBy extends BaseFunction {
        private final char separator;

        SplitBy(char separator) {
            this.separator = separator;
        }

        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            String text = tuple.getString(0);
            int from = 0;
            for (int i = 0; i <= text.length(); i++) {
                if (i == text.length() || text.charAt(i) == separator) {
                    collector.emit(new Values(text.substring(from, i).trim()));
                    from = i + 1;
                }
            }
        }
    }

    static class Range extends BaseFunction {
        private static final Pattern RANGE = Pattern.compile("(\\d+)\\.\\.(\\d+)");

        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            Matcher m = RANGE.matcher(tuple.getString(0));
            if (m.matches()) {
                for (int n = Integer.parseInt(m.group(1)), end = Integer.parseInt(m.group(2)); n <= end; n += 7) {
                    collector.emit(new Values(n, n * n));
                }
            }
        }
    }

    static class Product implements CombinerAggregator<Long> {
        @Override
        public Long init(TridentTuple tuple) {
            return tuple.getInteger(0).longValue();
        }

        @Override
        public Long combine(Long a, Long b) {
            return a * b;
        }

        @Override
        public Long zero() {
            return 1L;
        }
    }

    static class Reverse extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            String args = tuple.getStringByField("args");
            List<String> words = new ArrayList<>(List.of(args.split(" ")));
            java.util.Collections.reverse(words);
            collector.emit(new Values(new StringBuilder(args).reverse().toString(), String.join(" ", words)));
        }
    }

    public static StormTopology buildTopology(ILocalDRPC drpc) {
        FixedBatchSpout spout = new FixedBatchSpout(new Fields("symbol", "price"), 2,
            new Values("acme", 10.0), new Values("umbrella", 99.5), new Values("acme", 10.5), new Values("initech", 1.25),
            new Values("acme", 9.75), new Values("globex", 42.0), new Values("umbrella", 100.0));
        TridentTopology topology = new TridentTopology();
        TridentState prices = topology.newStream("ticks", spout)
            .groupBy(new Fields("symbol"))
            .persistentAggregate(new MemoryMapState.Factory(), new Fields("price"), new Last(), new Fields("last"));
        prices.newValuesStream()
            .partitionPersist(new Recorder.Factory("last"), new Fields("symbol", "last"), new Recorder.Updater());
        topology.newDRPCStream("price", drpc)
            .each(new Fields("args"), new SplitBy(','), new Fields("symbol"))
            .stateQuery(prices, new Fields("symbol"), new MapGet(), new Fields("price"))
            .each(new Fields("price"), new FilterNull())
            .project(new Fields("symbol", "price"));
        topology.newDRPCStream("all", drpc)
            .broadcast()
            .stateQuery(prices, new TupleCollectionGet(), new Fields("symbol", "price"))
            .aggregate(new Fields("price"), new ReducerAggregator<Double>() {
                @Override
                public Double init() {
                    return 0.0;
                }

                @Override
                public Double reduce(Double most, TridentTuple tuple) {
                    return Math.max(most, tuple.getDouble(0));
                }
            }, new Fields("most"));
        topology.newDRPCStream("range", drpc)
            .each(new Fields("args"), new Range(), new Fields("n", "square"))
            .aggregate(new Fields("n"), new Product(), new Fields("product"));
        topology.newDRPCStream("echo", drpc)
            .each(new Fields("args"), new Reverse(), new Fields("letters", "words"))
            .project(new Fields("letters", "words"));
        return topology.build();
    }
}
