"""Topologies of which a comparison shows the batch where a key diverged. DIVERGING_STATES is their states.yaml.

`Lines.emitted` is what the sources give: a test may change it behind a run.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar

import states
from states import RowUpdater
from trident_py import TridentTopology
from trident_py.operations.builtin import Count
from trident_py.spouts import IOpaquePartitionedTridentSpout, IPartitionedTridentSpout
from trident_py.testing import FixedBatchSpout


class _Coordinator:
    def isReady(self, txid: int) -> bool:
        return True

    def getPartitionsForBatch(self) -> Any:
        return sorted(Lines.emitted)

    def close(self) -> None: ...


class _Emitter:
    def getOrderedPartitions(self, listed: Any) -> list[str]:
        return list(listed)

    def _emit(self, collector: Any, partition: str, begin: int) -> int:
        lines = Lines.emitted[partition][begin : begin + 2]
        for line in lines:
            collector.emit([line])
        return begin + len(lines)

    def reEmitPartitionBatch(self, tx: Any, collector: Any, partition: str, metadata: Any) -> None:
        self._emit(collector, partition, metadata[0])

    def emitBatchNew(self, tx: Any, collector: Any, partitions: Any, last: Any) -> dict[str, Any]:
        begins = {each: (last.get(each) or [0, 0])[1] for each in partitions}
        return {each: [begin, self._emit(collector, each, begin)] for each, begin in begins.items()}


class Lines:
    """The lines of two partitions, two of each in a batch."""

    emitted: ClassVar[dict[str, list[str]]] = {}

    def getOutputFields(self) -> str:
        return "line"

    def getCoordinator(self, *arguments: Any) -> Any:
        return _Coordinator()

    def getEmitter(self, *arguments: Any) -> Any:
        return _Emitter()

    def isExhaustedAt(self, txid: int) -> bool:
        return 2 * (txid - 1) >= max(map(len, Lines.emitted.values()))


class Transactional(Lines, IPartitionedTridentSpout): ...


class Opaque(Lines, IOpaquePartitionedTridentSpout): ...


class Forgetful(Lines, IPartitionedTridentSpout):
    kind = "non-transactional"


def _count(spout: Any) -> TridentTopology:
    topology = TridentTopology()
    words = topology.newStream("lines", spout).parallelismHint(2).each("line", lambda line: line.split(), "word")
    words.groupBy("word").persistentAggregate(_states()["c"], Count(), "count")
    return topology


def _states() -> Any:
    return states.load(os.environ["DIVERGING_STATES"])


def transactional() -> TridentTopology:
    return _count(Transactional())


def opaque() -> TridentTopology:
    return _count(Opaque())


def forgetful() -> TridentTopology:
    return _count(Forgetful())


def fixed() -> TridentTopology:
    return _count(FixedBatchSpout("line", 2, ("a b",), ("b",), ("a c",), ("b",), ("c",)))


def totals() -> TridentTopology:
    """A count of all lines, under the one key of a global aggregate."""
    topology = TridentTopology()
    topology.newStream("lines", Transactional()).persistentAggregate(_states()["c"], Count(), "count")
    return topology


def rows() -> TridentTopology:
    """Lines as rows of two columns."""
    topology = TridentTopology()
    lines = topology.newStream("lines", Transactional()).each("line", lambda line: [line.split()], ["id", "text"])
    lines.project(["id", "text"]).partitionPersist(_states()["c"], ["id", "text"], RowUpdater())
    return topology


def behind() -> TridentTopology:
    """A count of what another state has counted."""
    topology = TridentTopology()
    words = topology.newStream("lines", Transactional()).each("line", lambda line: line.split(), "word")
    counted = words.groupBy("word").persistentAggregate(_states()["first"], Count(), "count").newValuesStream()
    counted.groupBy("word").persistentAggregate(_states()["c"], Count(), "times")
    return topology
