package harness;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.PrintStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.storm.Config;
import org.apache.storm.DaemonConfig;
import org.apache.storm.LocalCluster;
import org.apache.storm.LocalDRPC;
import org.apache.storm.generated.ComponentObject;
import org.apache.storm.generated.Nimbus;
import org.apache.storm.generated.SpoutSpec;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.spout.ISpoutOutputCollector;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.trident.spout.ITridentSpout;
import org.apache.storm.trident.topology.MasterBatchCoordinator;
import org.apache.storm.utils.NimbusClient;
import org.apache.storm.utils.Utils;
import topologies.Recorder;

/**
 * Runs Trident topologies on Storm's LocalCluster, one after the other, each to a number of batches.
 *
 * <p>Argument: a JSON file with a list of {"name", "batches", "conf", "asks": [[function, args]...]}. A line of JSON for
 * each comes out: the rows of the Recorder, what was printed or logged, and the answers of DRPC.
 */
public class Harness {
    static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.ORDER_MAP_ENTRIES_BY_KEYS);
    static final long WAIT_MILLIS = 300_000;

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        System.setProperty("storm.jar", args[0]);
        List<Map<String, Object>> cases = JSON.readValue(new File(args[0]), List.class);
        try (LocalCluster cluster = start(); LocalDRPC drpc = new LocalDRPC()) {
            for (Map<String, Object> one : cases) {
                System.err.println(one.get("name"));
                out.println(JSON.writeValueAsString(run(cluster, drpc, one)));
                out.flush();
            }
        } catch (Throwable e) {
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
        Runtime.getRuntime().halt(0);
    }

    static LocalCluster start() throws Exception {
        Map<String, Object> conf = new HashMap<>();
        conf.put(DaemonConfig.NIMBUS_MONITOR_FREQ_SECS, 1);
        conf.put(DaemonConfig.SUPERVISOR_MONITOR_FREQUENCY_SECS, 1);
        conf.put(Config.SUPERVISOR_WORKER_SHUTDOWN_SLEEP_SECS, 0);
        conf.put(Config.SUPERVISOR_WORKER_TIMEOUT_SECS, 600);
        conf.put(DaemonConfig.NIMBUS_TASK_TIMEOUT_SECS, 600);
        conf.put(DaemonConfig.NIMBUS_SUPERVISOR_TIMEOUT_SECS, 600);
        conf.put(Config.STORM_ZOOKEEPER_SESSION_TIMEOUT, 120000);
        return new LocalCluster.Builder().withSupervisors(1).withPortsPerSupervisor(64).withDaemonConf(conf).build();
    }

    static Map<String, Object> run(LocalCluster cluster, LocalDRPC drpc, Map<String, Object> one) throws Exception {
        String name = (String) one.get("name");
        Progress progress = new Progress(((Number) one.get("batches")).longValue());
        Progress.CURRENT.put(name, progress);
        Recorder.ROWS.clear();
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        PrintStream before = System.out;
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        List<Object> answers = new ArrayList<>();
        try {
            submit(cluster, drpc, name, (Map<String, Object>) one.get("conf"));
            progress.await();
            for (List<String> ask : (List<List<String>>) one.get("asks")) {
                Object rows = JSON.readValue(drpc.execute(ask.get(0), ask.get(1)), Object.class);
                answers.add(Arrays.asList(ask.get(0), ask.get(1), rows));
            }
            Thread.sleep(100);
        } finally {
            System.setOut(before);
        }
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("name", name);
        result.put("rows", Recorder.ROWS);
        result.put("printed", printed.toString(StandardCharsets.UTF_8).lines().toList());
        result.put("answers", answers);
        String json = JSON.writeValueAsString(result);
        cluster.killTopologyWithOpts(name, LocalCluster.KILL_NOW);
        return JSON.readValue(json, Map.class);
    }

    /** Calls the public static method of the class that returns a topology; without one, its main. */
    static void submit(LocalCluster cluster, LocalDRPC drpc, String name, Map<String, Object> more) throws Exception {
        Class<?> main = Class.forName("topologies." + name);
        Config conf = new Config();
        conf.putAll(more);
        for (Method method : main.getDeclaredMethods()) {
            if (method.getReturnType() == StormTopology.class && Modifier.isPublic(method.getModifiers())) {
                Object[] args = Arrays.stream(method.getParameterTypes())
                    .map(type -> type.isInstance(drpc) ? drpc : type.isInstance(conf) ? conf : null).toArray();
                accept(cluster, name, conf, (StormTopology) method.invoke(null, args));
                return;
            }
        }
        InvocationHandler handler = (proxy, method, args) -> {
            if (method.getName().startsWith("submitTopology")) {
                conf.putAll(JSON.readValue((String) args[2], Map.class));
                accept(cluster, name, conf, (StormTopology) args[3]);
                return null;
            }
            if (method.getName().contains("FileUpload") || method.getName().equals("uploadChunk")) {
                return method.getReturnType() == String.class ? "no jar" : null;
            }
            try {
                return method.invoke(cluster, args);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        };
        Class<?>[] nimbus = {Nimbus.Iface.class};
        Nimbus.Iface local = (Nimbus.Iface) Proxy.newProxyInstance(Harness.class.getClassLoader(), nimbus, handler);
        try (NimbusClient.LocalOverride override = new NimbusClient.LocalOverride(local)) {
            main.getMethod("main", String[].class).invoke(null, (Object) new String[] {name});
        }
    }

    static void accept(LocalCluster cluster, String name, Config conf, StormTopology topology) throws Exception {
        for (Map.Entry<String, SpoutSpec> spout : topology.get_spouts().entrySet()) {
            Object object = Utils.getSetComponentObject(spout.getValue().get_spout_object());
            if (object instanceof MasterBatchCoordinator) {
                Progress.CURRENT.get(name).open.add(spout.getKey());
                Object gate = new Gate(name, spout.getKey(), (MasterBatchCoordinator) object);
                spout.getValue().set_spout_object(ComponentObject.serialized_java(Utils.javaSerialize(gate)));
            }
        }
        if (Progress.CURRENT.get(name).open.isEmpty()) {
            return;  // a topology of Storm's core
        }
        conf.setMaxSpoutPending(1);
        conf.setNumWorkers(1);
        conf.put(Config.TOPOLOGY_TRIDENT_BATCH_EMIT_INTERVAL_MILLIS, 1);
        conf.put(Config.TOPOLOGY_BATCH_FLUSH_INTERVAL_MILLIS, 0);
        conf.put(Config.TRANSACTIONAL_ZOOKEEPER_ROOT, "/" + name);
        cluster.submitTopology(name, conf, topology);
    }

    /** How far a run is: which of its coordinators have not seen the last batch succeed. */
    static class Progress {
        static final Map<String, Progress> CURRENT = new ConcurrentHashMap<>();
        final long batches;
        final Set<String> open = ConcurrentHashMap.newKeySet();

        Progress(long batches) {
            this.batches = batches;
        }

        synchronized void succeeded(String coordinator, long txid) {
            if (txid >= batches) {
                open.remove(coordinator);
                notifyAll();
            }
        }

        synchronized void await() throws InterruptedException {
            long end = System.currentTimeMillis() + WAIT_MILLIS;
            while (!open.isEmpty() && System.currentTimeMillis() < end) {
                wait(1000);
            }
            if (!open.isEmpty()) {
                throw new IllegalStateException("no success of batch " + batches + " within " + WAIT_MILLIS + " ms");
            }
        }
    }

    /** Storm's coordinator of batches, which begins none behind the last. */
    static class Gate extends BaseRichSpout {
        final String name;
        final String id;
        final MasterBatchCoordinator coordinator;

        Gate(String name, String id, MasterBatchCoordinator coordinator) {
            this.name = name;
            this.id = id;
            this.coordinator = coordinator;
        }

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
            InvocationHandler handler = (proxy, method, args) -> {
                Object result = method.invoke(collector, args);
                if (method.getName().equals("emit") && MasterBatchCoordinator.SUCCESS_STREAM_ID.equals(args[0])) {
                    Object attempt = ((List<?>) args[1]).get(0);
                    long txid = ((org.apache.storm.trident.topology.TransactionAttempt) attempt).getTransactionId();
                    Progress.CURRENT.get(name).succeeded(id, txid);
                }
                return result;
            };
            Class<?>[] types = {ISpoutOutputCollector.class};
            ClassLoader loader = Harness.class.getClassLoader();
            ISpoutOutputCollector seen = (ISpoutOutputCollector) Proxy.newProxyInstance(loader, types, handler);
            coordinator.open(conf, context, new SpoutOutputCollector(seen));
            try {
                var field = MasterBatchCoordinator.class.getDeclaredField("coordinators");
                field.setAccessible(true);
                ((List<ITridentSpout.BatchCoordinator>) field.get(coordinator)).replaceAll(this::gated);
            } catch (ReflectiveOperationException e) {
                throw new RuntimeException(e);
            }
        }

        ITridentSpout.BatchCoordinator gated(ITridentSpout.BatchCoordinator real) {
            InvocationHandler handler = (proxy, method, args) -> {
                if (method.getName().equals("isReady") && (long) args[0] > Progress.CURRENT.get(name).batches) {
                    return false;
                }
                try {
                    return method.invoke(real, args);
                } catch (InvocationTargetException e) {
                    throw e.getCause();
                }
            };
            Class<?>[] types = {ITridentSpout.BatchCoordinator.class};
            ClassLoader loader = Harness.class.getClassLoader();
            return (ITridentSpout.BatchCoordinator) Proxy.newProxyInstance(loader, types, handler);
        }

        @Override
        public void activate() {
            coordinator.activate();
        }

        @Override
        public void deactivate() {
            coordinator.deactivate();
        }

        @Override
        public void nextTuple() {
            coordinator.nextTuple();
        }

        @Override
        public void ack(Object id) {
            coordinator.ack(id);
        }

        @Override
        public void fail(Object id) {
            coordinator.fail(id);
        }

        @Override
        public void close() {
            coordinator.close();
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            coordinator.declareOutputFields(declarer);
        }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return coordinator.getComponentConfiguration();
        }
    }
}
