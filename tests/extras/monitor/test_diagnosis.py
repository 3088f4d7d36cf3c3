"""The sentence that says what holds a component up: by cases, and for any timeline."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trident_py.extras.monitor.diagnosis import KINDS, ComponentView, Diagnosis, count, diagnose, duration, find_worst
from trident_py.extras.monitor.timeline import KEPT, AttemptRecord, BatchRecord, Phase

NOW = time.mktime((2026, 11, 26, 14, 30, 0, 0, 0, -1))
WAITING = ("waiting", "")
COMMIT, EXECUTE = ("commit", "counts"), ("execute", "")
QUIET = {"status": "running", "phase": WAITING, "since": NOW - 0.01, "spouts": ("words",)}


def batch(
    txid: int, ended: float, phases: dict[Phase, float], waited: float = 0.0, tuples: int = 100, backlog: int = 0
) -> BatchRecord:
    """A batch that was committed at once."""
    began = ended - sum(phases.values())
    attempt = AttemptRecord(0, began, phases, ended, "committed")
    left = {"words": backlog} if backlog else {}
    return BatchRecord(txid, began, waited, [attempt], ended, {}, {"words": tuples}, {"counts": tuples}, left)


def running(txid: int, began: float, *failed: str) -> BatchRecord:
    """A batch that is not committed; its first attempts have failed."""
    attempts = [AttemptRecord(n, began + n, {}, began + n + 1, "replay", why) for n, why in enumerate(failed)]
    return BatchRecord(txid, began, 0.0, [*attempts, AttemptRecord(len(failed), began + len(failed))])


def chain(seconds: int, phases: dict[Phase, float], waited: float = 0.0, **more: Any) -> list[BatchRecord]:
    """A batch a second, the last one just now."""
    return [batch(n + 1, NOW - seconds + n + 1, dict(phases), waited, **more) for n in range(seconds)]


def said(**view: Any) -> tuple[str, str]:
    kind, sentence = diagnose(ComponentView(**{"now": NOW, **QUIET, **view}))
    return kind, sentence


def test_what_takes_most_of_the_time_holds_it_up() -> None:
    batches = chain(240, {EXECUTE: 0.2, COMMIT: 0.8})
    assert said(batches=batches) == ("held", "held by commit into counts, 80% of the time, since 14:26:00")


def test_it_says_when_it_began_and_whether_it_grows() -> None:
    before = [batch(n + 1, NOW - 600 + n, {EXECUTE: 0.9, COMMIT: 0.1}) for n in range(300)]
    behind = [batch(n + 301, NOW - 300 + n, {EXECUTE: 0.1, COMMIT: 0.5 + n / 300}) for n in range(300)]
    kind, sentence = said(batches=[*before, *behind])
    since = re.fullmatch(r"held by commit into counts, \d\d% of the time, since 14:(\d\d):\d\d", sentence)
    assert kind == "held" and since is not None and 24 <= int(since[1]) <= 26, sentence
    growing = [batch(n + 1, NOW - 50 + n, {EXECUTE: 0.1, COMMIT: 0.2 + n / 50}) for n in range(50)]
    assert said(batches=growing)[1].endswith(", growing")
    shrinking = [batch(n + 1, NOW - 50 + n, {COMMIT: 2.0 - n / 50}) for n in range(50)]
    assert said(batches=shrinking)[1].endswith(", shrinking")


def test_a_component_that_waits_most_of_the_time_keeps_up() -> None:
    kind, sentence = said(batches=chain(120, {EXECUTE: 0.1, COMMIT: 0.2}, waited=0.7))
    assert (kind, sentence) == ("steady", "keeping up: waits for records 70% of the time, 100 records a second")


def test_a_component_without_records_is_idle() -> None:
    assert said(since=NOW - 100, spouts=("a", "b", "c")) == ("idle", "idle: no records in 3 spouts since 14:28:20")
    old = [batch(7, NOW - 3600, {EXECUTE: 0.1})]
    assert said(batches=old, since=NOW - 3600) == ("idle", "idle: no records in 1 spout since 13:30")
    empty = [*old, *chain(30, {EXECUTE: 0.1}, waited=0.9, tuples=0)]
    assert said(batches=empty) == ("idle", "idle: no records in 1 spout since 13:30")


def test_a_backlog_says_how_long_it_lasts() -> None:
    fewer = [batch(n + 1, NOW - 59 + n, {COMMIT: 0.9, EXECUTE: 0.1}, tuples=5000, backlog=1_400_000 - 3334 * n)
             for n in range(60)]  # fmt: skip
    text = "behind: 1.2M records since {}, at this rate in 6 minutes; held by commit into counts, 90% of the time"
    assert said(batches=fewer, backlog={"words": 1_200_000}) == ("behind", text.format("14:29:01"))
    more = [batch(n + 1, NOW - 59 + n, {COMMIT: 1.0}, backlog=100_000 + 20 * n) for n in range(60)]
    kind, sentence = said(batches=more, backlog={"words": 101_180})
    growing = "behind: 101,180 records since 14:29:01, 20 more each second; held by commit into"
    assert kind == "behind" and sentence.startswith(growing)
    began = batch(1, NOW - 59.5, {COMMIT: 0.5}), *fewer  # a start: its first batch tells no backlog
    assert said(batches=list(began), backlog={"words": 1_200_000}) == ("behind", text.format("14:29:01"))
    still = said(batches=[batch(1, NOW - 600, {COMMIT: 1.0}, backlog=50)], backlog={"words": 50}, since=NOW - 600)
    assert still == ("behind", "behind: 50 records since 14:20, none taken in the last minute; waiting for records")


def test_a_backlog_says_since_when_there_is_one() -> None:
    few = [batch(n + 1, NOW - 90 + n, {COMMIT: 1.0}, backlog=900) for n in range(60)]  # what nine batches take
    many = [batch(n + 61, NOW - 30 + n, {COMMIT: 1.0}, backlog=1100) for n in range(31)]
    kind, sentence = said(batches=[*few, *many], backlog={"words": 1100})
    assert kind == "behind" and sentence.startswith("behind: 1,100 records since 14:29:30, ")
    kept = [batch(n + 1, NOW - KEPT + n + 1, {COMMIT: 1.0}, backlog=5000) for n in range(KEPT)]
    kind, sentence = said(batches=kept, backlog={"words": 5000})
    assert kind == "behind" and sentence.startswith("behind: 5,000 records since before 14:13, not getting fewer")


def test_a_backlog_of_a_few_seconds_is_nothing_special() -> None:
    batches = chain(60, {COMMIT: 0.1}, waited=0.9, tuples=1000, backlog=900)
    assert said(batches=batches, backlog={"words": 900})[0] == "steady"


def test_a_start_says_for_what_it_waits() -> None:
    assert said(status="starting", since=NOW - 5) == ("starting", "starting since 14:29:55")
    assert said(since=NOW - 5) == ("starting", "starting since 14:29:55")  # Spark starts its query
    assert said(since=NOW - 11)[0] == "idle" and said(since=NOW - 5, inactive=True)[0] == "paused"
    waits = ("waiting for MariaDB at db:3306, up to 50 s more (topology.start.wait.secs): refused\nmore", NOW - 10)
    text = "waiting for MariaDB at db:3306, up to 50 s more (topology.start.wait.secs): refused; since 14:29:50"
    assert said(status="starting", waits=waits) == ("waiting", text)


def test_a_replay_says_which_attempt_and_why() -> None:
    batches = [*chain(5, {COMMIT: 1.0}), running(6, NOW - 3, "each f failed in partition 1: no\n  at x.py", "again")]
    text = "replaying txid 6, attempt 2, since 14:29:58: again"
    assert said(batches=batches, phase=EXECUTE, since=NOW - 1) == ("replaying", text)


def test_a_phase_that_does_not_end_is_stuck() -> None:
    batches = [*chain(60, {COMMIT: 0.1}), running(61, NOW - 40)]
    text = "stuck in commit into counts of txid 61 since 14:29:20, for 40 seconds"
    assert said(batches=batches, phase=COMMIT, since=NOW - 40) == ("stuck", text)
    slow = [*[batch(n, NOW - 400 + 60 * n, {COMMIT: 30.0}) for n in range(1, 6)], running(6, NOW - 40)]
    assert said(batches=slow, phase=COMMIT, since=NOW - 40)[0] == "held"  # as long as usual


def test_a_pause_an_end_and_a_failure() -> None:
    batches = chain(5, {COMMIT: 1.0})
    assert said(batches=batches, inactive=True, since=NOW - 60) == ("paused", "paused after txid 5, since 14:29:00")
    busy = [*batches, running(6, NOW - 1)]
    assert said(batches=busy, inactive=True, phase=EXECUTE) == ("paused", "pausing: txid 6 runs to its end")
    assert said(batches=batches, status="ended") == ("ended", "ended after txid 5")
    told = said(batches=batches, status="failed", reason="ValueError: no\n  at x.py:3")
    assert told == ("failed", "failed after txid 5: ValueError: no")


def test_of_several_components_the_one_that_needs_somebody_is_told() -> None:
    found = {"a": Diagnosis("idle", "idle"), "b": Diagnosis("stuck", "stuck in x"), "c": Diagnosis("behind", "behind")}
    assert find_worst(found) == ("stuck", "b: stuck in x")
    assert find_worst({"a": Diagnosis("idle", "idle: no")}) == ("idle", "idle: no")
    assert find_worst({})[0] == "idle"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 second"), (1.4, "1 second"), (59, "59 seconds"), (360, "6 minutes"), (7200, "2 hours"), (2e5, "2 days")],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_counts() -> None:
    assert [count(n) for n in (0, 3, 0.25, 999_999, 1_240_000, 2e9)] == ["0", "3", "0.2", "999,999", "1.2M", "2.0G"]


# -- any timeline -----------------------------------------------------------------------------------------------------

SECONDS = st.floats(0, 300)
PHASES = st.sampled_from([
    WAITING, ("describe", ""), ("emit", ""), EXECUTE, COMMIT, ("commit", "totals"), ("finish", ""),
])  # fmt: skip
ATTEMPTS = st.builds(
    AttemptRecord, st.integers(0, 9), SECONDS, st.dictionaries(PHASES, SECONDS, max_size=6), SECONDS,
    st.sampled_from(["replay", "moved", "checked"]), st.text(max_size=300),
)  # fmt: skip


@st.composite
def views(draw: st.DrawFn) -> ComponentView:
    now, batches = NOW, []
    for txid in range(draw(st.integers(0, 12)), 0, -1):
        phases = draw(st.dictionaries(PHASES, SECONDS, min_size=1, max_size=6))
        backlog = draw(st.sampled_from([0, 0, 5, 3_000_000]))
        made = batch(txid, now - draw(SECONDS), phases, draw(SECONDS), draw(st.integers(0, 5000)), backlog)
        made.attempts = [*draw(st.lists(ATTEMPTS, max_size=2)), *made.attempts]
        batches.append(made)
        now = made.began - made.waited
    batches.reverse()
    if draw(st.booleans()):
        batches.append(running(99, NOW - draw(SECONDS), *draw(st.lists(st.text(), max_size=3))))
    status = draw(st.sampled_from(["starting", "running", "running", "running", "failed", "ended"]))
    waits = draw(st.none() | st.tuples(st.text(), st.just(NOW - 9)))
    waiting = draw(st.dictionaries(st.sampled_from(["words", "more"]), st.integers(0, 10_000_000)))
    return ComponentView(NOW, status, draw(PHASES), NOW - draw(SECONDS), batches, ("words", "more"), waiting,
                         draw(st.text()), waits, draw(st.booleans()))  # fmt: skip


@given(views())
def test_every_timeline_has_one_short_sentence(view: ComponentView) -> None:
    kind, sentence = diagnose(view)
    assert kind in KINDS and sentence and "\n" not in sentence and len(sentence) < 400
    assert all(0 <= int(share) <= 100 for share in re.findall(r"(\d+)% of the time", sentence))
    if kind in ("stuck", "replaying"):
        assert view.current is not None and f"txid {view.current.txid}" in sentence
    if kind in ("failed", "ended"):
        assert f"after txid {view.txid}" in sentence
    assert diagnose(view) == (kind, sentence)


@given(views())
def test_the_holder_is_what_takes_most_of_the_time(view: ComponentView) -> None:
    kind, sentence = diagnose(view)
    held = re.search(r"held by (commit into counts|commit into totals|functions|the checkpoint)", sentence)
    if kind != "held" or held is None:
        return
    spent: dict[Phase, float] = {view.phase: view.now - view.since}
    for each in [*view.within(NOW - 60, NOW), *([view.current] if view.current else [])]:
        before = max(0.0, NOW - 60 - each.began + each.waited)  # the last minute
        spent[WAITING] = spent.get(WAITING, 0.0) + max(0.0, each.waited - before)
        for phase, seconds in (pair for attempt in each.attempts for pair in attempt.phases.items()):
            spent[phase] = spent.get(phase, 0.0) + seconds
    names = {"commit into counts": COMMIT, "commit into totals": ("commit", "totals"), "functions": EXECUTE,
             "the checkpoint": ("describe", "")}  # fmt: skip
    assert spent[names[held[1]]] == pytest.approx(max(spent.values()))
