"""LocalCluster: runs, ends, stops, goes on from a checkpoint, leaves nothing behind."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest
from semantics.support import Batches

from states.sql import SqlMapState
from trident_py import DefinitionError, LocalCluster, TopologyError, TridentTopology
from trident_py.engine.worker_cache import _runs
from trident_py.errors import FailedException, TridentError
from trident_py.model.context import RunContext
from trident_py.operations import BaseAggregator, Function
from trident_py.operations.builtin import Count, MapGet
from trident_py.state import MemoryBackingMap, NonTransactionalMap, StateFactory
from trident_py.testing import FeederBatchSpout, FixedBatchSpout, LoggingBackingMap, MemoryMapState, collect, stored


def counting(spout: Any, factory: Any, stop_at: int | None = None, stop: Any = None) -> TridentTopology:
    topology = TridentTopology()
    stream = topology.newStream("s", spout)
    if stop is not None:
        stream = stream.peek(lambda t: t[0] == stop_at and stop())
    stream.persistentAggregate(factory, Count(), "n")
    return topology


def test_submit_returns_at_once_and_a_finite_spout_ends_the_run() -> None:
    feeder = FeederBatchSpout("v")
    with LocalCluster() as cluster:
        topology = counting(feeder, MemoryMapState.Factory())
        running = cluster.submitTopology("fed", {}, topology.build())
        assert running.isActive and not running.awaitTermination(0)
        feeder.feed([(1,), (2,)], timeout=30)
        assert running.txid == 1
        feeder.close()
        assert running.awaitTermination(30)


def test_no_empty_batch_runs_behind_the_last() -> None:
    factory = LoggingBackingMap.Factory("transactional")
    with LocalCluster() as cluster:
        running = cluster.submitTopology("t", {}, counting(FixedBatchSpout("v", 2, (1,), (2,), (3,)), factory).build())
        assert running.awaitTermination(30) and running.txid == 2
    assert list(stored(factory).values()) == [(2, 3)]


def test_a_cycling_spout_runs_until_it_is_stopped() -> None:
    reached = threading.Event()
    topology = counting(FixedBatchSpout("v", 1, (1,)).setCycle(True), MemoryMapState.Factory())
    with LocalCluster() as cluster:
        running = cluster.submitTopology("t", {}, topology.build())
        running.addListener(lambda event, progress: event.kind == "committed" and event.txid >= 5 and reached.set())
        assert reached.wait(30)
        running.stop()
        assert running.awaitTermination(0) and running.exception is None


def test_shutdown_stops_what_runs_and_leaves_no_thread_and_no_task() -> None:
    before = set(threading.enumerate()), dict(_runs)
    with LocalCluster() as cluster:
        for name in "ab":
            spout = FixedBatchSpout("v", 1, (1,)).setCycle(True)
            cluster.submitTopology(name, {}, counting(spout, MemoryMapState.Factory()).build())
    left = [thread for thread in threading.enumerate() if thread not in before[0] and thread.name == "trident-s"]
    for thread in left:
        thread.join(10)
        assert not thread.is_alive()
    assert dict(_runs) == before[1]


def test_stop_during_a_replay_that_waits_ends_at_once() -> None:
    def fail(v: Any) -> Any:
        from trident_py import FailedException

        raise FailedException("always")

    topology = TridentTopology()
    topology.newStream("s", Batches("v", [[(1,)]])).each("v", fail, "w")
    tried = threading.Event()
    with LocalCluster() as cluster:
        running = cluster.submitTopology("t", {}, topology.build())
        running.addListener(lambda event, progress: event.kind == "replay" and event.attempt >= 1 and tried.set())
        assert tried.wait(30)
    assert not running.isActive and running.txid is None and running.exception is None


def test_without_a_checkpoint_a_run_starts_anew() -> None:
    for _ in range(2):
        with LocalCluster() as cluster:
            topology = TridentTopology()
            collect(topology.newStream("s", FixedBatchSpout("v", 1, (1,), (2,))), "out")
            running = cluster.submitTopology("same", {}, topology.build())
            assert running.awaitTermination(30)
            assert running.collected("out") == {1: [(1,)], 2: [(2,)]}


def test_with_a_checkpoint_a_topology_goes_on_where_it_stopped(tmp_path: Path) -> None:
    rows, seen = [(i,) for i in range(6)], []
    factory = LoggingBackingMap.Factory("transactional")
    for count in (2, 6, 6):
        with LocalCluster(checkpoints=str(tmp_path)) as cluster:
            topology = counting(FixedBatchSpout("v", 1, *rows[:count]), factory)
            running = cluster.submitTopology("kept", {}, topology.build())
            assert running.awaitTermination(30)
            seen.append((sorted(running.attempts), running.txid))
    assert seen == [([1, 2], 2), ([3, 4, 5, 6], 6), ([], 6)]
    assert list(stored(factory).values()) == [(6, 6)]


def test_a_folder_that_cannot_be_used_is_told_at_the_submit(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with LocalCluster(str(tmp_path / "file")) as cluster:
        with pytest.raises(TridentError, match=r"the checkpoint .*/file/t/.* cannot be used: .*Not a directory"):
            cluster.submitTopology("t", {}, counting(FixedBatchSpout("v", 1), MemoryMapState.Factory()).build())


def test_settings_of_a_store_need_one() -> None:
    with pytest.raises(DefinitionError, match="checkpoints: storage is for one kind of store"):
        LocalCluster("here", {"user": "me"})


def test_the_name_and_the_run_are_in_the_conf_that_operations_get() -> None:
    seen: dict[str, Any] = {}

    class Looks(Function):
        def prepare(self, conf: dict, context: Any) -> None:
            seen.update(conf)

        def execute(self, tuple: Any, collector: Any) -> None: ...

    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout("v", 1, (1,))).each("v", Looks(), "w")
    with LocalCluster() as cluster:
        assert cluster.submitTopology("named", {"own": 5}, topology.build()).awaitTermination(30)
    assert (seen["topology.name"], seen["own"]) == ("named", 5)


class Opened(BaseAggregator):
    def init(self, batchId: Any, collector: Any) -> None: ...

    def aggregate(self, value: Any, tuple: Any, collector: Any) -> None: ...

    def complete(self, value: Any, collector: Any) -> None:
        collector.emit([1])


def test_of_a_chain_that_cannot_be_prepared_nothing_stays_open() -> None:
    """Each replay prepares it anew."""
    calls: list[str] = []

    class First(Opened):
        def prepare(self, conf: dict, context: Any) -> None:
            calls.append("opened")

        def cleanup(self) -> None:
            calls.append("closed")

    class Second(Opened):
        def prepare(self, conf: dict, context: Any) -> None:
            if len(calls) < 4:
                raise FailedException("away")

    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout("n", 1, (1,)))
    stream.chainedAgg().aggregate("n", First(), "a").aggregate("n", Second(), "b").chainEnd()
    with LocalCluster() as cluster:
        cluster.submitTopology("t", {}, topology.build()).awaitTermination(60)
    assert calls == ["opened", "closed"] * 3


def test_operations_are_prepared_once_for_each_partition_and_cleaned_up_at_the_end() -> None:
    calls: list[Any] = []

    class Lives(Function):
        def prepare(self, conf: dict, context: Any) -> None:
            self.index = context.getPartitionIndex()
            calls.append(("prepare", self.index))

        def execute(self, tuple: Any, collector: Any) -> None: ...

        def cleanup(self) -> None:
            calls.append(("cleanup", self.index))

    topology = TridentTopology()
    topology.newStream("s", Batches("v", [[(1,), (2,)]] * 3)).each("v", Lives(), "w").parallelismHint(2)
    with LocalCluster() as cluster:
        assert cluster.submitTopology("t", {}, topology.build()).awaitTermination(30)
    assert sorted(calls) == [("cleanup", 0), ("cleanup", 1), ("prepare", 0), ("prepare", 1)]


def test_an_error_at_the_start_ends_the_run_with_its_cause() -> None:
    class NoState(MemoryMapState.Factory):
        def makeState(self, *args: Any) -> Any:
            raise OSError("no such store")

    with LocalCluster() as cluster:
        running = cluster.submitTopology("t", {}, counting(FixedBatchSpout("v", 1, (1,)), NoState()).build())
        with pytest.raises(TopologyError, match="no such store") as error:
            running.awaitTermination(30)
    assert isinstance(error.value.__cause__, OSError)


def test_a_wrong_base_is_told() -> None:
    with LocalCluster() as cluster:
        topology = counting(FixedBatchSpout("v", 1, (1,)), MemoryMapState.Factory())
        running = cluster.submitTopology("t", {"topology.txid.base": -1}, topology.build())
        with pytest.raises(TopologyError, match=r"topology\.txid\.base") as error:
            running.awaitTermination(30)
    assert isinstance(error.value.__cause__, DefinitionError)


@pytest.mark.parametrize("name", ["../escaped", "..", ".", "/tmp/escaped", "a/b", "a\\b", "a\0b", " "])
def test_a_name_that_leads_out_of_the_checkpoints_is_refused(tmp_path: Path, name: str) -> None:
    def named(stream: str) -> Any:
        topology = TridentTopology()
        topology.newStream(stream, FixedBatchSpout("v", 1, (1,)))
        return topology.build()

    with LocalCluster(str(tmp_path / "checkpoints")) as cluster:
        with pytest.raises(DefinitionError, match="its checkpoint folder has that name"):
            cluster.submitTopology(name, {}, named("s"))
        with pytest.raises(DefinitionError, match="its checkpoint folder has that name"):
            cluster.submitTopology("t", {}, named(name))
    assert list(tmp_path.iterdir()) == []


def test_a_stream_that_only_queries_a_state_leaves_the_fence_of_the_one_that_updates_it(tmp_path: Path) -> None:
    """The first one to ask makes its own object: it has no generation, and so no fence and no marks."""
    queried, made = threading.Event(), []
    factory = SqlMapState.opaque(f"sqlite:///{tmp_path / 'c.db'}", "counts", key="word string", value="count bigint")
    make = type(factory).makeState

    def make_late(self: Any, conf: dict, *of: Any) -> Any:
        generation = RunContext.of(conf).generation
        assert generation is None or queried.wait(10)  # the query comes first
        made.append(generation)
        queried.set()
        return make(self, conf, *of)

    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word", 2, ("a",), ("b",), ("a",)))
    counts = words.groupBy("word").persistentAggregate(factory, "word", Count(), "count")
    asked = topology.newStream("asked", FixedBatchSpout("asked", 1, ("a",), ("z",)))
    asked.stateQuery(counts, "asked", MapGet(), "count")
    with pytest.MonkeyPatch.context() as patch, LocalCluster() as cluster:
        patch.setattr(type(factory), "makeState", make_late)
        running = cluster.submitTopology("words", {"topology.max.batch.attempts": 2}, topology.build())
        assert running.awaitTermination(30)
    assert made[0] is None and 1 in made
    assert {key: value.curr for key, value in factory.stored().items()} == {("a",): 2, ("b",): 1}


class Kept(StateFactory):
    """A map whose data is in the object that `makeState` returns."""

    made: ClassVar[list[Any]] = []

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        self.made.append(NonTransactionalMap.build(MemoryBackingMap()))
        return self.made[-1]


def test_a_state_with_its_data_in_its_object_is_one_object_for_all_streams() -> None:
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word", 2, ("a",), ("b",), ("a",)))
    counts = words.groupBy("word").persistentAggregate(Kept(), "word", Count(), "count")
    asked = topology.newStream("asked", FixedBatchSpout("asked", 1, ("a",), ("z",)))
    asked.stateQuery(counts, "asked", MapGet(), "count")
    with LocalCluster() as cluster:
        assert cluster.submitTopology("words", {}, topology.build()).awaitTermination(30)
    assert [state.multiGet([("a",), ("b",)]) for state in Kept.made] == [[2, 1]]
