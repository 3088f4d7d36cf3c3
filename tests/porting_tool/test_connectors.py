"""What Storm's connectors become: by their own names, or a report that says why not."""

from __future__ import annotations

import datetime
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from topic_reading import read

from states.files import FileState
from states.redis import RedisMapState
from trident_py import Fields, LocalCluster
from trident_py.errors import DefinitionError, StateError
from trident_py.extras.moving.connectors import hdfs, jdbc
from trident_py.extras.moving.connectors.kafka import TridentKafkaStateFactory
from trident_py.extras.moving.port.modules import Module, translate_files
from trident_py.tuples import TridentTuple
from trident_py.windowing import Duration, SlidingDurationWindow, TumblingDurationWindow

URLS = {
    "jdbc:mysql://db/shop": "mysql+pymysql://me:p%40ss@db/shop",
    "jdbc:mariadb://db:3307/shop": "mariadb+pymysql://me:p%40ss@db:3307/shop",
    "jdbc:postgresql://db/shop?user=other": "postgresql+psycopg://me:p%40ss@db/shop",
    "jdbc:sqlite:/tmp/shop.db": "sqlite:////tmp/shop.db",
}


@pytest.mark.parametrize("place", ["jdbcUrl", "dataSource.url"])
@pytest.mark.parametrize("text", URLS)
def test_the_settings_of_a_pool_become_a_url(text: str, place: str) -> None:
    names = ("username", "password") if place == "jdbcUrl" else ("dataSource.user", "dataSource.password")
    settings = {place: text, names[0]: "me", names[1]: "p@ss"}
    assert jdbc.HikariCPConnectionProvider(settings).url == URLS[text]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"jdbcUrl": "jdbc:oracle:thin:@db"}, "must begin with one of jdbc:sqlite:.*got 'oracle'"),
        ({"dataSource.serverName": "db"}, "must begin with"),
        ({"jdbcUrl": "jdbc:mysql://db/shop?useSSL=false"}, "no counterpart for useSSL"),
    ],
)
def test_settings_that_name_no_database_of_ours_are_refused(settings: dict[str, str], said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        jdbc.HikariCPConnectionProvider(settings)


@pytest.mark.parametrize(
    "wanted", [datetime.datetime(9999, 12, 30, 23, 59, 59, 999_000), datetime.datetime(1904, 1, 1, 0, 0, 0, 1_000)]
)
def test_a_mapper_keeps_each_millisecond(wanted: datetime.datetime) -> None:
    epoch = datetime.datetime.fromtimestamp(0, datetime.UTC)
    sale = TridentTuple.of(Fields("at"), [(wanted.astimezone() - epoch) // datetime.timedelta(milliseconds=1)])
    [found] = jdbc.SimpleJdbcMapper([jdbc.Column("at", 93)]).getColumns(sale)
    assert found.getVal() == wanted


def test_a_mapper_makes_dates_and_times_of_milliseconds(tmp_path: Path) -> None:
    provider = jdbc.HikariCPConnectionProvider({"jdbcUrl": f"jdbc:sqlite:{tmp_path}/shop.db"})
    jdbc.JdbcClient(provider, 30).executeSql("create table sales (day date, noted timestamp, n integer, item text)")
    jdbc.JdbcClient(provider, 30).executeSql("insert into sales (item) values ('100%')")
    then = datetime.datetime(2024, 2, 29, 23, 30, 5, 250_000)
    millis = int(then.timestamp() * 1000)
    sale = TridentTuple.of(Fields("n", "day", "noted", "item"), [millis, millis, None, "tea"])
    found = {one.getColumnName(): one.getVal() for one in jdbc.SimpleJdbcMapper("sales", provider).getColumns(sale)}
    assert found == {"day": then.date(), "noted": None, "n": millis, "item": "tea"}
    [one] = jdbc.SimpleJdbcMapper([jdbc.Column("n", 93)]).getColumns(sale)
    assert (one.getVal(), one.getSqlType()) == (then, 93)
    with sqlite3.connect(tmp_path / "shop.db") as shop:
        assert shop.execute("select item from sales").fetchall() == [("100%",)]
    with pytest.raises(StateError, match="no table 'nowhere'"):
        jdbc.SimpleJdbcMapper("nowhere", provider)


def test_the_options_of_a_file_state() -> None:
    names = hdfs.DefaultFileNameFormat().withPath("/logs/all").withPrefix("p").withExtension(".csv")
    options = hdfs.HdfsState.HdfsFileOptions().withFsUrl("hdfs://name:8020/").withFileNameFormat(names)
    options.withRecordFormat(hdfs.DelimitedRecordFormat().withFields(Fields("a")))
    options.withRotationPolicy(hdfs.FileSizeRotationPolicy(0.5, hdfs.FileSizeRotationPolicy.Units.MB))
    state = hdfs.HdfsStateFactory().withOptions(options)
    assert isinstance(state, FileState)
    assert (state.uri, state.rotate_bytes, state.rows.suffix) == ("hdfs://name:8020/logs/all", 2**19, ".csv")
    options.withRotationPolicy(hdfs.NoRotationPolicy())
    assert hdfs.HdfsStateFactory().withOptions(options).rotate_bytes == 2**32


IMPORTS = """
import org.apache.storm.redis.common.config.*; import org.apache.storm.redis.trident.state.*;
import org.apache.storm.hdfs.trident.*; import org.apache.storm.hdfs.trident.rotation.*;
import org.apache.storm.jdbc.trident.state.*; import org.apache.storm.kafka.spout.trident.KafkaTridentSpoutConfig;
"""
REFUSED = {
    "Object f(java.util.Set s) { return new JedisClusterConfig.Builder().setNodes(s).build(); }": "no Redis Cluster",
    "Object f(JedisClusterConfig c) { return RedisClusterMapState.opaque(c); }": "no Redis Cluster",
    "Object f(JedisClusterConfig c) { return new RedisClusterState.Factory(c); }": "no Redis Cluster",
    "Object f() { return new HdfsState.SequenceFileOptions(); }": "write a RecordFormat",
    "Object f(HdfsState.HdfsFileOptions o) { return o.addRotationAction(null); }": "addRotationAction",
    "Object f() { return new TimedRotationPolicy(5.0f, TimedRotationPolicy.TimeUnit.DAYS); }": "each batch begins",
    'Object f(JdbcState.Options o) { return o.withInsertQuery("insert"); }': "withInsertQuery",
    'Object f() { return KafkaTridentSpoutConfig.builder("b", "t").setProp("max.poll.records", 5).build(); }': (
        "max.poll.records limits each partition's batch: maxRecordsPerBatch"
    ),
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_has_no_counterpart_is_reported(body: str, tmp_path: Path) -> None:
    [module] = translated(tmp_path, Piece=f"{IMPORTS} class Piece {{ {body} }}")
    [finding] = module.report.findings
    assert REFUSED[body] in finding.reason and finding.section


OPTIONS = """
import java.util.List;
import org.apache.storm.redis.common.config.*; import org.apache.storm.redis.common.mapper.*;
import org.apache.storm.redis.trident.state.*; import org.apache.storm.trident.state.OpaqueValue;
class Piece {
    static class Pair implements KeyFactory {
        public String build(List<Object> key) { return key.get(0) + ":" + key.get(1); }
    }
    static Options<OpaqueValue> options(String hash) {
        Options<OpaqueValue> options = new Options<>();
        options.dataTypeDescription = new RedisDataTypeDescription(RedisDataTypeDescription.RedisDataType.HASH, hash);
        options.localCacheSize = 5; options.globalKey = "all"; options.keyFactory = new Pair();
        options.expireIntervalSec += 30;
        return options;
    }
    static Object ofOptions(JedisPoolConfig pool) { return RedisMapState.opaque(pool, options("counts")); }
    static Object plain(JedisPoolConfig pool) { return RedisMapState.nonTransactional(pool, new Options<Object>()); }
    static Object ofKeys(JedisPoolConfig pool) { return RedisMapState.transactional(pool, new Pair()); }
}
"""


def test_options_of_a_redis_map_are_its_arguments(tmp_path: Path) -> None:
    [module] = translated(tmp_path, Piece=OPTIONS)
    assert module.report.findings == []
    made: dict[str, Any] = {"__name__": "piece"}
    exec(module.text, made)
    made["Pair"].__reduce__ = lambda pair: (object, ())
    url = "redis://127.0.0.1/0"
    pair = made["ofKeys"](url).keyFactory
    named = {"keyFactory": made["options"]("counts").keyFactory, "globalKey": "all", "expireIntervalSec": 30}
    assert vars(made["ofOptions"](url)) | {"keyFactory": 0} == vars(
        RedisMapState.opaque(url, "counts", **named)
    ) | {"keyFactory": 0}
    assert made["plain"](url) == RedisMapState.nonTransactional(url)
    assert (made["ofKeys"](url).kind, pair.build(["a", 1])) == ("transactional", "a:1")


UNSURE = {
    "Object f(JedisPoolConfig p, Options o) { o.serializer = null; return o; }": "serializer of RedisOptions",
    "Object f(JedisPoolConfig p) { return RedisMapState.opaque(p, key -> key.toString()); }": "no certain type",
}


@pytest.mark.parametrize("body", UNSURE)
def test_what_a_redis_map_is_given_is_of_a_certain_type(body: str, tmp_path: Path) -> None:
    [module] = translated(tmp_path, Piece=f"{IMPORTS} class Piece {{ {body} }}")
    [finding] = module.report.findings
    assert UNSURE[body] in finding.reason and finding.section == "porting.md#states"


def test_options_of_another_library_are_not_those_of_redis(tmp_path: Path) -> None:
    [module] = translated(tmp_path, Piece="import org.apache.commons.cli.*; class Piece { Object o = new Options(); }")
    assert "new Options" in module.report.findings[0].reason


NESTED = """
import java.util.Map; import java.util.Map.Entry; import java.util.concurrent.TimeUnit;
import org.apache.storm.topology.base.BaseWindowedBolt; import org.apache.storm.trident.windowing.config.*;
class Piece {
    static String joined(Map<String, Integer> map) {
        String text = "";
        for (Entry<String, Integer> one : map.entrySet()) { text += one.getKey() + one.getValue(); }
        return text;
    }
    static WindowConfig tumbling() { return TumblingDurationWindow.of(BaseWindowedBolt.Duration.seconds(3)); }
    static WindowConfig sliding() {
        BaseWindowedBolt.Duration step = new BaseWindowedBolt.Duration(2, TimeUnit.SECONDS);
        return SlidingDurationWindow.of(new BaseWindowedBolt.Duration(1, TimeUnit.MINUTES), step);
    }
    static String who() { Thread.currentThread().interrupt(); return Thread.currentThread().getName(); }
}
"""


def test_nested_classes_of_java_and_storm_are_found_by_both_names(tmp_path: Path) -> None:
    [module] = translated(tmp_path, Piece=NESTED)
    assert module.report.findings == []
    made: dict[str, Any] = {"__name__": "piece"}
    exec(module.text, made)
    assert made["joined"]({"a": 1, "b": 2}) == "a1b2"
    assert made["tumbling"]() == TumblingDurationWindow.of(Duration(3_000))
    assert made["sliding"]() == SlidingDurationWindow.of(Duration(60_000), Duration(2_000))
    assert made["who"]() == threading.current_thread().name


COMMENTED = """
class Piece {
    static int f(int a) { // of f
        int b = a + 1; // of b
        // of the next
        b += 2; /* of
            two lines */
        if (b > 3) b = 3; // of the if
        int c = b; // %s
        return c; // the end
        // behind it
    }
}
"""


def test_a_comment_behind_a_statement_stays_with_it(tmp_path: Path) -> None:
    [module] = translated(tmp_path, Piece=COMMENTED.replace("%s", "long " * 15))
    body = module.text[module.text.index("def f(a):") :].splitlines()[1:]
    assert [line.removeprefix("    ") for line in body] == [
        "# of f", "b = a + 1  # of b", "# of the next", "# of", "# two lines", "b += 2", "# of the if", "if b > 3:",
        "    b = 3", f"# {'long ' * 14}long", "c = b", "return c  # the end", "# behind it",
    ]  # fmt: skip


FEEDER = """
import org.apache.storm.*; import org.apache.storm.generated.StormTopology; import org.apache.storm.topology.*;
class Feeder {
    static StormTopology feed() { TopologyBuilder builder = new TopologyBuilder(); return builder.createTopology(); }
    static StormTopology any(boolean own) {
        TopologyBuilder builder = new TopologyBuilder();
        return own ? new org.apache.storm.trident.TridentTopology().build() : builder.createTopology();
    }
    static StormTopology own() { return new org.apache.storm.trident.TridentTopology().build(); }
}
"""


@pytest.mark.parametrize(
    ("made", "left"),
    [("Feeder.feed()", True), ("Feeder.own()", False), ("Feeder.any(true)", False), ("Unknown.feed()", None)],
    ids=str,
)
def test_a_topology_of_the_core_stays_on_storm(
    made: str, left: bool | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    body = f'static void f(Config conf) throws Exception {{ StormSubmitter.submitTopology("t", conf, {made}); }}'
    module, _ = translated(tmp_path, Piece=f"import org.apache.storm.*; class Piece {{ {body} }}", Feeder=FEEDER)
    assert len(module.report.findings) == (left is not False)
    assert ("raise NotImplementedError" in module.text) == (left is None)
    if left:
        names: dict[str, Any] = {}
        exec(compile(module.text.replace("import feeder\n", ""), "piece", "exec"), names)
        names["f"]({})
        assert caplog.messages == [
            "Piece.java:1: feed() makes a topology of Storm's core, which stays on Storm: this run does not start it"
        ]


def translated(folder: Path, **texts: str) -> list[Module]:
    for name, text in texts.items():
        (folder / f"{name}.java").write_text(text)
    return translate_files([folder / f"{name}.java" for name in texts])


RECORDS = """
package shop;
import java.util.Properties;
import org.apache.storm.generated.StormTopology; import org.apache.storm.kafka.trident.*;
import org.apache.storm.kafka.trident.mapper.*; import org.apache.storm.kafka.trident.selector.DefaultTopicSelector;
import org.apache.storm.trident.TridentTopology; import org.apache.storm.trident.testing.FixedBatchSpout;
import org.apache.storm.trident.tuple.TridentTuple; import org.apache.storm.tuple.*;
class Piece {
    static class Upper implements TridentTupleToKafkaMapper<String, String> {
        public String getKeyFromTuple(TridentTuple tuple) { return tuple.getStringByField("word").toUpperCase(); }
        public String getMessageFromTuple(TridentTuple tuple) { return tuple.getStringByField("count") + "!"; }
    }
    static TridentKafkaStateFactory<String, String> into(Object to, String topic, TridentTupleToKafkaMapper mapper) {
        Properties props = new Properties();
        props.put("bootstrap.servers", to); props.put("acks", "1"); props.put("linger.ms", 1);
        props.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        props.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        return new TridentKafkaStateFactory<String, String>().withTridentTupleToKafkaMapper(mapper)
            .withProducerProperties(props).withKafkaTopicSelector(new DefaultTopicSelector(topic));
    }
    static StormTopology topology(String to, String plain, String upper) {
        Fields fields = new Fields("word", "count");
        FixedBatchSpout spout = new FixedBatchSpout(fields, 2, new Values("a", "1"), new Values("b", "2"));
        TridentTopology topology = new TridentTopology();
        TridentKafkaStateFactory factory = into(to, plain, new FieldNameBasedTupleToKafkaMapper("word", "count"));
        topology.newStream("a", spout).partitionPersist(factory, fields, new TridentKafkaStateUpdater(), new Fields());
        factory = into(to, upper, new Upper());
        topology.newStream("b", spout).partitionPersist(factory, fields, new TridentKafkaUpdater());
        return topology.build();
    }
}
"""


def test_a_kafka_state_writes_what_its_mapper_makes(tmp_path: Path, kafka: Any) -> None:
    [module] = translated(tmp_path, Piece=RECORDS)
    assert module.report.findings == []
    made: dict[str, Any] = {"__name__": "piece"}
    exec(module.text, made)
    topics = [kafka.create_topic(), kafka.create_topic()]
    topology = made["topology"](kafka.bootstrap, *topics)
    LocalCluster().submitTopology("records", {}, topology).awaitTermination(60)
    found = [[(record.key, record.value) for record in read(kafka.bootstrap, topic)] for topic in topics]
    assert found == [[(b"a", b"1"), (b"b", b"2")], [(b"A", b"1!"), (b"B", b"2!")]]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"value.serializer": "org.apache.kafka.common.serialization.LongSerializer"}, "a record is text or bytes"),
        ({"max.request.size": 5}, "no certain counterpart for max.request.size"),
    ],
)
def test_settings_of_a_java_producer_that_mean_something_else_are_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        TridentKafkaStateFactory().withProducerProperties({"bootstrap.servers": "kafka:9092", **more})
