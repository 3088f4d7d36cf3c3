"""What operations may emit: as many values as there are fields, and tuples, not tables."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from trident_py import LocalCluster, TopologyError, TridentTopology
from trident_py.operations import BaseAggregator, BaseFunction
from trident_py.spouts import IBatchSpout
from trident_py.state import BaseQueryFunction, BaseStateUpdater
from trident_py.testing import FixedBatchSpout, MemoryMapState, collect


class Twice(BaseFunction):
    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([tuple[0], tuple[0]])


class Gather(BaseAggregator):
    def init(self, batchId: Any, collector: Any) -> Any: ...

    def aggregate(self, value: Any, tuple: Any, collector: Any) -> Any: ...

    def complete(self, value: Any, collector: Any) -> None:
        collector.emit([1, 2])


class Update(BaseStateUpdater):
    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        collector.emit([1, 2])


class Ask(BaseQueryFunction):
    def batchRetrieve(self, state: Any, tuples: Any) -> Any:
        return [1] * len(tuples)

    def execute(self, tuple: Any, result: Any, collector: Any) -> None:
        collector.emit([1, 2])


class Spout(IBatchSpout):
    def emitBatch(self, batchId: int, collector: Any) -> None:
        collector.emit([1, 2])

    def isExhausted(self) -> bool:
        return False

    def getOutputFields(self) -> Any:
        return "n"


def seen(stream: Any) -> Any:
    return collect(stream, "seen")


EMITTING: dict[str, Any] = {
    "function": lambda s: s.each("n", Twice(), "x"),
    "map": lambda s: s.map(lambda tuple: (1, 2)),
    "flatMap": lambda s: s.flatMap(lambda tuple: [(1, 2)]),
    "aggregate": lambda s: s.aggregate("n", Gather(), "x"),
    "grouped aggregate": lambda s: s.groupBy("n").aggregate("n", Gather(), "x"),
    "updater": lambda s: s.partitionPersist(MemoryMapState.Factory(), "n", Update(), "x").newValuesStream(),
    "query": lambda s: s.stateQuery(s.topology.newStaticState(MemoryMapState.Factory()), "n", Ask(), "x"),
    "spout": lambda s: s.topology.newStream("t", Spout()),
}


def failed(define: Any) -> TopologyError:
    topology = TridentTopology()
    seen(define(topology.newStream("s", FixedBatchSpout("n", 2, (3,)))))
    with LocalCluster() as cluster, pytest.raises(TopologyError) as caught:
        cluster.submitTopology("t", {}, topology.build()).awaitTermination(30)
    return caught.value


@pytest.mark.parametrize("place", EMITTING)
def test_more_values_than_fields_are_an_error_and_not_cut_off(place: str) -> None:
    assert re.search(r"emitted \d values for the \d fields|Expected 1 fields but got 2", str(failed(EMITTING[place])))


def test_without_fields_a_result_is_a_pass_whatever_it_holds() -> None:
    topology = TridentTopology()
    seen(topology.newStream("s", FixedBatchSpout("n", 2, (3,))).each("n", Twice(), []))
    with LocalCluster() as cluster:
        running = cluster.submitTopology("t", {}, topology.build())
        assert running.awaitTermination(30)
    assert running.collected("seen") == {1: [(3,)]}


FRAMES = [pd.DataFrame({"a": [1]}), pd.Series([1]), pd.Index([1]), pa.table({"a": [1]}), pa.array([1])]


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: type(frame).__name__)
@pytest.mark.parametrize("call", ["each", "map", "flatMap"])
def test_a_table_is_no_tuple(frame: Any, call: str) -> None:
    define = {
        "each": lambda s: s.each("n", lambda n: frame, "x"),
        "map": lambda s: s.map(lambda tuple: frame),
        "flatMap": lambda s: s.flatMap(lambda tuple: frame),
    }[call]
    assert re.search(r"emitted .*emit the values of one tuple|returned .*an iterable", str(failed(define)), re.S)
