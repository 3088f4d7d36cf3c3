"""Batches that run in the driver process, and those that turn out to be too large for it."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from trident_py import Config, DefinitionError, Fields, TridentTopology
from trident_py.checkpoints.metadata_store import MemoryMetadataStore
from trident_py.engine.program import AttemptOutcome, BatchInfo
from trident_py.model.retry import Stopped
from trident_py.operations import BaseFunction
from trident_py.operations.builtin import Count
from trident_py.operations.determinism import judge
from trident_py.spark import driver_execution
from trident_py.spark.driver_execution import HERE, Bounds
from trident_py.spouts import FeederBatchSpout, IBatchSpout, IPartitionedTridentSpout
from trident_py.testing import Crashing, MemoryMapState
from trident_py.testing.faults.feed import OneForAll

pytestmark = pytest.mark.spark
Cluster = Callable[..., Any]
SIZES = (4, 4, 40, 4, 4)


class Sized(OneForAll, IPartitionedTridentSpout):
    """Batches of these `SIZES`, in two partitions."""

    last = len(SIZES)

    def getOutputFields(self) -> Fields:
        return Fields("value")

    def emitBatchNew(self, tx: Any, collector: Any, partitions: Sequence[int], lastPartitionMeta: dict) -> dict:
        for partition in partitions:
            self.reEmitPartitionBatch(tx, collector, partition, tx.txid)
        return dict.fromkeys(partitions, tx.txid)

    def reEmitPartitionBatch(self, tx: Any, collector: Any, partition: int, partitionMeta: int) -> None:
        for n in range(partition, SIZES[partitionMeta - 1], 2):
            collector.emit((n,))


def inline(tuples: int, millis: float = 60_000) -> dict[str, Any]:
    return {Config.TOPOLOGY_INLINE_MAX_TUPLES: tuples, Config.TOPOLOGY_INLINE_MAX_MILLIS: millis}


def places(running: Any) -> dict[int, str]:
    """Where each batch was committed."""
    return {event.txid: event.reason for event in running.events if event.kind == "committed"}


def moved(running: Any) -> list[tuple[int, int]]:
    return [(event.txid, event.attempt) for event in running.events if event.kind == "moved"]


def fed(cluster: Any, conf: dict[str, Any], sizes: list[int], function: Any) -> tuple[Any, dict]:
    """The ended run of batches of these sizes through a function with two partitions, and the counts of its results."""
    feeder, state = FeederBatchSpout(Fields("value")), MemoryMapState.Factory()
    topology = TridentTopology()
    stream = topology.newStream("in", feeder).parallelismHint(2).each("value", function, Fields("made"))
    stream.groupBy("made").persistentAggregate(state, Count(), "count").parallelismHint(2)
    for size in sizes:
        feeder.feed([[n] for n in range(size)], wait=False)
    feeder.close()
    running = cluster.submitTopology("fed", conf, topology.build())
    assert running.awaitTermination(200)
    return running, {key[0]: value.curr for key, value in state.stored().items()}


def test_a_batch_runs_in_the_driver_if_it_is_small_enough(spark_cluster: Cluster) -> None:
    running, counts = fed(spark_cluster(), inline(10), [3, 11, 10, 40, 0], lambda value: [os.getpid()])
    assert places(running) == {1: HERE, 2: "", 3: HERE, 4: "", 5: HERE}
    assert counts.pop(os.getpid()) == 3 + 10
    assert sum(counts.values()) == 11 + 40
    assert running.attempts == dict.fromkeys(range(1, 6), 0)


def test_a_class_keeps_its_source_when_a_batch_ran_in_the_driver(spark_cluster: Cluster) -> None:
    class Own(BaseFunction):
        def execute(self, tuple: Any, collector: Any) -> None:
            collector.emit([tuple[0]])

    running, _ = fed(spark_cluster(), inline(10), [2], Own())
    assert places(running) == {1: HERE} and judge(Own()).deterministic, judge(Own())


def test_none_does_unless_it_is_allowed(spark_cluster: Cluster) -> None:
    """0 in the topology's settings; here also in the session's."""
    for conf in ({}, inline(0)):
        running, counts = fed(spark_cluster(), conf, [2, 2], lambda value: [os.getpid()])
        assert list(places(running).values()) == ["", ""]
        assert os.getpid() not in counts


def test_no_job_is_run_only_to_see_how_long_one_takes(spark_cluster: Cluster) -> None:
    running, _ = fed(spark_cluster(), inline(10, 0), [2] * 6, lambda value: [value])
    assert places(running) == dict.fromkeys(range(1, 7), HERE)


@pytest.mark.parametrize(
    ("sizes", "where", "gone"),
    [((7, 2), {1: "", 2: HERE}, [(1, 0)]), ((2, 7), {1: HERE, 2: ""}, [])],
    ids=["not known", "known by the batch before"],
)
def test_a_batch_of_much_memory_runs_on_spark(
    spark_cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    sizes: tuple[int, int],
    where: dict[int, str],
    gone: list[tuple[int, int]],
) -> None:
    """Few tuples, of 11 MB each."""
    monkeypatch.setattr(driver_execution, "MAX_BYTES", 64 << 20)
    feeder, topology = FeederBatchSpout(Fields("value")), TridentTopology()
    topology.newStream("in", feeder).filter("value", lambda value: True)
    for size in sizes:
        feeder.feed([["x" * 11_000_000] for _ in range(size)], wait=False)
    feeder.close()
    running = spark_cluster().submitTopology("large", inline(10), topology.build())
    assert running.awaitTermination(200)
    assert places(running) == where
    assert moved(running) == gone


def test_one_huge_tuple_does_not_make_every_later_batch_a_job(
    spark_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_execution, "MAX_BYTES", 4 << 20)
    monkeypatch.setattr(driver_execution, "DOUBT", 0.5)
    feeder, topology = FeederBatchSpout(Fields("value")), TridentTopology()
    topology.newStream("in", feeder).filter("value", lambda value: True)
    for size in (12_000_000, 1, 1, 1):
        feeder.feed([["x" * size]], wait=False)
    feeder.close()
    running = spark_cluster().submitTopology("huge", inline(10), topology.build())
    assert running.awaitTermination(200)
    assert places(running) == {1: "", 2: "", 3: HERE, 4: HERE}


def test_an_attempt_that_commits_nothing_says_nothing_of_the_time() -> None:
    execution = driver_execution.DriverExecution(b"", MemoryMetadataStore(), Bounds(), 2, threading.Event(), 1.0)
    for dry in (True, False):
        execution.saw(BatchInfo(1, 0, "", {}, "", dry=dry), AttemptOutcome([], [], HERE), 1.0)
        assert execution._emitted == (None if dry else 0)


def test_no_call_is_waited_for_when_the_query_has_ended() -> None:
    """As when Java was killed: nobody stops the run then."""
    execution = driver_execution.DriverExecution(b"", MemoryMetadataStore(), Bounds(), 2, threading.Event(), 0.1)
    begun, go_on = threading.Event(), threading.Event()

    def block() -> None:
        with pytest.raises(Stopped):
            execution.call(lambda: (begun.set(), go_on.wait()))

    blocked = threading.Thread(target=block)
    blocked.start()
    assert begun.wait(60)
    execution.ended.set()
    with pytest.raises(Stopped):
        execution.call(dict)
    blocked.join(60)
    assert not blocked.is_alive()
    go_on.set()
    execution.close()


class OfOneThread(IBatchSpout):
    """Keeps what SQLite gives to one thread alone. Notes who called, with the name of the thread."""

    called: ClassVar[set[tuple[str, str]]] = set()

    def _note(self, call: str) -> None:
        self.called.add((call, threading.current_thread().name))

    def open(self, conf: dict, context: Any) -> None:
        self._note("open")
        self.rows = sqlite3.connect(":memory:")

    def emitBatch(self, batchId: int, collector: Any) -> None:
        self._note("emitBatch")
        if batchId < 3:
            collector.emit([self.rows.execute("SELECT 7").fetchone()[0]])

    def ack(self, batchId: int) -> None:
        self._note("ack")
        self.rows.execute("SELECT 1")

    def close(self) -> None:
        self._note("close")
        self.rows.close()

    def getOutputFields(self) -> Fields:
        return Fields("value")


def test_all_calls_of_a_spout_come_from_one_thread(spark_cluster: Cluster) -> None:
    OfOneThread.called.clear()
    topology = TridentTopology()
    topology.newStream("in", OfOneThread()).filter("value", lambda value: True)
    running = spark_cluster().submitTopology("thread", inline(10), topology.build())
    while running.progress["in"].batches < 3:
        assert running.isOpen
        time.sleep(0.01)
    running.stop()
    assert OfOneThread.called == {(call, "trident-inline") for call in ("open", "emitBatch", "ack", "close")}


@pytest.mark.parametrize("value", ["many", "-1"])
def test_a_setting_of_the_session_that_is_no_number_is_refused(spark: Any, spark_cluster: Cluster, value: str) -> None:
    before = spark.conf.get(driver_execution.SETTING)
    spark.conf.set(driver_execution.SETTING, value)
    try:
        with pytest.raises(DefinitionError, match=f"inline.max.tuples='{value}' is no number of tuples"):
            fed(spark_cluster(), {}, [1], lambda value: [value])
    finally:
        spark.conf.set(driver_execution.SETTING, before)


class Open(BaseFunction):
    """Leaves a file when it is cleaned up."""

    def __init__(self, file: str) -> None:
        self.file = file

    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([tuple[0]])

    def cleanup(self) -> None:
        Path(self.file).write_text(str(os.getpid()))


def test_operations_are_cleaned_up_in_the_driver_when_the_run_ends(spark_cluster: Cluster, tmp_path: Path) -> None:
    running, _ = fed(spark_cluster(), inline(10), [2], Open(str(tmp_path / "closed")))
    assert places(running) == {1: HERE}
    assert (tmp_path / "closed").read_text() == str(os.getpid())


def test_a_failed_attempt_is_replayed_in_the_driver(spark_cluster: Cluster) -> None:
    state = MemoryMapState.Factory()
    crashing = Crashing(state, "afterCommit", {(1, 0), (2, 0)}, partition=1)
    feeder = FeederBatchSpout(Fields("value"))
    topology = TridentTopology()
    stream = topology.newStream("in", feeder).groupBy("value")
    stream.persistentAggregate(crashing, Count(), "count").parallelismHint(2)
    for _ in range(2):
        feeder.feed([["a"], ["b"], ["c"], ["d"]], wait=False)
    feeder.close()
    running = spark_cluster().submitTopology("replayed", inline(10), topology.build())
    assert running.awaitTermination(200)
    assert running.attempts == {1: 1, 2: 1}
    assert places(running) == {1: HERE, 2: HERE}
    assert {key[0]: value.curr for key, value in state.stored().items()} == dict.fromkeys("abcd", 2)


def test_a_batch_that_turns_out_larger_is_the_next_attempt_on_spark(spark_cluster: Cluster) -> None:
    """Nobody knows the size of these batches before they are emitted; the batch before is the guide. A move is no
    failure, so one attempt is enough."""
    state, conf = MemoryMapState.Factory(), inline(10) | {Config.TOPOLOGY_MAX_BATCH_ATTEMPTS: 1}
    topology = TridentTopology()
    topology.newStream("in", Sized()).groupBy("value").persistentAggregate(state, Count(), "count")
    running = spark_cluster().submitTopology("sized", conf, topology.build())
    assert running.awaitTermination(200)
    assert places(running) == {1: HERE, 2: HERE, 3: "", 4: "", 5: HERE}
    assert moved(running) == [(3, 0)]
    assert running.attempts == {1: 0, 2: 0, 3: 1, 4: 0, 5: 0}
    found = {key[0]: value.curr for key, value in state.stored().items()}
    assert found == {n: sum(size > n for size in SIZES) for n in range(40)}


def test_what_only_executors_can_import_runs_there(spark_cluster: Cluster) -> None:
    driver = os.getpid()

    def function(value: Any) -> list[Any]:
        if os.getpid() == driver:
            raise ModuleNotFoundError("No module named 'only_there'")
        return [value]

    running, counts = fed(spark_cluster(), inline(10), [3, 3], function)
    assert places(running) == {1: "", 2: ""}
    assert moved(running) == [(1, 0)]  # the second is not tried here
    assert counts == {0: 2, 1: 2, 2: 2}


def test_a_stop_does_not_wait_for_an_attempt_that_never_ends(spark_cluster: Cluster, tmp_path: Path) -> None:
    folder = str(tmp_path)

    def hangs(value: Any) -> list[Any]:
        (Path(folder) / "begun").touch()
        while not (Path(folder) / "go on").exists():
            time.sleep(0.01)
        return [value]

    feeder = FeederBatchSpout(Fields("value"))
    topology = TridentTopology()
    topology.newStream("in", feeder).each("value", hangs, Fields("same"))
    feeder.feed([[1]], wait=False)
    conf = inline(10) | {Config.TOPOLOGY_STOP_GRACE_SECS: 0.2}
    running = spark_cluster().submitTopology("hangs", conf, topology.build())
    while not (tmp_path / "begun").exists():
        assert running.isOpen
        time.sleep(0.01)
    stopper = threading.Thread(target=running.stop, daemon=True)
    stopper.start()
    stopper.join(60)
    assert not stopper.is_alive()
    assert places(running) == {}
    (tmp_path / "go on").touch()
