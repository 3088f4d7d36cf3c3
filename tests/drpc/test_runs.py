"""Requests beside the batches of a run: when they are answered, how they end, what many at once see."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from states.sql import SqlMapState
from trident_py import DRPCExecutionException, FailedException, LocalCluster, LocalDRPC, TopologyError, TridentTopology
from trident_py.drpc import default_drpc
from trident_py.state import BatchParticipant, MemoryMapState
from trident_py.testing import FeederBatchSpout, FixedBatchSpout

from .functions import fed_words, word_count, words
from .load import answers_beside_batches


@pytest.fixture
def drpc() -> Iterator[LocalDRPC]:
    with LocalDRPC() as drpc:
        yield drpc


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    before = set(threading.enumerate())
    with LocalCluster() as cluster:
        yield cluster
    assert set(threading.enumerate()) <= before


def finite(drpc: LocalDRPC | None) -> TridentTopology:
    topology = TridentTopology()
    words(topology, word_count(topology, FixedBatchSpout("sentence", 1, ("a b",), ("a",))), drpc)
    return topology


def test_a_function_answers_after_its_spouts_are_exhausted_until_the_run_is_stopped(
    drpc: LocalDRPC, cluster: LocalCluster
) -> None:
    running = cluster.submitTopology("t", {}, finite(drpc).build())
    assert running.awaitTermination(30)
    assert drpc.execute("words", "a b") == [[3]]
    running.stop()
    with pytest.raises(DRPCExecutionException, match="no running topology answers the function 'words'; no topology"):
        drpc.execute("words", "a")


def test_the_shutdown_of_the_cluster_ends_functions_too(drpc: LocalDRPC) -> None:
    with LocalCluster() as cluster:
        cluster.submitTopology("t", {}, finite(drpc).build()).awaitTermination(30)
        cluster.submitTopology("other", {}, finite(LocalDRPC()).build()).awaitTermination(30)
        assert drpc.execute("words", "a") == [[2]]
    assert drpc.functions() == []


def test_a_topology_of_requests_alone_runs_until_it_is_stopped(drpc: LocalDRPC, cluster: LocalCluster) -> None:
    topology = TridentTopology()
    topology.newDRPCStream("echo", drpc)
    running = cluster.submitTopology("t", {}, topology.build())
    assert running.isActive and not running.awaitTermination(0) and running.txid is None
    assert drpc.execute("echo", "x") == [["x"]]
    running.stop()
    assert running.awaitTermination(0) and [event.kind for event in running.events] == ["ended"]


def test_a_machine_without_more_threads_ends_a_request_and_not_the_run(
    drpc: LocalDRPC, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = cluster.submitTopology("t", {}, finite(drpc).build())
    assert running.awaitTermination(30)

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(DRPCExecutionException, match="no thread for the request: can't start new thread"):
            drpc.execute("words", "a b")
    assert drpc.execute("words", "a b") == [[3]]
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        assert [drpc.execute("words", "a b") for _ in range(3)] == [[[3]]] * 3
    running.stop()


def test_a_run_that_fails_ends_its_functions(drpc: LocalDRPC, cluster: LocalCluster) -> None:
    topology, feeder = fed_words(drpc)
    topology.newStream("bad", FeederBatchSpout("v")).filter(lambda *values: True)
    feeder.feed([(3,)], wait=False)  # no text to split
    running = cluster.submitTopology("t", {}, topology.build())
    with pytest.raises(TopologyError):
        running.awaitTermination(30)
    assert drpc.functions() == []


def test_without_a_local_drpc_the_process_has_one(cluster: LocalCluster) -> None:
    cluster.submitTopology("t", {}, finite(None).build()).awaitTermination(30)
    assert default_drpc().execute("words", "a") == [[2]]


def test_what_is_not_there_is_named(drpc: LocalDRPC, cluster: LocalCluster) -> None:
    cluster.submitTopology("t", {}, finite(drpc).build())
    with pytest.raises(DRPCExecutionException, match="answers the function 'word'; the functions are: words"):
        drpc.execute("word", "a")
    with pytest.raises(DRPCExecutionException, match="the args of 'words' must be one str that UTF-8 can hold, got 3"):
        drpc.execute("words", 3)  # type: ignore[arg-type]
    with pytest.raises(DRPCExecutionException, match="must be one str"):
        drpc.execute("words", "\ud800")
    drpc.shutdown()
    with pytest.raises(DRPCExecutionException, match="shut down") as shut:
        drpc.execute("words", "a")
    assert shut.value.type == "SERVER_SHUTDOWN"


def waiting(drpc: LocalDRPC) -> tuple[TridentTopology, threading.Event, list[str]]:
    """A function that waits for the event."""
    go, begun = threading.Event(), []  # type: ignore[var-annotated]

    def wait(args: str) -> list[str]:
        begun.append(args)
        assert go.wait(30)
        return [args]

    topology = TridentTopology()
    topology.newDRPCStream("wait", drpc).each("args", wait, "out")
    return topology, go, begun


def test_a_request_may_wait_without_a_limit(drpc: LocalDRPC, cluster: LocalCluster) -> None:
    topology, go, _ = waiting(drpc)
    cluster.submitTopology("t", {"drpc.request.timeout.secs": float("inf")}, topology.build())
    threading.Timer(0.2, go.set).start()
    assert drpc.execute("wait", "a") == drpc.execute("wait", "a", 1e300) == [["a", "a"]]


def test_a_request_times_out_to_the_second(drpc: LocalDRPC, cluster: LocalCluster) -> None:
    topology, go, begun = waiting(drpc)
    cluster.submitTopology("t", {"drpc.request.timeout.secs": 1, "drpc.worker.threads": 1}, topology.build())
    start = time.monotonic()
    with pytest.raises(DRPCExecutionException, match="did not answer within 1 s") as late:
        drpc.execute("wait", "a")
    assert 0.9 < time.monotonic() - start < 2.5 and late.value.type == "SERVER_TIMEOUT"
    with pytest.raises(DRPCExecutionException, match=r"did not answer within 0\.05 s"):
        drpc.execute("wait", "b", 0.05)
    go.set()
    assert drpc.execute("wait", "c") == [["c", "c"]]
    assert begun == ["a", "c"]  # b was given up while it waited


def test_requests_that_wait_when_a_run_is_stopped_fail(drpc: LocalDRPC, cluster: LocalCluster) -> None:
    topology, go, begun = waiting(drpc)
    running = cluster.submitTopology("t", {"drpc.worker.threads": 1}, topology.build())
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(drpc.execute, "wait", "a")
        while not begun:
            time.sleep(0.001)
        second = pool.submit(drpc.execute, "wait", "b")
        stopping = pool.submit(running.stop)
        while drpc.functions():
            time.sleep(0.001)
        go.set()
        assert first.result(30) == [["a", "a"]]
        with pytest.raises(DRPCExecutionException, match="topology 't' answers no more: it was stopped") as ended:
            second.result(30)
        stopping.result(30)
    assert ended.value.type == "SERVER_SHUTDOWN" and begun == ["a"]


class Late(BatchParticipant):
    """A store that is away at first."""

    def __init__(self) -> None:
        self.there = threading.Event()
        self.asked = threading.Event()

    def open(self, conf: dict) -> int:
        self.asked.set()
        if not self.there.is_set():
            raise FailedException("the store is away")
        return 1

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None: ...

    def publish(self, txid: int, attempt: int, receipts: Any) -> None: ...

    def abort(self, txid: int, attempt: int) -> None: ...


class LateMap(MemoryMapState.Factory):
    late = Late()

    def participant(self) -> Late:
        return self.late

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        assert self.late.there.is_set()
        return super().makeState(conf, metrics, partitionIndex, numPartitions)


def test_a_request_waits_for_the_states_that_it_asks_and_for_no_others(drpc: LocalDRPC, cluster: LocalCluster) -> None:
    factory = LateMap()
    topology, feeder = fed_words(drpc, factory)
    topology.newDRPCStream("echo", drpc)
    cluster.submitTopology("t", {}, topology.build())
    assert factory.late.asked.wait(30)
    assert drpc.execute("echo", "x") == [["x"]]
    with pytest.raises(DRPCExecutionException, match="'words'"):
        drpc.execute("words", "a", 0.05)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(drpc.execute, "words", "a")
        factory.late.there.set()
        assert asked.result(30) == [[0]]
    feeder.feed([("a",)], timeout=30)
    assert drpc.execute("words", "a") == [[1]]


@pytest.mark.parametrize("kind", ["memory", "opaque", "transactional"])
def test_sixteen_clients_see_every_complete_batch_while_batches_go_on(
    cluster: LocalCluster, kind: str, tmp_path: Any
) -> None:
    """An answer has all batches that were complete when it was asked, and none that had not begun when it came."""
    factory = MemoryMapState.Factory() if kind == "memory" else _sql(kind, tmp_path)
    wrong, asked = answers_beside_batches(cluster, factory, 40)
    assert wrong == [] and min(asked) > 0


def _sql(kind: str, folder: Any) -> SqlMapState:
    make = SqlMapState.opaque if kind == "opaque" else SqlMapState.transactional
    return make(f"sqlite:///{folder}/counts.db", "counts", "word string", "n bigint")
