package topologies;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.storm.task.IMetricsContext;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.state.BaseStateUpdater;
import org.apache.storm.trident.state.State;
import org.apache.storm.trident.state.StateFactory;
import org.apache.storm.trident.tuple.TridentTuple;

/** The end of a stream: keeps the rows of each batch that was committed, by the name of the stream and the txid. */
public class Recorder implements State {
    public static final Map<String, Map<Long, List<List<Object>>>> ROWS = new ConcurrentHashMap<>();

    private final String name;
    private final List<List<Object>> rows = new ArrayList<>();

    public Recorder(String name) {
        this.name = name;
    }

    @Override
    public void beginCommit(Long txid) {
        rows.clear();
    }

    @Override
    public void commit(Long txid) {
        synchronized (ROWS) {
            Map<Long, List<List<Object>>> batches = ROWS.computeIfAbsent(name, key -> new TreeMap<>());
            batches.computeIfAbsent(txid, key -> new ArrayList<>()).addAll(rows);
        }
    }

    public static class Factory implements StateFactory {
        private final String name;

        public Factory(String name) {
            this.name = name;
        }

        @Override
        public State makeState(Map<String, Object> conf, IMetricsContext metrics, int partition, int partitions) {
            return new Recorder(name);
        }
    }

    public static class Updater extends BaseStateUpdater<Recorder> {
        @Override
        public void updateState(Recorder recorder, List<TridentTuple> tuples, TridentCollector collector) {
            for (TridentTuple tuple : tuples) {
                recorder.rows.add(new ArrayList<>(tuple.getValues()));
            }
        }
    }
}
