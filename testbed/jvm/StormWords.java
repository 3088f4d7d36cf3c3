import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.kafka.spout.FirstPollOffsetStrategy;
import org.apache.storm.kafka.spout.trident.KafkaTridentSpoutConfig;
import org.apache.storm.kafka.spout.trident.KafkaTridentSpoutOpaque;
import org.apache.storm.kafka.spout.trident.KafkaTridentSpoutTransactional;
import org.apache.storm.redis.common.config.JedisPoolConfig;
import org.apache.storm.redis.common.mapper.RedisDataTypeDescription;
import org.apache.storm.redis.trident.state.RedisMapState;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.trident.operation.BaseFunction;
import org.apache.storm.trident.operation.TridentCollector;
import org.apache.storm.trident.operation.builtin.Count;
import org.apache.storm.trident.spout.ITridentDataSource;
import org.apache.storm.trident.state.StateFactory;
import org.apache.storm.trident.tuple.TridentTuple;
import org.apache.storm.tuple.Fields;

/**
 * Word counts on a LocalCluster, each named by KEY=VALUE..., with "--" between two of them: name, zookeeper and redis (ports),
 * database (of Redis), kafka (address), topic, kind (opaque, transactional or nontransactional state; the spout is opaque
 * or transactional), hash ("" for strings), tasks of the state, root (what follows /storm and /transactional), pending,
 * rows (records that a poll brings), delay (milliseconds that each sentence takes). It runs until it is killed.
 */
public class StormWords {
    static class Split extends BaseFunction {
        private final int delay;

        Split(int delay) {
            this.delay = delay;
        }

        @Override
        public void execute(TridentTuple tuple, TridentCollector collector) {
            for (String word : tuple.getString(0).split(" ")) {
                collector.emit(Arrays.asList((Object) word));
            }
            if (delay > 0) {
                try {
                    Thread.sleep(delay);
                } catch (InterruptedException e) {
                    throw new RuntimeException(e);
                }
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        List<Map<String, String>> words = new ArrayList<>();
        words.add(new HashMap<>());
        for (String argument : arguments) {
            if (argument.equals("--")) {
                words.add(new HashMap<>());
            } else {
                String[] pair = argument.split("=", 2);
                words.get(words.size() - 1).put(pair[0], pair[1]);
            }
        }
        Map<String, String> first = words.get(0);
        LocalCluster cluster = new LocalCluster.Builder()
            .withSupervisors(words.size())
            .withDaemonConf(Config.STORM_ZOOKEEPER_SERVERS, Arrays.asList("127.0.0.1"))
            .withDaemonConf(Config.STORM_ZOOKEEPER_ROOT, "/storm" + first.getOrDefault("root", ""))
            .withDaemonConf(Config.STORM_ZOOKEEPER_PORT, Integer.parseInt(first.get("zookeeper")))
            .build();
        for (Map<String, String> given : words) {
            cluster.submitTopology(given.getOrDefault("name", "words"), conf(given), topology(given));
        }
        System.out.println("submitted");
        Thread.sleep(Long.MAX_VALUE);
    }

    static StormTopology topology(Map<String, String> given) {
        TridentTopology topology = new TridentTopology();
        topology.newStream("sentences", spout(given))
            .each(new Fields("value"), new Split(Integer.parseInt(given.getOrDefault("delay", "0"))), new Fields("word"))
            .groupBy(new Fields("word"))
            .persistentAggregate(state(given), new Count(), new Fields("count"))
            .parallelismHint(Integer.parseInt(given.getOrDefault("tasks", "1")));
        return topology.build();
    }

    static Config conf(Map<String, String> given) {
        Config conf = new Config();
        conf.setNumWorkers(1);
        conf.setNumAckers(1);
        conf.setNumEventLoggers(0);
        conf.setMaxSpoutPending(Integer.parseInt(given.getOrDefault("pending", "1")));
        conf.put(Config.TRANSACTIONAL_ZOOKEEPER_ROOT, "/transactional" + given.getOrDefault("root", ""));
        conf.put(Config.TOPOLOGY_TRIDENT_BATCH_EMIT_INTERVAL_MILLIS, 1);
        conf.put(Config.TOPOLOGY_BATCH_FLUSH_INTERVAL_MILLIS, 0);
        return conf;
    }

    static ITridentDataSource spout(Map<String, String> given) {
        KafkaTridentSpoutConfig<String, String> config = KafkaTridentSpoutConfig
            .builder(given.get("kafka"), given.get("topic"))
            .setProp("group.id", "words")
            .setProp("max.poll.records", Integer.parseInt(given.getOrDefault("rows", "5")))
            .setPollTimeoutMs(20)
            .setFirstPollOffsetStrategy(FirstPollOffsetStrategy.UNCOMMITTED_EARLIEST)
            .build();
        if (given.getOrDefault("kind", "opaque").equals("transactional")) {
            return new KafkaTridentSpoutTransactional<>(config);
        }
        return new KafkaTridentSpoutOpaque<>(config);
    }

    static StateFactory state(Map<String, String> given) {
        JedisPoolConfig redis = new JedisPoolConfig.Builder()
            .setHost("127.0.0.1").setPort(Integer.parseInt(given.get("redis")))
            .setDatabase(Integer.parseInt(given.getOrDefault("database", "0"))).build();
        String hash = given.getOrDefault("hash", "");
        RedisDataTypeDescription type = hash.isEmpty()
            ? new RedisDataTypeDescription(RedisDataTypeDescription.RedisDataType.STRING)
            : new RedisDataTypeDescription(RedisDataTypeDescription.RedisDataType.HASH, hash);
        switch (given.getOrDefault("kind", "opaque")) {
            case "transactional":
                return RedisMapState.transactional(redis, type);
            case "nontransactional":
                return RedisMapState.nonTransactional(redis, type);
            default:
                return RedisMapState.opaque(redis, type);
        }
    }
}
