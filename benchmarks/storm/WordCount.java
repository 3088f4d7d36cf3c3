import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLongArray;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.task.IMetricsContext;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.operation.builtin.Count;
import org.apache.storm.trident.spout.IBatchSpout;
import org.apache.storm.trident.state.State;
import org.apache.storm.trident.state.StateFactory;
import org.apache.storm.trident.testing.MemoryMapState;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/**
 * The word count of the group `small` on Storm's LocalCluster.
 *
 * WordCount SENTENCES SIZE BATCHES PENDING INTERVAL COUNTS TASKS: batch n holds the next SIZE lines of the file SENTENCES,
 * which begins again at its end. The spout and the state have TASKS tasks each. Prints the seconds from the start to the
 * success of each batch as a JSON list, and writes the counts into the file COUNTS, a word and its count in each line.
 */
public class WordCount {
    static int tasks;
    static List<String> sentences;
    static int size;
    static int batches;
    static AtomicLongArray done;

    /** Emits from memory. Each task has every n-th sentence of a batch, of n tasks. */
    static class Sentences implements IBatchSpout {
        private int task;

        @Override
        public void open(Map<String, Object> conf, TopologyContext context) {
            task = context.getThisTaskIndex();
        }

        @Override
        public void emitBatch(long batch, TridentCollector collector) {
            if (batch > batches) {
                return;
            }
            long first = (batch - 1) * size;
            for (long at = first + task; at < first + size; at += tasks) {
                collector.emit(new Values(sentences.get((int) (at % sentences.size()))));
            }
        }

        @Override
        public void ack(long batch) {
            if (batch <= batches) {
                done.set((int) batch, System.nanoTime());
            }
        }

        @Override
        public void close() {
        }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return null;
        }

        @Override
        public Fields getOutputFields() {
            return new Fields("sentence");
        }
    }

    /** The function as everybody writes it. */
    static class Split extends BaseFunction {
        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            for (String word : tuple.getString(0).split(" ")) {
                collector.emit(new Values(word));
            }
        }
    }

    /** Storm's own memory state, under a name by which it can be read at the end. */
    static class Counts implements StateFactory {
        @Override
        public State makeState(Map<String, Object> conf, IMetricsContext metrics, int partition, int partitions) {
            return partition(partition);
        }

        @SuppressWarnings({"rawtypes", "unchecked"})
        static MemoryMapState<Long> partition(int partition) {
            return new MemoryMapState("counts-" + partition);
        }
    }

    static TridentTopology topology() {
        TridentTopology topology = new TridentTopology();
        topology.newStream("sentences", new Sentences())
            .each(new Fields("sentence"), new Split(), new Fields("word"))
            .parallelismHint(tasks)
            .groupBy(new Fields("word"))
            .persistentAggregate(new Counts(), new Count(), new Fields("count"))
            .parallelismHint(tasks);
        return topology;
    }

    static Config settings(int pending, int interval) {
        Config conf = new Config();
        conf.setNumWorkers(1);
        conf.setNumAckers(1);
        conf.setNumEventLoggers(0);
        conf.setMaxSpoutPending(pending);
        conf.setMessageTimeoutSecs(600);
        conf.put(Config.TOPOLOGY_TRIDENT_BATCH_EMIT_INTERVAL_MILLIS, interval);
        return conf;
    }

    /** Whether every batch has succeeded. With several in flight they do so in order. */
    static boolean isOver() {
        return done.get(batches) != 0;
    }

    static void writeCounts(Path file) throws Exception {
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(file))) {
            for (int partition = 0; partition < tasks; partition++) {
                for (Iterator<List<Object>> rows = Counts.partition(partition).getTuples(); rows.hasNext();) {
                    List<Object> row = rows.next();
                    out.println(row.get(0) + " " + row.get(1));
                }
            }
        }
    }

    public static void main(String[] words) throws Exception {
        sentences = new ArrayList<>(Files.readAllLines(Path.of(words[0])));
        size = Integer.parseInt(words[1]);
        batches = Integer.parseInt(words[2]);
        tasks = Integer.parseInt(words[6]);
        done = new AtomicLongArray(batches + 1);
        try (LocalCluster cluster = new LocalCluster()) {
            Config conf = settings(Integer.parseInt(words[3]), Integer.parseInt(words[4]));
            long began = System.nanoTime();
            cluster.submitTopology("words", conf, topology().build());
            while (!isOver()) {
                Thread.sleep(20);
            }
            List<String> seconds = new ArrayList<>();
            for (int batch = 1; batch <= batches; batch++) {
                seconds.add(String.valueOf((done.get(batch) - began) / 1e9));
            }
            writeCounts(Path.of(words[5]));
            System.out.println("[" + String.join(", ", seconds) + "]");
            System.out.flush();
            Runtime.getRuntime().halt(0);  // a LocalCluster takes seconds to close, and nothing is left to lose
        }
    }
}
