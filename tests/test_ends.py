"""How a run ends: with its first error whatever fails to close then, from a listener, and with everything closed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from states.sql import AppendState, RowUpdater
from states.sql.store import close_stores
from trident_py import DefinitionError, FailedException, Fields, LocalCluster, TopologyError, TridentTopology
from trident_py.checkpoints.append_log import AppendLogStore
from trident_py.checkpoints.batch_log import BatchLog
from trident_py.checkpoints.metadata_store import LOG, MemoryMetadataStore
from trident_py.drpc import LocalDRPC
from trident_py.engine.processors.base import NodeContext
from trident_py.errors import LineageError, StateError, TridentError, ZombieError
from trident_py.operations import Function
from trident_py.operations.base import TridentOperationContext
from trident_py.report.progress import RunningTopology
from trident_py.spouts import IBatchSpout, ICommitterTridentSpout, IRichSpout, ITridentSpout
from trident_py.spouts.coordination import Coordination
from trident_py.spouts.coordinators import BatchSpoutCoordinator, RichSpoutCoordinator, TridentSpoutCoordinator
from trident_py.spouts.inspection import SpoutNodeInfo
from trident_py.state import BaseStateUpdater, State, StateFactory
from trident_py.testing import FixedBatchSpout, collect
from trident_py.tuples import TransactionAttempt

CLOSED = "the connection was closed already"


def fail_to_close() -> None:
    raise OSError(CLOSED)


# -- the first error --------------------------------------------------------------------------------------------------


class Numbers(IBatchSpout):
    """Emits txids up to 3."""

    kind = "transactional"
    over = False

    def emitBatch(self, batchId: int, collector: Any) -> None:
        self.over = batchId >= 3
        collector.emit((batchId,))

    def isExhausted(self) -> bool:
        return self.over

    def getOutputFields(self) -> Fields:
        return Fields("n")


class UnclosedSpout(Numbers):
    def close(self) -> None:
        fail_to_close()


class UnclosedCoordinator(ITridentSpout):
    kind = "transactional"

    class Coordinator(ITridentSpout.BatchCoordinator):
        txid = 0

        def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
            self.txid = txid
            return txid

        def isExhausted(self) -> bool:
            return self.txid >= 3

        def close(self) -> None:
            fail_to_close()

    class Emitter(ITridentSpout.Emitter):
        def emitBatch(self, tx: Any, coordinatorMeta: Any, collector: Any) -> None:
            collector.emit((coordinatorMeta,))

    def getCoordinator(self, txStateId: str, conf: dict, context: Any) -> Any:
        return self.Coordinator()

    def getEmitter(self, txStateId: str, conf: dict, context: Any) -> Any:
        return self.Emitter()

    def getOutputFields(self) -> Fields:
        return Fields("n")


class Unopened(Numbers):
    def open(self, conf: dict, context: Any) -> None:
        raise ValueError("the real reason")


class Plain(StateFactory, BaseStateUpdater, State):
    """A state, its factory and its updater. On replay: nothing is kept."""

    kind = "opaque"

    def makeState(self, conf: dict, metrics: Any, partition: int, partitions: int) -> State:
        return self

    def beginCommit(self, txid: int | None) -> None: ...

    def commit(self, txid: int | None) -> None: ...

    def updateState(self, state: Any, tuples: Any, collector: Any) -> None: ...


class Full(Plain):
    """A state that takes nothing. On replay: nothing is kept."""

    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        raise StateError("the store is full")


def raise_reason(n: int) -> int:
    raise ValueError("the real reason")


def take_over(checkpoints: Path, n: int) -> tuple[int]:
    for folder in checkpoints.glob("*/*"):
        with closing(AppendLogStore(folder)) as other:
            other.seize(LOG, lambda entries: (0, {"driver": {"host": "there", "pid": 4711}}))
    return (n,)


def started_before(folder: Path) -> AppendState:
    """A store with the batches of another checkpoint."""
    state = AppendState(f"sqlite:///{folder}/a.db", "a", ["n bigint"])
    topology = TridentTopology()
    topology.newStream("in", Numbers()).partitionPersist(state, "n", RowUpdater())
    with LocalCluster(str(folder / "older")) as cluster:
        assert cluster.submitTopology("t", {}, topology.build()).awaitTermination(60)
    close_stores()
    return state


ENDS: dict[str, tuple[type[BaseException], str]] = {
    "function": (ValueError, "the real reason"),
    "start": (LineageError, r"Choose: \(1\) restore the checkpoint"),
    "zombie": (ZombieError, "process 4711 on host there has taken it over"),
    "store": (StateError, "the store is full"),
    "open": (ValueError, "the real reason"),
}
UNCLOSED: dict[str, Callable[[], Any]] = {"spout": UnclosedSpout, "coordinator": UnclosedCoordinator, "log": Numbers}


def topology_of(end: str, unclosed: str, folder: Path) -> TridentTopology:
    """A topology that ends so. Without an end: of itself."""
    topology = TridentTopology()
    stream = topology.newStream("in", UNCLOSED[unclosed]())
    if end == "open":
        stream = topology.merge(stream, topology.newStream("unopened", Unopened()))
    if end == "function":
        stream = stream.each("n", raise_reason, "m")
    if end == "zombie":
        stream = stream.each("n", partial(take_over, folder / "checkpoints"), "m")
    if end == "start":
        stream.partitionPersist(started_before(folder), "n", RowUpdater())
    elif end == "store":
        full = Full()
        stream.partitionPersist(full, "n", full)
    else:
        collect(stream, "out")
    return topology


@pytest.fixture
def log_that_fails(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes logs fail when they have been closed."""

    def fails() -> None:
        close = BatchLog.close
        monkeypatch.setattr(BatchLog, "close", lambda log: (close(log), fail_to_close()))

    return fails


def check_first_error(running: RunningTopology, end: str, unclosed: str, caplog: pytest.LogCaptureFixture) -> None:
    """Hold that the run has failed with what ended it, and that the log tells what did not close."""
    kind, reason = ENDS[end]
    with pytest.raises(TopologyError, match=reason) as raised:
        running.awaitTermination(60)
    assert type(raised.value.__cause__) is kind and CLOSED not in str(raised.value)
    part = "the checkpoint" if unclosed == "log" else "spout 'in'"
    assert f"an error in closing: {'' if end == 'open' else 'TopologyError: '}OSError: {CLOSED}" in caplog.text
    assert end == "open" or f"in close of {part}" in caplog.text


@pytest.mark.parametrize("unclosed", UNCLOSED)
@pytest.mark.parametrize("end", ENDS)
def test_what_ended_a_run_is_raised_whatever_fails_to_close(
    end: str, unclosed: str, tmp_path: Path, log_that_fails: Any, caplog: pytest.LogCaptureFixture
) -> None:
    topology = topology_of(end, unclosed, tmp_path).build()
    if unclosed == "log":
        log_that_fails()
    with LocalCluster(str(tmp_path / "checkpoints")) as cluster:
        check_first_error(cluster.submitTopology("t", {}, topology), end, unclosed, caplog)


@pytest.mark.spark
@pytest.mark.parametrize(("end", "unclosed"), [("function", "spout")])
def test_what_ended_a_run_on_spark_is_raised_too(
    end: str, unclosed: str, tmp_path: Path, spark_cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    running = spark_cluster().submitTopology("t", {}, topology_of(end, unclosed, tmp_path).build())
    check_first_error(running, end, unclosed, caplog)


@pytest.mark.parametrize("unclosed", UNCLOSED)
def test_what_fails_to_close_is_named_if_nothing_else_failed(
    unclosed: str, tmp_path: Path, log_that_fails: Any
) -> None:
    if unclosed == "log":
        log_that_fails()
    part = f"the checkpoint {tmp_path}/t/in" if unclosed == "log" else "spout 'in'"
    with LocalCluster(str(tmp_path)) as cluster:
        running = cluster.submitTopology("t", {}, topology_of("", unclosed, tmp_path).build())
        told = rf"(?s)^OSError: {CLOSED}.*\n  in close of {part}$"
        with pytest.raises(TopologyError, match=told) as raised:
            running.awaitTermination(60)
    assert running.txid == 3 and isinstance(raised.value.__cause__, OSError)


def test_a_stop_between_two_attempts_is_no_error_that_hides_one() -> None:
    attempted = threading.Event()

    def fails(n: int) -> None:
        attempted.set()
        raise FailedException("again")

    topology = TridentTopology()
    collect(topology.newStream("in", UnclosedSpout()).each("n", fails, "m"), "out")
    with pytest.raises(TopologyError, match="in close of spout 'in'"), LocalCluster() as cluster:
        cluster.submitTopology("t", {}, topology.build())
        assert attempted.wait(60)


def refuse(cluster: Any, topology: Any) -> None:
    """Submit with a page at a port that is taken."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        with pytest.raises(DefinitionError, match=r"topology\.http"):
            cluster.submitTopology("t", {"topology.http": taken.getsockname()[1]}, topology)


def test_a_submission_that_is_refused_closes_every_log_and_says_why(
    tmp_path: Path, log_that_fails: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    close, closed = AppendLogStore.close, list[str]()
    monkeypatch.setattr(AppendLogStore, "close", lambda log: (closed.append(log.file.parent.name), close(log)))
    log_that_fails()
    topology = TridentTopology()
    for name in ("one", "two"):
        collect(topology.newStream(name, Numbers()), name)
    refuse(LocalCluster(str(tmp_path)), topology.build())
    assert closed == ["one", "two"] and caplog.text.count(f"an error in closing: OSError: {CLOSED}") == 2


@pytest.mark.spark
def test_a_component_that_cannot_be_sent_to_spark_closes_the_log_of_the_one_before(
    tmp_path: Path, spark_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    close, closed = AppendLogStore.close, list[str]()
    monkeypatch.setattr(AppendLogStore, "close", lambda log: (closed.append(log.file.parent.name), close(log)))
    topology = TridentTopology()
    collect(topology.newStream("one", Numbers()), "one")
    lock = threading.Lock()
    collect(topology.newStream("two", Numbers()).each("n", lambda n: lock, "m"), "two")
    with pytest.raises(DefinitionError, match="lock"):
        spark_cluster().submitTopology("t", {}, topology.build())
    assert closed == ["one", "two"]


# -- a listener -------------------------------------------------------------------------------------------------------


ACTS: dict[str, Callable[[Any, RunningTopology], object]] = {
    "stop": lambda cluster, running: running.stop(),
    "kill": lambda cluster, running: cluster.killTopology("t"),
    "shutdown": lambda cluster, running: cluster.shutdown(),
}


def endless() -> Any:
    topology = TridentTopology()
    collect(topology.newStream("in", FixedBatchSpout("n", 1, (1,), (2,)).setCycle(True)), "out")
    return topology.build()


def act_in_listener(act: Callable[[Any, RunningTopology], object], cluster: Any) -> tuple[RunningTopology, int]:
    """Run until a listener has done this; returns the txid after whose commit it has."""
    running = cluster.submitTopology("t", {}, endless())
    acted, seen = threading.Event(), list[int]()

    def listener(event: Any, progress: Any) -> None:
        if event.kind == "committed" and not seen:
            seen.append(event.txid)
            act(cluster, running)
            acted.set()

    running.addListener(listener)
    assert acted.wait(30), "the listener hangs"
    return running, seen[0]


@pytest.mark.parametrize("act", ACTS)
def test_a_listener_may_end_its_run(act: str) -> None:
    running, txid = act_in_listener(ACTS[act], LocalCluster())
    assert running.awaitTermination(60) and running.txid == txid


@pytest.mark.spark
@pytest.mark.parametrize("act", ["stop", "shutdown"])
def test_a_listener_may_end_its_run_on_spark(act: str, spark_cluster: Any) -> None:
    cluster = spark_cluster()
    running, txid = act_in_listener(ACTS[act], cluster)
    assert running.awaitTermination(60) and running.txid == txid
    if act == "shutdown":
        cluster.shutdown()  # waits for the listener's
        with pytest.raises(TridentError, match="is shut down"):
            cluster.submitTopology("t", {}, endless())


def test_a_listener_that_waits_for_the_end_of_its_run_is_told_why_it_cannot() -> None:
    told: list[Any] = []

    def act(cluster: Any, running: RunningTopology) -> None:
        told.append(running.awaitTermination(0.01))
        with pytest.raises(TridentError, match=r"run's own thread.*cannot end before that returns"):
            running.awaitTermination()
        told.append("raised")

    running, _ = act_in_listener(act, LocalCluster())
    running.stop()
    assert told == [False, "raised"]


def test_a_function_may_stop_the_run_and_a_listener_at_its_end_too() -> None:
    listening, seen = threading.Event(), list[str]()

    def fails(n: int) -> None:
        assert listening.wait(60)
        running.stop()
        raise ValueError("the real reason")

    def listener(event: Any, progress: Any) -> None:
        if event.kind != "started":
            running.stop()
            seen.append(event.kind)

    topology = TridentTopology()
    collect(topology.newStream("in", Numbers()).each("n", fails, "m"), "out")
    running = LocalCluster().submitTopology("t", {}, topology.build())
    running.addListener(listener)
    listening.set()
    with pytest.raises(TopologyError, match="the real reason"):
        running.awaitTermination(60)
    assert seen == ["failed", "ended"]


def test_a_listener_may_stop_a_run_of_functions_alone() -> None:
    """Such a run has no thread of its own."""
    topology, seen = TridentTopology(), list[str]()
    with LocalDRPC() as drpc, LocalCluster() as cluster:
        collect(topology.newDRPCStream("f", drpc), "out")
        running = cluster.submitTopology("t", {}, topology.build())
        running.addListener(lambda event, progress: (seen.append(event.kind), running.stop()))
        running.deactivate()
        assert running.awaitTermination(60)
    assert seen == ["deactivated", "ended"]


# -- several things to close ------------------------------------------------------------------------------------------

MANY = 3


class Part:
    """One of several things to close, of which one fails."""

    closed: ClassVar[list[int]] = []
    broken: ClassVar[int] = 0
    index = 0

    def open(self, conf: dict, context: Any, *more: Any) -> None:
        self.index = context.getPartitionIndex()

    def close(self) -> None:
        self.closed.append(self.index)
        if self.index == self.broken:
            fail_to_close()

    cleanup = close


def part(index: int) -> Part:
    made = Part()
    made.index = index
    return made


class Batches(Part, Numbers): ...


class Tuples(Part, IRichSpout):
    def nextTuple(self) -> None: ...

    def getOutputFields(self) -> Fields:
        return Fields("n")


class Committing(ICommitterTridentSpout, UnclosedCoordinator):
    """One that is home, with an emitter for each partition but the last one, and a coordinator."""

    def getCoordinator(self, txStateId: str, conf: dict, context: Any) -> Any:
        return part(MANY - 1)

    def getEmitter(self, txStateId: str, conf: dict, context: Any) -> Any:
        return part(context.getPartitionIndex())


def info_of(spout: Any, partitions: int = MANY) -> SpoutNodeInfo:
    return SpoutNodeInfo("in", spout, partitions, Fields("n"))


def close_batch_spouts() -> None:
    BatchSpoutCoordinator(info_of(Batches()), {}, None).close()


def close_rich_spouts() -> None:
    coordinator = RichSpoutCoordinator(info_of(Tuples()), {}, None)
    coordinator.emit(TransactionAttempt(1, 0), None)
    coordinator.close()


def close_emitters() -> None:
    TridentSpoutCoordinator(info_of(Committing(), MANY - 1), {}, None).close()


def close_coordination() -> None:
    coordination = Coordination([], {}, MemoryMetadataStore())
    coordination._spouts = tuple(info_of(None) for _ in range(MANY))
    coordination._coordinators = [part(index) for index in range(MANY)]  # type: ignore[misc]
    coordination.close()


def clean_up_operations() -> None:
    context = NodeContext({}, TridentOperationContext(0, 1), (), Fields(), frozenset(), False, lambda: None, print)
    for index in range(MANY):
        context.prepare(part(index))
    context.cleanup()


@pytest.mark.parametrize("broken", range(MANY))
@pytest.mark.parametrize(
    "close", [close_batch_spouts, close_rich_spouts, close_emitters, close_coordination, clean_up_operations]
)
def test_each_is_closed_whichever_fails(
    close: Callable[[], None], broken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Part, "broken", broken)
    monkeypatch.setattr(Part, "closed", [])
    with pytest.raises(OSError, match=CLOSED):
        close()
    assert sorted(Part.closed) == list(range(MANY))


class Refused(Batches):
    """The last of its copies does not open."""

    def open(self, conf: dict, context: Any, *more: Any) -> None:
        super().open(conf, context)
        if self.index == MANY - 1:
            raise ConnectionError("it is away")


def test_the_spouts_that_are_open_are_closed_if_another_one_does_not_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Part, "closed", [])
    with pytest.raises(ConnectionError, match="it is away"):
        BatchSpoutCoordinator(info_of(Refused()), {}, None)
    assert Part.closed == list(range(MANY - 1))


class Operation(Function):
    """Of one partition."""

    def __init__(self, name: str, closed: list[str], broken: str) -> None:
        self.name, self.closed, self.broken = name, closed, broken

    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit(tuple)

    def cleanup(self) -> None:
        self.closed.append(self.name)
        if self.name == self.broken:
            fail_to_close()


class Closing(Plain):
    """A state that is told when it is closed. On replay: nothing is kept."""

    def __init__(self, name: str, closed: list[str], broken: str) -> None:
        self.operation = Operation(name, closed, broken)

    def close(self) -> None:
        self.operation.cleanup()


NAMES = ["one", "two", "state", "other"]


@pytest.mark.parametrize("broken", NAMES)
def test_a_run_cleans_up_each_operation_and_state_whichever_fails(
    broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is committed by then, so it has not failed."""
    closed: list[str] = []
    one, two, other = (Operation(name, closed, broken) for name in ("one", "two", "other"))
    topology, state = TridentTopology(), Closing("state", closed, broken)
    stream = topology.newStream("in", Numbers()).each("n", one, "m").each("m", two, "o").shuffle().each("n", other, "p")
    stream.partitionPersist(state, "p", state)
    with LocalCluster() as cluster:
        assert cluster.submitTopology("t", {}, topology.build()).awaitTermination(60)
    assert sorted(closed) == sorted(NAMES)
    assert caplog.text.count(f"an operation failed in cleanup: {CLOSED}") == 1


# -- the process -------------------------------------------------------------------------------------------------------

TOPOLOGY_FILE = """
name: numbers
states: {numbers: {type: append, url: "sqlite:///numbers.db", table: numbers}}
streams:
  in:
    newStream: {spout: {className: FixedBatchSpout, constructorArgs: [n bigint, 1, [1], [2]]}}
    operations:
      - partitionPersist: {state: numbers, inputFields: n}
"""


def test_a_process_that_ends_leaves_no_log_beside_its_sqlite_file(tmp_path: Path) -> None:
    (tmp_path / "trident.yml").write_text(TOPOLOGY_FILE)
    paths = {"PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-m", "trident_py", "run", "--local"]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, **paths}, check=True, timeout=120)
    assert [path.name for path in tmp_path.glob("numbers.db*")] == ["numbers.db"]
