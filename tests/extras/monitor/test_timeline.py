"""What steps and events become: attempts with phases, counts, histograms; and nothing in another process."""

from __future__ import annotations

import gc
import pickle

import pytest

from trident_py.extras.monitor.operations import oldest_of
from trident_py.extras.monitor.timeline import KEPT, BatchRecord, Timeline, Unwatched
from trident_py.model.fault_points import DRIVER
from trident_py.report.progress import Event, Progress


class Told:
    """A timeline that is told of a batch, at a clock of the test's own."""

    def __init__(self, also: object = None) -> None:
        self.clock = 0.0
        self.timeline = Timeline(("run", "words"), also, lambda: self.clock)  # type: ignore[arg-type]
        self.progress = self.timeline.progress = Progress("words")
        self.timeline.event(Event("started", 0, None, ""))

    def at(self, seconds: float, *steps: str, txid: int = 1, partition: int = DRIVER, name: str = "") -> None:
        for step in steps:
            self.clock += seconds
            self.timeline.at(step, name, partition, txid)

    def event(self, kind: str, txid: int = 1, attempt: int = 0, reason: str = "") -> None:
        self.timeline.event(Event(kind, txid, attempt, reason))

    def commit(self, txid: int = 1, tuples: int = 2, where: str = "") -> None:
        self.progress.txid = txid
        self.progress.emitted = {"words": self.progress.emitted.get("words", 0) + tuples}
        self.progress.seconds = {"emit": 0.5, "process": 2.0, "commit": 0.004}
        self.event("committed", txid, reason=where)


@pytest.fixture
def told() -> Told:
    return Told()


def test_each_moment_of_an_attempt_counts_for_one_phase(told: Told) -> None:
    told.timeline.batches.append(BatchRecord(0, 0, 0))
    told.at(5, "described")
    told.at(1, "recorded")
    told.at(2, "emit", partition=0, name="words")
    told.at(4, "begin", partition=0, name="counts")
    told.at(8, "begun", "written", "committed", partition=0, name="counts")
    told.at(1, "processed")
    told.at(2, "publish", name="counts")
    told.at(4, "published", name="counts")
    told.at(1, "over")
    told.commit()
    batch = told.timeline.batches[-1]
    (attempt,) = batch.attempts
    assert attempt.phases == {("describe", ""): 1, ("emit", ""): 2, ("execute", ""): 5, ("commit", "counts"): 28,
                              ("finish", ""): 3}  # fmt: skip
    assert (batch.waited, attempt.where, attempt.outcome) == (5, "driver", "committed")
    assert attempt.ended is not None and sum(attempt.phases.values()) == attempt.ended - attempt.began


def test_the_time_before_the_first_batch_is_no_wait_for_records(told: Told) -> None:
    for txid in (1, 2):
        told.at(5, "described", txid=txid)
        told.commit(txid)
    assert [batch.waited for batch in told.timeline.batches] == [0, 5]


def test_commits_side_by_side_count_once(told: Told) -> None:
    told.at(1, "described", "recorded")
    told.at(1, "begin", partition=0, name="a")
    told.at(1, "begin", partition=1, name="b")
    told.at(2, "committed", partition=0, name="a")
    told.at(4, "committed", partition=1, name="b")
    told.at(1, "processed")
    told.commit()
    phases = told.timeline.batches[0].attempts[0].phases
    assert phases == {("describe", ""): 1, ("emit", ""): 1, ("commit", "a"): 1, ("commit", "b"): 6, ("execute", ""): 1,
                      ("finish", ""): 0}  # fmt: skip


def test_a_job_is_one_phase(told: Told) -> None:
    told.at(1, "described", "recorded")
    told.at(9, "processed")
    told.commit()
    (attempt,) = told.timeline.batches[0].attempts
    assert (attempt.where, attempt.phases[("execute", "")]) == ("job", 9)


def test_a_replay_is_another_attempt_of_its_batch(told: Told) -> None:
    told.at(1, "described", "recorded")
    told.event("replay", reason="no")
    told.progress.attempt = 1
    told.at(1, "described", "recorded", "processed")
    told.commit()
    told.event("replay", txid=2, reason="it cannot be described")
    found = [[(each.number, each.outcome, each.reason) for each in batch.attempts] for batch in told.timeline.batches]
    assert found == [[(0, "replay", "no"), (1, "committed", "")], [(0, "replay", "it cannot be described")]]
    assert told.timeline.outcomes == {"replay": 2, "committed": 1} and told.timeline.attempts == 3
    assert told.timeline.current is told.timeline.batches[1]


def test_an_attempt_that_was_to_commit_nothing_is_checked(told: Told) -> None:
    told.at(1, "described", "recorded")
    told.progress.attempt = 1
    told.at(1, "described", "recorded", "processed")
    told.commit()
    assert [each.outcome for each in told.timeline.batches[0].attempts] == ["checked", "committed"]


def test_a_batch_that_an_earlier_driver_decided_is_one(told: Told) -> None:
    told.at(1, "publish", "published", name="counts")
    told.commit(txid=4)
    assert [(batch.txid, batch.tuples) for batch in told.timeline.batches] == [(4, {"words": 2})]


def test_counts_are_those_of_each_batch_and_of_all(told: Told) -> None:
    for txid in range(1, KEPT + 6):
        told.at(0.1, "described", "recorded", "processed", txid=txid)
        told.commit(txid, tuples=txid)
    line = told.timeline
    assert len(line.batches) == KEPT and line.batches[0].txid == 6
    assert all(batch.tuples == {"words": batch.txid} for batch in line.batches)
    assert line.outcomes["committed"] == sum(line.buckets["emit"].counts) == KEPT + 5
    assert line.buckets["commit"].counts[2] == KEPT + 5
    assert line.buckets["process"].sum == pytest.approx(2.0 * (KEPT + 5))


def test_a_failure_ends_the_attempt_and_the_run(told: Told) -> None:
    told.at(1, "described", "recorded")
    told.event("failed", reason="ValueError: no")
    told.timeline.finish()
    line = told.timeline
    assert (line.status, line.reason, line.batches[0].attempts[0].outcome) == ("failed", "ValueError: no", "failed")
    other = Told().timeline
    other.event(Event("failed", 3, None, "no"))
    assert (other.status, list(other.batches)) == ("failed", [])


def test_a_start_that_waits_keeps_since_when() -> None:
    line = Timeline(("run", "words"), None, iter([float(n) for n in range(9)]).__next__)
    line.event(Event("waiting", None, None, "waiting for db"))
    line.event(Event("waiting", None, None, "waiting for db, still"))
    assert line.waits == ("waiting for db, still", 1.0)
    line.event(Event("started", 0, None, ""))
    assert (line.waits, line.status) == (None, "running")


class Also:
    steps: list[str] = []  # noqa: RUF012  shared: it is pickled

    def at(self, step: str, name: str, partition: int, txid: int) -> None:
        self.steps.append(step)


@pytest.mark.parametrize(("also", "left"), [(Also(), Also), (None, Unwatched)])
def test_it_is_itself_in_its_process_and_nothing_in_another(also: Also | None, left: type) -> None:
    told = Told(also)
    sent = pickle.dumps(told.timeline)
    assert pickle.loads(sent) is told.timeline
    del told
    gc.collect()
    assert isinstance(pickle.loads(sent), left)


def test_another_watcher_is_told_too() -> None:
    Also.steps.clear()
    Told(Also()).at(1, "described", "recorded")
    assert Also.steps == ["described", "recorded"]


@pytest.mark.parametrize(("commits", "execute"), [({"counts": 4.0, "totals": 1.0}, 5), ({"counts": 30.0}, 0)])
def test_a_job_tells_how_long_its_commits_took(told: Told, commits: dict[str, float], execute: float) -> None:
    told.at(5, "described")
    told.at(1, "recorded")
    told.at(10, "processed")
    told.at(1, "over")
    told.progress.commits = commits
    told.commit()
    (attempt,) = told.timeline.batches[0].attempts
    committed = {state: seconds for (phase, state), seconds in attempt.phases.items() if phase == "commit"}
    assert attempt.where == "job" and committed == (commits if execute else {"counts": 10})
    assert attempt.phases["execute", ""] == execute and attempt.ended is not None
    assert sum(attempt.phases.values()) == attempt.ended - attempt.began


def test_the_oldest_record_of_a_backlog_waits_since_the_first_backlog_that_had_it() -> None:
    taken = [(10, 0, 5), (20, 5, 10), (30, 10, 10), (40, 10, 10)]  # began, tuples, backlog
    batches = [BatchRecord(at, float(began), 0.0, ended=began + 1.0, tuples={"s": tuples}, backlog={"s": backlog})
               for at, (began, tuples, backlog) in enumerate(taken)]  # fmt: skip
    # the last ten became known with batch 3: those before were taken by it and by batch 2
    assert oldest_of(batches, "s", 100.0) == 60
    assert oldest_of(batches[:3], "s", 100.0) == 70
    assert oldest_of(batches[:2], "s", 100.0) == 80
    assert oldest_of(batches, "other", 100.0) is None
    batches.append(BatchRecord(4, 50.0, 0.0, ended=51.0, tuples={"s": 4}, backlog={"s": 6}))
    assert oldest_of(batches, "s", 100.0) == 60
    batches.append(BatchRecord(5, 60.0, 0.0, ended=61.0, tuples={"s": 6}, backlog={}))
    assert oldest_of(batches, "s", 100.0) == 0
