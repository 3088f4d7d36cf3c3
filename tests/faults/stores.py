"""Every state on one database, in one topology, and what its tables must hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from states.sql import AppendState, BatchState, InsertIgnoreState, RowUpdater, SequenceState, SqlMapState
from trident_py import Fields, TridentTopology
from trident_py.operations.builtin import Sum
from trident_py.spouts import IPartitionedTridentSpout
from trident_py.state import MapCombinerAggStateUpdater
from trident_py.testing.faults.feed import OneForAll

from .readings import PARTITIONS, Fold, Readings
from .steps import InHalves, Stepped
from .topology import Plus

ROW = Fields("id string", "word string", "n bigint", "sender string", "place bigint")
NAMES = ", ".join(ROW)


@dataclass(frozen=True)
class Source(OneForAll, IPartitionedTridentSpout):
    """Transactional: batch n is `Readings.batch` n, up to ``last``."""

    readings: Readings
    last: int

    def getOutputFields(self) -> Fields:
        return ROW

    def emitBatchNew(self, tx: Any, collector: Any, partitions: Sequence[int], lastPartitionMeta: dict) -> dict:
        for partition in partitions:
            self.reEmitPartitionBatch(tx, collector, partition, tx.txid)
        return dict.fromkeys(partitions, tx.txid)

    def reEmitPartitionBatch(self, tx: Any, collector: Any, partition: int, partitionMeta: int) -> None:
        for row in self.readings.part(partitionMeta, partition):
            collector.emit(row)


TABLES = {
    "rows": "rows_by_id", "trans": "transactional", "opaque": "opaque", "general": "general", "append": "appended",
    "batch": "batched", "keyed": "keyed", "sequence": "in_order",
}  # fmt: skip


def _words(kind: str) -> Callable[[str], Any]:
    return lambda url: getattr(SqlMapState, kind)(url, kind.lower(), "word string", "total bigint")


FACTORIES: dict[str, Callable[[str], Any]] = {
    "rows": lambda url: InsertIgnoreState(url, TABLES["rows"], key="id", columns=ROW),
    "trans": _words("transactional"),
    "opaque": _words("opaque"),
    "general": lambda url: SqlMapState.opaque(url, TABLES["general"], "word string", "total bigint"),
    "append": lambda url: AppendState(url, TABLES["append"], columns=ROW),
    "batch": lambda url: BatchState(url, TABLES["batch"], columns=ROW),
    "keyed": lambda url: BatchState(url, TABLES["keyed"], columns=ROW, key="id"),
    "sequence": lambda url: SequenceState(url, TABLES["sequence"], sender="sender", sequence="place", columns=ROW),
}
Urls = str | Mapping[str, str]
"""The database of every state, or of each by its name."""
MAPS = {"trans": Sum(), "opaque": Sum(), "general": Plus()}
EXACT = tuple(FACTORIES)


def url_of(urls: Urls, name: str) -> str:
    return urls if isinstance(urls, str) else urls[name]


def build(
    urls: Urls, readings: Readings, last: int, partitions: int = 2, only: Sequence[str] = EXACT,
    wrap: Callable[[str, Any], Any] = Stepped, spout: type = Source, keep: Callable[..., bool] | None = None,
) -> Any:  # fmt: skip
    """The topology: one spout, every state (or ``only`` these), each ``wrap`` (name, factory); ``keep``: a filter."""
    topology = TridentTopology()
    stream = topology.newStream("readings", spout(readings, last)).parallelismHint(PARTITIONS)
    stream = stream if keep is None else stream.filter("id", keep)
    by_sender, by_word = stream.partitionBy("sender"), stream.groupBy("word")
    for name in only:
        factory = wrap(name, FACTORIES[name](url_of(urls, name)))
        if name in MAPS:
            words = by_word.aggregate("n", MAPS[name], "total").partitionBy("word").parallelismHint(partitions)
            updater = InHalves(MapCombinerAggStateUpdater(MAPS[name], "word", "total"))
            words.partitionPersist(factory, ["word", "total"], updater).parallelismHint(partitions)
        else:
            by_sender.partitionPersist(factory, ROW.names, InHalves(RowUpdater())).parallelismHint(partitions)
    return topology.build()


# -- what is there ----------------------------------------------------------------------------------------------------


def read(url: str, text: str) -> list[tuple]:
    """Rows of a query, by a client that knows nothing of ours."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        if not url.startswith("sqlite"):
            connection.execution_options(isolation_level="READ COMMITTED")
        return [tuple(row) for row in connection.execute(sa.text(text))]


class Difference(NamedTuple):
    """Between the table of a state and the fold, row by row and value by value."""

    state: str
    lost: int
    doubled: int
    examples: list[Any]


def differences(urls: Urls, fold: Fold, only: Sequence[str] = EXACT) -> list[Difference]:
    """One for each state whose tables are not what they must be."""
    made = []
    for name in only:
        pairs = PAIRS[name](url_of(urls, name), fold)
        lost = sum((expected - found for found, expected in pairs), Counter[Any]())
        doubled = sum((found - expected for found, expected in pairs), Counter[Any]())
        if lost or doubled:
            made.append(Difference(name, lost.total(), doubled.total(), list((lost + doubled).items())[:4]))
    return made


Pairs = list[tuple[Counter, Counter]]
"""What a table holds and what it must hold."""


def _rows(table: str, once: bool) -> Callable[[str, Fold], Pairs]:
    def compare(url: str, fold: Fold) -> Pairs:
        expected = Counter(fold.by_id().values()) if once else fold.counted()
        return [(Counter(read(url, f"SELECT {NAMES} FROM {table}")), expected)]

    return compare


def _sums(table: str, columns: int) -> Callable[[str, Fold], Pairs]:
    def compare(url: str, fold: Fold) -> Pairs:
        names = ["word", "total", "txid", "prev_total"][:columns]
        found = Counter(read(url, f"SELECT {', '.join(names)} FROM {table}"))
        return [(found, Counter((word, *value)[:columns] for word, value in fold.sums().items()))]

    return compare


def _sequence(url: str, fold: Fold) -> Pairs:
    applied, held, _ = fold.in_order()
    there = Counter(read(url, f"SELECT {NAMES} FROM in_order"))
    waiting = Counter(read(url, f"SELECT {NAMES} FROM in_order_held"))
    return [(there, Counter(applied)), (waiting, Counter(held))]


PAIRS: dict[str, Callable[[str, Fold], Pairs]] = {
    "rows": _rows("rows_by_id", True), "trans": _sums("transactional", 3), "opaque": _sums("opaque", 4),
    "general": _sums("general", 4), "append": _rows("appended", False), "batch": _rows("batched", False),
    "keyed": _rows("keyed", True), "sequence": _sequence,
}  # fmt: skip


def rows_checked(fold: Fold, only: Sequence[str] = EXACT) -> int:
    """How many rows a comparison looks at."""
    words, once, applied = len(fold.sums()), len(fold.by_id()), len(fold.by_id())
    each = {"trans": words, "opaque": words, "general": words, "rows": once, "keyed": once, "sequence": applied}
    return sum(each.get(name, len(fold.delivered)) for name in only)
