"""What a person sees of a running topology."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.errors import TopologyError, TridentError, ZombieError
from trident_py.report.progress import RunningTopology
from trident_py.testing import FixedBatchSpout


def ended(running: RunningTopology) -> None:
    for component in list(running.progress):
        running.component_ended(component)


def test_it_is_active_until_its_last_component_ends() -> None:
    running = RunningTopology("t", ["a", "b"])
    running.component_ended("a")
    assert running.isActive and not running.awaitTermination(0)
    running.component_ended("b")
    assert not running.isActive and running.awaitTermination(0)
    assert [event.kind for event in running.events] == ["ended"]


def test_the_first_error_is_raised_and_stops_the_others() -> None:
    running = RunningTopology("t", ["a", "b"])
    first, second = TopologyError("first", txid=3), TopologyError("second")
    running.component_ended("a", first)
    assert running.stopping.is_set()
    running.component_ended("b", second)
    with pytest.raises(TopologyError, match="first"):
        running.awaitTermination()
    assert running.exception is first
    assert [(event.kind, event.txid) for event in running.events] == [("failed", 3), ("failed", None), ("ended", None)]


class Meeting:
    """A lock that each of two threads has left once before either goes on."""

    def __init__(self, lock: Any) -> None:
        self._lock, self._left = lock, threading.Barrier(2, timeout=5)
        self._met: set[int] = set()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        if threading.get_ident() not in self._met:
            self._met.add(threading.get_ident())
            self._left.wait()


def test_two_components_that_end_at_once_are_cleaned_up_behind_once(monkeypatch: pytest.MonkeyPatch) -> None:
    running = RunningTopology("t", ["a", "b"])
    cleaned: list[bool] = []
    monkeypatch.setattr(running, "_clean_up", lambda: cleaned.append(running.isActive))
    monkeypatch.setattr(running, "_lock", Meeting(running._lock))
    running.start()
    assert running.awaitTermination(10)
    assert cleaned == [True]


def test_txid_is_that_of_the_only_component_and_none_before_the_first_batch() -> None:
    running = RunningTopology("t", ["a", "b"])
    assert running.txid is None and running.txids == {"a": None, "b": None}
    running.progress["b"].txid = 7
    assert running.txids == {"a": None, "b": 7}
    assert RunningTopology("empty", []).awaitTermination(0)


def test_collected_rows_are_those_of_the_last_attempt() -> None:
    running = RunningTopology("t", ["a"])
    running.record_attempt("a", 1, 0, [("out", 0, [(1,), (2,)]), ("gone", 0, [(9,)])])
    running.record_attempt("a", 1, 1, [("out", 1, [(3,)]), ("out", 0, [(4,)])])
    running.record_attempt("a", 2, 0, [("out", 0, [(5,)])])
    assert running.collected("out") == {1: [(3,), (4,)], 2: [(5,)]}
    assert running.collected_by_partition("out") == {1: {0: [(4,)], 1: [(3,)]}, 2: {0: [(5,)]}}
    assert running.collected("gone") == running.collected("unknown") == {}
    assert running.attempts == {1: 1, 2: 0}


def test_components_do_not_touch_each_others_rows() -> None:
    running = RunningTopology("t", ["a", "b"])
    running.record_attempt("a", 1, 2, [("one", 0, [(1,)]), ("same", 0, [(1,)])])
    running.record_attempt("b", 1, 0, [("same", 0, [(2,)])])
    assert running.collected("one") == {1: [(1,)]}
    assert running.collected("same") == {1: [(1,), (2,)]}
    assert running.attempts == {1: 2}


def test_listeners_see_events_with_the_progress_of_the_component() -> None:
    seen: list[Any] = []
    running = RunningTopology("t", ["a"])
    running.addListener(lambda event, progress: seen.append((event.kind, progress and progress.component)))
    running.event("a", "committed", 1, 0)
    ended(running)
    assert seen == [("committed", "a"), ("ended", None)]


def test_a_listener_that_fails_is_logged_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []
    running = RunningTopology("t", ["a"])
    running.addListener(lambda event, progress: 1 / 0)
    running.addListener(lambda event, progress: seen.append(event.kind))
    running.event("a", "committed", 1, 0)
    assert seen == ["committed"] and "a listener failed on event committed" in caplog.text


def test_what_is_kept_of_events_and_attempts_is_bounded() -> None:
    running = RunningTopology("t", ["a"])
    for txid in range(1, 10_102):
        running.event("a", "committed", txid, 0)
        running.record_attempt("a", txid, 0, [])
    assert len(running.events) == len(running.attempts) == 10_000
    assert min(running.attempts) == 102


def test_stop_returns_when_the_run_has_ended() -> None:
    class Stoppable(RunningTopology):
        def _stop(self) -> None:
            threading.Thread(target=ended, args=(self,)).start()

    running = Stoppable("t", ["a"])
    running.stop()
    assert not running.isActive and running.awaitTermination(0)


def test_a_run_that_is_deactivated_says_so_once() -> None:
    running = RunningTopology("t", ["a"])
    for call in (running.activate, running.deactivate, running.deactivate, running.activate):
        call()
    assert [event.kind for event in running.events] == ["deactivated", "activated"]
    assert not running.inactive.is_set() and running.isActive


# -- an error that nobody has asked for -------------------------------------------------------------------------------


def fail(word: str) -> None:
    raise ValueError(f"cannot read {word!r}")


def submit_failing(cluster: LocalCluster, name: str = "t") -> RunningTopology:
    """Start a topology that fails at once, and wait for its end without asking how it ended."""
    topology = TridentTopology()
    topology.newStream("in", FixedBatchSpout(Fields("word"), 1, ("a",))).each("word", fail, "other")
    running = cluster.submitTopology(name, {}, topology.build())
    running.await_open(["in"], 60)
    running.stop()
    return running


def test_the_end_of_with_raises_the_error_that_nobody_has_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(TopologyError, match="cannot read 'a'"), LocalCluster() as cluster:
        submit_failing(cluster)
    with pytest.raises(TopologyError, match="cannot read 'a'"), LocalCluster() as cluster, submit_failing(cluster):
        pass
    assert not caplog.records


def test_the_error_of_the_block_is_raised_and_that_of_the_run_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(KeyError), LocalCluster() as cluster:
        running = submit_failing(cluster)
        raise KeyError
    cluster.shutdown()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", f"topology 't' failed: {running.exception}")
    ]


@pytest.mark.parametrize("asked", ["awaited", "read"])
def test_an_error_that_was_asked_for_is_neither_raised_nor_logged_again(
    asked: str, caplog: pytest.LogCaptureFixture
) -> None:
    with LocalCluster() as cluster:
        running = submit_failing(cluster)
        if asked == "read":
            assert "cannot read 'a'" in str(running.exception)
        else:
            with pytest.raises(TopologyError, match="cannot read 'a'"):
                running.awaitTermination(60)
        submit_failing(cluster, "other")
        cluster.shutdown()
    assert [record.getMessage()[:24] for record in caplog.records] == ["topology 'other' failed:"]


def test_of_several_errors_one_is_raised_and_the_others_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(TopologyError, match="cannot read 'a'"), LocalCluster() as cluster:
        submit_failing(cluster, "first")
        submit_failing(cluster, "second")
    assert [record.getMessage()[:25] for record in caplog.records] == ["topology 'second' failed:"]


def test_killing_a_topology_that_has_failed_raises_its_error(caplog: pytest.LogCaptureFixture) -> None:
    cluster = LocalCluster()
    submit_failing(cluster)
    with pytest.raises(TopologyError, match="cannot read 'a'"):
        cluster.killTopology("t")
    with pytest.raises(TridentError, match="no topology 't' is active on this cluster; active: none"):
        cluster.killTopology("t")
    cluster.shutdown()
    assert not caplog.records


UNASKED = """
import time
from trident_py import LocalCluster, TridentTopology
from trident_py.testing import FixedBatchSpout

def fail(word):
    raise ValueError(f"cannot read {word!r}")

topology = TridentTopology()
topology.newStream("in", FixedBatchSpout("word", 1, ("a",))).each("word", fail, "other")
"""
RUN = "running = cluster.submitTopology('t', {}, topology.build())"
WAIT = "while running.isActive: time.sleep(0.01)"


@pytest.mark.parametrize(
    ("main", "code", "told"),
    [
        (f"with LocalCluster() as cluster:\n    {RUN}\n    {WAIT}", 1, "TopologyError: ValueError: cannot read 'a'"),
        (f"cluster = LocalCluster()\n{RUN}\n{WAIT}\ncluster.shutdown()", 0, "topology 't' failed: ValueError: cannot"),
        (f"cluster = LocalCluster()\n{RUN}\n{WAIT}", 0, "topology 't' failed: ValueError: cannot read 'a'"),
    ],
)
def test_a_program_that_never_asks_shows_the_error_once(main: str, code: int, told: str) -> None:
    done = subprocess.run([sys.executable, "-c", UNASKED + main], capture_output=True, text=True, check=False)
    assert done.returncode == code and told in done.stderr
    assert done.stderr.count("in each fail, txid 1, partition 0") == 1


# -- where a run ended ------------------------------------------------------------------------------------------------


class Broken(RunningTopology):
    """Its component ends with an error outside of an attempt: in its start, before its first batch, after txid 7."""

    def __init__(self, begun: str) -> None:
        super().__init__("t", ["in"])
        self.begun = begun

    def _run_component(self, component: str) -> None:
        if self.begun != "nothing":
            self.event(component, "started", 6, None)
        if self.begun == "batch":
            self.progress[component].begun = 7
        raise ZombieError("another driver runs")


@pytest.mark.parametrize(
    ("begun", "where"),
    [
        ("nothing", "in start of component 'in'"),
        ("run", "in component 'in'"),
        ("batch", "in component 'in', last begun txid 7"),
    ],
)
def test_an_error_outside_of_an_attempt_says_what_is_known_of_its_place(begun: str, where: str) -> None:
    running = Broken(begun)
    running.start()
    with pytest.raises(TopologyError) as raised:
        running.awaitTermination(60)
    first, *_, last = str(raised.value).splitlines()
    assert (first, last) == ("ZombieError: another driver runs", f"  {where}")
    assert raised.value.txid is raised.value.partition is None
    assert isinstance(raised.value.__cause__, ZombieError)


def test_a_full_disk_below_the_checkpoint_is_named_with_the_batch_and_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdatasync", full)
    topology = TridentTopology()
    topology.newStream("in", FixedBatchSpout(Fields("word"), 1, ("a",)))
    with LocalCluster(str(tmp_path)) as cluster:
        running = cluster.submitTopology("t", {}, topology.build())
        with pytest.raises(TopologyError) as raised:
            running.awaitTermination(60)
    told = str(raised.value)
    assert told.startswith(f"TridentError: the checkpoint's file {tmp_path}/t/in/journal cannot be written at txid 0: ")
    assert "No space left on device. Make room there, then start again" in told
    assert told.endswith("\n  in start of component 'in'")
