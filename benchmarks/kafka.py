"""Group kafka: the spout against Spark's own source, the topic states against a bare producer and Spark's sink.

Spark's connector is a mixed set of jars (jvm/pom.xml); only these benchmarks use it. One broker serves both sides.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from testbed.kafka_broker import KafkaBroker

from . import data
from .kafka_by_hand import RECORD_BYTES, fill, fill_with_aborts
from .measure import measure
from .report import Figure, at_least, at_most, median

GROUP = "kafka"
PER_BATCH = 250_000
WARM_UP = 3
SMALL, SMALL_BATCHES, SMALL_WARM_UP = 100, 120, 40
ROWS, FEW, ROUNDS = 100_000, 10, 12
PARTITIONS = 2
TRANSACTIONS, IN_EACH, MIXED = 30, 70, 100


def values(folder: Path, total: int) -> Iterator[bytes]:
    for path in data.sentences(folder, total):
        for sentence in pq.read_table(path).column("sentence").to_pylist():
            yield sentence.encode()


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="trident-bench-") as folder, KafkaBroker() as broker:
        topic = broker.create_topic(partitions=PARTITIONS)
        total = fill(broker.bootstrap, topic, values(Path(folder), data.SENTENCES), PARTITIONS)
        yield from agreement(broker)
        yield from counting(broker.bootstrap, topic, total)
        small = broker.create_topic(partitions=PARTITIONS)
        fill(broker.bootstrap, small, values(Path(folder), SMALL * (SMALL_BATCHES + 4)), PARTITIONS)
        yield from latency(broker.bootstrap, small)
        yield from writing(broker)


def agreement(broker: KafkaBroker) -> Iterator[Figure]:
    """Both sources over a topic with transactions, aborted rows and markers: the same batches, record by record."""
    topic = broker.create_topic(partitions=1)
    committed = fill_with_aborts(broker.bootstrap, topic, TRANSACTIONS, IN_EACH)
    ours = measure("kafka_ours.batches_of", broker.bootstrap, topic, MIXED)
    hand = measure("kafka_by_hand.batches_of", broker.bootstrap, topic, len(ours), MIXED)
    same = sum(one == other for one, other in zip(ours, hand, strict=False))
    bar = at_least(same, max(len(ours), len(hand)))
    yield Figure(GROUP, "batches like Spark's source, with aborted rows", same, "batches", **bar)  # type: ignore[arg-type]
    found = sum(map(len, ours))
    yield Figure(GROUP, "  their committed records", found, "records", **at_least(found, committed))  # type: ignore[arg-type]


def counting(bootstrap: str, topic: str, total: int) -> Iterator[Figure]:
    def rate(seconds: list[float]) -> float:
        return PER_BATCH / median(seconds[WARM_UP:])

    hand = rate(measure("kafka_by_hand.word_count", bootstrap, topic, total // PER_BATCH, PER_BATCH))
    yield Figure(GROUP, "word count, Spark's source, mapInArrow by hand", hand, "records/s")
    for kind in ("callable", "builtin"):
        ours = rate(measure("kafka_ours.word_count", bootstrap, topic, PER_BATCH, kind))
        bar = at_least(ours / hand, 1.0) if kind == "callable" else {}
        yield Figure(GROUP, f"word count, KafkaSpout, {kind}", ours, "records/s", "by hand", ours / hand, **bar)  # type: ignore[arg-type]


def latency(bootstrap: str, topic: str) -> Iterator[Figure]:
    def millis(seconds: list[float]) -> float:
        return 1000 * median(seconds[SMALL_WARM_UP:SMALL_BATCHES])

    hand = millis(measure("kafka_by_hand.small_batches", bootstrap, topic, SMALL_BATCHES, SMALL))
    yield Figure(GROUP, "batches of 100, Spark's source", hand, "ms/batch")
    memory = millis(measure("kafka_ours.without_kafka", SMALL_BATCHES, SMALL))
    yield Figure(GROUP, "batches of 100 from memory", memory, "ms/batch")
    ours = millis(measure("kafka_ours.small_batches", bootstrap, topic, SMALL))
    yield Figure(GROUP, "batches of 100, KafkaSpout", ours, "ms/batch", "Spark's source", ours / hand)
    yield Figure(GROUP, "extra time over Spark's source", ours - hand, "ms/batch", **at_most(ours - hand, 50))  # type: ignore[arg-type]
    yield Figure(GROUP, "extra time over memory", ours - memory, "ms/batch", **at_most(ours - memory, 50))  # type: ignore[arg-type]


def writing(broker: KafkaBroker) -> Iterator[Figure]:
    sink = median(measure("kafka_by_hand.sink", broker.bootstrap, broker.create_topic(partitions=1), ROWS * 5, 5)[2:])
    yield Figure(GROUP, "Spark's sink, 500k records, two tasks", sink, "records/s")
    for name, sides in measure("kafka_ours.states", broker.bootstrap, ROWS, RECORD_BYTES, ROUNDS).items():
        rates = {side: median(found[2:]) for side, found in sides.items()}
        ours = rates.pop("ours")
        yield Figure(GROUP, f"state: {name}", ours, "records/s", "Spark's sink", ours / sink)
        for side, hand in rates.items():
            yield Figure(GROUP, f"  a bare producer, {side}", hand, "records/s")
            bar = at_least(ours / hand, 0.85)
            yield Figure(GROUP, f"  {name}, ratio", ours / hand, "", f"producer, {side}", ours / hand, **bar)  # type: ignore[arg-type]
    yield from committing(broker)


def committing(broker: KafkaBroker) -> Iterator[Figure]:
    """Small batches: what a mark in each transaction, and the question whether the brokers still have it, cost."""
    for name, sides in measure("kafka_ours.states", broker.bootstrap, FEW, RECORD_BYTES, SMALL_BATCHES).items():
        ours, hand = (1000 * FEW / median(sides[side][SMALL_WARM_UP:]) for side in ("ours", "ready bytes"))
        bar = at_most(ours / hand, 2)
        yield Figure(GROUP, f"batches of 10, {name}", ours, "ms/batch", "a bare producer", ours / hand, **bar)  # type: ignore[arg-type]
