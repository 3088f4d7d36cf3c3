"""Small parts of Storm's API that ported topologies call: what they mean here, with values."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from trident_py import (
    Config,
    DefinitionError,
    DRPCExecutionException,
    Fields,
    LocalCluster,
    LocalDRPC,
    TridentError,
    TridentTopology,
    TridentTuple,
)
from trident_py.errors import TopologyError
from trident_py.operations import (
    BaseFunction,
    CustomStreamGrouping,
    DefaultResourceDeclarer,
    OperationAwareFlatMapFunction,
    OperationAwareMapFunction,
)
from trident_py.operations.builtin import ComparisonAggregator, Count, FirstN, MaxWithComparator, Sum
from trident_py.state import CachedBatchReadsMap, CombinerValueUpdater, MemoryBackingMap, MemoryMapState, Serializer
from trident_py.testing import FeederBatchSpout, FixedBatchSpout, collect


def rows(build: Any, fields: Any, *tuples: Any, size: int = 100) -> list[tuple]:
    """What the stream that ``build`` returns has of one batch."""
    topology = TridentTopology()
    collect(build(topology.newStream("s", FixedBatchSpout(fields, size, *tuples))), "out")
    with LocalCluster() as cluster:
        running = cluster.submitTopology("ported", {}, topology.build())
        running.awaitTermination(20)
    return [row for batch in running.collected("out").values() for row in batch]


class ByLength:
    """A java.util.Comparator."""

    def compare(self, a: Any, b: Any) -> int:
        return len(a) - len(b)


WORDS = [("ox",), ("horse",), ("cat",), ("mouse",)]


def test_a_comparator_may_be_an_object_with_compare() -> None:
    assert rows(lambda s: s.maxBy("w", ByLength()), "w", *WORDS) == [("mouse",)], "of equal ones the later"
    assert rows(lambda s: s.minBy("w", ByLength()), "w", *WORDS) == [("ox",)]

    class Tuples:
        def compare(self, a: Any, b: Any) -> int:
            return ByLength().compare(a[0], b[0])

    assert rows(lambda s: s.max(Tuples()), "w", *WORDS) == [("mouse",)]
    assert rows(lambda s: s.min(Tuples()), "w", *WORDS) == [("ox",)]


def test_what_is_no_comparator_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"or have compare\(a, b\); got 7"):
        MaxWithComparator("w", 7)  # type: ignore[arg-type]


def test_a_comparison_of_ones_own_keeps_the_winner() -> None:
    class Nearest(ComparisonAggregator):
        """The value nearest to 10; the first of equal ones."""

        def compare(self, value1: Any, value2: Any) -> Any:
            return value2 if abs(value2 - 10) < abs(value1 - 10) else value1

    found = rows(lambda s: s.partitionAggregate(["n", "w"], Nearest("n"), ["n", "w"]), ["n", "w"],
                 (3, "a"), (12, "b"), (None, "c"), (8, "d"))  # fmt: skip
    assert found == [(12, "b")]


def test_the_parts_of_first_n_have_storms_names() -> None:
    found = rows(lambda s: s.partitionAggregate("n", FirstN.FirstNSortedAgg(2, "n", True), "m"), "n", (1,), (3,), (2,))
    assert found == [(3,), (2,)]
    assert rows(lambda s: s.partitionAggregate("n", FirstN.FirstNAgg(2), "m"), "n", (1,), (3,), (2,)) == [(1,), (3,)]


def test_aware_map_functions_are_prepared_and_cleaned_up() -> None:
    calls = []

    class Numbered(OperationAwareMapFunction):
        def prepare(self, conf: dict, context: Any) -> None:
            calls.append(("prepare", context.numPartitions()))

        def execute(self, tuple: Any) -> Any:
            return [tuple[0] + 1]

        def cleanup(self) -> None:
            calls.append(("cleanup", 0))

    class Twice(OperationAwareFlatMapFunction):
        def prepare(self, conf: dict, context: Any) -> None:
            self.times = 2

        def execute(self, tuple: Any) -> Any:
            return [list(tuple)] * self.times

    assert rows(lambda s: s.map(Numbered()).flatMap(Twice()), "n", (1,), (5,)) == [(2,), (2,), (6,), (6,)]
    assert calls == [("prepare", 1), ("cleanup", 0)]


def test_fields_select_values_and_know_their_names() -> None:
    fields = Fields("a", "b", "c")
    assert fields.contains("b") and not fields.contains("d")
    assert fields.select(Fields("c", "a"), (1, 2, 3)) == [3, 1]
    with pytest.raises(DefinitionError, match="d does not exist"):
        fields.select("d", (1, 2, 3))


def test_tuples_for_tests_are_made_as_in_storm() -> None:
    made = TridentTuple.createFreshTuple(Fields("a", "b"), 1, 2)
    assert made == TridentTuple.createFreshTuple(Fields("a", "b"), [1, 2]) == (1, 2)
    assert made.getValueByField("b") == 2 and TridentTuple.EMPTY_TUPLE.size() == 0


def test_a_value_updater_tells_its_aggregator_and_its_argument() -> None:
    updater = CombinerValueUpdater(Sum(), 5)
    assert (updater.getArg(), type(updater.getAgg()), updater.update(2), updater.update(None)) == (5, Sum, 7, 5)


def test_what_a_commit_has_written_overrides_the_store() -> None:
    class Slow(MemoryBackingMap):
        """Shows no write."""

        def multiPut(self, keys: Any, vals: Any) -> None: ...

    store = CachedBatchReadsMap(Slow())
    assert store.multiGet([["a"]]) == [(None, False)]
    store.multiPut([["a"], ["b"]], [1, None])
    assert [(value.val, value.cached) for value in store.multiGet([["a"], ["b"], ["c"], [1]])] == [
        (1, True), (None, True), (None, False), (None, False),
    ]  # fmt: skip
    store.reset()
    assert store.multiGet([["a"]]) == [CachedBatchReadsMap.RetVal(None, False)]


def test_a_serializer_of_ones_own_has_two_methods() -> None:
    class Text(Serializer):
        def serialize(self, obj: Any) -> bytes:
            return str(obj).encode()

        def deserialize(self, data: bytes) -> Any:
            return data.decode()

    assert Text().deserialize(Text().serialize(5)) == "5"


# -- groupings ----------------------------------------------------------------------------------------------------


class InTurn(CustomStreamGrouping):
    """Sends to one partition after the other: what it remembers is its own, in each partition that sends."""

    def prepare(self, context: Any, stream: str, targetTasks: Any) -> None:
        self.tasks, self.next, self.source = list(targetTasks), 0, context.getPartitionIndex()

    def chooseTasks(self, taskId: int, values: Any) -> list[int]:
        assert taskId == self.source
        self.next += 1
        return [self.tasks[self.next % len(self.tasks)]]


class Where(BaseFunction):
    def prepare(self, conf: dict, context: Any) -> None:
        self.index = context.getPartitionIndex()

    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([self.index])


def test_a_grouping_is_prepared_once_for_each_partition_that_sends_and_keeps_what_it_remembers() -> None:
    def build(stream: Any) -> Any:
        spread = stream.shuffle().each([], lambda: [0], "x").parallelismHint(2)
        return spread.name("rows").partition(InTurn()).each([], Where(), "p").parallelismHint(3)

    found = rows(build, "n", *[(n,) for n in range(12)], size=3)
    # Over four batches of three, one sender gets 8 tuples (1 2 0 1 2 0 1 2), the other 4 (1 2 0 1).
    assert Counter(partition for _, _, partition in found) == {0: 3, 1: 5, 2: 4}


def test_a_grouping_that_chooses_no_task_drops_the_tuple_and_several_repeat_it() -> None:
    class Odd(CustomStreamGrouping):
        def chooseTasks(self, taskId: int, values: Any) -> list[int]:
            return [0, 1] if values[0] % 2 else []

    def build(stream: Any) -> Any:
        return stream.partition(Odd()).each([], Where(), "p").parallelismHint(2)

    assert sorted(rows(build, "n", (1,), (2,), (3,))) == [(1, 0), (1, 1), (3, 0), (3, 1)]


def test_a_grouping_without_choosetasks_and_what_is_no_grouping_are_refused() -> None:
    class Empty(CustomStreamGrouping):
        def chooseTask(self, taskId: int, values: Any) -> list[int]:
            return []

    stream = TridentTopology().newStream("s", FixedBatchSpout("n", 1, (1,)))
    with pytest.raises(DefinitionError, match=r"Empty does not define chooseTasks; did you mean .* chooseTask"):
        stream.partition(Empty())
    with pytest.raises(DefinitionError, match="takes a CustomStreamGrouping or a callable, got 'n'"):
        stream.partition("n")  # type: ignore[arg-type]


# -- configuration and clusters -----------------------------------------------------------------------------------


def test_every_setter_of_config_sets_storms_key_on_a_config_and_on_any_dict() -> None:
    conf = Config()
    conf.setNumAckers(3)
    conf.setNumEventLoggers(1)
    conf.setStatsSampleRate(0.5)
    conf.setTopologyComponentWorkerConstraints("a", "b")
    conf.setTopologyComponentWorkerConstraints("a", "c")
    conf.registerSerialization("Word")
    conf.registerSerialization("Sentence", "SentenceSerializer")
    conf.registerMetricsConsumer("Log", 2)
    conf.registerMetricsConsumer("Log", "argument", 3)
    assert conf == {
        "topology.acker.executors": 3,
        "topology.eventlogger.executors": 1,
        "topology.stats.sample.rate": 0.5,
        "topology.ras.constraints": [["a", "b"], ["a", "c"]],
        "topology.kryo.register": ["Word", {"Sentence": "SentenceSerializer"}],
        "topology.metrics.consumer.register": [
            {"class": "Log", "parallelism.hint": 2, "argument": None},
            {"class": "Log", "parallelism.hint": 3, "argument": "argument"},
        ],
    }
    plain: dict[str, Any] = {}
    Config.setNumWorkers(plain, 4)  # type: ignore[arg-type]
    Config.registerDecorator(plain, "Decorator")  # type: ignore[arg-type]
    assert plain == {"topology.workers": 4, "topology.kryo.decorators": ["Decorator"]}


def test_no_setter_of_config_makes_a_key_that_the_run_warns_of(caplog: pytest.LogCaptureFixture) -> None:
    conf = Config()
    for name in ("setNumAckers", "setNumEventLoggers", "setTopologyPriority", "setMaxSpoutPending"):
        vars(Config)[name](conf, 1)
    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout("n", 1, (1,)))
    with caplog.at_level(logging.WARNING, "trident_py"), LocalCluster() as cluster:
        cluster.submitTopology("quiet", conf, topology.build()).awaitTermination(20)
    assert [record.message for record in caplog.records if "no effect" in record.message] == []


def test_resource_hints_are_taken_and_told_and_change_nothing() -> None:
    hints = DefaultResourceDeclarer().setCPULoad(50).setMemoryLoad(128, 64).addSharedMemory("cache")
    assert hints.getResources() == {
        "topology.component.cpu.pcore.percent": 50.0,
        "topology.component.resources.onheap.memory.mb": 128.0,
        "topology.component.resources.offheap.memory.mb": 64.0,
    }
    assert hints.getSharedMemory() == {"cache"}
    factory = MemoryMapState.Factory()
    plain, hinted = TridentTopology(), TridentTopology().setResourceDefaults(hints).setMasterCoordResources(hints)
    for topology in (plain, hinted):
        words = topology.newStream("s", FixedBatchSpout("w", 1, ("a",)))
        state = words.groupBy("w").persistentAggregate(factory, Count(), "n")
        if topology is hinted:
            state.setCPULoad(10).setMemoryLoad(1).addSharedMemory("x").newValuesStream().addSharedMemory("y")
    assert plain.explain() == hinted.explain()


def feeding() -> tuple[Any, Any]:
    feeder, topology = FeederBatchSpout("n"), TridentTopology()
    topology.newStream("s", feeder)
    return feeder, topology.build()


def test_a_killed_topology_ends_and_the_others_go_on() -> None:
    (first, one), (second, two) = feeding(), feeding()
    with LocalCluster() as cluster:
        running, other = cluster.submitTopology("one", {}, one), cluster.submitTopology("two", {}, two)
        first.feed([(1,)], timeout=20)
        cluster.killTopology("one")
        assert not running.isActive and running.txid == 1 and running.exception is None
        second.feed([(1,)], timeout=20)
        with pytest.raises(TridentError, match="no topology 'one' is active on this cluster; active: two"):
            cluster.killTopology("one")
        cluster.killTopologyWithOpts("two", {"wait_secs": 30})
        assert not other.isActive


def test_a_killed_topology_answers_no_requests_even_if_its_spouts_have_ended() -> None:
    drpc, topology = LocalDRPC(), TridentTopology()
    topology.newStream("s", FixedBatchSpout("n", 1, (1,)))
    topology.newDRPCStream("twice", drpc).map(lambda row: [row[0] * 2], "result")
    with LocalCluster() as cluster:
        running = cluster.submitTopology("answering", {}, topology.build())
        running.awaitTermination(20)
        assert drpc.execute("twice", "ab") == [["abab"]] and not running.isActive
        cluster.killTopology("answering")
        with pytest.raises(DRPCExecutionException):
            drpc.execute("twice", "ab")
        with pytest.raises(TridentError, match="active: none"):
            cluster.killTopology("answering")


def test_a_running_topology_ends_with_its_block() -> None:
    feeder, topology = feeding()
    with LocalCluster() as cluster:
        with cluster.submitTopology("block", {}, topology) as running:
            feeder.feed([(1,)], timeout=20)
        assert not running.isActive and running.txid == 1


@pytest.mark.spark
def test_stormsubmitter_runs_the_topology_to_its_end_on_spark(spark: Any, tmp_path: Path) -> None:
    from trident_py import StormSubmitter

    topology = TridentTopology()
    collect(topology.newStream("s", FixedBatchSpout("n", 2, (1,), (2,), (3,))), "out")
    running = StormSubmitter.submitTopology("submitted", {"topology.checkpoints": str(tmp_path)}, topology.build())
    assert running.collected("out") == {1: [(1,), (2,)], 2: [(3,)]} and not running.isActive
    assert (tmp_path / "submitted").is_dir()


@pytest.mark.spark
def test_metrics_of_workers_reach_the_driver_of_a_spark_run(spark_cluster: Any) -> None:
    from trident_py.operations import BaseFilter

    class Counting(BaseFilter):
        def prepare(self, conf: dict, context: Any) -> None:
            self.seen = context.registerCounter("seen")
            self.sizes = context.registerHistogram("sizes")

        def isKeep(self, tuple: Any) -> bool:
            self.seen.inc()
            self.sizes.update(tuple[0])
            return True

    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout("n", 3, *[(n,) for n in range(8)]))
    stream.shuffle().each("n", Counting()).parallelismHint(2).groupBy("n").persistentAggregate(
        MemoryMapState.Factory(), Count(), "c"
    )
    running = spark_cluster().submitTopology("measured", {}, topology.build())
    running.awaitTermination(120)
    found = running.progress["s"].metrics
    assert found["seen"] == 8
    sizes = found["sizes"]
    assert (sizes["count"], sizes["min"], sizes["max"], sizes["mean"]) == (8, 0, 7, 3.5)


def test_a_failing_run_still_tells_its_metrics() -> None:
    class Failing(BaseFunction):
        def prepare(self, conf: dict, context: Any) -> None:
            self.calls = context.registerCounter("calls")

        def execute(self, tuple: Any, collector: Any) -> None:
            self.calls.inc()
            raise ValueError("no")

    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout("n", 1, (1,))).each("n", Failing(), "m")
    with LocalCluster() as cluster:
        running = cluster.submitTopology("failing", {}, topology.build())
        with pytest.raises(TopologyError):
            running.awaitTermination(20)
    assert running.progress["s"].metrics == {"calls": 1}
