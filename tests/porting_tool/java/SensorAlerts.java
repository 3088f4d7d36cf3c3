// batches: 3
// unordered: rows
package topologies;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.task.IMetricsContext;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.trident.Stream;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFilter;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.operation.builtin.Count;
import org.apache.storm.trident.spout.ITridentSpout;
import org.apache.storm.trident.state.State;
import org.apache.storm.trident.state.StateFactory;
import org.apache.storm.trident.state.map.IBackingMap;
import org.apache.storm.trident.state.map.NonTransactionalMap;
import org.apache.storm.trident.topology.TransactionAttempt;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Readings with a place are assigned to the nearest station and counted by the hour; a count above a limit alerts. */
public class SensorAlerts {
    public static class Reading implements Serializable {
        private static final long serialVersionUID = 1L;
        public final double lat;
        public final double lng;
        public final long time;
        public final String code;

        public Reading(double lat, double lng, long time, String code) {
            super();
            this.lat = lat;
            this.lng = lng;
            this.time = time;
            this.code = code;
        }
    }

    public static class DefaultCoordinator implements ITridentSpout.BatchCoordinator<Long>, Serializable {
        private static final long serialVersionUID = 1L;
        private static final Logger LOG = LoggerFactory.getLogger(DefaultCoordinator.class);

        @Override
        public boolean isReady(long txid) {
            return true;
        }

        @Override
        public void close() {
        }

        @Override
        public Long initializeTransaction(long txid, Long prevMetadata, Long currMetadata) {
            LOG.debug("Initializing Transaction [" + txid + "]");
            return null;
        }

        @Override
        public void success(long txid) {
            LOG.debug("Successful Transaction [" + txid + "]");
        }
    }

    public static class ReadingEmitter implements ITridentSpout.Emitter<Long>, Serializable {
        private static final long serialVersionUID = 1L;
        AtomicInteger successfulTransactions = new AtomicInteger(0);

        @Override
        public void emitBatch(TransactionAttempt tx, Long coordinatorMeta, TridentCollector collector) {
            for (int i = 0; i < 12; i++) {
                List<Object> events = new ArrayList<Object>();
                double lat = new Double(-30 + (i * 17 % 75));
                double lng = new Double(-120 + (i * 29 % 70));
                long time = 1500000000000L + tx.getTransactionId() * 1800000L + i * 60000;
                String code = Integer.valueOf(318 + i % 4).toString();
                events.add(new Reading(lat, lng, time, code));
                collector.emit(events);
            }
        }

        @Override
        public void success(TransactionAttempt tx) {
            successfulTransactions.incrementAndGet();
        }

        @Override
        public void close() {
        }
    }

    public static class ReadingSpout implements ITridentSpout<Long> {
        private static final long serialVersionUID = 1L;
        BatchCoordinator<Long> coordinator = new DefaultCoordinator();
        Emitter<Long> emitter = new ReadingEmitter();

        @Override
        public BatchCoordinator<Long> getCoordinator(String txStateId, Map<String, Object> conf, TopologyContext context) {
            return coordinator;
        }

        @Override
        public Emitter<Long> getEmitter(String txStateId, Map<String, Object> conf, TopologyContext context) {
            return emitter;
        }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return null;
        }

        @Override
        public Fields getOutputFields() {
            return new Fields("event");
        }
    }

    public static class CodeFilter extends BaseFilter {
        private static final long serialVersionUID = 1L;

        @Override
        public boolean isKeep(TridentTuple tuple) {
            Reading reading = (Reading) tuple.getValue(0);
            Integer code = Integer.parseInt(reading.code);
            return code.intValue() <= 320;
        }
    }

    public static class StationAssignment extends BaseFunction {
        private static final long serialVersionUID = 1L;
        private static Map<String, double[]> STATIONS = new HashMap<String, double[]>();

        { // Initialize the stations we care about.
            double[] north = {39.875365, -75.249524};
            STATIONS.put("north", north);
            double[] east = {40.71448, -74.00598};
            STATIONS.put("east", east);
            double[] west = {-31.4250142, -62.0841809};
            STATIONS.put("west", west);
            double[] south = {-34.05374, -118.24307};
            STATIONS.put("south", south);
        }

        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            Reading reading = (Reading) tuple.getValue(0);
            double leastDistance = Double.MAX_VALUE;
            String closest = "NONE";
            for (Map.Entry<String, double[]> station : STATIONS.entrySet()) {
                double r = 6371;
                double x = (station.getValue()[0] - reading.lng) * Math.cos((station.getValue()[0] + reading.lng) / 2);
                double y = (station.getValue()[1] - reading.lat);
                double d = Math.sqrt(x * x + y * y) * r;
                if (d < leastDistance) {
                    leastDistance = d;
                    closest = station.getKey();
                }
            }
            List<Object> values = new ArrayList<Object>();
            values.add(closest);
            collector.emit(values);
        }
    }

    public static class HourAssignment extends BaseFunction {
        private static final long serialVersionUID = 1L;

        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            Reading reading = (Reading) tuple.getValue(0);
            String station = (String) tuple.getValue(1);
            long hourSinceEpoch = reading.time / 1000 / 60 / 60;
            String key = station + ":" + reading.code + ":" + hourSinceEpoch;
            List<Object> values = new ArrayList<Object>();
            values.add(hourSinceEpoch);
            values.add(key);
            collector.emit(values);
        }
    }

    public static class TrendBackingMap implements IBackingMap<Long> {
        Map<String, Long> storage = new HashMap<String, Long>();

        @Override
        public List<Long> multiGet(List<List<Object>> keys) {
            List<Long> values = new ArrayList<Long>();
            for (List<Object> key : keys) {
                Long value = storage.get(key.get(0));
                if (value == null) {
                    values.add(new Long(0));
                } else {
                    values.add(value);
                }
            }
            return values;
        }

        @Override
        public void multiPut(List<List<Object>> keys, List<Long> vals) {
            for (int i = 0; i < keys.size(); i++) {
                storage.put((String) keys.get(i).get(0), vals.get(i));
            }
        }
    }

    public static class TrendState extends NonTransactionalMap<Long> {
        protected TrendState(TrendBackingMap backingMap) {
            super(backingMap);
        }
    }

    public static class TrendFactory implements StateFactory {
        private static final long serialVersionUID = 1L;

        @SuppressWarnings("rawtypes")
        @Override
        public State makeState(Map<String, Object> conf, IMetricsContext metrics, int partitionIndex, int numPartitions) {
            return new TrendState(new TrendBackingMap());
        }
    }

    public static class TrendDetector extends BaseFunction {
        private static final long serialVersionUID = 1L;
        public static final int THRESHOLD = 5;

        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            String key = (String) tuple.getValue(0);
            Long count = (Long) tuple.getValue(1);
            if (count > THRESHOLD) {
                List<Object> values = new ArrayList<Object>();
                values.add(String.format("Alert for [%s]!", key));
                collector.emit(values);
            }
        }
    }

    public static StormTopology buildTopology() {
        TridentTopology topology = new TridentTopology();
        ReadingSpout spout = new ReadingSpout();
        Stream inputStream = topology.newStream("event", spout);

        inputStream.each(new Fields("event"), new CodeFilter())
            .each(new Fields("event"), new StationAssignment(), new Fields("station"))
            .each(new Fields("event", "station"), new HourAssignment(), new Fields("hour", "stationCodeHour"))
            .groupBy(new Fields("stationCodeHour"))
            .persistentAggregate(new TrendFactory(), new Count(), new Fields("count")).newValuesStream()
            .each(new Fields("stationCodeHour", "count"), new TrendDetector(), new Fields("alert"))
            .partitionPersist(new Recorder.Factory("alerts"),
                new Fields("stationCodeHour", "count", "alert"), new Recorder.Updater());
        return topology.build();
    }
}
