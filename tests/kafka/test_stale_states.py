"""States in Kafka that come back late: stale reads, attempts that were given up, and what is left behind."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from compacted_reading import folded
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from contracts.crashing import in_attempt, opened
from topic_reading import read

from states.kafka import CompactedTopicState, RowUpdater, TransactionalTopicState
from states.kafka.compacted.local_table import LocalTable
from trident_py.errors import FailedException, LineageError, StateError, ZombieError
from trident_py.kafka.clients import Cluster
from trident_py.operations.builtin import Sum
from trident_py.state import SILENT, CombinerValueUpdater, OpaqueValue, persist
from trident_py.tuples import TridentTuple

_COUNT = itertools.count()
Make = Callable[..., CompactedTopicState]


@pytest.fixture
def make(kafka: Any) -> Make:
    """A compacted state in a topic of its own, which does not exist yet."""

    def made(kind: str = "opaque", **more: Any) -> CompactedTopicState:
        topic = f"stale-{os.getpid()}-{next(_COUNT)}"
        return CompactedTopicState(kafka.bootstrap, topic, "word string", "n bigint", kind, partitions=1, **more)

    return made


@pytest.fixture
def other(kafka: Any) -> Iterator[Any]:
    """Another producer with transactions, as that of another state partition."""
    settings = {"bootstrap.servers": kafka.bootstrap, "transactional.id": f"other-{next(_COUNT)}", "log_level": 0}
    producer = Producer(settings)
    producer.init_transactions(30)
    yield producer
    producer.purge()


def driven(factory: Any, name: str = "t", lineage: str = "l", **conf: Any) -> tuple[Any, dict]:
    """The participant of one driver, open, and what its tasks are told."""
    participant = factory.participant()
    told = {"topology.name": name, "trident.state.name": "s", "trident.lineage": lineage, **conf}
    return participant, opened(participant, told)


def task(factory: Any, conf: dict, txid: int = 1, attempt: int = 0) -> Any:
    return factory.makeState(conf | {"trident.context": in_attempt(txid, attempt)}, None, 0, 1)


def add(state: Any, txid: int, count: int) -> None:
    state.beginCommit(txid)
    state.multiUpdate([("a",)], [CombinerValueUpdater(Sum(), count)])
    state.commit(txid)


def write(state: Any, txid: int | None, *values: tuple, fields: tuple[str, ...] = ("word", "n")) -> Any:
    return persist(state, txid, RowUpdater(), [TridentTuple.of(list(fields), each) for each in values], SILENT)


def left_open(producer: Any, topic: str) -> None:
    """A transaction that has a record in the topic, and is not ended."""
    producer.begin_transaction()
    producer.produce(topic, "1", "z")
    assert producer.flush(30) == 0


# -- what a partition reads before it counts


def test_a_partition_that_moves_to_another_process_counts_on_its_own_last_batch(make: Make, other: Any) -> None:
    """A transaction of another partition is still open before its records; they are committed, but not to be read."""
    factory = make()
    participant, conf = driven(factory)
    participant.prepare(1, 0, 1)
    here = task(factory, conf)
    add(here, 1, 1)
    left_open(other, factory.topic)
    add(here, 2, 4)
    there = CompactedTopicState(
        factory.bootstrap, factory.topic, "word string", "n bigint", "opaque", settings={"client.id": "there"}
    )
    ends = threading.Timer(1.0, other.abort_transaction)
    ends.start()
    add(task(there, conf, 3), 3, 5)
    ends.join()
    assert factory.stored() == {("a",): OpaqueValue(3, 10, 5)}


def test_a_partition_reads_again_when_a_query_has_begun_the_table_anew(make: Make, other: Any) -> None:
    """Each query finds the table older than the topic keeps tombstones, and what was committed last not to be read."""
    factory = make(config={"delete.retention.ms": 1}, restart=0)
    participant, conf = driven(factory)
    participant.prepare(1, 0, 1)
    state = task(factory, conf)
    add(state, 1, 1)
    left_open(other, factory.topic)
    add(state, 2, 4)
    assert task(factory, {}).multiGet([("a",)]) == [1]
    other.abort_transaction()
    add(state, 3, 5)
    assert factory.stored() == {("a",): OpaqueValue(3, 10, 5)}


def test_a_topic_made_anew_is_read_from_its_beginning(kafka: Any) -> None:
    """Its values before would be counted on, and are in no topic any more."""
    topic = kafka.create_topic(cleanup_policy="compact")
    table, producer = LocalTable(Cluster.of(kafka.bootstrap), topic), Cluster.of(kafka.bootstrap).producer({})
    for keys in (("a", "b", "c"), ("d",)):
        for key in keys:
            producer.produce(topic, "1", key)
        assert producer.flush(30) == 0
        table.catch_up(5.0)
        assert [key.decode() for key, _ in table.rows()] == list(keys)
        replaced(kafka, topic)


def replaced(kafka: Any, topic: str) -> None:
    admin = Cluster.of(kafka.bootstrap).admin()
    admin.delete_topics([topic])[topic].result(30)
    for _ in range(1500):
        if topic not in admin.list_topics().topics:
            break
        threading.Event().wait(0.02)
    kafka.create_topic(topic, cleanup_policy="compact")


def test_a_record_with_a_txid_that_is_none_is_told(make: Make) -> None:
    factory = make()
    factory.ensure_topic()
    producer = Cluster.of(factory.bootstrap).producer({})
    producer.produce(factory.topic, b"5", b"a", headers=[("trident-txid", b"x")])
    assert producer.flush(30) == 0
    with pytest.raises(StateError, match="partition 0, offset 0: the header trident-txid is b'x'"):
        factory.stored()


# -- checkpoints and names


@pytest.mark.parametrize("kind", ["transactional", "opaque", "non-transactional"])
def test_a_renamed_topology_does_not_take_its_batches_for_replays(make: Make, kind: str) -> None:
    """The values carry the txids of the old name: a count of batch 1 would be skipped as if it were there."""
    factory = make(kind)
    participant, conf = driven(factory, "old")
    participant.prepare(1, 0, 1)
    add(task(factory, conf), 1, 4)
    with pytest.raises(StateError, match=r"'s' of topology 'old'.*topology.owner.replace"):
        driven(factory, "new")
    renamed = {"topology.owner.replace": "old/s"}
    with pytest.raises(LineageError, match=r"values with txids up to 1.*topology\.txid\.base"):
        driven(factory, "new", **renamed)
    participant, conf = driven(factory, "new", **renamed, **{"topology.txid.base": 1})
    participant.prepare(2, 0, 1)
    add(task(factory, conf, 2), 2, 5)
    assert folded(factory.bootstrap, factory.topic) == {("a",): 9}


# -- attempts


def test_an_attempt_that_was_given_up_commits_nothing_once_the_next_one_begins(kafka: Any, make: Make) -> None:
    """Its task may still be at work; what it has open would also hide the records behind it."""
    rows = TransactionalTopicState(kafka.bootstrap, kafka.create_topic(), value=["word", "n"])
    for factory in (rows, make("plain")):
        participant, conf = driven(factory)
        participant.prepare(1, 0, 1)
        late = task(factory, conf)
        late.beginCommit(1)
        late.insert([TridentTuple.of(["word", "n"], ("a", 1))], False)
        participant.prepare(1, 1, 1)
        with pytest.raises(FailedException):
            late.commit(1)
        assert read(kafka.bootstrap, factory.topic) == []


def test_rows_without_a_txid_do_not_hide_the_last_batch(make: Make) -> None:
    factory = make("plain")
    state = factory.makeState({}, None, 0, 1)
    write(state, 3, ("a", 3))
    write(state, None, ("b", 1))
    state.close()
    with pytest.raises(ZombieError, match="batch 2 is behind batch 3"):
        write(factory.makeState({}, None, 0, 1), 2, ("a", 2))


# -- what is left behind


def used() -> tuple[int, int]:
    """Open files and threads of this process, librdkafka's too."""
    return len(list(Path("/proc/self/fd").iterdir())), len(list(Path("/proc/self/task").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts in /proc")
@pytest.mark.parametrize("kind", ["append", "opaque", "plain"])
def test_batches_and_attempts_leave_no_files_threads_and_memory_behind(
    kafka: Any, make: Make, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "append":
        factory: Any = TransactionalTopicState(kafka.bootstrap, kafka.create_topic(), value=["word", "n"])
    else:
        factory = make(kind)
    participant, conf = driven(factory)
    context = in_attempt(1, 0)
    state = factory.makeState(conf | {"trident.context": context}, None, 0, 1)

    def batch(txid: int, attempt: int = 0) -> None:
        participant.prepare(txid, attempt, 1)
        context.transaction = in_attempt(txid, attempt).transaction
        write(state, txid, ("a", txid))

    for attempt in range(3):
        batch(1, attempt)
    batch(2)
    before, described, describe = used(), [], AdminClient.describe_topics
    noting = lambda *given, **more: described.append(given) or describe(*given, **more)  # noqa: E731
    monkeypatch.setattr(AdminClient, "describe_topics", noting)
    for txid in range(3, 33):
        batch(txid)
    assert not described, "confluent-kafka 2.16 keeps 94 bytes of each for ever"
    for attempt in range(1, 11):
        batch(32, attempt)
    assert all(after <= start + 3 for after, start in zip(used(), before, strict=True)), (before, used())
