"""What a driver on a host is to run: a topology over finite input, by its shape, and what its stores must hold.

    spout   a partitioned transactional spout of a user's own; every state of SQL
    files   `FileSpout`; every state of SQL
    kafka   `KafkaSpout`, transactional; the states in topics, and two of SQL beside them
    opaque  `KafkaSpout`, opaque; the states of SQL that are exact behind it
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from compacted_reading import headers, latest
from confluent_kafka import Producer
from faults.readings import Fold, Readings, Row
from faults.steps import Fault
from faults.stores import EXACT, NAMES, ROW, TABLES, Difference, Source, build, differences, read
from topic_reading import values

from states.kafka import CompactedTopicState, TransactionalTopicState
from trident_py.kafka import Json, KafkaSpout
from trident_py.spouts import FileSpout

from .hook import Standing
from .more_states import build_with_topics

SHAPES: dict[str, tuple[str, ...]] = {
    "spout": EXACT,
    "files": EXACT,
    "kafka": ("topic", "upsert", "topic map", "append", "sequence"),
    "opaque": ("rows", "opaque", "general", "batch", "keyed"),
}
COLUMNS = NAMES.split(", ")


@dataclass(frozen=True)
class Order:
    """One topology under one name and checkpoint; every driver that gets it goes on with it."""

    name: str
    shape: str
    url: str
    checkpoints: str
    seed: int
    last: int
    port: int
    states: tuple[str, ...]
    places: tuple[Fault, ...] = ()
    partitions: int = 3
    brokers: str = ""
    file: str = ""
    conf: dict = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many rows a batch has."""
        return -(-len(rows_of(self.seed, self.last)) // self.last)

    def standing(self, places: Iterable[Fault]) -> Order:
        return replace(self, places=tuple(places))

    # -- in the driver

    def build(self) -> Any:
        more = (self.url, Readings(self.seed), self.last, self.partitions)
        if self.shape == "kafka":
            return build_with_topics(*more, self.states, self.topics(), self.wrapped, self.spout)
        return build(*more, self.states, self.wrapped, self.spout)

    def spout(self, readings: Readings, last: int) -> Any:
        if self.shape == "spout":
            return Source(readings, last)
        if self.shape == "files":
            return FileSpout(self.file, ROW, batchSize=self.size)
        form = Json(", ".join(f"{name} {ROW.types[name]}" for name in ROW.names))
        kind = "opaque" if self.shape == "opaque" else "transactional"
        return KafkaSpout(
            self.brokers, f"{self.name}-in", value=form, fields="value", kind=kind, endingOffsets="latest",
            maxRecordsPerBatch=self.size, firstPollOffsetStrategy="EARLIEST",
        )  # fmt: skip

    def topics(self) -> dict[str, Any]:
        more: dict[str, Any] = {"partitions": 2}
        return {
            "topic": TransactionalTopicState(self.brokers, f"{self.name}-topic", key="sender", value=COLUMNS),
            "upsert": CompactedTopicState(self.brokers, f"{self.name}-upsert", "id string", COLUMNS[1:], **more),
            "topic map": CompactedTopicState.opaque(
                self.brokers, f"{self.name}-map", "word string", "total bigint", **more
            ),
        }

    def wrapped(self, name: str, factory: Any) -> Any:
        return Standing(name, factory, self.name, self.port, self.places)

    # -- in the test

    def differences(self) -> list[Difference]:
        """For each state whose tables or topics are not what a plain fold gives."""
        if self.shape == "spout":
            return differences(self.url, Fold(Readings(self.seed), self.last), self.states)
        rows = rows_of(self.seed, self.last)
        if self.shape == "files":
            batches: Any = Slices(rows, self.size)
            return differences(self.url, Fold(batches, -(-len(rows) // self.size)), self.states)
        fold = Fold(Slices(rows, len(rows)), 1)  # type: ignore[arg-type]
        found = [difference(name, *self._pair(name, fold)) for name in self.states if name in _WITHOUT_TXIDS]
        plain = [name for name in self.states if name in TABLES and name not in _WITHOUT_TXIDS]
        return [one for one in found if one is not None] + differences(self.url, fold, plain)

    def _pair(self, name: str, fold: Fold) -> tuple[Counter, Counter]:
        """What is there, and what must be. Which records make a batch, Kafka decides: txids are not compared."""
        totals: Counter[Any] = Counter((word, total) for word, (total, _, _) in fold.sums().items())
        if name in TABLES:
            return Counter(read(self.url, f"SELECT word, total FROM {TABLES[name]}")), totals
        if name == "topic":
            there = values(self.brokers, f"{self.name}-topic").items()
            return Counter({_row(json.loads(text)): count for text, count in there}), fold.counted()
        topic = {"upsert": "upsert", "topic map": "map"}[name]
        records = latest(self.brokers, f"{self.name}-{topic}").items()
        if name == "topic map":
            assert all(int(headers(record)["trident-txid"] or 0) > 0 for _, record in records)
            return Counter((key.decode(), json.loads(each.value or b"0")) for key, each in records), totals
        found = Counter((key.decode(), *_row(json.loads(each.value or b"{}"), 1)) for key, each in records)
        return found, Counter(fold.by_id().values())


_WITHOUT_TXIDS = ("opaque", "general", "topic", "upsert", "topic map")


@dataclass(frozen=True)
class Slices:
    """Rows in their order, cut into batches of one size."""

    rows: list[Row]
    size: int

    def batch(self, txid: int) -> list[Row]:
        return self.rows[(txid - 1) * self.size : txid * self.size]


def rows_of(seed: int, last: int) -> list[Row]:
    return Fold(Readings(seed), last).delivered


def difference(name: str, found: Counter, expected: Counter) -> Difference | None:
    lost, doubled = expected - found, found - expected
    if not lost and not doubled:
        return None
    return Difference(name, lost.total(), doubled.total(), list((lost + doubled).items())[:4])


def order_of(
    lab: Any, name: str, shape: str, store: str, seed: int, last: int, states: tuple[str, ...] = (),
    in_hdfs: bool = False,
) -> Order:  # fmt: skip
    """An order on an empty database of this kind, with its input in a file or a topic."""
    url, states = lab.servers[store].create_database(), states or SHAPES[shape]
    made = Order(name, shape, url, lab.checkpoints(name, in_hdfs), seed, last, lab.port, states)
    rows = rows_of(seed, last)
    if shape == "files":
        made = replace(made, file=str(_written(rows, lab.folder / f"{name}.csv")))
    elif shape != "spout":
        kafka = lab.servers["kafka"]
        _sent(rows, kafka.bootstrap, kafka.create_topic(f"{name}-in", partitions=2))
        if shape == "kafka":
            kafka.create_topic(f"{name}-topic", partitions=2)
        made = replace(made, brokers=kafka.bootstrap)
    return made


def _written(rows: list[Row], file: Path) -> Path:
    with file.open("w", newline="") as output:
        csv.writer(output).writerows([COLUMNS, *rows])
    return file


def _sent(rows: list[Row], brokers: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": brokers, "enable.idempotence": True})
    for row in rows:
        producer.produce(topic, json.dumps(dict(zip(COLUMNS, row, strict=True))).encode(), key=row[3].encode())
    assert producer.flush(60) == 0


def _row(value: dict, first: int = 0) -> tuple:
    return tuple(value[name] for name in COLUMNS[first:])
