"""The run of a component on the driver: its log while it waits, a start beside another one, errors of spouts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trident_py import Fields, LocalCluster, RunningTopology, TopologyError, TridentTopology
from trident_py.checkpoints.append_log import AppendLogStore
from trident_py.checkpoints.batch_log import BatchLog
from trident_py.checkpoints.hash_seed import own_order
from trident_py.engine import component
from trident_py.engine.component import ComponentRun
from trident_py.engine.program import AttemptOutcome, compile_plan
from trident_py.errors import DefinitionError, FailedException, ZombieError
from trident_py.model.context import with_context
from trident_py.operations.builtin import Count
from trident_py.spouts import IBatchSpout, IPartitionedTridentSpout
from trident_py.state import BaseStateUpdater, BatchParticipant, Remembered, State, StateFactory
from trident_py.testing import FeederBatchSpout, FixedBatchSpout, MemoryMapState
from trident_py.testing.faults.feed import OneForAll
from trident_py.windowing import InMemoryWindowsStoreFactory, TumblingCountWindow


class Fenced(StateFactory, BatchParticipant):
    """A state whose participant says when it is asked, and when it shuts others out. On replay: nothing is kept."""

    kind = "opaque"

    def __init__(self, told: list[str], when_asked: Callable[[int], None] = lambda times: None) -> None:
        self.told, self.when_asked = told, when_asked

    def makeState(self, conf: dict, metrics: Any, partition: int, partitions: int) -> State:
        return State()

    def remembered(self, conf: dict) -> Remembered:
        self.told.append("asked")
        self.when_asked(self.told.count("asked"))
        return Remembered("nothing")

    def open(self, conf: dict) -> int:
        self.told.append("opened")
        return 1

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None: ...

    def publish(self, txid: int, attempt: int, receipts: Any) -> None: ...

    def abort(self, txid: int, attempt: int) -> None: ...


class Ignoring(BaseStateUpdater):
    def updateState(self, state: State, tuples: Any, collector: Any) -> None: ...


def run_of(folder: Path, state: StateFactory | None = None, spout: Any = None) -> ComponentRun:
    topology = TridentTopology()
    stream = topology.newStream("in", spout or FixedBatchSpout(Fields("value"), 1, (1,), (2,), (3,)))
    if state is not None:
        stream.partitionPersist(state, "value", Ignoring())
    (program,) = compile_plan(topology.build().plan, with_context({}, topology="t", run="t-1"))
    log = BatchLog(AppendLogStore(folder / program.component), str(folder), "t", own_order)
    return ComponentRun(program, program.spouts, log, RunningTopology("t", [program.component]), "t-1")


def test_a_start_beside_a_newer_one_shuts_nobody_out(tmp_path: Path) -> None:
    """The older one waits for its store while the newer one takes the log, and goes on when that one has the stores."""
    newer = run_of(tmp_path)

    def take(times: int) -> None:
        if times == 2:  # the first time is before the older one takes the log
            newer.log.take()

    told: list[str] = []
    older = run_of(tmp_path, Fenced(told, take))
    with pytest.raises(ZombieError, match="has taken it over since this one started"):
        older.open()
    assert told == ["asked", "asked"]
    for each in (older, newer):
        each.close()


class Away(Fenced):
    """A store that is away when it is opened for the first time, and back at the next call."""

    def open(self, conf: dict) -> int:
        super().open(conf)
        if self.told.count("opened") == 1:
            raise FailedException("away")
        return 1


def test_a_start_that_waits_to_open_a_store_shuts_out_no_newer_one(tmp_path: Path) -> None:
    """The newer one takes the log, and opens the store, while the older one waits for it."""
    newer = run_of(tmp_path)
    told: list[str] = []
    older = run_of(tmp_path, Away(told))
    older.running.addListener(lambda event, progress: newer.log.take() if event.kind == "waiting" else None)
    with pytest.raises(ZombieError, match="has taken it over since this one started"):
        older.open()
    assert told == ["asked", "asked", "opened"]
    for each in (older, newer):
        each.close()


def test_a_component_whose_state_has_no_driver_side_leaves_its_spout_and_its_log_closed(tmp_path: Path) -> None:
    class Wrong(Fenced):
        def participant(self) -> BatchParticipant:
            raise DefinitionError("no driver side")

    class Closing(Failing):
        def close(self) -> None:
            closed.append(self.where)

    closed: list[str] = []
    with pytest.raises(DefinitionError, match="no driver side"):
        run_of(tmp_path, Wrong([]), Closing("nowhere"))
    assert closed == ["nowhere"]


def test_the_end_of_a_batch_becomes_durable_also_if_nobody_waits_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Spark each turn of the clock waits anew."""
    settled: list[float] = []
    feeder = FeederBatchSpout(Fields("value"))
    run = run_of(tmp_path, spout=feeder)
    run.open()
    feeder.feed([[1]], wait=False)
    assert run.await_next()
    run.run_next(done)
    monkeypatch.setattr(BatchLog, "settle", lambda log: settled.append(time.monotonic()))
    ended = time.monotonic()
    while not settled and time.monotonic() < ended + 30:
        assert not run.await_next(time.monotonic() + 0.01)
    assert settled[0] - ended >= component.SETTLE_WAIT
    run.await_next(time.monotonic() + 2 * component.SETTLE_WAIT)
    assert len(settled) == 1
    run.close()


def test_a_checkpoint_that_does_not_answer_is_asked_again_while_nothing_is_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(component, "CHECK_WAIT", 0.02)
    run = run_of(tmp_path, spout=FeederBatchSpout(Fields("value")))
    run.open()
    answers: list[Exception] = [FailedException("S3 is away"), FailedException("S3 is away"), ZombieError("taken")]
    monkeypatch.setattr(BatchLog, "check", lambda log: raise_(answers.pop(0)))
    with pytest.raises(ZombieError, match="taken"):
        run.await_next(time.monotonic() + 60)
    assert caplog.text.count("does not answer: S3 is away") == 2
    run.close()


def test_a_disk_that_fails_while_nothing_is_to_do_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(component, "CHECK_WAIT", 0.02)
    monkeypatch.setattr(component, "SETTLE_WAIT", 0.0)
    feeder = FeederBatchSpout(Fields("value"))
    run = run_of(tmp_path, spout=feeder)
    run.open()
    with monkeypatch.context() as disk:
        for value in (1, 2):
            feeder.feed([[value]], wait=False)
            assert run.await_next()
            run.run_next(done)
            disk.setattr(os, "fdatasync", lambda file: raise_(OSError(5, "Input/output error")))
            assert not run.await_next(time.monotonic() + 0.1)
            disk.undo()
    assert caplog.text.count("journal cannot be made durable: [Errno 5] Input/output error") >= 2
    run.close()
    assert run_of(tmp_path).log.last().txid == 2  # type: ignore[union-attr]


def raise_(error: Exception) -> None:
    raise error


def done(batch: Any, descriptors: Any) -> AttemptOutcome:
    return AttemptOutcome([], [])


class Failing(IBatchSpout):
    """Emits a tuple in each batch, and fails where it is told to."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __repr__(self) -> str:
        return self.where

    def open(self, conf: dict, context: Any) -> None: ...

    def emitBatch(self, batchId: int, collector: Any) -> None:
        self._fail("emitBatch")
        collector.emit([1])

    def ack(self, batchId: int) -> None:
        self._fail("ack")

    def isExhausted(self) -> bool:
        self._fail("isExhausted")
        return False

    def _fail(self, where: str) -> None:
        if where == self.where:
            raise ValueError("no luck")

    def close(self) -> None: ...

    def getOutputFields(self) -> Fields:
        return Fields("value")


class NeverReady(OneForAll, IPartitionedTridentSpout):
    last = 1

    def getOutputFields(self) -> Fields:
        return Fields("value")

    def isReady(self, txid: int) -> bool:
        raise ValueError("no luck")

    def __repr__(self) -> str:
        return "isReady"


FAILING = [*(Failing(where) for where in ("emitBatch", "ack", "isExhausted")), NeverReady()]


@pytest.mark.parametrize("spout", FAILING, ids=repr)
def test_an_error_of_a_spout_names_it_and_the_batch(spout: Any) -> None:
    topology = TridentTopology()
    topology.newStream("in", spout)
    with LocalCluster() as cluster:
        running = cluster.submitTopology("failing", {}, topology.build())
        with pytest.raises(TopologyError, match="no luck") as caught:
            running.awaitTermination(60)
    assert (caught.value.operation, caught.value.txid) == ("spout", 1)


@pytest.mark.parametrize("kind", ["map", "window"])
def test_memory_that_its_checkpoint_has_outlived_is_told(tmp_path: Path, caplog: Any, kind: str) -> None:
    """A factory of its own stands for another process; in one process memory outlives the topology."""

    def start(factory: Any) -> list[str]:
        topology = TridentTopology()
        stream = topology.newStream("in", FixedBatchSpout(Fields("value"), 1, (1,), (2,), (3,)))
        if kind == "map":
            stream.groupBy("value").persistentAggregate(factory, Count(), "count")
        else:
            stream.window(TumblingCountWindow.of(5), factory, "value", Count(), "count")
        caplog.clear()
        with LocalCluster(checkpoints=str(tmp_path)) as cluster:
            cluster.submitTopology("t", {}, topology.build()).awaitTermination(60)
        return [record.getMessage() for record in caplog.records if "is in memory and begins empty" in record.message]

    make = MemoryMapState.Factory if kind == "map" else InMemoryWindowsStoreFactory
    first = make()
    assert (start(first), start(first)) == ([], [])
    (told,) = start(make())
    assert f"the checkpoint {tmp_path}" in told and "goes on after txid 3" in told


def test_memory_is_looked_at_as_it_is_also_if_two_partitions_have_one_key() -> None:
    """`stored` would raise, and end the start that only asks whether anything is there."""
    factory = MemoryMapState.Factory()
    assert factory.is_empty({})
    for partition in (0, 1):
        factory.store({}).put(partition, [("a",)], [1])
    assert not factory.is_empty({})


def test_tuples_are_counted_for_streams_whose_names_have_spaces() -> None:
    topology = TridentTopology()
    for name, rows in (("my words", [(1,), (2,)]), ("my lines", [(1,)])):
        topology.newStream(name, FixedBatchSpout(Fields("value"), 5, *rows))
    with LocalCluster() as cluster:
        running = cluster.submitTopology("names", {}, topology.build())
        running.awaitTermination(60)
    emitted = {spout: count for each in running.progress.values() for spout, count in each.emitted.items()}
    assert emitted == {"my words": 2, "my lines": 1}
