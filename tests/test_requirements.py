"""What spouts and states need on each machine, as they say it themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from states.kafka.append.transactional import TopicState
from states.sql import AppendState, SqlMapState
from trident_py.errors import DefinitionError
from trident_py.extras.gateway.processed import ProcessedState
from trident_py.kafka import Avro, KafkaSpout
from trident_py.model.requirements import Needs, needs_of, split_addresses, together
from trident_py.spouts import FileSpout, FixedBatchSpout
from trident_py.state import MemoryMapState
from trident_py.testing import Crashing

SCHEMA = '{"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}'


@pytest.mark.parametrize(
    ("url", "needs"),
    [
        ("mysql+pymysql://u:pw@db/x", Needs(("sqlalchemy", "pymysql"), "trident-py[mysql]", ("db:3306",))),
        ("mariadb+pymysql://u:pw@db:3307/x", Needs(("sqlalchemy", "pymysql"), "trident-py[mysql]", ("db:3307",))),
        ("mysql+pymysql://u:pw@/x?unix_socket=/run/s",
         Needs(("sqlalchemy", "pymysql"), "trident-py[mysql]", paths=("/run/s",))),
        ("postgresql+psycopg://u:pw@[::1]/x",
         Needs(("sqlalchemy", "psycopg"), "trident-py[postgresql]", ("[::1]:5432",))),
        ("postgresql+psycopg://u:pw@/x?host=a:5433&host=b",
         Needs(("sqlalchemy", "psycopg"), "trident-py[postgresql]", ("a:5433,b:5432",))),
        ("postgresql+psycopg://u:pw@/x?host=a,b&port=1,2",
         Needs(("sqlalchemy", "psycopg"), "trident-py[postgresql]", ("a:1,b:2",))),
        ("postgresql+psycopg://u:pw@/x?host=/run/pg",
         Needs(("sqlalchemy", "psycopg"), "trident-py[postgresql]", paths=("/run/pg",))),
    ],
)  # fmt: skip
def test_a_sql_state_needs_its_driver_and_its_server_and_shows_no_password(url: str, needs: Needs) -> None:
    assert SqlMapState.opaque(url, "t", "word").needs == needs
    assert AppendState(url, "t", ["word string"]).needs == needs
    assert "pw" not in repr(needs)


def test_a_sqlite_state_needs_one_machine() -> None:
    needs = SqlMapState.opaque("sqlite:////data/c.db", "t", "word").needs
    reason = "it is the SQLite file /data/c.db, and each machine would write a file of its own"
    assert needs == Needs(("sqlalchemy",), one_machine=reason)


def test_kafka_needs_one_of_its_brokers_and_what_its_formats_need() -> None:
    client = Needs(("confluent_kafka",), "trident-py[kafka]", ("a:1,b:2",))
    assert TopicState("a:1,b:2", "t", value="v").needs == client
    assert KafkaSpout("PLAINTEXT://a:1,b:2", "t").needs == client
    assert KafkaSpout("a:1,b:2", "t", value=Avro(SCHEMA)).needs == Needs(
        ("confluent_kafka", "fastavro"), "trident-py[kafka] trident-py[avro]", ("a:1,b:2",)
    )


@pytest.mark.parametrize(
    ("path", "needed"),
    [
        ("/data/logs/*.csv", ("/data/logs",)), ("/data/day-*/a.csv", ("/data",)), ("logs", ("logs",)),
        ("file:///data/a.csv", ("/data/a.csv",)), ("s3a://bucket/data", ()),
    ],
)  # fmt: skip
def test_a_file_spout_needs_its_files_and_folders(path: str, needed: tuple[str, ...]) -> None:
    assert FileSpout(path, "line").needs == Needs(paths=needed)


def test_a_file_spout_needs_the_stores_whose_address_it_names() -> None:
    hdfs = FileSpout(["hdfs://name:9000/data/*", "webhdfs://other:14000/data"], "line").needs
    assert hdfs == Needs(("fsspec", "requests"), "trident-py[hdfs]", ("name:9870", "other:14000"))
    s3 = FileSpout("s3://b/data", "line", storage={"endpoint_override": "http://h:9000"}).needs
    assert s3 == Needs(addresses=("h:9000",))


def test_a_file_with_a_pattern_in_its_name_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").touch()
    assert FileSpout(tmp_path / "a[1].csv", "line").needs == Needs(paths=(str(tmp_path / "a[1].csv"),))


@pytest.mark.parametrize(
    ("url", "needs"),
    [
        ("redis://:pw@r/0", Needs(("redis",), "trident-py[redis]", ("r:6379",))),
        ("mysql+pymysql://u:pw@db/x", Needs(("sqlalchemy", "pymysql"), "trident-py[mysql]", ("db:3306",))),
    ],
)
def test_processed_events_need_the_store_of_the_gateway(url: str, needs: Needs) -> None:
    assert ProcessedState(url).needs == needs


def test_memory_states_live_at_home_and_fixed_spouts_need_nothing() -> None:
    assert MemoryMapState.Factory().needs == Needs(home=True)
    assert needs_of(FixedBatchSpout("word", 3, [["a"]])) == Needs() == needs_of(object())
    assert not Needs()


def test_a_wrapped_state_needs_what_it_needs_without() -> None:
    inner = SqlMapState.opaque("mysql+pymysql://u:pw@db/x", "t", "word")
    assert Crashing(inner, "commit", {(1, 0)}).needs == inner.needs


def test_several_needs_become_one() -> None:
    one, other = Needs(("a", "b"), "x", ("h:1",), home=True), Needs("b", "x y", "h:1", "/p", one_machine="why")
    assert together(one, other) == Needs(("a", "b"), "x y", ("h:1",), ("/p",), "why", True)


def test_addresses_are_read_and_other_texts_refused() -> None:
    assert split_addresses("a:1, [::1]:2") == [("a", 1), ("::1", 2)]
    for text in ("a", "a:b", "user:pw@a:1", "a:1;b:2", ""):
        with pytest.raises(DefinitionError, match="is not an address such as 'db:3306'"):
            Needs(addresses=(text,))
    with pytest.raises(DefinitionError, match="modules must be texts"):
        Needs(modules=(1,))  # type: ignore[arg-type]
