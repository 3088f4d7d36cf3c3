"""The local table: what a topic's readers can trip over, and how the table stands it."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from compacted_reading import latest
from confluent_kafka import Producer
from spout_support import delete

from states.kafka import CompactedTopicState
from states.kafka.compacted.local_table import LocalTable, Row, table_of
from trident_py.errors import FailedException, StateError
from trident_py.kafka.clients import Cluster

# Compacted within seconds.
QUICKLY = {
    "cleanup_policy": "compact", "segment_ms": 100, "min_cleanable_dirty_ratio": 0.01, "delete_retention_ms": 100,
}  # fmt: skip
Write = Callable[..., Any]


@pytest.fixture
def topic(kafka: Any) -> str:
    return kafka.create_topic(partitions=2, cleanup_policy="compact")


@pytest.fixture
def producer(kafka: Any, topic: str) -> Iterator[Any]:
    made = Producer({
        "bootstrap.servers": kafka.bootstrap, "transactional.id": f"by-hand-{topic}", "log_level": 0,
        "retry.backoff.ms": 5, "partitioner": "murmur2_random",
    })  # fmt: skip
    made.init_transactions(30)
    yield made
    made.purge()


@pytest.fixture
def table(kafka: Any, topic: str) -> LocalTable:
    return LocalTable(Cluster.of(kafka.bootstrap), topic)


def write(producer: Any, topic: str, rows: dict[str, str | None], end: str = "commit_transaction") -> None:
    producer.begin_transaction()
    for key, value in rows.items():
        producer.produce(topic, value, key)
    producer.flush(30)
    if end:
        getattr(producer, end)(30)


def there(table: LocalTable, settles: float = 5.0) -> dict[str, str]:
    table.catch_up(settles)
    return {key.decode(): (row.value or b"").decode() for key, row in table.rows()}


def numbered(first: int, last: int, value: str = "v") -> dict[str, str | None]:
    return {f"k{n}": f"{value}{n}" for n in range(first, last)}


def test_an_empty_topic_has_an_empty_table(table: LocalTable) -> None:
    assert there(table) == {}
    assert table.get([b"a"]) == [None]


def test_the_last_record_of_a_key_counts_and_a_tombstone_ends_it(table: LocalTable, topic: str, producer: Any) -> None:
    write(producer, topic, numbered(0, 50))
    assert there(table) == numbered(0, 50)
    write(producer, topic, {**numbered(0, 10, "w"), "k49": None})
    assert there(table) == {**numbered(0, 49), **numbered(0, 10, "w")}
    assert table.get([b"k49", b"k0", b"nobody", b"k0"]) == [None, Row(b"w0"), None, Row(b"w0")]


def test_control_records_and_aborted_ones_at_the_end_do_not_keep_it_waiting(
    table: LocalTable, topic: str, producer: Any
) -> None:
    """A reader that counts records up to the end offset would wait for ever: nothing of the end is a record."""
    write(producer, topic, numbered(0, 10))
    assert there(table) == numbered(0, 10)
    for _ in range(3):
        write(producer, topic, numbered(0, 20, "aborted"), "abort_transaction")
        assert there(table) == numbered(0, 10)
    fresh = LocalTable(table._cluster, topic)
    assert there(fresh) == numbered(0, 10)


def test_an_open_transaction_keeps_nobody_waiting(table: LocalTable, topic: str, producer: Any) -> None:
    write(producer, topic, numbered(0, 10))
    assert there(table) == numbered(0, 10)
    write(producer, topic, numbered(0, 10, "open"), "")
    assert there(table, settles=0.05) == numbered(0, 10)
    producer.commit_transaction(30)
    assert there(table) == numbered(0, 10, "open")


def test_what_is_about_to_be_committed_is_waited_for(table: LocalTable, topic: str, producer: Any) -> None:
    """The broker answers a COMMIT before the records are visible; here they are so a little later still."""
    write(producer, topic, numbered(0, 10), "")
    commit = threading.Timer(0.2, producer.commit_transaction, [30])
    commit.start()
    assert there(table, settles=20.0) == numbered(0, 10)
    commit.join()


def test_own_records_are_not_put_back_by_older_ones(table: LocalTable, topic: str) -> None:
    """What this process has committed stands in the table before it is read back."""
    table.put([(b"a", Row(b"7", 5)), (b"b", Row(None, 5, b"1"))])
    table._write({b"a": Row(b"1", 4), b"b": Row(b"0", 4)})
    assert table.get([b"a", b"b"]) == [Row(b"7", 5), Row(None, 5, b"1")]
    table._write({b"a": Row(b"8", 5), b"b": Row(b"2", 6)})
    assert table.get([b"a", b"b"]) == [Row(b"8", 5), Row(b"2", 6)]


def test_a_process_has_one_table_for_a_topic(kafka: Any, topic: str) -> None:
    cluster = Cluster.of(kafka.bootstrap)
    first = table_of(cluster, topic)
    assert table_of(Cluster.of(kafka.bootstrap), topic) is first
    assert table_of(cluster, f"{topic}-2") is not first
    del first
    gc.collect()
    assert table_of(cluster, topic)._at == {}


def test_more_keys_than_a_page_and_than_the_cache(table: LocalTable, topic: str, producer: Any) -> None:
    rows = {f"k{n}": f"{n}-" + "x" * 200 for n in range(100_000)}
    write(producer, topic, rows)  # type: ignore[arg-type]
    assert there(table) == rows
    found = table.get([key.encode() for key in reversed(rows)])
    assert [(row.value or b"").decode() for row in found if row] == list(reversed(rows.values()))


def test_records_that_were_deleted_start_the_table_anew(kafka: Any) -> None:
    from confluent_kafka import TopicPartition

    topic = kafka.create_topic(cleanup_policy="compact,delete", retention_ms=-1)
    cluster = Cluster.of(kafka.bootstrap)
    table, producer, admin = LocalTable(cluster, topic), cluster.producer({}), cluster.admin()
    producer.produce(topic, b"1", b"old")
    assert producer.flush(30) == 0
    assert there(table) == {"old": "1"}
    for key in (b"x", b"y"):
        producer.produce(topic, b"2", key)
    assert producer.flush(30) == 0
    (done,) = admin.delete_records([TopicPartition(topic, 0, 2)]).values()
    done.result(30)
    table._consumer = None
    with pytest.raises(FailedException, match="are gone"):
        there(table)
    assert there(table) == {"y": "2"}


def test_compaction_while_reading_disturbs_nobody(kafka: Any) -> None:
    """Segments roll and are cleaned; a table that follows and one that begins anew say what a fold says."""
    topic = kafka.create_topic(**QUICKLY)
    cluster = Cluster.of(kafka.bootstrap)
    fold: dict[str, str | None] = {}
    producer = cluster.producer({"linger.ms": 0})
    following, done = LocalTable(cluster, topic), threading.Event()
    sizes: list[int] = []

    def follow() -> None:
        while not done.is_set():
            sizes.append(len(there(following)))
            done.wait(0.05)

    reader = threading.Thread(target=follow)
    reader.start()
    written = 0
    try:
        admin = cluster.admin()
        while not (written >= 4_000 and _first_offset_gap(kafka.bootstrap, topic) > 1_000):
            assert written < 60_000, "the topic was never compacted"
            for n in range(500):
                key, value = f"k{(written + n) % 700}", str(written + n)
                producer.produce(topic, value, key)
                fold[key] = value
            assert producer.flush(30) == 0
            written += 500
            done.wait(0.12)  # so that the next records begin another segment
        del admin
    finally:
        done.set()
        reader.join()
    assert there(following) == there(LocalTable(cluster, topic)) == fold
    assert sizes == sorted(sizes)
    assert {key.decode(): (each.value or b"").decode() for key, each in latest(kafka.bootstrap, topic).items()} == fold


def _first_offset_gap(bootstrap: str, topic: str) -> int:
    """How many records are gone between the first and the last one."""
    from topic_reading import read

    found = LocalTable(Cluster.of(bootstrap), topic)
    found.catch_up()
    return sum(found._at.values()) - len(read(bootstrap, topic))


def test_a_table_that_stood_still_while_tombstones_came_and_went_begins_anew(kafka: Any) -> None:
    topic = kafka.create_topic(**QUICKLY)
    cluster = Cluster.of(kafka.bootstrap)
    producer, still = cluster.producer({"linger.ms": 0}), LocalTable(cluster, topic)
    for key in ("gone", "stays"):
        producer.produce(topic, b"1", key)
    assert producer.flush(30) == 0
    assert there(still) == {"gone": "1", "stays": "1"}
    producer.produce(topic, None, b"gone")
    pause, rounds = threading.Event(), 0
    while b"gone" in latest(kafka.bootstrap, topic):
        rounds += 1
        assert rounds < 200, "the tombstone was never removed"
        producer.produce(topic, str(rounds).encode(), b"stays")
        assert producer.flush(30) == 0
        pause.wait(0.11)
    still._consumer = None  # nor has it fetched anything meanwhile
    assert there(still).keys() == {"stays"}


def test_a_topic_that_is_not_there_yet_has_no_values_and_is_warned_of_once(kafka: Any, caplog: Any) -> None:
    state = CompactedTopicState(kafka.bootstrap, "nobody-made-this", "k", "v").makeState({}, None, 0, 1)
    assert [state.multiGet([("a",)]), list(state.getTuples())] == [[None], []]
    assert [record.getMessage()[:40] for record in caplog.records] == ["topic 'nobody-made-this' does not exist,"]


def test_a_topic_that_must_be_there_is_told(kafka: Any, table: LocalTable, topic: str) -> None:
    """Inside a commit, and once it was read."""
    missing = LocalTable(Cluster.of(kafka.bootstrap), "nobody-made-this")
    with pytest.raises(StateError, match=r"nobody-made-this.*Create the topic"):
        missing.catch_up(whole=True)
    assert there(table) == {}
    delete(kafka, topic)
    with pytest.raises(StateError, match=rf"{topic}.*Create the topic"):
        table.catch_up()
