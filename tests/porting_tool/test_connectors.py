"""What Storm's connectors become: by their own names, or a report that says why not."""

from __future__ import annotations

import datetime
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from states.files import FileState
from trident_py import Fields
from trident_py.errors import DefinitionError, StateError
from trident_py.extras.moving.connectors import hdfs, jdbc
from trident_py.extras.moving.port.modules import Module, translate_files
from trident_py.tuples import TridentTuple

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
import org.apache.storm.jdbc.trident.state.*;
"""
REFUSED = {
    "Object f(java.util.Set s) { return new JedisClusterConfig.Builder().setNodes(s).build(); }": "no Redis Cluster",
    "Object f(JedisClusterConfig c) { return RedisClusterMapState.opaque(c); }": "no Redis Cluster",
    "Object f(JedisClusterConfig c) { return new RedisClusterState.Factory(c); }": "no Redis Cluster",
    "Object f() { return new HdfsState.SequenceFileOptions(); }": "write a RecordFormat",
    "Object f(HdfsState.HdfsFileOptions o) { return o.addRotationAction(null); }": "addRotationAction",
    "Object f() { return new TimedRotationPolicy(5.0f, TimedRotationPolicy.TimeUnit.DAYS); }": "each batch begins",
    'Object f(JdbcState.Options o) { return o.withInsertQuery("insert"); }': "withInsertQuery",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_has_no_counterpart_is_reported(body: str, tmp_path: Path) -> None:
    [module] = translated(tmp_path, Piece=f"{IMPORTS} class Piece {{ {body} }}")
    [finding] = module.report.findings
    assert REFUSED[body] in finding.reason and finding.section


OPTIONS = """
import org.apache.storm.redis.common.config.*; import org.apache.storm.redis.trident.state.*;
class Piece {
    static Options opaque(String hash) {
        Options options = new Options(); options.expireIntervalSec = 30; return options;
    }
    static Object f(JedisPoolConfig pool) { return RedisMapState.opaque(pool, opaque("counts")); }
}
"""


def test_options_of_a_redis_map_are_reported_with_their_section(tmp_path: Path) -> None:
    """What takes them is no call with a hash that nobody has named."""
    [module] = translated(tmp_path, Piece=OPTIONS)
    findings = module.report.findings
    assert [(each.section, "Options" in each.reason) for each in findings] == [("porting.md#states", True)] * 3
    assert "opaque() of RedisMapState with Options: they are arguments" in module.text


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
