"""The fluent builder: it makes nodes, runs nothing, and shares nothing with what was built before."""

from __future__ import annotations

from typing import Any

import pytest
import users_code
from semantics.support import Collects, Joined

from trident_py import DefinitionError, Fields, LocalCluster, TridentTopology
from trident_py.model.plan import ProcessorNode
from trident_py.operations import Assembly
from trident_py.operations.builtin import Count
from trident_py.state import StateSpec
from trident_py.testing import FixedBatchSpout, MemoryMapState, Split, collect
from trident_py.topology import Stream
from trident_py.topology.arguments import arguments

AGG = Count()


@pytest.mark.parametrize(
    ("args", "given", "expected"),
    [
        (("a", AGG, "n"), {}, ["a", AGG, "n"]),
        ((AGG, "n"), {}, [None, AGG, "n"]),
        ((None, AGG, "n"), {}, [None, AGG, "n"]),
        ((AGG,), {"functionFields": "n"}, [None, AGG, "n"]),
        ((), {"agg": AGG, "functionFields": ["n"]}, [None, AGG, ["n"]]),
    ],
)
def test_storms_overloads_are_told_apart_by_type(args: tuple, given: dict, expected: list) -> None:
    call = arguments(Stream.aggregate, args, given)
    assert [call.get(name) for name in ("inputFields", "agg", "functionFields")] == expected


def test_a_stream_object_does_not_change_when_more_is_built_on_it() -> None:
    stream = TridentTopology().newStream("s", FixedBatchSpout("a", 1))
    one, two = stream.each("a", Split(), "x"), stream.each("a", Split(), "y")
    assert [str(s.getOutputFields()) for s in (stream, one, two)] == ["[a]", "[a, x]", "[a, y]"]


def test_a_built_topology_does_not_change_when_the_builder_goes_on() -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout("a", 1, ("x y",)))
    collect(stream, "before")
    built = topology.build()
    collect(stream.each("a", Split(), "w"), "after")
    with LocalCluster() as cluster:
        running = cluster.submitTopology("t", {}, built)
        assert running.awaitTermination(30)
        assert (running.collected("before"), running.collected("after")) == ({1: [("x y",)]}, {})


def test_new_stream_takes_a_snapshot_of_the_spout() -> None:
    spout = FixedBatchSpout("a", 1, (1,))
    topology = TridentTopology()
    topology.newStream("s", spout)
    spout.setCycle(True)
    with LocalCluster() as cluster:
        assert cluster.submitTopology("t", {}, topology.build()).awaitTermination(30)


def test_a_topology_may_run_twice_and_nothing_is_shared() -> None:
    topology = TridentTopology()
    collect(topology.newStream("s", FixedBatchSpout("a", 1, (1,), (2,))), "out")
    built = topology.build()
    with LocalCluster() as cluster:
        for name in ("one", "two"):
            running = cluster.submitTopology(name, {}, built)
            assert running.awaitTermination(30)
            assert running.collected("out") == {1: [(1,)], 2: [(2,)]}


class Named(MemoryMapState.Factory):
    table = "words"

    @property
    def stateName(self) -> Any:  # type: ignore[override]
        return None


def state_name(factory: Any, **given: Any) -> str:
    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout("a", 1)).persistentAggregate(factory, Count(), "n", **given)
    return next(n.state.name for n in topology.plan().nodes if isinstance(n, ProcessorNode) and n.state is not None)


def test_a_state_is_named_as_given_or_by_its_factory_or_by_its_table() -> None:
    factory = MemoryMapState.Factory()
    assert state_name(factory, stateName="mine") == "mine"
    assert state_name(factory) == factory.stateName
    assert state_name(Named()) == "words"
    assert state_name(StateSpec(Named(), 2)) == "words"


class Prices:
    class Factory(users_code.Factory): ...


def test_a_state_is_named_by_what_is_around_its_factory() -> None:
    class Factory(users_code.Factory): ...

    class Stations:
        class Factory(users_code.Factory): ...

    state = MemoryMapState.Factory().makeState({}, None, 0, 1)
    own = "test_a_state_is_named_by_what_is_around_its_factory"
    made = {Prices.Factory: "Prices.Factory", Stations.Factory: "Stations.Factory", Factory: f"{own}.Factory",
            users_code.Factory: "users_code.Factory"}  # fmt: skip
    assert {kind: state_name(kind(state)) for kind in made} == made


def test_which_aggregators_take_which_way() -> None:
    def operations(kind: Any) -> list[str]:
        topology = TridentTopology()
        topology.newStream("s", FixedBatchSpout("a", 1)).groupBy("a").aggregate("a", kind(), "n")
        return [n.spec.operation for n in topology.plan().nodes if isinstance(n, ProcessorNode)]

    assert [len(operations(kind)) for kind in (Count, Joined, Collects)] == [2, 1, 1]
    assert operations(Count) == ["aggregate Count by [a] (partial)", "aggregate Count by [a] (merge)"]


def test_a_chain_of_combiners_is_partial_and_one_of_another_kind_ends_that() -> None:
    def stages(*kinds: Any) -> int:
        topology = TridentTopology()
        chain = topology.newStream("s", FixedBatchSpout("a", 1)).chainedAgg()
        for i, kind in enumerate(kinds):
            chain = chain.aggregate(kind(), f"f{i}")
        chain.chainEnd()
        return sum(isinstance(node, ProcessorNode) for node in topology.plan().nodes)

    assert (stages(Count, Count), stages(Count, Joined), stages(Joined, Count)) == (2, 1, 1)


def test_count_gives_its_output_a_type_unless_one_is_given() -> None:
    stream = TridentTopology().newStream("s", FixedBatchSpout("a", 1))
    assert stream.aggregate(Count(), "n").getOutputFields() == Fields("n bigint")
    assert stream.aggregate(Count(), "n int").getOutputFields() == Fields("n int")


def test_apply_assembly_gives_the_stream_to_the_assembly() -> None:
    class Twice:
        def apply(self, stream: Any) -> Any:
            return stream.topology.merge(stream, stream)

    stream = TridentTopology().newStream("s", FixedBatchSpout("a", 1))
    assert stream.applyAssembly(Twice()).getOutputFields() == Fields("a")


def test_static_states_may_share_a_name_states_that_are_updated_may_not() -> None:
    factory = MemoryMapState.Factory()
    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout("a", 1))
    for _ in range(2):
        topology.newStaticState(factory)
    stream.persistentAggregate(factory, Count(), "n")
    topology.build()
    stream.persistentAggregate(factory, Count(), "n")
    with pytest.raises(DefinitionError, match="two states, both named"):
        topology.build()


def test_hints_for_storms_scheduler_are_accepted() -> None:
    topology = TridentTopology().setResourceDefaults({"cpu": 10}).setMasterCoordResources({"cpu": 10})
    topology.newStream("s", FixedBatchSpout("a", 1)).setCPULoad(10).setMemoryLoad(128)
    assert topology.build()


def test_a_cluster_keeps_no_topology_that_is_over() -> None:
    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout("a", 1, (1,)))
    with LocalCluster() as cluster:
        for i in range(5):
            assert cluster.submitTopology(f"t{i}", {}, topology.build()).awaitTermination(30)
        assert len(cluster._running) == 1


def kept(stream: Stream) -> Stream:
    return stream.project("a")


def test_an_assembly_may_be_any_callable_of_a_stream() -> None:
    stream = TridentTopology().newStream("s", FixedBatchSpout(["a", "b"], 1))
    assert stream.applyAssembly(kept).getOutputFields() == Fields("a")
    for other in ("project", Assembly, None):
        with pytest.raises(DefinitionError, match="applyAssembly takes an Assembly, or a callable of a stream"):
            stream.applyAssembly(other)  # type: ignore[arg-type]


class Notes(MemoryMapState.Factory):
    stateName = None  # type: ignore[assignment]


def test_a_state_without_a_name_has_that_of_its_class_wherever_it_stands() -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout(["a"], 1))
    for _ in range(2):
        stream = stream.each("a", lambda a: True)
        stream.groupBy("a").persistentAggregate(Notes(), Count(), "n")
    assert [state.name for _, state in topology.plan().updates()] == ["Notes", "Notes-2"]


def test_a_merge_tells_which_fields_a_stream_lacks(caplog: pytest.LogCaptureFixture) -> None:
    topology = TridentTopology()
    one, two = (topology.newStream(name, FixedBatchSpout(["a", "b"], 1)) for name in "xy")
    topology.merge(["a", "b"], one, two)
    assert not caplog.records
    topology.merge(["a", "b", "c"], one, two.project("a"))
    told = [record.getMessage().removeprefix("merge: the stream of ") for record in caplog.records]
    assert told == ["[a, b] has no value for [c]", "[a] has no value for [b, c]"]


def test_explain_tells_of_a_hint_that_something_limits() -> None:
    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout(["a"], 1)).parallelismHint(3).filter("a", bool)
    assert "stage 1: level 0, 1 partition (hint 3, limited by a spout or a state): #0" in topology.explain()
