"""Repartitions, parallelism and names (semantics, 11 and 17)."""

from __future__ import annotations

from typing import Any

import pytest

from trident_py import TopologyError, TridentTopology
from trident_py.model.partitioning import java_hash
from trident_py.operations.builtin import Count
from trident_py.state import StateSpec
from trident_py.testing import FixedBatchSpout, LoggingBackingMap, collect

from .support import Batches, Partition, bag, bags, both, both_always, run, through

NUMBERS = [(i,) for i in range(12)]


def where(cluster: Any, move: Any, batches: Any = (NUMBERS,), sources: int = 2, targets: int = 3) -> dict[int, dict]:
    """For each txid: value -> partitions it came to, in the order of the partitions."""
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", batches)).parallelismHint(sources)
    collect(move(stream).each(Partition(), "p").parallelismHint(targets), "out")
    found: dict[int, dict] = {}
    for txid, rows in run(cluster, topology).collected("out").items():
        for value, partition in sorted(rows):
            found.setdefault(txid, {}).setdefault(value, []).append(partition)
    return found


@both
def test_collected_rows_are_told_by_partition_too(cluster: Any) -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [NUMBERS, NUMBERS[:1]])).parallelismHint(2)
    collect(stream.partitionBy("v").each(Partition(), "p").parallelismHint(3), "out")
    running = run(cluster, topology)
    found = running.collected_by_partition("out")
    assert found == {txid: {p: rows for p in range(3) if (rows := [r for r in every if r[1] == p])}
                     for txid, every in running.collected("out").items()}  # fmt: skip
    assert list(found[1]) == [0, 1, 2] and len(found[2]) == 1 and running.collected_by_partition("none") == {}


@both
def test_partition_by_sends_equal_values_to_one_partition_in_all_batches(cluster: Any) -> None:
    found = where(cluster, lambda s: s.partitionBy("v"), [NUMBERS * 2, NUMBERS[::-1]])
    assert found[1] == {value: found[2][value] * 2 for value in found[2]}
    assert {partition for at in found[2].values() for partition in at} == {0, 1, 2}


def test_partition_by_chooses_as_storm_does(cluster: Any) -> None:
    """floorMod(Arrays.deepHashCode(values), n): of one Long, 31 + its hash."""
    found = where(cluster, lambda s: s.partitionBy("v"))[1]
    assert found == {value: [(31 + value) % 3] for (value,) in NUMBERS}
    assert java_hash("storm") == 109770985


@pytest.mark.parametrize("call", ["shuffle", "localOrShuffle"])
def test_shuffle_spreads_evenly(call: str, cluster: Any) -> None:
    found = where(cluster, lambda s: getattr(s, call)())[1]
    assert sorted(partition for at in found.values() for partition in at) == [0] * 4 + [1] * 4 + [2] * 4


def test_global_sends_everything_to_partition_0_of_all_batches(cluster: Any) -> None:
    found = where(cluster, lambda s: s.global_(), [NUMBERS, NUMBERS])
    assert found == {txid: {value: [0] for (value,) in NUMBERS} for txid in (1, 2)}


def test_batch_global_sends_a_batch_to_the_partition_of_its_txid(cluster: Any) -> None:
    found = where(cluster, lambda s: s.batchGlobal(), [NUMBERS] * 4)
    assert found == {txid: {value: [txid % 3] for (value,) in NUMBERS} for txid in (1, 2, 3, 4)}


def test_broadcast_sends_everything_to_every_partition(cluster: Any) -> None:
    assert where(cluster, lambda s: s.broadcast()) == {1: {value: [0, 1, 2] for (value,) in NUMBERS}}


def test_identity_partition_keeps_the_partitions(cluster: Any) -> None:
    found = where(cluster, lambda s: s.identityPartition(), sources=3)
    assert found == {1: {value: [value % 3] for (value,) in NUMBERS}}


class Evens:
    """A CustomStreamGrouping: even numbers to partition 2, odd ones to 0 and 1."""

    def prepare(self, context: Any, stream: Any, targetTasks: list[int]) -> None:
        self.tasks = targetTasks

    def chooseTasks(self, taskId: int, values: Any) -> list[int]:
        return self.tasks[:2] if values[0] % 2 else [self.tasks[2]]


def test_a_custom_grouping_chooses_the_partitions(cluster: Any) -> None:
    found = where(cluster, lambda s: s.partition(Evens()))[1]
    assert found == {value: [0, 1] if value % 2 else [2] for (value,) in NUMBERS}


def test_a_callable_grouping_gives_a_number(cluster: Any) -> None:
    assert where(cluster, lambda s: s.partition(lambda t: t[0] + 1))[1] == {v: [(v + 1) % 3] for (v,) in NUMBERS}


class Beyond(Evens):
    def chooseTasks(self, taskId: int, values: Any) -> list[int]:
        return [3]


def test_a_custom_grouping_that_chooses_a_partition_that_is_not_there_ends_the_run(cluster: Any) -> None:
    with pytest.raises(TopologyError, match="chose partition 3; return a number from 0 to 2"):
        where(cluster, lambda s: s.partition(Beyond()))


@both_always
def test_every_repartition_in_one_topology(cluster: Any) -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [NUMBERS] * 2)).parallelismHint(2)
    moves = {
        "partitionBy": (stream.partitionBy("v"), lambda txid, v: [(31 + v) % 3]),
        "global": (stream.global_(), lambda txid, v: [0]),
        "batchGlobal": (stream.batchGlobal(), lambda txid, v: [txid % 3]),
        "broadcast": (stream.broadcast(), lambda txid, v: [0, 1, 2]),
        "custom": (stream.partition(Evens()), lambda txid, v: [0, 1] if v % 2 else [2]),
        "callable": (stream.partition(lambda t: t[0] + 1), lambda txid, v: [(v + 1) % 3]),
    }
    for name, (moved, _) in [*moves.items(), ("shuffle", (stream.shuffle(), None))]:
        collect(moved.each(Partition(), "p").parallelismHint(3), name)
    running = run(cluster, topology)
    for name, (_, place) in moves.items():
        expected = {txid: bag((v, p) for (v,) in NUMBERS for p in place(txid, v)) for txid in (1, 2)}
        assert bags(running.collected(name)) == expected, name
    assert sorted(row[1] for row in running.collected("shuffle")[1]) == [0] * 4 + [1] * 4 + [2] * 4


@both
def test_repartitions_behind_each_other_are_made_one_after_the_other(cluster: Any) -> None:
    """broadcast, then by value: every value as often as there were partitions between."""
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [NUMBERS[:4]])).parallelismHint(2)
    between = stream.broadcast().each("v", lambda v: [v], "w").parallelismHint(3)
    collect(between.shuffle().partitionBy("v").each(Partition(), "p").parallelismHint(2), "out")
    rows = run(cluster, topology).collected("out")[1]
    assert sorted(row[0] for row in rows) == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert len({(row[0], row[2]) for row in rows}) == 4


def test_group_by_alone_moves_nothing(cluster: Any) -> None:
    """S23"""
    found = through(cluster, "v", [NUMBERS], lambda s: s.groupBy("v").toStream().each(Partition(), "p"), partitions=3)
    assert found == {1: bag((v, v % 3) for (v,) in NUMBERS)}


# -- parallelism --------------------------------------------------------------------------------------------------


def sizes(cluster: Any, build: Any, spout: Any = None) -> set[str]:
    """The partition counts seen where ``build`` says."""
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [NUMBERS]) if spout is None else spout)
    collect(build(stream), "out")
    rows = run(cluster, topology).collected("out")[1]
    return {row[-1].split(" of ")[1] for row in rows}


def test_s24_a_hint_reaches_back_to_the_spout_and_not_across_a_repartition(cluster: Any) -> None:
    seen = lambda s: s.each(Partition(True), "p")  # noqa: E731
    assert sizes(cluster, lambda s: seen(s).each("v", lambda v: [v], "w").parallelismHint(3).project("p")) == {"3"}
    assert sizes(
        cluster, lambda s: seen(s).shuffle().each("v", lambda v: [v], "w").parallelismHint(3).project("p")
    ) == {"1"}
    assert sizes(cluster, lambda s: seen(s.parallelismHint(2).shuffle())) == {"1"}


def test_the_largest_hint_of_a_group_counts_and_identity_does_not_end_a_group(cluster: Any) -> None:
    def build(stream: Any) -> Any:
        first = stream.parallelismHint(2).each(Partition(True), "p").identityPartition()
        return first.each("v", lambda v: [v], "w").parallelismHint(4).project("p")

    assert sizes(cluster, build) == {"4"}


def test_a_spout_of_one_task_caps_what_is_fused_with_it(cluster: Any) -> None:
    spout = FixedBatchSpout("v", 12, *NUMBERS)
    assert sizes(cluster, lambda s: s.parallelismHint(16).each(Partition(True), "p"), spout) == {"1"}
    assert sizes(cluster, lambda s: s.shuffle().each(Partition(True), "p").parallelismHint(3), spout) == {"3"}


def test_a_hint_behind_persistent_aggregate_is_the_number_of_state_partitions(cluster: Any) -> None:
    def build(stream: Any) -> Any:
        state = stream.groupBy("v").persistentAggregate(LoggingBackingMap.Factory(), Count(), "n").parallelismHint(3)
        return state.newValuesStream().each(Partition(True), "p")

    assert sizes(cluster, build, FixedBatchSpout("v", 12, *NUMBERS)) == {"3"}


def test_a_state_spec_fixes_the_number_of_state_partitions(cluster: Any) -> None:
    def build(stream: Any) -> Any:
        spec = StateSpec(LoggingBackingMap.Factory(), 2)
        state = stream.groupBy("v").persistentAggregate(spec, Count(), "n").parallelismHint(5)
        return state.newValuesStream().each(Partition(True), "p")

    assert sizes(cluster, build) == {"2"}


def test_streams_that_meet_in_a_merge_have_one_parallelism(cluster: Any) -> None:
    topology = TridentTopology()
    one = topology.newStream("one", Batches("v", [NUMBERS])).parallelismHint(3)
    two = topology.newStream("two", Batches("v", [NUMBERS]))
    collect(topology.merge(one, two).each(Partition(True), "p").project("p"), "out")
    rows = run(cluster, topology).collected("out")[1]
    assert {row[0] for row in rows} == {"0 of 3", "1 of 3", "2 of 3"}


@pytest.mark.parametrize("partitions", [1, 2, 3])
def test_results_do_not_depend_on_the_parallelism(partitions: int, cluster: Any) -> None:
    def build(stream: Any) -> Any:
        counted = stream.groupBy("v").aggregate(Count(), "n").parallelismHint(partitions)
        return counted.shuffle().groupBy("n").aggregate(Count(), "m").parallelismHint(partitions)

    rows = [(i % 5,) for i in range(12)]
    assert through(cluster, "v", [rows], build, partitions=partitions) == {1: bag([(3, 2), (2, 3)])}


# -- names --------------------------------------------------------------------------------------------------------


def test_a_name_goes_with_the_stream_and_is_shown() -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [])).name("first").each("v", lambda v: [v], "w")
    assert (stream.getName(), stream.name("second").getName(), stream.getName()) == ("first", "second", "first")
    assert "(first)" in topology.explain()


def test_a_merge_is_named_after_its_streams() -> None:
    topology = TridentTopology()
    one = topology.newStream("one", Batches("v", [])).name("left")
    two = topology.newStream("two", Batches("v", [])).name("right")
    assert topology.merge(one, two).getName() == "left-right"
    assert topology.merge(one.groupBy("v").name("grouped").toStream(), two).getName() == "grouped-right"


def test_resource_hints_are_accepted() -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [])).setCPULoad(20).setMemoryLoad(512, 256)
    stream.persistentAggregate(LoggingBackingMap.Factory(), Count(), "n").setCPULoad(100).setMemoryLoad(2048)
    topology.build()
