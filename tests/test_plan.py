"""The plan: components, checks and explain()."""

from __future__ import annotations

import pytest

from trident_py import DefinitionError, Fields, TridentTopology
from trident_py.model.plan import PartitionNode, Plan, ProcessorNode, SpoutNode
from trident_py.operations.builtin import Count, MapGet
from trident_py.testing import FixedBatchSpout, MemoryMapState, Split


def spout(*words: str) -> FixedBatchSpout:
    return FixedBatchSpout("word", 2, *[(word,) for word in words])


def counting(topology: TridentTopology, name: str):  # type: ignore[no-untyped-def]
    return topology.newStream(name, spout()).groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "n")


def test_parents_come_before_their_children() -> None:
    topology = TridentTopology()
    counting(topology, "a").newValuesStream().shuffle().each("word", Split(), "w")
    seen: set[int] = set()
    for node in topology.plan().nodes:
        assert set(node.parents) <= seen
        seen.add(node.id)


def test_streams_that_meet_are_one_component_and_others_their_own() -> None:
    topology = TridentTopology()
    streams = [topology.newStream(name, spout()) for name in "abc"]
    topology.merge(streams[0], streams[2])
    names = [{n.spout_id for n in part.nodes if isinstance(n, SpoutNode)} for part in topology.plan().components()]
    assert sorted(map(sorted, names)) == [["a", "c"], ["b"]]


def test_a_state_does_not_connect_its_nodes() -> None:
    topology = TridentTopology()
    state = counting(topology, "a")
    topology.newStream("b", spout()).stateQuery(state, "word", MapGet(), "n")
    assert len(topology.plan().components()) == 2


def test_children_are_found_with_the_number_of_their_input() -> None:
    topology = TridentTopology()
    one, two = topology.newStream("a", spout()), topology.newStream("b", spout())
    merged = topology.merge(one, two, one)
    plan = topology.plan()
    assert [(child.id, port) for child, port in plan.children(plan.by_id[one.node_id])] == [
        (merged.node_id, 0),
        (merged.node_id, 2),
    ]


def test_a_spout_id_is_unique() -> None:
    node = SpoutNode(0, Fields("a"), spout_id="same")
    with pytest.raises(DefinitionError, match="two streams are named 'same'"):
        Plan((node, SpoutNode(1, Fields("a"), spout_id="same"))).check()


def test_explain_has_a_line_for_each_node_with_its_inputs_fields_name_and_hint() -> None:
    topology = TridentTopology()
    stream = topology.newStream("lines", spout()).name("text").each("word", Split(), "w string").parallelismHint(3)
    stream.partitionBy("w").project("w")
    assert topology.explain().splitlines() == [
        "#0 spout lines: FixedBatchSpout: [word ?]",
        "#1 each Split (text) x3 <- #0: [word ?, w string]",
        "#2 partition FieldsPartition(fields=Fields('w string')) (text) <- #1: [word ?, w string]",
        "#3 project [w] (text) <- #2: [w string]",
        "",
        "stage 1: level 0, 1 partition: #0",
        "stage 2: level 0, 1 partition (hint 3, limited by a spout or a state): #1",
        "stage 3: level 0, 1 partition: #3",
    ]
    assert topology.build().explain() == topology.explain()


def test_explain_names_the_state_of_a_node() -> None:
    topology = TridentTopology()
    topology.newStream("a", spout()).persistentAggregate(MemoryMapState.Factory(), Count(), "n", stateName="total")
    assert "partitionPersist CombinerAggStateUpdater state total" in topology.explain()


def test_nodes_are_of_three_kinds() -> None:
    topology = TridentTopology()
    counting(topology, "a")
    assert {type(node) for node in topology.plan().nodes} == {SpoutNode, ProcessorNode, PartitionNode}


def test_what_workers_run_has_no_drpc_streams() -> None:
    topology = TridentTopology()
    topology.newDRPCStream("f").stateQuery(topology.newStaticState(MemoryMapState.Factory()), "args", MapGet(), "n")
    stream = topology.newStream("s", FixedBatchSpout("v", 1, (1,))).filter(lambda *values: True)
    plan = topology.build().plan
    assert [node.id for node in plan.without_requests().nodes] == [stream.node_id - 1, stream.node_id]
