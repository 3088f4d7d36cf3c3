"""What a KafkaSpout waits for, so that no record is lost or doubled without a word."""

from __future__ import annotations

import gc
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import TopicPartition
from spout_support import (
    Player,
    delete,
    eventually,
    produce,
    transactional,
    values,
    when_ready,
)

from trident_py import LocalCluster, TridentTopology
from trident_py.checkpoints.batch_log import BatchLog
from trident_py.checkpoints.hash_seed import own_order
from trident_py.engine.component import ComponentRun
from trident_py.engine.program import compile_plan
from trident_py.errors import FailedException, SpoutError, TopologyError
from trident_py.kafka import KafkaSpout
from trident_py.kafka.batches import Range, ranges_of
from trident_py.kafka.reader import RecordReader
from trident_py.model.context import with_context
from trident_py.operations import BaseFilter
from trident_py.report.progress import RunningTopology
from trident_py.spark.txids import Txids
from trident_py.spouts import MemoryMetadataStore
from trident_py.testing import collect


@pytest.fixture
def play(kafka: Any) -> Iterator[Callable[..., Player]]:
    made: list[Player] = []

    def start(topics: Any = None, broker: Any = kafka, partitions: int = 1, **options: Any) -> Player:
        options = {"fields": "value", "value": "string", **options}
        made.append(Player(KafkaSpout(broker.bootstrap, topics, **options), partitions=partitions))
        return made[-1]

    yield start
    for player in made:
        player.close()


def numbers(count: int) -> list[str]:
    return [str(n) for n in range(count)]


# Reading


def test_a_partition_that_was_put_aside_is_not_taken_for_read_to_its_end(kafka: Any, monkeypatch: Any) -> None:
    """Its end may come together with records that were not taken."""
    monkeypatch.setattr("trident_py.kafka.reader.HELD", 0)
    monkeypatch.setattr("trident_py.kafka.reader.TAKE", 3)
    topic = kafka.create_topic(partitions=3)
    for partition in range(3):
        produce(kafka, topic, numbers(50), partition)
    ranges = [Range(topic, "id", partition, 0, 50) for partition in range(3)]
    reader = RecordReader(KafkaSpout(kafka.bootstrap, topic).cluster, {"group.id": "g"}, lambda lost: lost.range.end)
    reader.prepare([r.place for r in ranges], ranges)
    consumer = reader._consumer
    taken: list[Any] = []
    eventually(lambda: taken.extend(consumer.consume(200, 0.1)) or len(taken) >= 153)  # with the three ends
    assert sum(message.error() is not None for message in taken) == 3
    reader._sort(sorted(taken, key=lambda message: message.offset()), ranges[0])
    read = [[m.value().decode() for part in reader.read(r) for m in part] for r in ranges]
    reader.close()
    assert read == [numbers(50)] * 3


def test_a_chunk_of_heavy_records_has_few_of_them(kafka: Any, play: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("trident_py.kafka.records.HEAVY", 50_000)
    topic = kafka.create_topic(partitions=2)
    sizes = [100, 60_000, 100, 100, 30_000, 30_000, 0, 49_700, 100, 100, 100] * 2
    for partition in range(2):
        produce(kafka, topic, ["x" * size for size in sizes], partition)
    player = play(topic)
    payload = player.describe(1)[0].payload
    for attempt in range(2):
        chunks = player.tasks[0, 0].chunks(_attempt(attempt), payload)
        got = [[len(value) for (value,) in chunk.rows(["value"])] for chunk in chunks]
        cut = [[100, 60_000], [100, 100, 30_000, 30_000], [0, 49_700, 100, 100, 100]]
        assert got == cut * 4


def _attempt(number: int) -> Any:
    from trident_py.tuples import TransactionAttempt

    return TransactionAttempt(1, number)


def test_a_range_that_takes_long_to_come_is_waited_for_longer_each_time(
    kafka: Any, play: Any, monkeypatch: Any
) -> None:
    """Nothing comes of a long aborted transaction; it must not be begun again and again."""
    monkeypatch.setattr("trident_py.kafka.reader.STALLED", 0.2)
    monkeypatch.setattr("trident_py.kafka.reader.ANSWER", 0.1)
    topic = kafka.create_topic()
    produce(kafka, topic, numbers(5))
    metadata = play(topic).coordination.initialize(1, 0, None, None)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and never answers
        spout = KafkaSpout(f"127.0.0.1:{silent.getsockname()[1]}", topic)
        reader = RecordReader(spout.cluster, {"group.id": "g"}, lambda lost: lost.range.end)
        for attempt, seconds in ((0, 0.2), (9, 2)):
            begun = time.monotonic()
            ranges = ranges_of(metadata["s0"])
            reader.prepare([r.place for r in ranges], ranges, attempt)
            with pytest.raises(FailedException, match="no records arrived for"):
                list(reader.read(ranges[0]))
            assert seconds <= time.monotonic() - begun < seconds + 1
        reader.close()


# The end


def test_a_run_to_the_end_does_not_end_before_a_topic_that_is_gone_was_read(kafka: Any, play: Any) -> None:
    topic, other = kafka.create_topic(), kafka.create_topic()
    produce(kafka, topic, numbers(10))
    produce(kafka, other, ["x"])
    player = play([topic, other], endingOffsets="latest", maxRecordsPerBatch=3)
    player.batch(1)
    delete(kafka, topic)
    txid = 2
    with pytest.raises(SpoutError, match=f"topic {topic} is gone"):
        while not player.coordination.is_exhausted(txid):
            if player.coordination.ready(txid):
                player.batch(txid)
                txid += 1
            time.sleep(0.01)


def test_a_run_to_the_end_waits_for_a_partition_that_does_not_answer(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic(partitions=2)
    produce(kafka, topic, numbers(8), 1)
    player = play(topic, endingOffsets="latest", maxRecordsPerBatch=2)
    player.batch(1)
    coordinator = player.coordination._coordinators[0]._coordinator
    view = coordinator._view
    coordinator._view = view._replace(ends={place: end for place, end in view.ends.items() if place[1] == 0})
    coordinator._go_to(coordinator._positions)
    assert not player.coordination.is_exhausted(2)
    coordinator._view = view
    assert len(values(player.batch(2)) + values(player.batch(3)) + values(player.batch(4))) == 6
    assert player.coordination.is_exhausted(5)


# What a batch is, after a crash


def test_a_batch_that_was_begun_in_this_process_stays_that_batch_after_a_restart(kafka: Any, tmp_path: Path) -> None:
    """Its states may have it, or a part of it: another batch of that txid would be taken for it."""
    topic = kafka.create_topic()
    produce(kafka, topic, numbers(5))
    runs: list[dict[int, list]] = []
    for fails in (True, False):
        with LocalCluster(str(tmp_path)) as cluster:
            running = cluster.submitTopology("t", {}, topology(kafka, topic, fails).build())
            if fails:
                with pytest.raises(TopologyError, match="died"):
                    running.awaitTermination(30)
            else:
                assert running.awaitTermination(30)
            runs.append(running.collected("rows"))
        produce(kafka, topic, ["later"])
    assert runs == [{1: [(n,) for n in numbers(5)]}, {1: [(n,) for n in numbers(5)], 2: [("later",)]}]


class Fails(BaseFilter):
    def isKeep(self, tuple: Any) -> bool:
        raise OSError("died")


def topology(kafka: Any, topic: str, fails: bool) -> TridentTopology:
    made = TridentTopology()
    spout = KafkaSpout(kafka.bootstrap, topic, fields="value", value="string", endingOffsets="latest")
    stream = made.newStream("numbers", spout).parallelismHint(1)
    collect(stream, "rows")
    if fails:
        stream.filter(["value"], Fails())
    return made


@pytest.mark.parametrize("options, least", [({"maxRecordsPerSecond": 2}, 1), ({}, 5)], ids=str)
def test_a_run_of_what_is_available_now_waits_for_the_rate_and_not_for_nothing(
    kafka: Any, options: dict, least: int
) -> None:
    topic = kafka.create_topic()
    produce(kafka, topic, numbers(5))
    made = TridentTopology()
    spout = KafkaSpout(kafka.bootstrap, topic, fields="value", **options)
    collect(made.newStream("numbers", spout).parallelismHint(1), "rows")
    (program,) = compile_plan(made.build().plan, with_context({}, topology="t"))
    log = BatchLog(MemoryMetadataStore(), "here", "t", own_order)
    component = ComponentRun(program, program.spouts, log, RunningTopology("t", [program.component]), "run")
    component.open()
    txids = Txids(component, True, False, finished := threading.Event())
    assert txids._awaits(None)
    metadata = component.coordination.initialize(1, 0)
    (ranges,) = (ranges_of(each) for each in metadata.values())
    assert sum(r.end - r.start for r in ranges) >= least
    if not options:
        component.txid = 1
        begun = time.monotonic()
        assert not txids._awaits(None) and finished.is_set()
        assert time.monotonic() - begun < 1
    component.close()


# Topics that come back


def test_an_opaque_spout_goes_on_with_a_topic_that_was_not_to_be_seen_for_a_while(
    kafka: Any, play: Any, monkeypatch: Any
) -> None:
    """A pattern finds what the user may see: without the right, a topic is as good as gone."""
    name = kafka.create_topic()
    produce(kafka, name, numbers(3))
    player = play(pattern=f"{name}.*", kind="opaque")
    assert values(player.batch(1)) == numbers(3)
    coordinator = player.coordination._coordinators[0]._coordinator
    hidden = coordinator._watch.topics
    coordinator._watch.topics = dict  # there are none
    eventually(lambda: not player.coordination.ready(2) and player.reported)
    assert values(player.batch(2)) == []  # of another spout
    assert player.logged[2] == {"s0": {}}
    coordinator._watch.topics = hidden
    produce(kafka, name, ["x"])
    restarted = Player(player.infos[0].spout, store=player.store, restored=player.logged, committed=2)
    assert values(when_ready(restarted, 3)) == ["x"]
    assert values(when_ready(player, 3)) == ["x"]
    restarted.close()


# Where a group stands


def test_offsets_of_a_group_that_are_being_committed_are_waited_for(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic()
    produce(kafka, topic, numbers(5))
    group = f"group-{topic}"
    producer = transactional(kafka, topic)
    producer.begin_transaction()
    from confluent_kafka import Consumer

    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group})
    producer.send_offsets_to_transaction([TopicPartition(topic, 0, 3)], consumer.consumer_group_metadata(), 30)
    player = play(topic, groupId=group, firstPollOffsetStrategy="UNCOMMITTED_LATEST")
    assert not player.coordination.ready(1)
    producer.commit_transaction(30)
    consumer.close()
    assert values(when_ready(player, 1)) == ["3", "4"]


# What is left behind


def test_clients_are_gone_when_a_run_is_over_and_after_each_attempt(kafka: Any, play: Any) -> None:
    topic = kafka.create_topic()
    produce(kafka, topic, numbers(20))
    me = psutil.Process()
    gc.collect()  # what other tests have left
    before = len(me.net_connections()), me.num_threads()
    player = play(topic, maxRecordsPerBatch=4)
    player.batch(1)
    once = me.num_threads()
    for attempt in range(10):
        assert len(values(player.emit(2, attempt))) == 4
    assert me.num_threads() <= once + 2
    player.close()
    eventually(lambda: len(me.net_connections()) <= before[0] and me.num_threads() <= before[1])
