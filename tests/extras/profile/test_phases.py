"""The phases of a batch: no moment counts twice, none is lost, and without the setting no clock is asked."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from trident_py import Fields, LocalCluster, TridentTopology, entry_points
from trident_py.engine import phases
from trident_py.engine.phases import Clock, Taken, TaskPhases, measure_calls, measure_handing, measure_pulls, phase
from trident_py.errors import DefinitionError, FailedException
from trident_py.extras.profile.cli import ON, measure
from trident_py.extras.profile.phases import PHASES
from trident_py.extras.profile.report import Profile
from trident_py.extras.profile.spark import in_job, inline_call, our_call, whole_batch
from trident_py.operations.builtin import Count
from trident_py.testing import FixedBatchSpout, MemoryMapState


class SlowTime:
    """Stands for the module ``time``: time passes only when a test says so."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def time(self) -> float:
        return 1000.0 + self.now


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowTime:
    stands = SlowTime()
    monkeypatch.setattr(phases, "time", stands)
    return stands


@pytest.fixture
def clock(slow: SlowTime) -> Any:
    phases.start(True)
    yield slow
    phases.start(False)


def seconds() -> dict[tuple[str, str], float]:
    found = phases.take()
    assert found is not None
    return dict(found.seconds)


def test_a_phase_within_another_one_interrupts_it(clock: SlowTime) -> None:
    with phase("task rest"):
        clock.now += 1
        with phase("operation", "split"):
            clock.now += 10
        clock.now += 2
    assert seconds() == {("task rest", ""): 3.0, ("operation", "split"): 10.0}


def test_a_phase_is_one_of_what_it_is_within_unless_it_says_of_what(clock: SlowTime) -> None:
    with phase("state update", "counts"), phase("state read"):
        clock.now += 1
        with phase("home call", "get"):
            clock.now += 5
    assert seconds() == {("state update", "counts"): 0.0, ("state read", "counts"): 1.0, ("home call", "get"): 5.0}


def test_an_error_leaves_its_phases(clock: SlowTime) -> None:
    def fail() -> None:
        clock.now += 1
        raise ValueError

    with phase("task rest"):
        with pytest.raises(ValueError):
            measure_calls(fail, "operation", "fails")()
        clock.now += 2
    assert seconds() == {("task rest", ""): 2.0, ("operation", "fails"): 1.0}


def test_waiting_for_rows_and_for_their_receiver_count_apart(clock: SlowTime) -> None:
    def made() -> Any:
        for n in range(3):
            clock.now += 1
            yield n

    with phase("task rest"):
        for _ in measure_handing(measure_pulls(made(), "exchange read"), "exchange write"):
            clock.now += 10
    assert seconds() == {("task rest", ""): 0.0, ("exchange read", ""): 3.0, ("exchange write", ""): 30.0}


def test_a_clock_that_was_asked_begins_anew(slow: SlowTime) -> None:
    clock = Clock()
    with clock.during("checkpoint"):
        slow.now += 1
        first = clock.take()
        slow.now += 2
    assert (first.whole, first.seconds) == (1.0, {("checkpoint", ""): 1.0})
    assert clock.take() == Taken(1001.0, 2.0, {("checkpoint", ""): 2.0}, {})


def words(slow: SlowTime | None, fail: bool = False) -> TridentTopology:
    """Splitting takes a second a sentence of the slow time, a sentence of one word two."""
    failed: list[str] = []

    def split(sentence: str) -> list[str]:
        if fail and not failed:
            failed.append(sentence)
            raise FailedException("once")
        if slow is not None:
            slow.now += 1
        return sentence.split(" ")

    def long(word: str) -> bool:
        if slow is not None:
            slow.now += 0.5
        return len(word) > 1

    topology = TridentTopology()
    spout = FixedBatchSpout(Fields("sentence string"), 2, ("a cow",), ("the man",), ("to be or",), ("not to be",))
    stream = topology.newStream("in", spout).each("sentence", split, Fields("word string")).filter("word", long)
    stream.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count", stateName="counts")
    return topology


def profile_of(topology: TridentTopology, warm_up: int = 0) -> Profile:
    with LocalCluster() as cluster:
        running = cluster.submitTopology("profiled", ON, topology.build())
        (profile,) = measure(running, 10, warm_up)
    return profile


def test_each_operation_has_its_own_time_and_the_whole_batch_is_explained(slow: SlowTime) -> None:
    profile = profile_of(words(slow))
    split, long = (("operation", name) for name in ("each <function split>", "filter <function long>"))
    for batch, tuples in zip(profile.batches, (4, 6), strict=True):
        found = {name: spent for name, spent in batch.seconds.items() if spent}
        operations = {name: spent for name, spent in found.items() if name[0] == "operation"}
        assert sorted(operations.values()) == [2.0, tuples / 2], (split, long)
        assert sum(batch.seconds.values()) == batch.whole == 2 + tuples / 2


def test_the_phases_of_a_state_have_its_name(slow: SlowTime) -> None:
    (batch, _) = profile_of(words(slow)).batches
    of_state = {name for name, of in batch.seconds if of == "counts" and name.startswith("state")}
    assert of_state == {"state begin", "state read", "state update", "state write", "state commit", "state made"}


def test_every_phase_that_is_measured_is_a_known_one() -> None:
    (first, second) = profile_of(words(None)).batches
    assert {name for name, _ in [*first.seconds, *second.seconds]} <= set(PHASES)


def test_the_first_batches_are_left_out_and_half_of_a_short_run() -> None:
    assert [batch.txid for batch in profile_of(words(None), warm_up=1).batches] == [2]
    assert [batch.txid for batch in profile_of(words(None), warm_up=9).batches] == [2]


def test_a_replayed_batch_counts_once_with_all_its_time() -> None:
    assert [batch.txid for batch in profile_of(words(None, fail=True)).batches] == [1, 2]


def test_without_the_setting_no_clock_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()

    class Counted(SlowTime):
        def perf_counter(self) -> float:
            asked["perf_counter"] += 1
            return 0.0

        def time(self) -> float:
            asked["time"] += 1
            return 0.0

    monkeypatch.setattr(phases, "time", Counted())
    with LocalCluster() as cluster:
        running = cluster.submitTopology("plain", {}, words(None).build())
        assert running.awaitTermination(30)
    assert not asked and not running.progress["in"].profiled
    assert len(profile_of(words(None)).batches) == 2 and asked  # with it they are


def test_the_page_has_every_phase() -> None:
    page = (Path(__file__).parents[3] / "docs" / "profile.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall("`([^`]+)`", row)} == set(PHASES)


# -- Spark's own figures, put together with ours ------------------------------------------------------------------

T = 1_700_000_000_000


def task(number: int, launched: int, duration: int, deserialised: int = 2) -> dict[str, Any]:
    metrics = {"executorDeserializeTime": deserialised}
    return {"taskId": number, "launchTime": T + launched, "duration": duration, "taskMetrics": metrics}


def stage(begun: int, ended: int, *tasks: dict[str, Any]) -> dict[str, Any]:
    return {"submissionTime": T + begun, "completionTime": T + ended, "tasks": list(tasks)}


JOB = {
    "submissionTime": T,
    "completionTime": T + 100,
    "stages": [
        stage(40, 95, task(3, 41, 20), task(4, 43, 50, deserialised=5)),
        stage(2, 30, task(1, 5, 20)),
        {"status": "SKIPPED"},
    ],
}
OURS = Taken(T / 1000 + 0.060, 0.025, {("operation", "split"): 0.020, ("task rest", ""): 0.005}, {})


def test_a_job_is_explained_along_the_last_task_of_each_stage() -> None:
    others = Taken(T / 1000 + 0.045, 9.0, {("operation", "other"): 9.0}, {})
    found = in_job(JOB, [TaskPhases(0, 0, 3, others), TaskPhases(0, 1, 4, OURS)])
    assert {name: round(1000 * spent) for name, spent in found.items()} == {
        ("job scheduling", ""): 2 + 5 + 10 + 2 + 5,
        ("job descriptors", ""): 3 + 20,
        ("task launch", ""): 3,
        ("task start", "Java"): 5,
        ("task start", "Python"): 12,
        ("operation", "split"): 20,
        ("task rest", ""): 5,
        ("task end", ""): 8,
    }
    assert round(1000 * sum(found.values())) == 100


def test_our_call_is_explained_around_its_job() -> None:
    spent = {("job", ""): 0.150, ("ledger prepare", "counts"): 0.003, ("receipts", ""): 0.001}
    driver = Taken(T / 1000 - 0.040, 0.170, spent, {("job", ""): T / 1000 - 0.030})
    found = our_call(0.200, driver, 0.020, JOB)
    assert {name: round(1000 * value) for name, value in found.items()} == {
        ("foreachBatch", ""): 30,
        ("planning", ""): 20,
        ("job submit", ""): 10,
        ("ledger prepare", "counts"): 3,
        ("receipts", ""): 1 + 20,
    }


def test_a_batch_without_a_job_is_explained_by_its_task() -> None:
    driver = Taken(0.0, 0.050, {("inline", ""): 0.030, ("ledger publish", "counts"): 0.004}, {})
    found = inline_call(0.060, driver, [TaskPhases(0, 0, -1, OURS)])
    assert {name: round(1000 * value) for name, value in found.items()} == {
        ("foreachBatch", ""): 10,
        ("inline", ""): 5,
        ("ledger publish", "counts"): 4,
        ("operation", "split"): 20,
        ("task rest", ""): 5,
    }


def test_a_batch_lasts_until_the_next_one_begins() -> None:
    durations = {"triggerExecution": 300, "latestOffset": 30, "getBatch": 1, "queryPlanning": 9, "walCommit": 7,
                 "addBatch": 240, "commitOffsets": 8}  # fmt: skip
    report = {"timestamp": "2026-11-23T08:00:00.000Z", "durationMs": durations}
    following = {"timestamp": "2026-11-23T08:00:00.390Z", "durationMs": durations}
    whole, found = whole_batch(report, following)
    assert whole == pytest.approx(0.390)
    assert {name: round(1000 * spent) for name, spent in found.items()} == {
        ("offset", ""): 30,
        ("planning", ""): 10,
        ("offset log", ""): 7,
        ("commit log", ""): 8,
        ("between batches", ""): 90,
    }
    assert whole_batch(report, None)[0] == pytest.approx(0.300)


def test_without_the_extra_the_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_points, "_points", lambda group: {})
    lacks = "topology.profile needs profile, which this installation lacks: pip install --force-reinstall trident-py"
    with LocalCluster() as cluster:
        with pytest.raises(DefinitionError) as refused:
            cluster.submitTopology("profiled", ON, words(None).build())
        assert str(refused.value) == lacks
        assert cluster.submitTopology("plain", {"topology.profile": False}, words(None).build()).awaitTermination(30)
