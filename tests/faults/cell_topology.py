"""The topology of one cell: a spout of a kind, functions of a kind, states of a kind. And how it is started."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from states.files import FileState
from states.kafka import CompactedTopicState
from states.redis import (
    RedisDataType,
    RedisDataTypeDescription,
    RedisMapState,
    RedisState,
    RedisStateUpdater,
    RedisStoreMapper,
)
from states.sql import (
    AppendState,
    BatchState,
    InsertIgnoreState,
    RowUpdater,
    SequenceState,
    SqlMapState,
    SqlWindowsStoreFactory,
)
from trident_py import TridentTopology
from trident_py.operations import CombinerAggregator
from trident_py.operations.builtin import Count, Sum
from trident_py.state import MapCombinerAggStateUpdater
from trident_py.windowing import MakesWindows, TumblingCountWindow

from .cell_source import FUNCTIONS, PARTITIONS, SPOUTS, Noted
from .forks import Start
from .steps import InHalves, Stepped

COLUMNS = ("id string", "sender string", "place bigint", "of string", "n bigint")
NAMES = tuple(column.split()[0] for column in COLUMNS)
MAPS = {"non-transactional": "nonTransactional", "transactional": "transactional", "opaque": "opaque"}
ROWS: dict[str, Any] = {
    "insert-ignore": lambda url, table: InsertIgnoreState(url, table, key="id", columns=COLUMNS),
    "append": lambda url, table: AppendState(url, table, columns=COLUMNS),
    "batch": lambda url, table: batch_state(url, table),
    "sequence": lambda url, table: SequenceState(url, table, sender="sender", sequence="place", columns=COLUMNS),
}


def batch_state(url: str, table: str) -> Any:
    """Of a ``file:`` URL a folder; in one, whole batches are visible by one rename, in the other file by file."""
    if not url.startswith("file:"):
        return BatchState(url, table, columns=COLUMNS)
    return FileState(f"{url}/{table}", columns=COLUMNS, visible="batches" if table == "more_rows" else "files")


@dataclass(frozen=True)
class CellMapper(RedisStoreMapper):
    """The row under its id, as JSON."""

    hash: str

    def getDataTypeDescription(self) -> RedisDataTypeDescription:
        return RedisDataTypeDescription(RedisDataType.HASH, self.hash)

    def getKeyFromTuple(self, tuple: Any) -> str:
        return tuple.getValueByField("id")

    def getValueFromTuple(self, tuple: Any) -> str:
        return json.dumps([tuple.getValueByField("of"), tuple.getValueByField("n")])


def upserted(url: str, table: str) -> tuple[Any, Any]:
    """The state of kind upsert and its updater: a compacted topic, or texts in Redis."""
    if not url.startswith("redis:"):
        return CompactedTopicState(*topic_of(url, table), COLUMNS[0], COLUMNS[1:], partitions=2), RowUpdater()
    database, hash = topic_of(url, table)
    return RedisState(database, hash), RedisStateUpdater(CellMapper(hash))


def map_state(url: str, kind: str, table: str, value: str) -> Any:
    if not url.startswith("redis:"):
        return getattr(SqlMapState, MAPS[kind])(url, table, "word string", value)
    return getattr(RedisMapState, MAPS[kind])(*topic_of(url, table))


def topic_of(url: str, table: str) -> tuple[str, str]:
    """Brokers and topic, or a database of Redis and a hash: of "host:port#prefix" and a table's name."""
    bootstrap, _, prefix = url.partition("#")
    return bootstrap, f"{prefix}-{table}"


@dataclass(frozen=True)
class SteppedStore(MakesWindows):
    """The store of a window whose state passes through the hook."""

    name: str
    store: MakesWindows

    def windowState(self, config: Any, name: str) -> Stepped:
        return Stepped(self.name, self.store.windowState(config, name))


class Listed(CombinerAggregator):
    """All that was added, by name: row and number. What a sum would hide stands here."""

    def init(self, tuple: Any) -> str:
        return f"{tuple[0]}#{tuple[1]}"

    def combine(self, val1: str, val2: str) -> str:
        return f"{val1} {val2}"

    def zero(self) -> str:
        return ""


@dataclass(frozen=True)
class Cell:
    """``spout`` may name a class in place of the kind's own."""

    spout: str
    functions: str
    kind: str
    source: Any = None

    def __str__(self) -> str:
        return f"{self.spout}, {self.functions}, {self.kind}"

    def states(self) -> tuple[str, ...]:
        """Their names and tables. A map is measured twice, by the general path and combined by the store itself;
        of two batch states one is visible before the other."""
        if self.kind in MAPS:
            return ("listed", "sums")
        return ("first_rows", "more_rows") if self.kind == "batch" else ("first_rows",)

    def topology(self, url: str, folder: str, last: int) -> Any:
        topology = TridentTopology()
        keys, value = FUNCTIONS[self.functions]
        spout = (self.source or SPOUTS[self.spout])(last, folder)
        stream = topology.newStream("rows", spout).parallelismHint(PARTITIONS)
        fields = ["of", "name", "number", "sender", "txid", "try"]
        stream = stream.each(fields, keys(), ["id string", "word string", "place bigint"])
        stream = stream.each(["of", "txid", "try"], value(), "n bigint")
        stream = stream.project(["txid", "try", "of", "n", "id", "word", "sender", "place"]).peek(Noted(folder))
        add = self._window if self.kind == "window" else self._maps if self.kind in MAPS else self._rows
        add(stream, url)
        return topology.build()

    def _window(self, stream: Any, url: str) -> None:
        """A window that never ends: its table holds every tuple that has entered."""
        (name,) = self.states()
        config, store = TumblingCountWindow.of(1_000_000), SteppedStore(name, SqlWindowsStoreFactory(url, name))
        made = stream.partitionBy("sender").window(config, store, ["of", "n"], Count(), "count", stateName=name)
        made.parallelismHint(PARTITIONS)

    def _rows(self, stream: Any, url: str) -> None:
        route = "id" if self.functions == "other keys" and self.kind != "sequence" else "sender"
        stream = stream.partitionBy(route)
        for name in self.states():
            made, updater = upserted(url, name) if self.kind == "upsert" else (ROWS[self.kind](url, name), RowUpdater())
            factory = Stepped(name, made)
            stream.partitionPersist(factory, NAMES, InHalves(updater)).parallelismHint(PARTITIONS)

    def _maps(self, stream: Any, url: str) -> None:
        words = stream.groupBy("word")
        combined = {"listed": (Listed(), ["of", "n"], "total string"), "sums": (Sum(), ["n"], "total bigint")}
        for name, (combiner, fields, value) in combined.items():
            grouped = words.aggregate(fields, combiner, value.split()[0]).partitionBy("word")
            updater = InHalves(MapCombinerAggStateUpdater(combiner, "word", "total"))
            factory = Stepped(name, map_state(url, self.kind, name, value))
            grouped.partitionPersist(factory, ["word", "total"], updater).parallelismHint(PARTITIONS)


@dataclass(frozen=True)
class CellStart(Start):
    """One start of a driver with a cell's topology."""

    cell: Cell = Cell("transactional", "deterministic", "opaque")

    def topology(self) -> Any:
        return self.cell.topology(self.url, str(self.folder), self.last)
