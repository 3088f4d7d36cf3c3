"""The batches of a component as they run: its steps and events become attempts, and the seconds of their phases.

A timeline is the watcher of its component (`trident_py.model.fault_points`). It goes to the workers with the program,
where it is told nothing: only steps in the driver's process count.
"""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

from ...engine.program import Program
from ...model.context import RunContext, with_context
from ...model.fault_points import Watcher
from ...report.progress import Event, Progress

log = logging.getLogger("trident_py")

KEPT = 1_000  # batches
ATTEMPTS = 40  # of a batch: the first and the last ones
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""The bounds of the histograms."""
Phase = tuple[str, str]
"""What an attempt does, and of which state. "waiting": no batch runs; "describe": the checkpoint gets the batch;
"emit": states and spouts prepare it; "execute": emitting and functions, on executors the whole job; "commit": a state
gets it; "finish": spout metadata and decision."""
WAITING: Phase = ("waiting", "")
_BEHIND = {
    "recorded": "execute", "processed": "finish", "decided": "finish", "publish": "commit", "published": "finish",
}  # fmt: skip
_COMMITS = ("begin", "committed")
_Key = tuple[str, str]


def watch(
    programs: Sequence[Program], run: str, now: Callable[[], float] | None = None
) -> tuple[dict[str, Timeline], list[Program]]:
    """Return a timeline for each component, and the programs with these as their watchers."""
    lines = {
        each.component: Timeline((run, each.component), RunContext.of(each.conf).watcher, now) for each in programs
    }
    return lines, [replace(each, conf=with_context(each.conf, watcher=lines[each.component])) for each in programs]


def make_clock() -> Callable[[], float]:
    """Return a clock of seconds since 1970 that never goes back."""
    began = time.time() - time.monotonic()
    return lambda: began + time.monotonic()


@dataclass(slots=True)
class AttemptRecord:
    """An attempt of a batch. ``outcome``: "" while it runs, "committed", "replay", "moved", "failed", or "checked" for
    one that was to commit nothing. ``where``: "driver" or "job"."""

    number: int
    began: float
    phases: dict[Phase, float] = field(default_factory=dict)
    ended: float | None = None
    outcome: str = ""
    reason: str = ""
    where: str = ""


@dataclass(slots=True)
class BatchRecord:
    """A batch, with its first and last attempts. ``waited``: the seconds without a batch before it, 0 for
    the first. ``seconds``, ``tuples`` by spout, ``rows`` by state and ``backlog`` are those of its commit."""

    txid: int
    began: float
    waited: float
    attempts: list[AttemptRecord] = field(default_factory=list)
    ended: float | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    tuples: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    backlog: dict[str, int] = field(default_factory=dict)


class Buckets:
    """A histogram of seconds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(SECONDS) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(SECONDS, seconds)] += 1
        self.sum += seconds


class Timeline:
    """The last batches of a component, and counts of all. Read it inside ``lock``.

    ``also``: another watcher of the run. ``waits``: for which store the start waits, and since when.
    """

    def __init__(self, key: _Key, also: Watcher | None = None, now: Callable[[], float] | None = None) -> None:
        self.component = key[1]
        self.progress = Progress(key[1])
        self.lock = threading.Lock()
        self.now = now or make_clock()
        self.status = "starting"
        self.reason = ""
        self.waits: tuple[str, float] | None = None
        self.batches: deque[BatchRecord] = deque(maxlen=KEPT)
        self.phase, self.since = WAITING, self.now()
        self.attempts = 0
        self.outcomes: Counter[str] = Counter()
        self.buckets: dict[str, Buckets] = {}
        self.committed: float | None = None
        self._key, self._also = key, also
        self._batch: BatchRecord | None = None
        self._attempt: AttemptRecord | None = None
        self._open: list[str] = []
        self._in_process = self._told = False
        self._emitted: dict[str, int] = {}
        self._persisted: dict[str, int] = {}
        _watched[key] = self

    def __reduce__(self) -> tuple:
        return watcher_of, (self._key, self._also)

    @property
    def current(self) -> BatchRecord | None:
        """The batch that has begun and is not committed."""
        return self._batch

    # -- steps ------------------------------------------------------------------------------------------------

    def at(self, step: str, name: str, partition: int, txid: int) -> None:
        if partition < 0 or step in _COMMITS or not self._in_process:  # the others of a task say nothing new
            now = self.now()
            with self.lock:
                if partition >= 0:
                    self._in_task(step, name, now)
                elif step == "described":
                    self._begin(txid, self.progress.attempt, now)
                elif step in _BEHIND:
                    self._enter((_BEHIND[step], name if step == "publish" else ""), now)
        if self._also is not None:
            self._also.at(step, name, partition, txid)

    def _in_task(self, step: str, name: str, now: float) -> None:
        """Count for the state that began last, where commits of several partitions or states overlap."""
        if not self._in_process:
            self._in_process = True
            if self.phase[0] == "execute":  # states and spouts have prepared the attempt until now
                self.phase = ("emit", "")
                self._enter(("execute", ""), now)
        if step == "begin":
            self._open.append(name)
            self._enter(("commit", name), now)
        elif step == "committed" and name in self._open:
            self._open.remove(name)
            self._enter(("commit", self._open[-1]) if self._open else ("execute", ""), now)

    def _begin(self, txid: int, attempt: int, now: float) -> AttemptRecord:
        if self._attempt is not None:
            self._end("checked", "", now)
        if self._batch is None or self._batch.txid != txid:
            waited = now - self.since if self.batches else 0.0  # before the first: the start, of Spark's query too
            self._batch = BatchRecord(txid, now, waited)
            self.batches.append(self._batch)
        self._attempt = AttemptRecord(attempt, now)
        if len(self._batch.attempts) == ATTEMPTS:
            del self._batch.attempts[ATTEMPTS // 2]
        self._batch.attempts.append(self._attempt)
        self.attempts += 1
        self.phase, self.since = ("describe", ""), now
        self._in_process = False
        self._open.clear()
        self._told = log.isEnabledFor(logging.DEBUG)  # once in an attempt: each batch pays for it
        if self._told:
            self._log_phase()
        return self._attempt

    def _enter(self, phase: Phase, now: float) -> None:
        if self._attempt is not None:
            spent = self._attempt.phases
            spent[self.phase] = spent.get(self.phase, 0.0) + now - self.since
        self.phase, self.since = phase, now
        if self._told:
            self._log_phase()

    def _log_phase(self) -> None:
        assert self._batch is not None
        phase, attempt = " ".join(filter(None, self.phase)), self._batch.attempts[-1].number
        log.debug("%s: txid %d, attempt %d: %s", self.component, self._batch.txid, attempt, phase)

    # -- events -----------------------------------------------------------------------------------------------

    def event(self, event: Event) -> None:
        """Record an event of the component."""
        now = self.now()
        with self.lock:
            match event.kind:
                case "committed":
                    self._commit(event, now)
                case "replay" | "moved" | "failed":
                    self._fail(event, now)
                case "started":
                    self.status, self.waits, self.since = "running", None, now
                case "waiting":
                    self.waits = event.reason, now if self.waits is None else self.waits[1]

    def finish(self) -> None:
        """Record that the run has ended."""
        with self.lock:
            self._enter(WAITING, self.now())
            if self.status != "failed":
                self.status = "ended"

    def _commit(self, event: Event, now: float) -> None:
        if self._attempt is None:  # an earlier driver has decided it
            self._begin(event.txid or 0, event.attempt or 0, now)
        driver = self._in_process or event.reason == "in the driver"
        batch, progress = self._end("committed", "", now), self.progress
        batch.attempts[-1].where = "driver" if driver else "job"
        if not driver:
            _split(batch.attempts[-1].phases, progress.commits)
        batch.ended = self.committed = now
        batch.seconds = progress.seconds
        batch.tuples = _new(progress.emitted, self._emitted)
        batch.rows = _new(progress.persisted, self._persisted)
        if progress.backlog:
            batch.backlog = {spout: sum(waiting.values()) for spout, waiting in progress.backlog.items()}
        for phase, seconds in progress.seconds.items():
            (self.buckets.get(phase) or self.buckets.setdefault(phase, Buckets())).add(seconds)
        self._batch = None

    def _fail(self, event: Event, now: float) -> None:
        if self._attempt is None and event.kind != "failed":  # its spouts could not describe it
            self._begin(event.txid or 0, event.attempt or 0, now)
        if self._attempt is not None:
            self._end(event.kind, event.reason, now)
        if event.kind == "failed":
            self.status, self.reason = "failed", event.reason

    def _end(self, outcome: str, reason: str, now: float) -> BatchRecord:
        self._enter(WAITING, now)
        self._told = False
        attempt, batch = self._attempt, self._batch
        assert attempt is not None and batch is not None
        attempt.ended, attempt.outcome, attempt.reason = now, outcome, reason
        self.outcomes[outcome] += 1
        self._attempt = None
        return batch


def _split(phases: dict[Phase, float], commits: Mapping[str, float]) -> None:
    """Take the commits out of the time of a job: of each state the slowest partition, together no more than the job."""
    job, whole = phases.get(("execute", ""), 0.0), sum(commits.values())
    share = min(1.0, job / whole) if whole else 0.0
    for state, seconds in commits.items():
        phases["commit", state] = phases.get(("commit", state), 0.0) + seconds * share
        phases["execute", ""] = phases.get(("execute", ""), 0.0) - seconds * share


def _new(counts: Mapping[str, int], known: dict[str, int]) -> dict[str, int]:
    """Return how much each count has grown; ``known`` has the counts then."""
    grown = {name: count - known.get(name, 0) for name, count in counts.items()}
    known.update(counts)
    return grown


class Unwatched:
    """A watcher in another process than the driver's."""

    def at(self, step: str, name: str, partition: int, txid: int) -> None:
        """Do nothing."""


_watched: WeakValueDictionary[_Key, Timeline] = WeakValueDictionary()


def watcher_of(key: _Key, also: Watcher | None) -> Watcher:
    """Return the timeline of a component in the driver's process, else the run's other watcher."""
    return _watched.get(key) or also or Unwatched()
