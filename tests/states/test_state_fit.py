"""A state without the interface that its updater or query needs is refused by name, before it is called."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from trident_py import Fields, LocalCluster, LocalDRPC, TopologyError, TridentTopology
from trident_py.errors import DefinitionError, StateError
from trident_py.operations.builtin import MapGet, SnapshotGet, Sum, TupleCollectionGet
from trident_py.state import IBackingMap, OpaqueMap, State, StateFactory
from trident_py.testing import FixedBatchSpout


class Heap(IBackingMap):
    def multiGet(self, keys: Any) -> list[Any]:
        return [None for _ in keys]

    def multiPut(self, keys: Any, vals: Any) -> None:
        pass


class Plain(State):
    def beginCommit(self, txid: int | None) -> None:
        pass

    def commit(self, txid: int | None) -> Any:
        pass


class Delegating:
    """A state that has its methods from another object."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Making(StateFactory):
    """``kind``: "map" or "plain"."""

    def __init__(self, kind: str, typed: bool = False) -> None:
        self.made, self.typed = kind, typed

    @property
    def state_type(self) -> type[State] | None:
        return {"map": OpaqueMap, "plain": Plain}[self.made] if self.typed else None

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> State:
        return OpaqueMap.build(Heap()) if self.made == "map" else Plain()


def aggregated(state: StateFactory, grouped: bool) -> TridentTopology:
    topology = TridentTopology()
    stream = topology.newStream("in", FixedBatchSpout(Fields("n bigint"), 2, (1,), (2,), (3,)))
    if grouped:
        stream.groupBy("n").persistentAggregate(state, Fields("n"), Sum(), Fields("sum"))
    else:
        stream.persistentAggregate(state, Fields("n"), Sum(), Fields("sum"))
    return topology


GLOBAL = "A persistentAggregate without groupBy needs a Snapshottable, such as "
WRAPPED = "SnapshottableMap(OpaqueMap.build(...), Values('$GLOBAL$'))"
GROUPED = "A persistentAggregate after groupBy needs a MapState, such as OpaqueMap.build(backing map)"
CASES = [("map", False, GLOBAL + WRAPPED), ("plain", False, GLOBAL + WRAPPED), ("plain", True, GROUPED)]


@pytest.mark.parametrize(("kind", "grouped", "why"), CASES)
@pytest.mark.parametrize("on", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_an_aggregate_names_the_interface_that_it_needs(
    kind: str, grouped: bool, why: str, on: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    cluster = LocalCluster(str(tmp_path)) if on == "local" else request.getfixturevalue("spark_cluster")()
    with pytest.raises((TopologyError, StateError), match=re.escape(why)):
        cluster.submitTopology("t", {}, aggregated(Making(kind), grouped).build()).awaitTermination(60)


@pytest.mark.parametrize(("kind", "grouped", "why"), CASES)
def test_a_factory_that_tells_its_class_is_refused_when_it_is_used(kind: str, grouped: bool, why: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(why)):
        aggregated(Making(kind, typed=True), grouped)


@pytest.mark.parametrize(("query", "state", "why"), [
    (MapGet(), Plain(), "has no multiGet(). MapGet needs a ReadOnlyMapState"),
    (SnapshotGet(), OpaqueMap.build(Heap()),
     f"has no get(). SnapshotGet needs a ReadOnlySnapshottable, such as {WRAPPED}"),
    (TupleCollectionGet(), Plain(), "has no getTuples(). TupleCollectionGet needs an ITupleCollection"),
], ids=lambda each: type(each).__name__)  # fmt: skip
def test_a_query_names_the_interface_that_it_needs(query: Any, state: Any, why: str) -> None:
    with pytest.raises(StateError, match=re.escape(f"of class {type(state).__name__}, which {why}")):
        query.batchRetrieve(state, [()])


def test_a_request_of_the_wrong_state_names_the_interface_too() -> None:
    topology = TridentTopology()
    with LocalDRPC() as drpc, LocalCluster() as cluster:
        state = topology.newStaticState(Making("map"))
        topology.newDRPCStream("ask", drpc).stateQuery(state, SnapshotGet(), Fields("sum")).project("sum")
        cluster.submitTopology("t", {}, topology.build())
        with pytest.raises(Exception, match=re.escape(WRAPPED)):
            drpc.execute("ask", "x")


def test_a_state_that_delegates_its_methods_fits() -> None:
    assert MapGet().batchRetrieve(Delegating(OpaqueMap.build(Heap())), []) == []
