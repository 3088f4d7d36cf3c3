"""From a plan to levels of stages."""

from __future__ import annotations

from typing import Any

import pytest
from semantics.support import Batches, bag, bags, run

from trident_py import Config, LocalCluster, TridentTopology
from trident_py.engine.lowering import Lowered, lower
from trident_py.engine.program import compile_plan
from trident_py.errors import DefinitionError
from trident_py.model.partitioning import FieldsPartition, Identity
from trident_py.operations.builtin import Count, FirstN, MapGet, Sum
from trident_py.state import StateSpec
from trident_py.testing import MemoryMapState, Split, collect


def lowered(topology: TridentTopology) -> Lowered:
    plan = topology.plan()
    (component,) = [part for part in plan.components() if len(part.nodes) > 1]
    return lower(component, plan)


def word_count(partitions: int) -> TridentTopology:
    topology = TridentTopology()
    stream = topology.newStream("s", Batches(["sentence", "unused"], [])).parallelismHint(partitions)
    words = stream.each("sentence", Split(), "word").groupBy("word")
    words.persistentAggregate(MemoryMapState.Factory(), Count(), "n").parallelismHint(partitions)
    return topology


def shapes(made: Lowered) -> list[list[tuple[int, int, bool]]]:
    """For each level its stages: partitions, number of nodes, whether it finishes in the commit phase."""
    return [[(stage.partitions, len(stage.nodes), stage.commits) for stage in level] for level in made.levels]


def test_a_topology_with_one_state_has_one_exchange_and_a_combiner_aggregates_before_it() -> None:
    made = lowered(word_count(2))
    assert shapes(made) == [[(2, 1, False), (2, 2, False)], [(2, 2, True)]]
    (exchange,) = made.exchanges
    assert (exchange.level, exchange.partitions, exchange.fields) == (1, 2, ("word", "n"))
    assert isinstance(exchange.partitioner, FieldsPartition)


def test_from_one_partition_to_one_nothing_is_exchanged() -> None:
    made = lowered(word_count(1))
    assert len(made.levels) == 1 and made.exchanges == ()


def test_only_fields_that_somebody_reads_are_carried() -> None:
    made = lowered(word_count(2))
    wanted = {node.id: made.wanted[node.id] for node in made.plan.nodes}
    assert wanted[0] == {"sentence"} and wanted[1] == {"word"}


def test_both_sides_of_a_join_are_exchanged_once_on_the_key() -> None:
    topology = TridentTopology()
    one, two = (topology.newStream(n, Batches(["k", n, "x"], [])).parallelismHint(2) for n in "ab")
    joined = topology.join(one, "k", two.project(["k", "b"]), "k", ["k", "a", "x", "b"]).parallelismHint(3)
    collect(joined.project(["k", "b"]), "out")
    made = lowered(topology)
    assert [(e.level, e.partitions, isinstance(e.partitioner, FieldsPartition)) for e in made.exchanges] == [
        (1, 3, True)
    ] * 2
    assert len(made.levels) == 2


def test_a_stream_read_twice_behind_one_repartition_is_sent_once() -> None:
    topology = TridentTopology()
    shuffled = topology.newStream("s", Batches(["a", "b"], [])).parallelismHint(2).shuffle()
    for name in ("a", "b"):
        collect(shuffled.project(name), name)
    (exchange,) = lowered(topology).exchanges
    assert exchange.fields == ("a", "b") and len(exchange.receivers) == 2


def test_states_commit_behind_the_whole_batch_phase() -> None:
    """A function three exchanges away fails the batch before the nearest state commits."""
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [])).parallelismHint(2)
    state = stream.partitionBy("v").partitionPersist(MemoryMapState.Factory(), "v", _Nothing())
    far = stream.shuffle().each("v", Split(), "w").parallelismHint(2).partitionBy("w").each("w", Split(), "x")
    collect(far.parallelismHint(2).shuffle().each("x", Split(), "y").parallelismHint(2), "out")
    made = lowered(topology)
    level_of = {node: i for i, level in enumerate(made.levels) for stage in level for node in stage.nodes}
    assert level_of[state.newValuesStream().node_id] == 3 == len(made.levels) - 1
    assert [stage.commits for level in made.levels for stage in level] == [False] * 4 + [True]


def test_what_follows_new_values_across_an_exchange_comes_in_a_later_level() -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [])).parallelismHint(2)
    state = stream.groupBy("v").persistentAggregate(MemoryMapState.Factory(), Count(), "n").parallelismHint(2)
    state.newValuesStream().persistentAggregate(MemoryMapState.Factory(), "n", Sum(), "t").parallelismHint(2)
    levels = shapes(lowered(topology))
    assert [[stage[2] for stage in level] for level in levels] == [[False, False], [True], [True]]


def test_all_nodes_of_a_state_run_in_the_same_partitions() -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", []))
    state = stream.groupBy("v").persistentAggregate(MemoryMapState.Factory(), Count(), "n").parallelismHint(3)
    asked = topology.newStream("t", Batches("v", [])).groupBy("v").stateQuery(state, "v", MapGet(), "n")
    plan = topology.plan()
    counts = {
        node: stage.partitions
        for part in plan.components()
        for level in lower(part, plan).levels
        for stage in level
        for node in stage.nodes
    }
    assert counts[asked.node_id] == counts[state.newValuesStream().node_id] == 3


def test_identity_from_one_level_to_a_later_one_keeps_the_partition() -> None:
    """The merge waits for the new values; the source's own tuples travel to it by identity."""
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [])).parallelismHint(2)
    state = stream.partitionBy("v").partitionPersist(MemoryMapState.Factory(), "v", _Nothing(), "v").parallelismHint(2)
    collect(topology.merge(stream, state.newValuesStream()), "out")
    kinds = [type(exchange.partitioner) for exchange in lowered(topology).exchanges]
    assert sorted(kind.__name__ for kind in kinds) == ["FieldsPartition", "Identity"] and Identity in kinds


def test_a_stage_finishes_in_the_commit_phase_too_if_one_that_feeds_it_does() -> None:
    """Found by the property test: FirstN's second half finished before its first one and lost everything."""
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [[(1,), (2,)]]))
    collect(stream.applyAssembly(FirstN(1, "v")), "first")
    new = stream.partitionPersist(MemoryMapState.Factory(), "v", _Nothing(), "v").newValuesStream()
    collect(topology.merge(new, stream), "merged")
    with LocalCluster() as cluster:
        running = run(cluster, topology)
    assert running.collected("first") == {1: [(1,)]}
    assert bags(running.collected("merged")) == {1: bag([(1,), (2,)])}


class _Nothing:
    """An updater that writes nothing."""

    def updateState(self, state: Any, tuples: Any, collector: Any) -> None: ...


def test_the_configuration_limits_the_partitions_of_every_node() -> None:
    topology = word_count(4)
    (program,) = compile_plan(topology.plan(), {Config.TOPOLOGY_MAX_TASK_PARALLELISM: 3})
    assert set(program.lowered.partitions.values()) == {3}
    (one,) = compile_plan(topology.plan(), {Config.TOPOLOGY_MAX_TASK_PARALLELISM: 1})
    assert one.lowered.exchanges == ()


def test_a_limit_below_a_fixed_number_of_partitions_is_refused() -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", Batches(["word"], []))
    fixed = StateSpec(MemoryMapState.Factory(), 3)
    stream.groupBy("word").persistentAggregate(fixed, Count(), "n")
    with pytest.raises(DefinitionError, match="fixed to 3 but max parallelism is less than that: 2"):
        compile_plan(topology.plan(), {Config.TOPOLOGY_MAX_TASK_PARALLELISM: 2})
