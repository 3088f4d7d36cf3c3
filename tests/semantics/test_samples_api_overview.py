"""The code samples of Storm's Trident API overview, line by line, in its order, with the results it gives.

Source: docs/Trident-API-Overview.md of Apache Storm. `test_sample_list.py` holds the list.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from windowing.naive import Batch
from windowing.support import Clock, Timed

from examples.trident_min_max_of_vehicles import Driver, EfficiencyComparator, SpeedComparator, Vehicle
from states.sql import SqlWindowsStoreFactory
from trident_py import Config, Fields, LocalCluster, TridentTopology, Values
from trident_py.operations import (
    BaseAggregator,
    BaseFilter,
    BaseFunction,
    CombinerAggregator,
    Consumer,
    CustomStreamGrouping,
    FlatMapFunction,
    MapFunction,
    ReducerAggregator,
)
from trident_py.operations.builtin import Count, Debug, MapGet, Sum
from trident_py.state import BaseStateUpdater
from trident_py.testing import CountAsAggregator, FixedBatchSpout, MemoryMapState, collect, stored
from trident_py.windowing import (
    Duration,
    InMemoryWindowsStoreFactory,
    SlidingCountWindow,
    SlidingDurationWindow,
    TumblingCountWindow,
    TumblingDurationWindow,
)

from .sample_parts import SENTENCES, bags_of, by_partition, spout_of
from .sample_parts import Split as SplitFunction
from .support import Batches, bag, bags, both, both_always, current, run, through

ABC = Fields("a", "b", "c")


class MyFunction(BaseFunction):
    def execute(self, tuple: Any, collector: Any) -> None:
        for i in range(tuple.getInteger(0)):
            collector.emit(Values(i))


@both
def test_d08_a_function(cluster: Any) -> None:
    tuples = [(1, 2, 3), (4, 1, 6), (3, 0, 8)]
    found = through(cluster, ABC, [tuples], lambda mystream: mystream.each(Fields("b"), MyFunction(), Fields("d")))
    assert found == {1: bag([(1, 2, 3, 0), (1, 2, 3, 1), (4, 1, 6, 0)])}


class MyFilter(BaseFilter):
    def isKeep(self, tuple: Any) -> bool:
        return tuple.getInteger(0) == 1 and tuple.getInteger(1) == 2


@both
def test_d08_a_filter(cluster: Any) -> None:
    tuples = [(1, 2, 3), (2, 1, 1), (2, 3, 4)]
    assert through(cluster, ABC, [tuples], lambda mystream: mystream.filter(MyFilter())) == {1: bag([(1, 2, 3)])}


class UpperCase(MapFunction):
    def execute(self, input: Any) -> Any:
        return Values(input.getString(0).upper())


class Split(FlatMapFunction):
    def execute(self, input: Any) -> Any:
        valuesList = []
        for word in input.getString(0).split(" "):
            valuesList.append(Values(word))
        return valuesList


@both
def test_d08_map(cluster: Any) -> None:
    def build(mystream: Any) -> Any:
        mapped = mystream.map(UpperCase())
        assert mapped.getOutputFields().toList() == ["word"]
        return mapped

    assert through(cluster, "word", [[("cow",), ("moon",)]], build) == {1: bag([("COW",), ("MOON",)])}


@both
def test_d08_flat_map(cluster: Any) -> None:
    found = through(cluster, "sentence", [[("to be or",), ("not",)]], lambda mystream: mystream.flatMap(Split()))
    assert found == {1: bag([("to",), ("be",), ("or",), ("not",)])}


@both
def test_d08_flat_map_and_map_in_a_chain(cluster: Any) -> None:
    build = lambda mystream: mystream.flatMap(Split()).map(UpperCase())  # noqa: E731
    assert through(cluster, "sentence", [[("to be",), ("or",)]], build) == {1: bag([("TO",), ("BE",), ("OR",)])}


@both
def test_d08_map_with_an_output_field(cluster: Any) -> None:
    def build(mystream: Any) -> Any:
        mapped = mystream.map(UpperCase(), Fields("uppercased"))
        assert mapped.getOutputFields().toList() == ["uppercased"]
        return mapped

    assert through(cluster, ["word", "more"], [[("cow", 1)]], build) == {1: bag([("COW",)])}


@both
def test_d08_flat_map_with_an_output_field(cluster: Any) -> None:
    def build(mystream: Any) -> Any:
        mapped = mystream.flatMap(Split(), Fields("word"))
        assert mapped.getOutputFields().toList() == ["word"]
        return mapped

    assert through(cluster, ["sentence", "more"], [[("to be", 1)]], build) == {1: bag([("to",), ("be",)])}


class Print(Consumer):
    def accept(self, input: Any) -> None:
        print(input.getString(0), flush=True)


@both
def test_d08_peek(cluster: Any, capfd: Any) -> None:
    factory = MemoryMapState.Factory()
    topology = TridentTopology()
    mystream = topology.newStream("mystream", Batches("word", [[("to be or",), ("not to be",)]]))
    (
        mystream.flatMap(Split())
        .map(UpperCase())
        .peek(Print())
        .groupBy(Fields("word"))
        .persistentAggregate(factory, Count(), Fields("count"))
    )
    run(cluster, topology)
    assert current(stored(factory)) == {("TO",): 2, ("BE",): 2, ("OR",): 1, ("NOT",): 1}
    shown = [line for line in capfd.readouterr().out.splitlines() if line.isupper()]
    if isinstance(cluster, LocalCluster):  # Spark's workers print into a log of their own
        assert shown == ["TO", "BE", "OR", "NOT", "TO", "BE"]


DEVICES = Fields("device-id", "count")
PARTITIONS = [
    [(123, 2), (113, 54), (23, 28), (237, 37), (12, 23), (62, 17), (98, 42)],
    [(64, 18), (72, 54), (2, 28), (742, 71), (98, 45), (62, 12), (19, 174)],
    [(27, 94), (82, 23), (9, 86), (53, 71), (74, 37), (51, 49), (37, 98)],
]


@both
def test_d09_min_by(cluster: Any) -> None:
    found = by_partition(cluster, DEVICES, PARTITIONS, lambda mystream: mystream.minBy("count"))
    assert found == bags_of([(123, 2)], [(62, 12)], [(82, 23)])


VEHICLES = [
    Values(Vehicle("Vehicle-0", 90, 2.5), Driver("Driver-0", 0)),
    Values(Vehicle("Vehicle-1", 20, 4.5), Driver("Driver-1", 1)),
    Values(Vehicle("Vehicle-2", 55, 1.5), Driver("Driver-2", 2)),
]


def vehicles() -> tuple[TridentTopology, Any]:
    allFields = Fields("vehicle", "driver")
    spout = FixedBatchSpout(allFields, 10, *VEHICLES)
    topology = TridentTopology()
    return topology, topology.newStream("spout1", spout).each(allFields, Debug("##### vehicles"))


@both
def test_d10_min_and_min_by_with_comparators(cluster: Any) -> None:
    vehicleField = Fields("vehicle")
    topology, vehiclesStream = vehicles()
    slowVehiclesStream = (
        vehiclesStream
        .min(SpeedComparator())  # of two tuples
        .each(vehicleField, Debug("#### slowest vehicle"))
    )  # fmt: skip
    collect(slowVehiclesStream, "slowest")
    wasteful = (
        vehiclesStream
        .minBy("vehicle", EfficiencyComparator())  # of two vehicles
        .each(vehicleField, Debug("#### least efficient vehicle"))
    )  # fmt: skip
    collect(wasteful, "least efficient")
    running = run(cluster, topology)
    assert running.collected("slowest") == {1: [tuple(VEHICLES[1])]}
    assert running.collected("least efficient") == {1: [tuple(VEHICLES[2])]}


@both
def test_d09_max_by(cluster: Any) -> None:
    found = by_partition(cluster, DEVICES, PARTITIONS, lambda mystream: mystream.maxBy("count"))
    assert found == bags_of([(113, 54)], [(19, 174)], [(37, 98)])


@both
def test_d10_max_and_max_by_with_comparators(cluster: Any) -> None:
    vehicleField, driverField = Fields("vehicle"), Fields("driver")
    topology, vehiclesStream = vehicles()
    fastDrivers = (
        vehiclesStream.max(SpeedComparator())
        .each(vehicleField, Debug("#### fastest vehicle"))
        .project(driverField)
        .each(driverField, Debug("##### fastest driver"))
    )
    collect(fastDrivers, "fastest driver")
    thrifty = vehiclesStream.maxBy("vehicle", EfficiencyComparator())
    collect(thrifty.each(vehicleField, Debug("#### most efficient vehicle")), "most efficient")
    running = run(cluster, topology)
    assert running.collected("fastest driver") == {1: [(Driver("Driver-0", 0),)]}
    assert running.collected("most efficient") == {1: [tuple(VEHICLES[1])]}


WORDS, COUNTS = Fields("word"), Fields("count")
STORE = InMemoryWindowsStoreFactory


def by_count(cluster: Any, build: Any) -> list[int]:
    """The counts that windows of seven words emit."""
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("word", [[(f"w{n}",) for n in range(7)]]))
    collect(build(stream), "out")
    return [n for rows in run(cluster, topology).collected("out").values() for (n,) in rows]


def by_time(cluster: Any, build: Any) -> dict[int, list[tuple]]:
    """The counts by txid; batches come at 1, 4, 6 and 11 seconds with 2, 1, 1 and 1 tuples."""
    batches = [Batch([[(0, "a")] * n], 1000 * second) for second, n in ((1, 2), (4, 1), (6, 1), (11, 1))]
    clock, topology = Clock(batches), TridentTopology()
    stream = topology.newStream("s", Timed(batches, {}, clock)).project(Fields("value"))
    collect(build(stream), "out")
    running = run(cluster, topology, {Config.TOPOLOGY_CLOCK: clock})
    return {txid: rows for txid, rows in running.collected("out").items() if rows}


@both
def test_d11_tumbling_window(cluster: Any) -> None:
    tumbling = lambda s: s.tumblingWindow(3, STORE(), WORDS, CountAsAggregator(), COUNTS)  # noqa: E731
    assert by_count(cluster, tumbling) == [3, 3]
    duration, value = Duration.seconds(5), Fields("value")
    timed = lambda s: s.tumblingWindow(duration, STORE(), value, CountAsAggregator(), COUNTS)  # noqa: E731
    assert by_time(cluster, timed) == {3: [(3,)], 4: [(1,)]}


@both
def test_d11_sliding_window(cluster: Any) -> None:
    sliding = lambda s: s.slidingWindow(4, 2, STORE(), WORDS, CountAsAggregator(), COUNTS)  # noqa: E731
    assert by_count(cluster, sliding) == [2, 4, 4]
    duration, interval, value = Duration.seconds(10), Duration.seconds(5), Fields("value")
    timed = lambda s: s.slidingWindow(duration, interval, STORE(), value, CountAsAggregator(), COUNTS)  # noqa: E731
    assert by_time(cluster, timed) == {3: [(3,)], 4: [(4,)]}


@both
def test_d11_window_by_a_config(cluster: Any) -> None:
    def window(config: Any, field: str) -> Any:
        return lambda s: s.window(config, STORE(), Fields(field), CountAsAggregator(), COUNTS)

    assert by_count(cluster, window(SlidingCountWindow.of(4, 2), "word")) == [2, 4, 4]
    assert by_count(cluster, window(TumblingCountWindow.of(3), "word")) == [3, 3]
    sliding = SlidingDurationWindow.of(Duration.seconds(10), Duration.seconds(5))
    assert by_time(cluster, window(sliding, "value")) == {3: [(3,)], 4: [(4,)]}
    assert by_time(cluster, window(TumblingDurationWindow.of(Duration.seconds(5)), "value")) == {3: [(3,)], 4: [(1,)]}


@both
def test_d12_a_window_in_a_store(cluster: Any, tmp_path: Path) -> None:
    """Storm's HBaseWindowsStoreFactory is gone from Storm; a SQL table takes its place. 56 cycles have 2,016 words."""
    windowStoreFactory = SqlWindowsStoreFactory(f"sqlite:///{tmp_path}/window.db", "window_state")
    spout = spout_of(len(SENTENCES), cycles=56, size=30)  # Storm's batches of 3 are slow on Spark
    topology = TridentTopology()
    stream = (
        topology.newStream("spout1", spout)
        .parallelismHint(16)
        .each(Fields("sentence"), SplitFunction(), Fields("word"))
        .window(TumblingCountWindow.of(1000), windowStoreFactory, Fields("word"), CountAsAggregator(), Fields("count"))
        .peek(lambda input: print(f"Received tuple: [{input}]"))
    )
    collect(stream, "counts")
    assert [n for rows in run(cluster, topology).collected("counts").values() for (n,) in rows] == [1000, 1000]


AB = Fields("a", "b")
PARTS = [[("a", 1), ("b", 2)], [("a", 3), ("c", 8)], [("e", 1), ("d", 9), ("d", 10)]]
TUPLES = [each for part in PARTS for each in part]


@both_always
def test_d13_partition_aggregate(cluster: Any) -> None:
    build = lambda mystream: mystream.partitionAggregate(Fields("b"), Sum(), Fields("sum"))  # noqa: E731
    assert by_partition(cluster, AB, PARTS, build) == bags_of([(3,)], [(11,)], [(20,)])


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


class CountState:
    count = 0


class CountAgg(BaseAggregator):
    def init(self, batchId: Any, collector: Any) -> CountState:
        return CountState()

    def aggregate(self, state: CountState, tuple: Any, collector: Any) -> None:
        state.count += 1

    def complete(self, state: CountState, collector: Any) -> None:
        collector.emit(Values(state.count))


def counts(cluster: Any, count: Any) -> None:
    """Of a batch, of an empty batch, and of groups."""
    build = lambda s: s.aggregate(count, Fields("count"))  # noqa: E731
    assert through(cluster, AB, [TUPLES, []], build, partitions=2) == {1: bag([(7,)]), 2: bag([(0,)])}
    build = lambda s: s.groupBy(Fields("a")).aggregate(count, Fields("count"))  # noqa: E731
    groups = [("a", 2), ("b", 1), ("c", 1), ("d", 2), ("e", 1)]
    assert through(cluster, AB, [TUPLES, []], build, partitions=2) == {1: bag(groups)}


@both
def test_d13_count_as_a_combiner_aggregator(cluster: Any) -> None:
    counts(cluster, CountCombiner())


@both
def test_d13_count_as_a_reducer_aggregator(cluster: Any) -> None:
    counts(cluster, CountReducer())


@both
def test_d13_count_as_an_aggregator(cluster: Any) -> None:
    counts(cluster, CountAgg())


@both
def test_d13_chained_aggregators(cluster: Any) -> None:
    def build(mystream: Any) -> Any:
        return (
            mystream.chainedAgg()
            .partitionAggregate(Count(), Fields("count"))
            .partitionAggregate(Fields("b"), Sum(), Fields("sum"))
            .chainEnd()
        )

    assert by_partition(cluster, AB, PARTS, build) == bags_of([(2, 3)], [(2, 11)], [(3, 20)])


@both
def test_d14_project(cluster: Any) -> None:
    build = lambda mystream: mystream.project(Fields("b", "d"))  # noqa: E731
    assert through(cluster, Fields("a", "b", "c", "d"), [[(1, 2, 3, 4)]], build) == {1: bag([(2, 4)])}


class Last(CustomStreamGrouping):
    def prepare(self, context: Any, stream: Any, targetTasks: Any) -> None:
        self.targetTasks = targetTasks

    def chooseTasks(self, taskId: int, values: Any) -> list[int]:
        return [self.targetTasks[-1]]


@pytest.mark.parametrize("name", ["shuffle", "broadcast", "partitionBy", "global", "batchGlobal", "partition"])
@both
def test_d14_repartitioning(name: str, cluster: Any) -> None:
    """Six tuples of two batches over three partitions: how many come to each. A number's hash is itself."""
    ways: dict[str, Any] = {
        "shuffle": (lambda s: s.shuffle(), [{0: 2, 1: 2, 2: 2}] * 2),
        "broadcast": (lambda s: s.broadcast(), [{0: 6, 1: 6, 2: 6}] * 2),
        "partitionBy": (lambda s: s.partitionBy(Fields("n")), None),
        "global": (lambda s: s.global_(), [{0: 6}] * 2),
        "batchGlobal": (lambda s: s.batchGlobal(), [{1: 6}, {2: 6}]),
        "partition": (lambda s: s.partition(Last()), [{2: 6}] * 2),
    }
    build, expected = ways[name]
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("n", [[(n % 3,) for n in range(6)]] * 2))
    collect(build(stream).each(Fields("n"), lambda n: True).parallelismHint(3), "out")
    found = run(cluster, topology).collected_by_partition("out")
    if expected is None:
        of_value = [{n: p for p, rows in parts.items() for (n,) in rows} for parts in found.values()]
        assert of_value[0] == of_value[1] and all(bag(rows) == bag(rows[:1] * 2) for rows in found[1].values())
    else:
        assert [{p: len(rows) for p, rows in parts.items()} for parts in found.values()] == expected


@both
def test_d14_the_count_of_a_batch(cluster: Any) -> None:
    build = lambda mystream: mystream.aggregate(Count(), Fields("count"))  # noqa: E731
    assert through(cluster, "n", [[(1,), (2,)], []], build, partitions=2) == {1: bag([(2,)]), 2: bag([(0,)])}


@both
def test_d15_merge(cluster: Any) -> None:
    topology = TridentTopology()
    stream1 = topology.newStream("one", Batches(Fields("a", "b"), [[(1, 2)], []]))
    stream2 = topology.newStream("two", Batches(Fields("x", "y"), [[(3, 4)], [(5, 6)]]))
    stream3 = topology.newStream("three", Batches(Fields("p", "q"), [[], [(7, 8)]]))
    merged = collect(topology.merge(stream1, stream2, stream3), "merged")
    assert merged.getOutputFields().toList() == ["a", "b"]
    found = bags(run(cluster, topology).collected("merged"))
    assert found == {1: bag([(1, 2), (3, 4)]), 2: bag([(5, 6), (7, 8)])}


@both
def test_d15_join(cluster: Any) -> None:
    topology = TridentTopology()
    stream1 = topology.newStream("one", Batches(Fields("key", "val1", "val2"), [[(1, "a", "b"), (2, "c", "d")]]))
    stream2 = topology.newStream("two", Batches(Fields("x", "val1"), [[(1, "e"), (1, "f"), (3, "g")]]))
    collect(topology.join(stream1, Fields("key"), stream2, Fields("x"), Fields("key", "a", "b", "c")), "joined")
    assert bags(run(cluster, topology).collected("joined")) == {1: bag([(1, "a", "b", "e"), (1, "a", "b", "f")])}


HOUR = 3600


class Remember(BaseStateUpdater):
    """Keeps the last hour of tuples under each key."""

    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        for tuple in tuples:
            key = [[tuple.getValueByField("key")]]
            kept = state.multiGet(key)[0] or []
            time = tuple.getLongByField("time")
            state.multiPut(key, [[*[each for each in kept if each[0] > time - HOUR], (time, tuple.getString(2))]])


@both
def test_d15_a_join_with_the_last_hour(cluster: Any) -> None:
    """The documentation tells it in words: one side in a state, rotated, and looked up by the other side. Both are
    branches of one spout here, so that a batch has tuples of each."""
    topology = TridentTopology()
    orders = [("order", 1, 100, "tea"), ("order", 2, 200, "cup"), ("order", 1, 3000, "milk"), ("order", 1, 3800, "pot")]
    calls = [("call", 1, 3100, None), ("call", 1, 3900, None), ("call", 2, 3900, None), ("call", 3, 3900, None)]
    spout = Batches(Fields("side", "key", "time", "what"), [orders[:3], calls[:1], orders[3:], calls[1:]])
    both_sides = topology.newStream("events", spout).partitionBy(Fields("key"))
    one = both_sides.filter(["side"], lambda side: side == "order")
    state = one.partitionPersist(MemoryMapState.Factory(), Fields("key", "time", "what"), Remember())
    other = both_sides.filter(["side"], lambda side: side == "call").project(Fields("key", "time"))
    found = other.stateQuery(state, Fields("key"), MapGet(), Fields("others"))
    joined = found.each(Fields("others"), lambda others: [what for _, what in others or []], Fields("what"))
    collect(joined.project(Fields("key", "what")), "joined")
    assert bags(run(cluster, topology).collected("joined")) == {
        2: bag([(1, "tea"), (1, "milk")]), 4: bag([(1, "milk"), (1, "pot"), (2, "cup")]),
    }  # fmt: skip
