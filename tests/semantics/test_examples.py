"""The examples of Storm's documentation and of storm-starter, with the results they have in Storm.

Names (E1, D16, ...) as in the reference of examples; values were checked against Storm's own classes.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import pytest

from trident_py import TridentTopology
from trident_py.operations import (
    BaseAggregator,
    BaseFilter,
    BaseFunction,
    CombinerAggregator,
    FlatMapFunction,
    MapFunction,
    ReducerAggregator,
)
from trident_py.operations.builtin import Count, FilterNull, MapGet, Sum
from trident_py.state import OpaqueValue, TransactionalValue
from trident_py.testing import Crashing, FixedBatchSpout, LoggingBackingMap, MemoryMapState, Split, collect, stored

from .support import Batches, bag, bags, both, current, run, through

SENT5 = [
    "the cow jumped over the moon",
    "the man went to the store and bought some candy",
    "four score and seven years ago",
    "how many apples can you eat",
    "to be or not to be the person",
]


def sentences(cycles: int = 1) -> Batches:
    """SENT5 by three: txid 1 has sentences 1 to 3, txid 2 has 4 and 5; a batch never wraps."""
    rows = [(sentence,) for sentence in SENT5]
    return Batches("sentence", [rows[:3], rows[3:]] * cycles)


def counts(*texts: str) -> dict[tuple, int]:
    return {(word,): n for word, n in Counter(" ".join(texts).split()).items()}


# -- E1, D1: word count -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cycles", [1, 2])
def test_e1_word_count(cycles: int, cluster: Any) -> None:
    factory = MemoryMapState.Factory()
    topology = TridentTopology()
    stream = topology.newStream("spout1", sentences(cycles)).parallelismHint(2)
    state = stream.each("sentence", Split(), "word").groupBy("word").persistentAggregate(factory, Count(), "count")
    collect(state.parallelismHint(2).newValuesStream(), "new")
    running = run(cluster, topology)
    assert current(stored(factory)) == counts(*SENT5 * cycles)
    first = bags({1: [(*word, n) for word, n in counts(*SENT5[:3]).items()]})
    assert {1: bags(running.collected("new"))[1]} == first
    assert counts(*SENT5[:3])[("the",)] == 4


def test_d1_word_count_of_four_sentences(cluster: Any) -> None:
    factory = MemoryMapState.Factory()
    topology = TridentTopology()
    spout = FixedBatchSpout("sentence", 3, *[(sentence,) for sentence in SENT5[:4]])
    stream = topology.newStream("spout1", spout)
    stream.each("sentence", Split(), "word").groupBy("word").persistentAggregate(factory, Count(), "count")
    run(cluster, topology)
    found = current(stored(factory))
    assert found == counts(*SENT5[:4])
    assert {word: n for word, n in found.items() if n > 1} == {("the",): 4, ("and",): 2}


class SplitFunction(FlatMapFunction):
    def execute(self, tuple: Any) -> Any:
        return [[word] for word in tuple.getString(0).split(" ")]


class ToUpper(MapFunction):
    def execute(self, tuple: Any) -> Any:
        return [tuple.getString(0).upper()]


class TheOnly(BaseFilter):
    def isKeep(self, tuple: Any) -> bool:
        return tuple.getString(0) == "THE"


def test_e2_map_flat_map_filter_peek(cluster: Any) -> None:
    factory = MemoryMapState.Factory()
    topology = TridentTopology()
    stream = topology.newStream("spout1", sentences()).flatMap(SplitFunction()).map(ToUpper(), "uppercased")
    stream = stream.filter(TheOnly()).peek(lambda t: None)
    state = stream.groupBy("uppercased").persistentAggregate(factory, Count(), "count")
    collect(state.newValuesStream(), "new")
    running = run(cluster, topology)
    assert bags(running.collected("new")) == {1: bag([("THE", 4)]), 2: bag([("THE", 5)])}
    assert current(stored(factory)) == {("THE",): 5}


# -- E3, E4: min and max ------------------------------------------------------------------------------------------


def test_e3_min_and_max_of_devices(cluster: Any) -> None:
    rows = [(5, 70), (2, 20), (9, 95), (2, 30), (7, 95)]
    assert through(cluster, ["device-id", "count"], [rows], lambda s: s.minBy("device-id")) == {1: bag([(2, 30)])}
    assert through(cluster, ["device-id", "count"], [rows], lambda s: s.maxBy("count")) == {1: bag([(7, 95)])}


class Vehicle(NamedTuple):
    name: str
    maxSpeed: int
    efficiency: float


VEHICLES = [(Vehicle("a", 90, 2.5), "Ann"), (Vehicle("b", 20, 4.5), "Bob"), (Vehicle("c", 55, 1.5), "Cid")]


def by_speed(one: Any, other: Any) -> int:
    return one.getValueByField("vehicle")[1] - other.getValueByField("vehicle")[1]


def by_efficiency(one: Any, other: Any) -> int:
    return (one[2] > other[2]) - (one[2] < other[2])


@pytest.mark.parametrize(
    ("build", "driver"),
    [
        (lambda s: s.min(by_speed), "Bob"),
        (lambda s: s.max(by_speed), "Ann"),
        (lambda s: s.minBy("vehicle", by_efficiency), "Cid"),
        (lambda s: s.maxBy("vehicle", by_efficiency), "Bob"),
    ],
)
def test_e4_comparators_see_tuples_in_min_and_values_in_min_by(build: Any, driver: str, cluster: Any) -> None:
    found = through(cluster, ["vehicle", "driver"], [VEHICLES], lambda s: build(s).project("driver"))
    assert found == {1: bag([(driver,)])}


# -- E13: flux ----------------------------------------------------------------------------------------------------


@both
def test_e13_flux_topology_and_later_empty_batches_change_nothing(cluster: Any) -> None:
    factory = MemoryMapState.Factory()
    rows = [(text,) for text in ("one two", "two three", "three four", "four five", "five six")]
    topology = TridentTopology()
    stream = topology.newStream("wordcount", Batches("sentence", [rows, [], []])).name("sentence").parallelismHint(1)
    stream = stream.shuffle().each("sentence", Split(), "word").parallelismHint(1)
    stream.groupBy("word").persistentAggregate(factory, Count(), "count").parallelismHint(1)
    running = run(cluster, topology)
    expected = {("one",): 1, ("two",): 2, ("three",): 2, ("four",): 2, ("five",): 2, ("six",): 1}
    assert stored(factory) == {word: OpaqueValue(1, n, None) for word, n in expected.items()}
    assert running.txid == 3


# -- D5 to D8: partition-local operations -------------------------------------------------------------------------

XYZ = [(1, 2, 3), (4, 5, 6), (7, 20, 9)]


class BelowTen(BaseFilter):
    def isKeep(self, tuple: Any) -> bool:
        assert len(tuple) == 1
        return tuple.getInteger(0) < 10


def test_d5_a_filter_on_one_field_sees_only_that(cluster: Any) -> None:
    assert through(cluster, ["x", "y", "z"], [XYZ], lambda s: s.each(["y"], BelowTen())) == {1: bag(XYZ[:2])}


class AddAndMultiply(BaseFunction):
    def execute(self, tuple: Any, collector: Any) -> None:
        one, two = tuple.getInteger(0), tuple.getInteger(1)
        collector.emit([one + two, one * two])


def test_d6_add_and_multiply_are_appended(cluster: Any) -> None:
    found = through(
        cluster, ["x", "y", "z"], [XYZ[:2]], lambda s: s.each(["x", "y"], AddAndMultiply(), ["added", "multiplied"])
    )
    assert found == {1: bag([(1, 2, 3, 3, 2), (4, 5, 6, 9, 20)])}


PAIRS = [("a", 1), ("b", 2), ("a", 3)]


def test_d7_sum_of_the_batch_and_by_group(cluster: Any) -> None:
    assert through(cluster, ["val1", "val2"], [PAIRS], lambda s: s.aggregate("val2", Sum(), "sum")) == {1: bag([(6,)])}
    found = through(cluster, ["val1", "val2"], [PAIRS], lambda s: s.groupBy("val1").aggregate("val2", Sum(), "sum"))
    assert found == {1: bag([("a", 4), ("b", 2)])}


class MyFunction(BaseFunction):
    def execute(self, tuple: Any, collector: Any) -> None:
        for i in range(tuple.getInteger(0)):
            collector.emit([i])


class MyFilter(BaseFilter):
    def isKeep(self, tuple: Any) -> bool:
        return tuple.getInteger(0) == 1 and tuple.getInteger(1) == 2


ABC = [(1, 2, 3), (4, 1, 6), (3, 0, 8)]


def test_d8_functions(cluster: Any) -> None:
    found = through(cluster, ["a", "b", "c"], [ABC], lambda s: s.each(["b"], MyFunction(), ["d"]))
    assert found == {1: bag([(1, 2, 3, 0), (1, 2, 3, 1), (4, 1, 6, 0)])}


def test_d8_filters(cluster: Any) -> None:
    assert through(cluster, ["a", "b", "c"], [ABC], lambda s: s.filter(MyFilter())) == {1: bag([(1, 2, 3)])}


def test_d8_map_and_flat_map_in_a_chain(cluster: Any) -> None:
    seen: list[str] = []

    def build(stream: Any) -> Any:
        stream = stream.flatMap(SplitFunction()).map(ToUpper())
        return stream.peek(lambda t: seen.append(t[0])).groupBy("sentence").aggregate(Count(), "n")

    found = through(cluster, "sentence", [[("to be or",), ("not to be",)]], build)
    assert found == {1: bag([("TO", 2), ("BE", 2), ("OR", 1), ("NOT", 1)])}
    assert seen == ["TO", "BE", "OR", "NOT", "TO", "BE"]


# -- D13, D14: aggregators ----------------------------------------------------------------------------------------


class CountCombiner(CombinerAggregator):
    def init(self, tuple: Any) -> int:
        return 1

    def combine(self, val1: int, val2: int) -> int:
        return val1 + val2

    def zero(self) -> int:
        return 0


class CountReducer(ReducerAggregator):
    def init(self) -> int:
        return 0

    def reduce(self, curr: int, tuple: Any) -> int:
        return curr + 1


class CountAgg(BaseAggregator):
    def init(self, batchId: Any, collector: Any) -> int:
        return 0

    def aggregate(self, value: int, tuple: Any, collector: Any) -> int:
        return value + 1

    def complete(self, value: int, collector: Any) -> None:
        collector.emit([value])


@both
def test_d13_partition_aggregate_sums_each_partition(cluster: Any) -> None:
    rows = [("a", 1), ("b", 2), ("a", 3), ("c", 8), ("e", 1), ("d", 9), ("d", 10)]
    found = through(cluster, ["a", "b"], [rows], lambda s: s.partitionAggregate("b", Sum(), "sum"), partitions=3)
    assert found == {1: bag([(1 + 8 + 10,), (2 + 1,), (3 + 9,)])}


@pytest.mark.parametrize("count", [CountCombiner(), CountReducer(), CountAgg(), Count()])
def test_d13_count_as_each_of_the_three_kinds(count: Any, cluster: Any) -> None:
    build = lambda s: s.aggregate(count, "n")  # noqa: E731
    assert through(cluster, ["a", "b"], [PAIRS, []], build, partitions=2) == {1: bag([(3,)]), 2: bag([(0,)])}
    build = lambda s: s.groupBy("a").aggregate(count, "n")  # noqa: E731
    assert through(cluster, ["a", "b"], [PAIRS, []], build, partitions=2) == {1: bag([("a", 2), ("b", 1)])}


def test_d13_chained_aggregators_run_side_by_side(cluster: Any) -> None:
    def build(stream: Any) -> Any:
        chain = stream.chainedAgg().partitionAggregate(Count(), "count")
        return chain.partitionAggregate("b", Sum(), "sum").chainEnd()

    assert through(cluster, ["a", "b"], [PAIRS], build) == {1: bag([(3, 6)])}


def test_d14_project(cluster: Any) -> None:
    assert through(cluster, ["a", "b", "c", "d"], [[(1, 2, 3, 4)]], lambda s: s.project(["b", "d"])) == {
        1: bag([(2, 4)])
    }


# -- D15: merge and join ------------------------------------------------------------------------------------------


def test_d15_merge_names_the_output_after_the_first_stream(cluster: Any) -> None:
    topology = TridentTopology()
    one = topology.newStream("one", Batches(["a", "b"], [[(1, 2)], []]))
    two = topology.newStream("two", Batches(["x", "y"], [[(3, 4)], [(5, 6)]]))
    merged = collect(topology.merge(one, two), "out")
    assert merged.getOutputFields().toList() == ["a", "b"]
    assert bags(run(cluster, topology).collected("out")) == {1: bag([(1, 2), (3, 4)]), 2: bag([(5, 6)])}


def test_d15_join_gives_the_key_and_then_the_other_fields_of_each_stream(cluster: Any) -> None:
    topology = TridentTopology()
    one = topology.newStream("one", Batches(["key", "val1", "val2"], [[(1, "a", "b"), (2, "c", "d")]]))
    two = topology.newStream("two", Batches(["x", "val1"], [[(1, "e"), (1, "f"), (3, "g")]]))
    collect(topology.join(one, ["key"], two, ["x"], ["key", "a", "b", "c"]), "out")
    assert bags(run(cluster, topology).collected("out")) == {1: bag([(1, "a", "b", "e"), (1, "a", "b", "f")])}


# -- D16, D17: what states keep -----------------------------------------------------------------------------------


def _counted(cluster: Any, kind: str, start: dict, replays: dict | None, crash: bool) -> dict:
    """The documentation's tables: counts exist under txids up to 3, then comes batch 4: man, man, dog."""
    factory = LoggingBackingMap.Factory(kind)
    batches = [[(word,) for word, n in start.items() for _ in range(n[txid - 1])] for txid in (1, 2, 3)]
    spout = Batches("word", [*batches, [("man",), ("man",), ("dog",)]], replays)
    topology = TridentTopology()
    state = Crashing(factory, "afterCommit", {(4, 0)}) if crash else factory
    topology.newStream("s", spout).groupBy("word").persistentAggregate(state, Count(), "count")
    run(cluster, topology)
    return stored(factory)


TABLE = {"man": (1, 0, 2), "dog": (1, 0, 3), "apple": (4, 6, 0)}


@pytest.mark.parametrize("crash", [False, True])
def test_d16_a_transactional_state_skips_what_this_txid_has_written(crash: bool, cluster: Any) -> None:
    assert _counted(cluster, "transactional", TABLE, None, crash) == {
        ("man",): TransactionalValue(4, 5),
        ("dog",): TransactionalValue(4, 5),
        ("apple",): TransactionalValue(2, 10),
    }


def test_d17_an_opaque_state_starts_a_replay_from_the_value_before(cluster: Any) -> None:
    changed = {4: [("man",), ("dog",), ("dog",), ("apple",)]}
    assert _counted(cluster, "opaque", TABLE, changed, crash=True) == {
        ("man",): OpaqueValue(4, 4, 3),
        ("dog",): OpaqueValue(4, 6, 4),
        ("apple",): OpaqueValue(4, 11, 10),
    }
    assert _counted(cluster, "opaque", TABLE, changed, crash=False)[("man",)] == OpaqueValue(4, 5, 3)


def test_filter_null_behind_a_query_drops_what_the_state_does_not_have(cluster: Any) -> None:
    """The query half of E1 and E2, on a stream."""
    factory = MemoryMapState.Factory()
    topology = TridentTopology()
    state = (
        topology.newStream("words", Batches("word", [[("the",), ("the",), ("dog",)]]))
        .groupBy("word")
        .persistentAggregate(factory, Count(), "count")
    )
    run(cluster, topology)
    topology = TridentTopology()
    state = topology.newStaticState(factory)
    asked = topology.newStream("asked", Batches("args", [[("cat the",)], [("cat",)]]))
    found = asked.each("args", Split(), "word").groupBy("word").stateQuery(state, "word", MapGet(), "count")
    collect(found.each("count", FilterNull()).aggregate("count", Sum(), "sum"), "sum")
    assert bags(run(cluster, topology).collected("sum")) == {1: bag([(2,)]), 2: bag([(0,)])}
