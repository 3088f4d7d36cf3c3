"""Every state of the project behind two spouts, in one topology: one sequence of txids, one checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from states.sql import InsertIgnoreState, RowUpdater, SqlMapState
from trident_py import Fields, TridentTopology
from trident_py.operations import CombinerAggregator
from trident_py.operations.builtin import Count, Sum

from .hooks import Kill, Passing, Wait, Watched
from .spouts import ROW, Drifting, Repeating

SUM = Fields("total bigint")


class Plus(CombinerAggregator):
    """Sum once more, as anybody would write it: unlike the built-in, the store cannot add by itself."""

    def init(self, tuple: Any) -> int:
        return tuple[0]

    def combine(self, val1: int, val2: int) -> int:
        return val1 + val2

    def zero(self) -> int:
        return 0


def stores(folder: Path) -> dict[str, Any]:
    """The states by name, each in a file of its own: two can be inside a transaction at the same time."""

    def url(name: str) -> str:
        return f"sqlite:///{folder}/{name}.db"

    word = "word string"
    return {
        "rows": InsertIgnoreState(url("rows"), "rows", key="id", columns=ROW),
        "trans": SqlMapState.transactional(url("trans"), "trans", key=word, value=SUM),
        "opaque": SqlMapState.opaque(url("opaque"), "opaque", key=word, value=SUM),
        "plain": SqlMapState.nonTransactional(url("plain"), "plain", key=word, value="total bigint"),
        "drift": SqlMapState.opaque(url("drift"), "drift", key=word, value=SUM),
    }


@dataclass(frozen=True)
class Shape:
    """What may differ between two starts of the same topology. ``skipped`` batches, or so many ``drifted`` numbers
    of each partition, are no longer in the source."""

    last: int
    state_partitions: int = 2
    spout_partitions: int = 2
    skipped: int = 0
    drifted: tuple[int, ...] = (0, 0)
    wait: Wait = field(default_factory=Wait)


def build(folder: Path, shape: Shape, kill: Kill, wrap: Any = None) -> Any:
    """rows: everything of both spouts. trans, opaque, plain: the repeating spout. drift: the drifting one.

    ``wrap(name, factory)`` may put something of a test's own around a state.
    """
    watched = {name: Watched(name, factory, kill) for name, factory in stores(folder).items()}
    if wrap is not None:
        watched = {name: wrap(name, factory) for name, factory in watched.items()}
    of = shape.state_partitions
    topology = TridentTopology()

    def emits(txid: int) -> None:
        shape.wait.at("spout", txid)

    repeating = Repeating(shape.last, shape.skipped, lambda txid: kill.at("log", txid), emits)
    repeated = topology.newStream("repeating", repeating).parallelismHint(shape.spout_partitions)
    repeated = repeated.each("id", Passing(kill, shape.wait), Fields("passed")).project(ROW.names)
    drifting = topology.newStream("drifting", Drifting(shape.last, str(folder), tuple(shape.drifted)))
    drifting = drifting.parallelismHint(shape.spout_partitions)
    everything = topology.merge(repeated, drifting).partitionBy("id")
    everything.partitionPersist(watched["rows"], ROW.names, RowUpdater()).parallelismHint(of)
    words = repeated.groupBy("word")
    words.persistentAggregate(watched["trans"], "n", Plus(), "total").parallelismHint(of)
    words.persistentAggregate(watched["opaque"], "n", Sum(), "total").parallelismHint(of)
    words.persistentAggregate(watched["plain"], Count(), "total").parallelismHint(of)
    drifting.groupBy("word").persistentAggregate(watched["drift"], "n", Plus(), "total").parallelismHint(of)
    return topology.build()
