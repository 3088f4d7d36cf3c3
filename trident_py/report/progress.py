"""The user's handle of a running topology: progress, attempts, events, its end."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self

from ..config import Config
from ..engine.phases import BatchPhases, Seen
from ..engine.program import Program, failure_of, topology_error
from ..entry_points import load
from ..errors import TopologyError, TridentError
from ..metrics import Reported, Tallies
from ..model.plan import Plan
from ..model.retry import Stopped

log = logging.getLogger("trident_py")

KEPT = 1_000  # batches of a profile
MONITORS = "trident_py.monitors"
"""The group of entry points that refer to what watches a run."""
MONITORED = {Config.TOPOLOGY_OPENTELEMETRY: "opentelemetry", Config.TOPOLOGY_HTTP: "monitor"}
"""Which of them a setting asks for."""


class Event(NamedTuple):
    """An event of a run. ``kind``: "waiting" (for a store that is unavailable at the start), "started", "committed"
    (``reason`` is "in the driver" if Spark had no part in it), "moved" (from the driver to executors, as the next
    attempt), "replay", "reported", "unsteady" (an operation differed in a second run), "poison" (a tuple is excluded
    from its batch), "task-retry", "deactivated", "activated", "failed", "ended"."""

    kind: str
    txid: int | None
    attempt: int | None
    reason: str


@dataclass
class Progress:
    """The progress of a component. Counts are tuples in all committed batches of this run.

    ``seconds`` of the last batch, by phase: "emit" (coordination and emitting in the driver), "process" (the tasks),
    "commit" (publishing, spout metadata), and with ``topology.poison`` "check" (the attempts without a commit).
    ``dead_letters``: tuples that were excluded from their batches. ``backlog``: by spout and partition, the backlog
    when the last batch was defined, for spouts that can measure it. ``metrics``: what user code registered, by name
    (`trident_py.metrics`). ``profiled``: with ``topology.profile``, what was measured in the last batches.
    ``begun``: the last txid of which an attempt was begun. ``generations``: the fencing token of each state, from the
    start on. ``failed_partition``: where the last failure was, None outside of tasks. ``partitions``: the tuples of
    each spout and state by partition. ``commits``: of the last batch, the seconds of each state's slowest partition.
    """

    component: str
    txid: int | None = None
    begun: int | None = None
    attempt: int = 0
    batches: int = 0
    emitted: dict[str, int] = field(default_factory=dict)
    persisted: dict[str, int] = field(default_factory=dict)
    new_values: dict[str, int] = field(default_factory=dict)
    dead_letters: int = 0
    receipts: dict[str, list[Any]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    backlog: dict[str, dict[str, int]] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    generations: Mapping[str, int] = field(default_factory=dict)
    failed_partition: int | None = None
    profiled: deque[Seen] = field(default_factory=lambda: deque(maxlen=KEPT), repr=False, compare=False)
    partitions: dict[str, dict[int, int]] = field(default_factory=dict, repr=False)
    commits: dict[str, float] = field(default_factory=dict, repr=False)
    tallies: Tallies = field(default_factory=Tallies, repr=False, compare=False)

    def count(self, counts: dict[str, int], name: str, partition: int, tuples: int) -> None:
        """Count the tuples of a partition of a spout or a state."""
        counts[name] = counts.get(name, 0) + tuples
        of = self.partitions.setdefault(name, {})
        of[partition] = of.get(partition, 0) + tuples

    def add(self, reports: Sequence[tuple[int, Reported]], seconds: float) -> None:
        """Add what the partitions reported of their metrics in one attempt, which took so long."""
        self.tallies.attempt(reports, seconds)
        self.metrics = self.tallies.values()


class Requests(Protocol):
    """The DRPC functions of a run."""

    @property
    def url(self) -> str: ...

    @property
    def waiting(self) -> int: ...

    @property
    def counts(self) -> Mapping[str, tuple[int, int]]:
        """By function: how often it was asked, and how many of these requests are over."""

    def end(self, reason: str) -> None:
        """Answer no further requests. Those that wait fail with this reason. Called once or more."""


Listener = Callable[[Event, Progress | None], None]


class _Depth(threading.local):
    """How deep this thread is in runs: above 0 in a thread of a component, and while it calls listeners."""

    depth = 0


inside_run = _Depth()


class RunningTopology:
    """A submitted topology. ``submitTopology`` returns it at once; the run goes on in the background.

    As a context manager it stops the run at the end of the block, as Storm's LocalTopology does. An error of the run
    that nobody has asked for is raised there, unless the block raises another one, and logged at the end of the process
    at the latest.

    ``http``: the address of its page, "" without ``topology.http``.

    Its DRPC functions answer until `stop`, or until the run fails: also after its spouts are exhausted. A topology of
    DRPC streams alone runs until `stop`.
    """

    def __init__(self, name: str, components: list[str], requests: Requests | None = None) -> None:
        self.name = name
        self.requests = requests
        self.http = ""
        self._answers = requests is not None
        self.events: list[Event] = []
        self.attempts: OrderedDict[int, int] = OrderedDict()
        self._exception: TopologyError | None = None
        self._told = True  # whether somebody has the error
        self.progress = {component: Progress(component) for component in components}
        self._collected: dict[tuple[str, str], dict[int, list[tuple[int, list[tuple]]]]] = {}
        self._listeners: list[Listener] = []
        self._open = set(components)
        self._working = set(components)  # those whose thread still runs them
        self._lock = threading.RLock()
        self._starting = set(components)
        self._opened = threading.Condition(self._lock)
        self._ended = threading.Event()
        self.stopping = threading.Event()
        self.inactive = threading.Event()
        if not components and requests is None:
            self._ended.set()

    @property
    def txid(self) -> int | None:
        """The last committed txid, None before the first. With several components, that of the first; see `txids`."""
        return next(iter(self.progress.values())).txid if self.progress else None

    @property
    def txids(self) -> dict[str, int | None]:
        """The last committed txid of each component."""
        return {name: progress.txid for name, progress in self.progress.items()}

    @property
    def isActive(self) -> bool:
        return not self._ended.is_set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.stop()
        if not self.isActive and self.is_untold:
            if error is None:
                raise self.tell()
            self.log_untold()

    @property
    def exception(self) -> TopologyError | None:
        """The error that ended the run. Who asks for it has it: it is neither raised nor logged later."""
        return None if self._exception is None else self.tell()

    @property
    def is_untold(self) -> bool:
        """Whether the run failed, and nobody has asked for its error."""
        return not self._told

    def tell(self) -> TopologyError:
        """Return the error of a run that failed, to somebody who shows it."""
        assert self._exception is not None
        self._told = True
        atexit.unregister(self.log_untold)
        return self._exception

    def log_untold(self) -> None:
        """Log the error that nobody has asked for, once."""
        if self.is_untold:
            log.error("topology %r failed: %s", self.name, self.tell())

    @property
    def isOpen(self) -> bool:
        """Whether it is active, or still answers requests after its spouts are exhausted."""
        return self.isActive or self._answers

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait for the run to end. Returns True once it has ended or was stopped, False after ``timeout`` seconds.

        A finite spout ends the run after its last batch is committed. Raises TopologyError if the run failed; the
        exception of the user's own code is its ``__cause__``; TridentError in a listener without a timeout: the run
        cannot end before the listener returns.
        """
        if timeout is None and inside_run.depth and self.isActive:
            raise TridentError(
                "awaitTermination was called in the run's own thread, as by a listener: the run cannot end before that "
                "returns. Call it in another thread, or wait for the event 'ended'"
            )
        try:
            ended = self._ended.wait(timeout)
        except KeyboardInterrupt:
            self.stop()
            raise
        if ended and self._exception is not None:
            raise self.tell()
        return ended

    def deactivate(self) -> None:
        """Begin no further batch until `activate`. The batches that run are finished. A restart is active again."""
        if not self.inactive.is_set():
            self.inactive.set()
            self.event(None, "deactivated", None, None, "no batch begins until it is activated")

    def activate(self) -> None:
        """Go on after `deactivate`."""
        if self.inactive.is_set():
            self.inactive.clear()
            self.event(None, "activated", None, None, "batches go on")

    def stop(self) -> None:
        """End the run after the current attempt, without an error. Returns when the run has ended; in a listener, or
        in a function that runs in the run's own thread, at once: the run cannot end before that returns."""
        again = self.stopping.is_set()
        self.stopping.set()
        self._stop()
        self._end_requests("it was stopped")
        if not self.progress and not again and not self._ended.is_set():
            self._clean_up()
            self._over()
        if not inside_run.depth:
            self._ended.wait()

    def _stop(self) -> None:
        """Stop. Clusters override it that can end their components sooner."""

    def collected(self, name: str) -> dict[int, list[tuple]]:
        """Return the rows that `trident_py.testing.collect` recorded, by txid. Each txid has the rows of its last
        attempt."""
        return {txid: [row for _, rows in parts for row in rows] for txid, parts in self._collect_parts(name).items()}

    def collected_by_partition(self, name: str) -> dict[int, dict[int, list[tuple]]]:
        """Return `collected` with the rows of each txid by the partition that held them. Empty partitions are left
        out."""
        by_txid: dict[int, dict[int, list[tuple]]] = {}
        for txid, parts in self._collect_parts(name).items():
            of_batch = by_txid.setdefault(txid, {})
            for partition, rows in sorted(parts, key=lambda part: part[0]):
                of_batch.setdefault(partition, []).extend(rows)
        return by_txid

    def _collect_parts(self, name: str) -> dict[int, list[tuple[int, list[tuple]]]]:
        """Return the recorded parts by txid. A part is a partition's number and its rows."""
        with self._lock:
            of_components = [parts for (_, collected), parts in self._collected.items() if collected == name]
            txids = sorted({txid for parts in of_components for txid in parts})
            return {txid: [part for parts in of_components for part in parts.get(txid, ())] for txid in txids}

    def addListener(self, listener: Listener) -> None:
        """Add a listener. ``listener(event, progress)`` runs on the driver, in the run's own thread; keep it
        short. It may call `stop`."""
        self._listeners.append(listener)

    def await_open(self, components: Collection[str], seconds: float) -> bool:
        """Wait until these components have opened their states, or have ended. False: not within this time."""
        with self._opened:
            return self._opened.wait_for(lambda: self._starting.isdisjoint(components), seconds)

    # -- for clusters -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a thread for each component."""
        for component in self.progress:
            name = f"trident-{component}"
            threading.Thread(target=self._run, args=(component,), name=name, daemon=True).start()

    def abandon(self) -> None:
        """Called in place of `start` if the submission fails after all."""
        self._clean_up()
        self._over()

    def _run(self, component: str) -> None:
        inside_run.depth += 1
        error: TopologyError | None = None
        try:
            self._run_component(component)
        except Stopped:
            pass
        except TopologyError as failed:
            error = failed
        except BaseException as failed:
            error = self.explain_end(component, failed)
            error.__cause__ = failed
        with self._lock:  # of two that end at once, just one is the last
            self._working.discard(component)
            last = not self._working
        if last:
            self._clean_up()
        self.component_ended(component, error)
        if error is not None:
            self._stop()

    def explain_end(self, component: str, error: BaseException, place: str = "") -> TopologyError:
        """Return the error for what ended a component outside of an attempt. ``place``: where, if it is known."""
        place = place or ("start" if component in self._starting else "")
        begun = self.progress[component].begun
        last = "" if begun is None else f", last begun txid {begun}"
        where = f"{place} of component {component!r}" if place else f"component {component!r}"
        return topology_error(failure_of(where, None, error), None, last)

    def _run_component(self, component: str) -> None:
        """Run a component to its end; clusters override it. Raises TopologyError if it fails."""

    def _clean_up(self) -> None:
        """Clean up once, before the run ends; clusters override it."""

    def phases_of(self, component: str, seen: Sequence[Seen]) -> list[BatchPhases]:
        """Return where the time of these batches went, by phase. Clusters override it whose engine spends time of its
        own; with ``topology.profile`` only. Called after the run has ended, before its cluster does."""
        return [BatchPhases.of(each.txid, each.taken.whole, each.taken.seconds) for each in seen]

    def event(self, component: str | None, kind: str, txid: int | None, attempt: int | None, reason: str = "") -> None:
        """Record an event and call the listeners. An error of a listener is only logged."""
        event = Event(kind, txid, attempt, reason)
        with self._lock:
            self.events.append(event)
            del self.events[:-10_000]
            if kind == "started":
                self.progress[str(component)].txid = txid or None
                self._starting.discard(str(component))
                self._opened.notify_all()
        inside_run.depth += 1
        for listener in self._listeners:
            try:
                listener(event, self.progress.get(component) if component is not None else None)
            except BaseException:
                log.exception("a listener failed on event %s", kind)
        inside_run.depth -= 1

    def record_attempt(
        self, component: str, txid: int, attempt: int, collected: list[tuple[str, int, list[tuple]]]
    ) -> None:
        """Called after an attempt: its collected rows (name, partition, rows) replace those of an earlier attempt."""
        with self._lock:
            self.attempts[txid] = max(attempt, self.attempts.get(txid, 0))
            if len(self.attempts) > 10_000:
                self.attempts.popitem(last=False)
            for (owner, _), rows in self._collected.items():
                if owner == component:
                    rows.pop(txid, None)
            for name, partition, rows_of_part in collected:
                self._collected.setdefault((component, name), {}).setdefault(txid, []).append((partition, rows_of_part))

    def component_ended(self, component: str, error: TopologyError | None = None) -> None:
        """Called when a component ends. The run ends with its last component; a failure makes the others stop."""
        with self._lock:
            self._open.discard(component)
            self._starting.discard(component)
            self._opened.notify_all()
            if error is not None and self._exception is None:
                self._exception, self._told = error, False
                atexit.register(self.log_untold)
                self.stopping.set()
            over = not self._open
        if error is not None:
            self._end_requests(f"it failed: {error}")
            self.progress[component].failed_partition = error.partition
            self.event(component, "failed", error.txid, None, str(error))
        if over:
            self._over()

    def _over(self) -> None:
        self.event(None, "ended", None, None)
        self._ended.set()

    def _end_requests(self, reason: str) -> None:
        self._answers = False
        if self.requests is not None:
            self.requests.end(f"topology {self.name!r} answers no more: {reason}")


class RunMonitor(Protocol):
    """Watches a run. Made of the plan, the conf and the programs of the run."""

    @property
    def programs(self) -> list[Program]:
        """The programs to run in place of those."""

    def begin(self, running: RunningTopology) -> None:
        """Called before the run starts. If it raises DefinitionError, the run is over."""


def add_monitor(
    plan: Plan, conf: Mapping[str, Any], programs: list[Program]
) -> tuple[list[Program], Callable[[RunningTopology], None]]:
    """Return the programs of a run, and what is called with the run before it starts. The extras that the conf asks for
    see both; one that cannot serve raises DefinitionError, and the run is then over."""
    monitors: list[RunMonitor] = []
    for setting, extra in MONITORED.items():
        if conf.get(setting) is not None and conf[setting] is not False:
            monitors.append(load(setting, extra, MONITORS)(plan, conf, programs))
            programs = monitors[-1].programs

    def begin(running: RunningTopology) -> None:
        for monitor in monitors:
            monitor.begin(running)

    return programs, begin


class Stopwatch:
    """Measures the seconds since the last lap."""

    def __init__(self) -> None:
        self.at = time.perf_counter()

    def lap(self) -> float:
        before, self.at = self.at, time.perf_counter()
        return self.at - before
