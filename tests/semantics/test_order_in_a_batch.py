"""The order in which the updates and queries of states run within a batch: Storm's, by bolt and then by the graph."""

from __future__ import annotations

from typing import Any

import pytest

from trident_py import TridentTopology
from trident_py.operations.builtin import Count, MapGet, Sum
from trident_py.state import StateUpdater
from trident_py.testing import Crashing, LoggingBackingMap, MemoryMapState, collect, failing, stored

from .support import Batches, Collects, bag, bags, both, both_always, current, run

OPAQUE = "opaque"


class Put(StateUpdater):
    """Writes the second field under the first; emits both."""

    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        state.multiPut([[each[0]] for each in tuples], [each[1] for each in tuples])
        for each in tuples:
            collector.emit((each[0], each[1]))


def source(topology: TridentTopology, batches: Any, name: str = "s") -> Any:
    return topology.newStream(name, Batches(["k", "v"], batches))


@both_always
def test_a_query_defined_behind_an_update_reads_what_the_batch_has_written(cluster: Any) -> None:
    topology = TridentTopology()
    stream = source(topology, [[("a", 1), ("b", 2)], [("a", 3)]])
    state = stream.partitionPersist(MemoryMapState.Factory(), ["k", "v"], Put())
    collect(stream.stateQuery(state, "k", MapGet(), "got").project(["k", "got"]), "out")
    assert bags(run(cluster, topology).collected("out")) == {1: bag([("a", 1), ("b", 2)]), 2: bag([("a", 3)])}


@both
def test_a_query_nearer_to_the_bolts_input_than_the_update_reads_what_was_before_the_batch(cluster: Any) -> None:
    """Storm's order is breadth first: the merge of the aggregate and the query come before the update."""
    topology = TridentTopology()
    grouped = source(topology, [[("a", 1), ("b", 2)], [("a", 3)]]).groupBy("k")
    state = grouped.persistentAggregate(MemoryMapState.Factory(), "v", Sum(), "sum").parallelismHint(2)
    collect(grouped.stateQuery(state, "k", MapGet(), "got").project(["k", "got"]), "out")
    assert bags(run(cluster, topology).collected("out")) == {1: bag([("a", None), ("b", None)]), 2: bag([("a", 1)])}


@both
def test_a_query_behind_an_aggregate_of_its_own_reads_what_the_batch_has_written(cluster: Any) -> None:
    topology = TridentTopology()
    grouped = source(topology, [[("a", 1), ("b", 2)], [("a", 3)]]).groupBy("k")
    state = grouped.persistentAggregate(MemoryMapState.Factory(), "v", Sum(), "sum").parallelismHint(2)
    counted = grouped.aggregate(Count(), "n").stateQuery(state, "k", MapGet(), "got")
    collect(counted, "out")
    assert bags(run(cluster, topology).collected("out")) == {1: bag([("a", 1, 1), ("b", 1, 2)]), 2: bag([("a", 1, 4)])}


def test_an_aggregate_in_the_states_bolt_completes_in_the_commit_phase(cluster: Any) -> None:
    """What it emits reaches a second state only after the first one has committed."""
    topology, calls = TridentTopology(), []
    first, second = LoggingBackingMap.Factory(OPAQUE), LoggingBackingMap.Factory(OPAQUE)
    stream = source(topology, [[("a", 1)]])
    stream.partitionPersist(first, ["k", "v"], Put(), stateName="first")
    seen = stream.partitionAggregate(["k", "v"], Collects(), "all").map(lambda row: (calls.append(len(first.calls)),))
    seen.partitionPersist(second, ["all"], Nothing(), stateName="second")
    run(cluster, topology)
    assert calls == [len(first.calls)] and first.calls[-1] == ["commit", 1]


class Nothing(StateUpdater):
    def updateState(self, state: Any, tuples: Any, collector: Any) -> None: ...


@pytest.mark.parametrize(("failed", "begun"), [("second", [2, 2]), ("first", [2, 1])])
def test_two_states_of_one_bolt_commit_in_the_order_of_their_definition(
    cluster: Any, failed: str, begun: list[int]
) -> None:
    """The first has committed when the second one fails; the second is not called when the first one fails."""
    topology = TridentTopology()
    factories = {name: LoggingBackingMap.Factory(OPAQUE) for name in ("first", "second")}
    stream = source(topology, [[("a", 1)]]).filter(lambda k, v: True)
    for name, factory in factories.items():
        made = Crashing(factory, "commit", {(1, 0)}) if name == failed else factory
        stream.partitionPersist(made, ["k", "v"], Put(), stateName=name)
    assert run(cluster, topology).attempts == {1: 1}
    assert [factory.calls.count(["beginCommit", 1]) for factory in factories.values()] == begun


def test_states_of_different_bolts_do_not_wait_for_each_other(cluster: Any) -> None:
    """As in Storm: to the second state's bolt nothing is missing when the first one's fails."""
    topology = TridentTopology()
    first, second = LoggingBackingMap.Factory(OPAQUE), LoggingBackingMap.Factory(OPAQUE)
    stream = source(topology, [[("a", 1)]])
    failed = Crashing(first, "commit", {(1, 0)})
    stream.groupBy("k").persistentAggregate(failed, "v", Sum(), "sum", stateName="first")
    stream.persistentAggregate(second, "v", Sum(), "sum", stateName="second")
    assert run(cluster, topology).attempts == {1: 1}
    assert [factory.calls.count(["beginCommit", 1]) for factory in (first, second)] == [2, 2]


@pytest.mark.parametrize("where", ["put", "commit"])
def test_a_query_that_comes_before_the_update_sees_what_a_failed_attempt_has_left(cluster: Any, where: str) -> None:
    """As in Storm: a memory state's writes stay when its commit fails."""
    topology = TridentTopology()
    grouped = source(topology, [[("a", 1)]]).groupBy("k")
    state = grouped.persistentAggregate(
        Crashing(MemoryMapState.Factory(), where, {(1, 0)}), "v", Sum(), "sum", stateName="sums"
    )
    collect(grouped.stateQuery(state, "k", MapGet(), "got").project(["k", "got"]), "out")
    assert bags(run(cluster, topology).collected("out")) == {1: bag([("a", 1)])}


def test_a_query_of_another_component_runs_in_its_own_batch_phase(cluster: Any) -> None:
    topology = TridentTopology()
    state = source(topology, [[("a", 1)]]).partitionPersist(MemoryMapState.Factory(), ["k", "v"], Put())
    other = topology.newStream("t", Batches("k", [[("a",)]]))
    other.stateQuery(state, "k", MapGet(), "got").each([], failing(lambda: [()], set()), [])
    plan = topology.plan()
    from trident_py.engine.lowering import lower

    made = [lower(part, plan) for part in plan.components()]
    assert [[stage.commits for level in each.levels for stage in level] for each in made] == [
        [False, True], [False, False],
    ]  # fmt: skip


def test_new_values_sent_on_to_a_query_of_their_own_state_do_not_hang(cluster: Any) -> None:
    """Storm hangs: the bolt waits for itself. Here the query runs when the update is over."""
    topology = TridentTopology()
    state = source(topology, [[("a", 1)], [("a", 2)]]).partitionPersist(
        MemoryMapState.Factory(), ["k", "v"], Put(), ["k", "v"]
    )
    asked = state.newValuesStream().partitionBy("k").stateQuery(state, "k", MapGet(), "got").parallelismHint(2)
    collect(asked.project(["k", "got"]), "out")
    assert bags(run(cluster, topology).collected("out")) == {1: bag([("a", 1)]), 2: bag([("a", 2)])}


def test_both_clusters_leave_the_same_state(cluster: Any) -> None:
    topology = TridentTopology()
    factory = LoggingBackingMap.Factory(OPAQUE)
    grouped = source(topology, [[("a", 1), ("b", 2)], [("a", 3)]]).groupBy("k")
    grouped.persistentAggregate(factory, "v", Sum(), "sum")
    run(cluster, topology)
    assert current(stored(factory)) == {("a",): 4, ("b",): 2}
