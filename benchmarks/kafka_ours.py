"""Our side of the Kafka benchmarks. Each function runs in a process of its own (measure.py)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.kafka import KafkaSpout
from trident_py.operations.builtin import Count
from trident_py.testing import MemoryMapState, collect

from .ours import SPLITS, numbers, on_spark, run

RECORD = Fields("key string", "value string")


def spout(bootstrap: str, topic: str, per_batch: int, value: str) -> KafkaSpout:
    return KafkaSpout(
        bootstrap, topic, fields="value", value=value, maxRecordsPerBatch=per_batch, endingOffsets="latest"
    )


def word_count(bootstrap: str, topic: str, per_batch: int, kind: str) -> list[float]:
    """Seconds of each batch."""
    topology = TridentTopology()
    sentences = topology.newStream("in", spout(bootstrap, topic, per_batch, "string")).parallelismHint(2)
    words = sentences.each("value", SPLITS[kind], Fields("word string"))
    counts = words.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    counts.parallelismHint(2)
    with on_spark() as (cluster, _):
        return run(cluster, topology).seconds


def small_batches(bootstrap: str, topic: str, per_batch: int) -> list[float]:
    """Small batches from Kafka through one stage that does nothing."""
    topology = TridentTopology()
    stream = topology.newStream("in", spout(bootstrap, topic, per_batch, "bytes")).parallelismHint(2)
    stream.each("value", lambda value: [value], Fields("same binary"))
    with on_spark() as (cluster, _):
        return run(cluster, topology).seconds


def batches_of(bootstrap: str, topic: str, per_batch: int) -> list[list]:
    """Offset and value of the records of each batch that KafkaSpout makes."""
    fields = ["offset", "value"]
    reader = KafkaSpout(
        bootstrap, topic, fields=fields, value="string", maxRecordsPerBatch=per_batch, endingOffsets="latest"
    )
    topology = TridentTopology()
    collect(topology.newStream("in", reader), "records")
    with LocalCluster() as cluster:
        running = cluster.submitTopology("batches", {}, topology.build())
        running.awaitTermination()
    found = running.collected("records")
    return [sorted(map(list, found[txid])) for txid in sorted(found) if found[txid]]


def without_kafka(batches: int, per_batch: int) -> list[float]:
    """The same from memory: what is left is the spout's own."""
    topology = TridentTopology()
    stream = topology.newStream("in", numbers(batches, per_batch)).parallelismHint(2)
    stream.each("value", lambda value: [value], Fields("same bigint"))
    with on_spark() as (cluster, _):
        return run(cluster, topology).seconds


def records(rows: int, width: int) -> Any:
    """The records of a batch as both clusters hand them over: chunks of Arrow columns."""
    import pyarrow as pa

    from trident_py.model.chunks import Chunk, TupleList

    texts = [f"{n:0{width}d}" for n in range(rows)]
    made = TupleList(RECORD)
    columns = {"key": pa.array([text[-12:] for text in texts]), "value": pa.array(texts)}
    made.append(Chunk(columns, rows))
    return made


class Writer:
    """A state with its driver's fence; writes the batch through `persist`, under a new txid each time."""

    def __init__(self, factory: Any, given: Any) -> None:
        from trident_py.state.participants import participant_of

        self.conf: dict[str, Any] = {
            "topology.name": "bench", "trident.state.name": factory.topic, "trident.lineage": "one",
        }  # fmt: skip
        self.participant = participant_of(factory)
        if self.participant is not None:
            self.conf["trident.generation"] = self.participant.open(self.conf)
        self.state, self.given, self.txid = factory.makeState(self.conf, None, 0, 1), given, 0

    def __call__(self) -> None:
        from states import RowUpdater
        from trident_py.state import SILENT, persist

        self.txid += 1
        if self.participant is not None:
            self.participant.prepare(self.txid, 0, 1)
        persist(self.state, self.txid, RowUpdater(), self.given, SILENT)


class ByHand:
    """A bare confluent-kafka loop with the same settings; ``encode`` makes the record of a tuple."""

    def __init__(self, bootstrap: str, topic: str, rows: list, encode: Callable | None, fenced: bool) -> None:
        from confluent_kafka import Producer

        from states.kafka.settings import SETTINGS, TRANSACTIONAL, WAITING

        own = {**TRANSACTIONAL, "transactional.id": f"by-hand-{topic}"} if fenced else SETTINGS
        self.producer = Producer({**own, **WAITING, "bootstrap.servers": bootstrap, "log_level": 0})
        self.topic, self.rows, self.encode, self.fenced = topic, rows, encode, fenced
        if fenced:
            self.producer.init_transactions()

    def __call__(self) -> None:
        if self.fenced:
            self.producer.begin_transaction()
        rows = self.rows if self.encode is None else map(self.encode, self.rows)
        for key, value in rows:
            self._produce(key, value)
        self.producer.flush()
        if self.fenced:
            self.producer.commit_transaction()

    def _produce(self, key: bytes, value: bytes) -> None:
        while True:
            try:
                return self.producer.produce(self.topic, value, key)
            except BufferError:
                self.producer.poll(0.05)


def as_json(row: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """What a compacted topic holds for a text: JSON."""
    return row[0], json.dumps(row[1].decode()).encode()


def states(bootstrap: str, rows: int, width: int, batches: int) -> dict[str, dict[str, list[float]]]:
    """Each state and the loops it is held against, a batch of each in turn: records/s."""
    from testbed.kafka_broker import create_topic

    given = records(rows, width)
    ready = [(key.encode(), value.encode()) for key, value in given]
    found: dict[str, dict[str, list[float]]] = {}
    for name, make in factories(bootstrap).items():
        fenced = name != "at least once"
        sides: dict[str, Callable[[], None]] = {
            "ours": Writer(make(), given),
            "ready bytes": ByHand(bootstrap, create_topic(bootstrap), ready, None, fenced),
        }
        if name.startswith("compacted"):
            sides["json.dumps"] = ByHand(bootstrap, create_topic(bootstrap), ready, as_json, fenced)
        found[name] = {side: [] for side in sides}
        for _ in range(batches):
            for side, write in sides.items():
                began = time.perf_counter()
                write()
                found[name][side].append(rows / (time.perf_counter() - began))
    return found


def factories(bootstrap: str) -> dict[str, Callable[[], Any]]:
    from states.kafka import CompactedTopicState, TopicState, TransactionalTopicState
    from testbed.kafka_broker import create_topic

    def compacted() -> Any:
        topic = create_topic(bootstrap, config={"cleanup.policy": "compact"})
        return CompactedTopicState(bootstrap, topic, "key string", "value string", restart=60)

    return {
        "transactional": lambda: TransactionalTopicState(bootstrap, create_topic(bootstrap), value="value", key="key"),
        "at least once": lambda: TopicState(bootstrap, create_topic(bootstrap), value="value", key="key"),
        "compacted": compacted,
    }
