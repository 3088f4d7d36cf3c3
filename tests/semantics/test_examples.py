"""The shapes of storm-starter's examples, with the results they have in Storm, on other data than their ports.

Names (E1, E13 ...) as in the reference of examples; values were checked against Storm's own classes. The ports are in
`examples/`, the samples of the documentation in `test_samples_*.py`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import pytest

from trident_py import TridentTopology
from trident_py.operations import BaseFilter, FlatMapFunction, MapFunction
from trident_py.operations.builtin import Count, FilterNull, MapGet, Sum
from trident_py.state import OpaqueValue
from trident_py.testing import MemoryMapState, Split, collect, stored

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


# -- E1: word count ----------------------------------------------------------------------------------------------


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
