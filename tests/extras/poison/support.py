"""A topology with three places where a tuple may fail, over every kind of state, and the plain fold of its input."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from states.files import FileState
from states.sql import (
    AppendState,
    BatchState,
    InsertIgnoreState,
    RowUpdater,
    SequenceState,
    SqlMapState,
    SqlWindowsStoreFactory,
)
from trident_py import Fields, TridentTopology
from trident_py.operations import BaseFilter
from trident_py.operations.builtin import Sum
from trident_py.spouts import IPartitionedTridentSpout
from trident_py.state import MapCombinerAggStateUpdater, OpaqueValue, TransactionalValue
from trident_py.testing import LoggingBackingMap, MemoryMapState, collect, stored

ROW = Fields("id string", "word string", "n bigint", "place bigint", "poison string")
PLACES = ("first", "second", "side")
MAPS = ("memory", "logged", "logged-transactional", "logged-opaque", "sql", "sql-transactional", "sql-opaque")
TABLES = ("insert-ignore", "append", "sequence", "batch", "file")
KINDS = (*MAPS, *TABLES, "window")
CONF = {"topology.poison": "bisect", "topology.poison.attempts": 1}


class Row(NamedTuple):
    """``poison``: the place where it fails, or ""."""

    id: str
    word: str
    n: int
    place: int = 1
    poison: str = ""


Batch = list[list[Row]]
"""The rows of one batch by partition."""


@dataclass(frozen=True)
class Rows(IPartitionedTridentSpout):
    """Transactional: batch n is ``batches[n - 1]``."""

    batches: Sequence[Batch]

    def getOutputFields(self) -> Fields:
        return ROW

    def getCoordinator(self, conf: dict, context: Any) -> Any:
        return self

    def getEmitter(self, conf: dict, context: Any) -> Any:
        return self

    def isReady(self, txid: int) -> bool:
        return txid <= len(self.batches)

    def isExhaustedAt(self, txid: int) -> bool:
        return txid > len(self.batches)

    def getPartitionsForBatch(self) -> list[int]:
        return list(range(len(self.batches[0])))

    def getOrderedPartitions(self, allPartitionInfo: list[int]) -> Sequence[int]:
        return allPartitionInfo

    def emitBatchNew(self, tx: Any, collector: Any, partitions: Sequence[int], lastPartitionMeta: dict) -> dict:
        for partition in partitions:
            self.reEmitPartitionBatch(tx, collector, partition, tx.txid)
        return dict.fromkeys(partitions, tx.txid)

    def reEmitPartitionBatch(self, tx: Any, collector: Any, partition: int, partitionMeta: int) -> None:
        for row in self.batches[partitionMeta - 1][partition]:
            collector.emit(list(row))

    def close(self) -> None: ...


class Healthy(BaseFilter):
    """Fails for a row that is poison at this place."""

    def __init__(self, place: str) -> None:
        self.place = place

    def isKeep(self, tuple: Any) -> bool:
        if tuple[0] == self.place:
            raise ValueError(f"poison at {self.place}")
        return True


def _map(kind: str, url: str, name: str) -> Any:
    made, _, txids = kind.partition("-")
    if made == "memory":
        return MemoryMapState.Factory()
    if made == "logged":
        return LoggingBackingMap.Factory(txids or "nontransactional")
    return getattr(SqlMapState, txids or "nonTransactional")(url, name, "word string", "total bigint")


def factory(kind: str, folder: Path, name: str) -> Any:
    url = f"sqlite:///{folder}/{kind}.db"
    if kind in MAPS:
        return _map(kind, url, name)
    made: dict[str, Callable[[], Any]] = {
        "insert-ignore": lambda: InsertIgnoreState(url, name, key="id", columns=ROW),
        "append": lambda: AppendState(url, name, columns=ROW),
        "batch": lambda: BatchState(url, name, columns=ROW),
        "sequence": lambda: SequenceState(url, name, sender="id", sequence="place", columns=ROW),
        "file": lambda: FileState(f"{folder}/{name}", columns=ROW),
    }
    return made[kind]()


def persist(stream: Any, kind: str, folder: Path, name: str) -> Any:
    """Writes the stream into a state of this kind. Returns the factory."""
    if kind == "window":
        store = SqlWindowsStoreFactory(f"sqlite:///{folder}/{kind}.db", name)
        collect(stream.global_().tumblingWindow(1, store, "n", Sum(), "total"), name)
        return store
    made = factory(kind, folder, name)
    if kind in MAPS:
        totals = stream.groupBy("word").aggregate("n", Sum(), "total").partitionBy("word")
        updater = MapCombinerAggStateUpdater(Sum(), "word", "total")
        totals.partitionPersist(made, ["word", "total"], updater).parallelismHint(2)
    else:
        stream.partitionBy("word").partitionPersist(made, ROW.names, RowUpdater()).parallelismHint(2)
    return made


class Built(NamedTuple):
    topology: Any
    states: list[Any]


def build(kind: str, folder: Path, batches: Sequence[Batch], spout: Any = None, letters: Any = None) -> Built:
    """Two branches: one checks in the spout's tasks and behind an exchange, the other beside it."""
    topology = TridentTopology()
    rows = topology.newStream("rows", spout or Rows(batches)).parallelismHint(2)
    main = rows.filter("poison", Healthy("first")).partitionBy("word").filter("poison", Healthy("second"))
    main = main.parallelismHint(2)
    states = [persist(main, kind, folder, "main")]
    states.append(persist(rows.filter("poison", Healthy("side")), kind, folder, "side"))
    letters = letters or BatchState(f"sqlite:///{folder}/letters.db", "letters", key=("txid", "partition", "index"))
    rows.deadLetters().partitionPersist(letters)
    return Built(topology.build(), states)


# -- what is there, and what must be ----------------------------------------------------------------------------------


def table(file: Path, text: str) -> list[tuple]:
    """The rows of a query; none if the table was never made."""
    if not file.exists():
        return []
    with sqlite3.connect(file) as connection:
        try:
            return connection.execute(text).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            return []


def found(kind: str, folder: Path, name: str, made: Any) -> Counter:
    """The rows of a state, or its totals by word."""
    if kind.startswith(("memory", "logged")):
        return Counter({key[0]: _plain(value) for key, value in stored(made).items()})
    if kind in MAPS:
        return Counter(dict(table(folder / f"{kind}.db", f"SELECT word, total FROM {name}")))
    if kind == "file":
        files = sorted((folder / name).glob("*.parquet"))
        return Counter(row["id"] for file in files for row in pq.read_table(file).to_pylist())
    return Counter(row[0] for row in table(folder / f"{kind}.db", f"SELECT id FROM {name}"))


def _plain(value: Any) -> Any:
    if isinstance(value, OpaqueValue):
        return value.curr
    return value.value if isinstance(value, TransactionalValue) else value


def expected(kind: str, batches: Sequence[Batch]) -> Counter:
    healthy = [row for batch in batches for part in batch for row in part if not row.poison]
    if kind in MAPS:
        totals: Counter = Counter()
        for row in healthy:
            totals[row.word] += row.n
        return totals
    return Counter(row.id for row in healthy)


def windows(batches: Sequence[Batch]) -> Counter:
    """The results of windows of one tuple, since rows of two partitions come in no fixed order."""
    return Counter((row.n,) for batch in batches for part in batch for row in part if not row.poison)


def letters(folder: Path) -> list[tuple]:
    text = 'SELECT txid, spout, "partition", "index", tuple, operation, operationPartition, error FROM letters'
    return sorted(table(folder / "letters.db", text))


def dead(batches: Sequence[Batch]) -> list[tuple]:
    """The letters without the partition of the operation, which a hash decides behind the exchange."""
    return sorted(
        (txid, "rows", partition, index, json.dumps(list(row)), f"ValueError: poison at {row.poison}")
        for txid, batch in enumerate(batches, 1)
        for partition, part in enumerate(batch)
        for index, row in enumerate(part)
        if row.poison
    )


def agree(kind: str, folder: Path, batches: Sequence[Batch], built: Built, running: Any) -> None:
    """Compares everything with the fold."""
    assert [(*row[:5], row[7]) for row in letters(folder)] == dead(batches)
    assert sum(progress.dead_letters for progress in running.progress.values()) == len(dead(batches))
    for name, made in zip(("main", "side"), built.states, strict=True):
        if kind == "window":
            results = Counter(row for rows in running.collected(name).values() for row in rows)
            assert results == windows(batches), name
        else:
            assert found(kind, folder, name, made) == expected(kind, batches), name
