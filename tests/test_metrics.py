"""Metrics of user code: what is registered in prepare and makeState reaches running.progress, added up."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import pytest

from states.sql import SqlMapState
from trident_py import DefinitionError, Fields, LocalCluster, TridentTopology
from trident_py.errors import FailedException
from trident_py.metrics import (
    AssignableMetric,
    CountMetric,
    Gauge,
    Histogram,
    ICombiner,
    IMetricsContext,
    MeanReducer,
    MetricSet,
    MultiCountMetric,
    Timer,
)
from trident_py.metrics.tallies import Tallies
from trident_py.operations import BaseFilter, BaseFunction, MultiReducer
from trident_py.operations.builtin import Count
from trident_py.state import BaseStateUpdater, State, StateFactory
from trident_py.testing import FeederBatchSpout, FixedBatchSpout, collect


class Measured(BaseFilter):
    """Keeps short words and counts in every way."""

    def prepare(self, conf: dict, context: Any) -> None:
        self.dropped = context.registerCounter("dropped")
        self.seen = context.registerMeter("seen")
        self.lengths = context.registerHistogram("lengths")
        self.calls = context.registerMetric("calls", CountMetric(), 60)
        self.mean = context.registerMetric("mean", MeanReducer(), 60)
        self.partitions = context.numPartitions()
        context.registerGauge("partitions", lambda: self.partitions)

    def isKeep(self, tuple: Any) -> bool:
        word = tuple.getString(0)
        self.seen.mark()
        self.calls.incr()
        self.lengths.update(len(word))
        self.mean.update(len(word))
        if len(word) > 3:
            self.dropped.inc()
            return False
        return True


WORDS = [("cat",), ("horse",), ("ox",), ("donkey",), ("cow",)]


def run(build: Callable[[Any], Any], size: int = 2, tuples: Any = WORDS) -> Any:
    topology = TridentTopology()
    build(topology.newStream("words", FixedBatchSpout("word", size, *tuples)))
    with LocalCluster() as cluster:
        running = cluster.submitTopology("metrics", {}, topology.build())
        running.awaitTermination(20)
        return running


def metrics(running: Any) -> dict[str, Any]:
    (progress,) = running.progress.values()
    return progress.metrics


def test_what_operations_count_is_in_the_progress_over_all_partitions_and_batches() -> None:
    found = metrics(run(lambda words: words.shuffle().each("word", Measured()).parallelismHint(2)))
    assert found["dropped"] == 2 and found["seen"]["count"] == 5
    assert found["partitions"] == {0: 2, 1: 2}
    lengths = found["lengths"]
    assert (lengths["count"], lengths["min"], lengths["max"], lengths["mean"]) == (5, 2, 6, 19 / 5)
    assert (lengths["p50"], lengths["p99"]) == (3, 6)


def test_a_metric_of_the_first_interface_has_the_value_of_its_last_attempt_by_partition() -> None:
    found = metrics(run(lambda words: words.each("word", Measured())))
    assert found["calls"] == {0: 1}, "the last batch has one word"
    assert found["mean"] == {0: 3.0}


def test_one_name_in_two_operations_is_one_number() -> None:
    found = metrics(run(lambda words: words.each("word", Measured()).each("word", Measured()), 5))
    assert found["seen"]["count"] == 5 + 3 and found["dropped"] == 2


def test_a_replayed_batch_counts_again() -> None:
    class Failing(Measured):
        def isKeep(self, tuple: Any) -> bool:
            kept = super().isKeep(tuple)
            if self.context.transaction.attemptId == 0 and tuple[0] == "ox":
                raise FailedException("again")
            return kept

        def prepare(self, conf: dict, context: Any) -> None:
            super().prepare(conf, context)
            self.context = context

    found = metrics(run(lambda words: words.each("word", Failing()), 3))
    assert found["seen"]["count"] == 5 + 3, "the first three words ran twice"


def test_a_state_registers_its_metrics_in_makestate_and_counts_in_the_commit() -> None:
    class Rows(State):
        def __init__(self, metrics: Any) -> None:
            self.commits = metrics.registerCounter("commits")

        def beginCommit(self, txid: int | None) -> None: ...

        def commit(self, txid: int | None) -> None:
            self.commits.inc()

    class Factory(StateFactory):
        def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> State:
            return Rows(metrics)

    class Nothing(BaseStateUpdater):
        def prepare(self, conf: dict, context: Any) -> None:
            self.tuples = context.registerCounter("updated")

        def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
            self.tuples.inc(len(tuples))

    found = metrics(run(lambda words: words.partitionPersist(Factory(), "word", Nothing())))
    assert found == {"commits": 3, "updated": 5}


def test_a_spout_in_the_driver_registers_metrics_in_open() -> None:
    class Counting(FixedBatchSpout):
        def open(self, conf: dict, context: Any) -> None:
            self.batches = context.registerCounter("batches")

        def emitBatch(self, batchId: int, collector: Any) -> None:
            self.batches.inc()
            super().emitBatch(batchId, collector)

    topology = TridentTopology()
    topology.newStream("words", Counting("word", 2, *WORDS))
    with LocalCluster() as cluster:
        running = cluster.submitTopology("metrics", {}, topology.build())
        running.awaitTermination(20)
    assert metrics(running) == {"batches": 3}


def test_listeners_see_the_metrics_of_each_committed_batch() -> None:
    seen: list[tuple[str, Any]] = []
    feeder, topology = FeederBatchSpout("word"), TridentTopology()
    topology.newStream("words", feeder).each("word", Measured())
    with LocalCluster() as cluster:
        running = cluster.submitTopology("metrics", {}, topology.build())
        running.addListener(
            lambda event, progress: seen.append((event.kind, progress and progress.metrics.get("dropped")))
        )
        for word in ("horse", "ox", "donkey"):
            feeder.feed([(word,)], timeout=20)
        feeder.close()
        running.awaitTermination(20)
    committed = [dropped for kind, dropped in seen if kind == "committed"]
    assert committed == [1, 1, 2] and seen[-1] == ("ended", None), "the end is an event of no component"


def test_a_gauge_that_fails_is_an_event_and_fails_no_batch() -> None:
    class Broken(BaseFilter):
        def prepare(self, conf: dict, context: Any) -> None:
            context.registerGauge("broken", lambda: 1 / 0)
            context.registerGauge("unpicklable", Lock)
            context.registerGauge("well", lambda: 7)

        def isKeep(self, tuple: Any) -> bool:
            return True

    running = run(lambda words: words.each("word", Broken()), 5)
    assert metrics(running) == {"well": {0: 7}} and running.txid == 1
    reported = [event.reason for event in running.events if event.kind == "reported"]
    assert len(reported) == 2 and "'broken' has no value: ZeroDivisionError" in reported[0]
    assert "'unpicklable' has no value" in reported[1]


def test_a_name_belongs_to_one_kind_of_metric_and_to_one_first_metric() -> None:
    context = IMetricsContext()
    assert context.registerCounter("n") is context.registerCounter("n")
    with pytest.raises(DefinitionError, match="'n' is a Counter already"):
        context.registerMeter("n")
    context.registerMetric("m", CountMetric(), 1)
    with pytest.raises(DefinitionError, match="'m' was registered twice"):
        context.registerMetric("m", CountMetric(), 1)
    with pytest.raises(DefinitionError, match="IMetric"):
        context.registerMetric("x", object(), 1)


def taken(context: IMetricsContext) -> dict[str, Any]:
    """What the driver shows after two attempts of half a second each, of which the second had nothing new."""
    tallies = Tallies()
    for _ in range(2):
        tallies.attempt([(0, report) for report in context.take(lambda name, error: pytest.fail(name))], 0.5)
    return tallies.values()


def test_the_kinds_of_metrics() -> None:
    class Most(ICombiner):
        def identity(self) -> int:
            return 0

        def combine(self, a: int, b: int) -> int:
            return max(a, b)

    context = IMetricsContext()
    counter, meter = context.registerCounter("counter"), context.registerMeter("meter")
    counter.inc(5)
    counter.dec(2)
    meter.mark(10)
    by_word, most = context.registerMetric("by word", MultiCountMetric(), 1), context.registerMetric("most", Most(), 1)
    by_word.scope("a").incrBy(3)
    most.update(4)
    most.update(2)
    context.registerMetric("fixed", AssignableMetric(1), 1).setValue(9)
    assert [(report.name, report.new) for report in context.take(lambda *_: None)] == [
        ("counter", 3), ("meter", 10), ("by word", {"a": 3}), ("most", 4), ("fixed", 9),
    ]  # fmt: skip
    assert [(report.name, report.new) for report in context.take(lambda *_: None)] == [
        ("by word", {"a": 0}), ("most", 0), ("fixed", 9),
    ]  # fmt: skip
    assert (counter.getCount(), meter.getCount()) == (3, 10)


def test_a_meter_has_the_rate_of_the_last_attempt() -> None:
    context = IMetricsContext()
    meter = context.registerMeter("m")
    meter.mark(30)
    tallies = Tallies()
    tallies.attempt([(0, report) for report in context.take(lambda *_: None)], 0.5)
    assert tallies.values() == {"m": {"count": 30, "rate": 60.0}}
    tallies.attempt([], 0.5)
    assert tallies.values() == {"m": {"count": 30, "rate": 0.0}}


def test_a_histogram_is_exact_in_count_and_range_and_keeps_a_sample() -> None:
    context = IMetricsContext()
    histogram = context.registerHistogram("h")
    for value in range(10_000):
        histogram.update(value)
    shown = taken(context)["h"]
    assert (shown["count"], shown["min"], shown["max"], shown["mean"]) == (10_000, 0, 9_999, 4999.5)
    assert 3_500 < shown["p50"] < 6_500 and shown["p95"] > 8_500
    snapshot = histogram.getSnapshot()
    assert (snapshot.size(), snapshot.getMin(), snapshot.getMax()) == (1028, 8972, 9999), "the latest"


def test_percentiles_are_codahales() -> None:
    histogram = Histogram()
    for value in (1, 2, 3, 4, 5):
        histogram.update(value)
    snapshot = histogram.getSnapshot()
    assert (snapshot.getMedian(), snapshot.get75thPercentile(), snapshot.get99thPercentile()) == (3, 4.5, 5)
    assert (snapshot.getMean(), snapshot.getValues()) == (3, [1, 2, 3, 4, 5])
    assert Histogram().getSnapshot().getMedian() == 0


def test_a_timer_takes_seconds_by_its_own_clock() -> None:
    now = iter([0.0, 0.25, 10.0, 11.0, 20.0, 20.5])
    timer = Timer(lambda: next(now))
    with timer.time():
        pass
    timer.time().stop()
    assert timer.time(lambda: "result") == "result"
    assert timer.getSnapshot().getValues() == [0.25, 0.5, 1.0]


def test_a_metric_set_registers_each_under_its_prefix() -> None:
    class Pool(MetricSet):
        def getMetrics(self) -> dict[str, Any]:
            return {"size": Gauge(lambda: 3), "free": lambda: 2, "waits": Timer()}

    context = IMetricsContext()
    context.registerMetricSet("pool", Pool())
    assert taken(context) == {"pool.size": {0: 3}, "pool.free": {0: 2}}


def test_a_projection_factory_makes_tuples_of_some_input_fields() -> None:
    class Second(BaseFunction):
        def prepare(self, conf: dict, context: Any) -> None:
            self.factory = context.makeProjectionFactory(Fields("b"))

        def execute(self, tuple: Any, collector: Any) -> None:
            projected = self.factory.create(tuple)
            collector.emit((f"{projected.getFields()} {projected.getValueByField('b')}",))

    topology = TridentTopology()
    stream = topology.newStream("rows", FixedBatchSpout(["a", "b", "c"], 2, (1, 2, 3), (4, 5, 6)))
    collect(stream.each(["b", "c"], Second(), "d").project("d"), "rows")
    with LocalCluster() as cluster:
        running = cluster.submitTopology("projection", {}, topology.build())
        running.awaitTermination(20)
    assert running.collected("rows") == {1: [("[b] 2",), ("[b] 5",)]}


def test_a_projection_of_a_field_that_is_no_input_field_is_refused() -> None:
    class Wrong(BaseFilter):
        def prepare(self, conf: dict, context: Any) -> None:
            context.makeProjectionFactory(Fields("word"))

        def isKeep(self, tuple: Any) -> bool:
            return True

    with pytest.raises(Exception, match="has no field 'word'; it has"):
        run(lambda words: words.each([], Wrong()))


def test_a_multi_reducer_projects_each_stream_and_counts() -> None:
    class Pairs(MultiReducer):
        def prepare(self, conf: dict, context: Any) -> None:
            self.first = context.makeProjectionFactory(0, "x")
            self.second = context.makeProjectionFactory(1, ["z", "y"])
            self.calls = context.registerCounter("calls")

        def init(self, collector: Any) -> None:
            return None

        def execute(self, state: Any, streamIndex: int, input: Any, collector: Any) -> None:
            self.calls.inc()
            factory = (self.first, self.second)[streamIndex]
            collector.emit((streamIndex, list(factory.create(input))))

        def complete(self, state: Any, collector: Any) -> None: ...

    topology = TridentTopology()
    one = topology.newStream("one", FixedBatchSpout(["w", "x"], 1, (1, 2)))
    two = topology.newStream("two", FixedBatchSpout(["y", "z"], 1, (3, 4)))
    collect(topology.multiReduce(one, two, Pairs(), ["stream", "values"]), "rows")
    with LocalCluster() as cluster:
        running = cluster.submitTopology("multi", {}, topology.build())
        running.awaitTermination(20)
    assert sorted(running.collected("rows")[1]) == [(0, [2]), (1, [4, 3])]
    assert metrics(running) == {"calls": 2}


def guarantee(filter_: Any) -> Any:
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word", 2, *WORDS)).each("word", filter_)
    numbers = SqlMapState.transactional("sqlite:///no.db", "t", keys=Fields("word string"), value=Fields("n bigint"))
    words.groupBy("word").persistentAggregate(numbers, Count(), "n")
    (found,) = topology.guarantees()
    return found.guarantee, found.reason


def test_metrics_do_not_make_a_function_nondeterministic() -> None:
    class Timed(BaseFilter):
        def prepare(self, conf: dict, context: Any) -> None:
            self.timer = context.registerTimer("t")
            self.words = context.registerMetric("words", MultiCountMetric(), 1)
            self.factory = context.makeProjectionFactory("word")

        def isKeep(self, tuple: Any) -> bool:
            self.words.scope(tuple.getString(0)).incr()
            with self.timer.time():
                running = self.timer.time()
                running.stop()
                return self.timer.time(lambda: len(self.factory.create(tuple)[0]) > 2)

    assert guarantee(Measured())[0] == "exactly once", guarantee(Measured())
    assert guarantee(Timed())[0] == "exactly once", guarantee(Timed())


def test_a_value_that_is_read_from_a_metric_differs_in_a_replay() -> None:
    class Every(BaseFilter):
        def prepare(self, conf: dict, context: Any) -> None:
            self.seen = context.registerCounter("seen")

        def isKeep(self, tuple: Any) -> bool:
            self.seen.inc()
            return self.seen.getCount() % 10 == 0

    assert guarantee(Every())[0] == "wrong" and "calls getCount" in guarantee(Every())[1]
