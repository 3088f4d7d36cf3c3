"""What a DRPC stream may not do: refused when it is defined or built."""

from __future__ import annotations

from typing import Any

import pytest

from states.kafka import TopicState
from trident_py import DefinitionError, LocalCluster, LocalDRPC, TridentTopology
from trident_py.operations.builtin import Count, MapGet
from trident_py.state import Location, Reading, State, StateFactory
from trident_py.testing import FeederBatchSpout, FixedBatchSpout, MemoryMapState

from .functions import word_count


@pytest.mark.parametrize("name", ["", None, 3, "a/b", LocalDRPC()])
def test_a_function_has_a_name_that_a_path_can_hold(name: Any) -> None:
    with pytest.raises(DefinitionError, match="newDRPCStream's first argument must be the name of a function"):
        TridentTopology().newDRPCStream(name)


def test_the_second_argument_is_a_local_drpc() -> None:
    with pytest.raises(DefinitionError, match="takes a LocalDRPC as its second argument, got 'words'"):
        TridentTopology().newDRPCStream("f", "words")  # type: ignore[arg-type]


def test_one_function_has_one_stream() -> None:
    topology = TridentTopology()
    topology.newDRPCStream("f")
    topology.newDRPCStream("f")
    with pytest.raises(DefinitionError, match="two DRPC streams answer the function 'f'"):
        topology.build()


def test_a_function_may_have_the_name_of_a_spout() -> None:
    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout("v", 1, (1,))).filter(lambda *values: True)
    topology.newDRPCStream("s")
    topology.build()


def test_a_drpc_stream_cannot_be_joined_with_the_stream_of_a_spout() -> None:
    topology = TridentTopology()
    people = topology.newStream("people", FixedBatchSpout("name", 1, ("ann",)))
    topology.join(topology.newDRPCStream("f"), "args", people, "name", ["name"])
    with pytest.raises(DefinitionError, match="Cannot join DRPC stream with streams originating from other spou") as e:
        topology.build()
    assert "spout people: FixedBatchSpout" in str(e.value) and "stateQuery" in str(e.value)


def test_two_functions_cannot_be_joined() -> None:
    topology = TridentTopology()
    topology.merge(topology.newDRPCStream("f"), topology.newDRPCStream("g"))
    with pytest.raises(DefinitionError, match="the DRPC streams 'f', 'g' are joined"):
        topology.build()


def test_a_drpc_stream_updates_no_state() -> None:
    """Storm builds it and refuses it when it is submitted (section 25)."""
    topology = TridentTopology()
    topology.newDRPCStream("f").groupBy("args").persistentAggregate(MemoryMapState.Factory(), Count(), "n")
    with pytest.raises(DefinitionError, match="the DRPC stream 'f' would update the state 'memory-"):
        topology.build()


class Unsaid:
    """As `StateFactory`, from which a port need not derive."""

    stateName = "kept-here"

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> State:
        raise AssertionError("made")


class Derived(Unsaid, StateFactory):
    """Does not say where the data is either."""


class WritesOnly(Derived):
    location = Location(frozenset(["a store"]), frozenset(["a table"]))
    reading = Reading.NOTHING


@pytest.mark.parametrize("factory", [Unsaid, Derived, WritesOnly])
def test_a_state_that_cannot_be_read_from_the_driver_is_refused(factory: Any) -> None:
    topology = TridentTopology()
    counts = word_count(topology, FeederBatchSpout("sentence"), factory())
    topology.newDRPCStream("f").stateQuery(counts, "args", MapGet(), "n")
    with pytest.raises(DefinitionError, match="asks the state 'kept-here', which cannot be read from the driver"):
        topology.build()


def test_the_states_that_only_write_cannot_be_read() -> None:
    assert TopicState("localhost:1", "t", value="v").reading is Reading.NOTHING


def test_another_running_topology_keeps_its_function() -> None:
    drpc = LocalDRPC()

    def built() -> Any:
        topology = TridentTopology()
        topology.newStream("s", FeederBatchSpout("v")).filter(lambda *values: True)
        topology.newDRPCStream("free", drpc)
        topology.newDRPCStream("f", drpc)
        return topology.build()

    with LocalCluster() as cluster:
        running = cluster.submitTopology("first", {}, built())
        with pytest.raises(DefinitionError, match="the topology 'first', which still runs, answers the function 'f'"):
            topology = TridentTopology()
            topology.newDRPCStream("new", drpc)
            topology.newDRPCStream("f", drpc)
            cluster.submitTopology("second", {}, topology.build())
        assert drpc.functions() == ["f", "free"]
        running.stop()
        cluster.submitTopology("third", {}, built())
        assert drpc.execute("f", "x") == [["x"]]
        drpc.shutdown()
        with pytest.raises(DefinitionError, match="the LocalDRPC of the function 'free' is shut down"):
            cluster.submitTopology("fourth", {}, built())
