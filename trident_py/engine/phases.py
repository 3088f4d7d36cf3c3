"""The phases of a batch, and the clock that measures them where they happen. For `trident profile`.

A thread whose run has ``topology.profile`` has a clock, and `phase` and `measure_calls` count for it. In any other
thread they measure nothing: `measure_calls` is not even applied, and `phase` looks once whether there is a clock. So
`phase` stands around what happens a few times a batch, and `measure_calls` around what happens with every chunk.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

PROFILE = "topology.profile"
REPORTED = "phases"  # the kind of the report in which a task sends its TaskPhases
JOB, IN_DRIVER = "job", "inline"  # a batch on executors, and one in this process
Phase = tuple[str, str]


class Taken(NamedTuple):
    """What a clock measured since it was started or last asked: the time of day at its begin (seconds since 1970), how
    long that is ago, the seconds by phase, and when each phase was last entered."""

    began: float
    whole: float
    seconds: Mapping[Phase, float]
    entered: Mapping[Phase, float]


class TaskPhases(NamedTuple):
    """What a task measured: its level and partition, its number in Spark."""

    level: int
    partition: int
    task: int
    taken: Taken


class Seen(NamedTuple):
    """A committed batch as the driver's loop saw it, and the reports of its tasks."""

    txid: int
    attempt: int
    taken: Taken
    tasks: list[TaskPhases]


class BatchPhases(NamedTuple):
    """Where the time of one batch went. ``whole``: seconds from this batch to the next one."""

    txid: int
    whole: float
    seconds: dict[Phase, float]

    @classmethod
    def of(cls, txid: int, whole: float, seconds: Mapping[Phase, float]) -> BatchPhases:
        """Add the rest of the whole batch as a phase of its own."""
        return cls(txid, whole, {**seconds, ("unexplained", ""): whole - sum(seconds.values())})


class Clock:
    """Sums the seconds of the phases of one thread. A phase within another one interrupts it: no moment counts twice.

    ``of`` says of what: an operation, a state. Without it a phase is one of what it is within.
    """

    def __init__(self) -> None:
        self._within: list[Phase] = []
        self._restart()

    def _restart(self) -> None:
        self._seconds: dict[Phase, float] = {}
        self._entered: dict[Phase, float] = {}
        self._began, self._started = time.time(), time.perf_counter()
        self._at = self._started

    @contextmanager
    def during(self, name: str, of: str = "") -> Iterator[None]:
        """Inside, time counts for this phase."""
        self._lap()
        phase = (name, of or (self._within[-1][1] if self._within else ""))
        self._within.append(phase)
        self._entered[phase] = time.time()
        try:
            yield
        finally:
            self._lap()
            self._within.pop()

    def _lap(self) -> None:
        before, self._at = self._at, time.perf_counter()
        if self._within:
            phase = self._within[-1]
            self._seconds[phase] = self._seconds.get(phase, 0.0) + self._at - before

    def take(self) -> Taken:
        """Return what it has measured; it begins anew."""
        self._lap()
        taken = Taken(self._began, self._at - self._started, self._seconds, self._entered)
        self._restart()
        return taken


class _Here(threading.local):
    clock: Clock | None = None


_here = _Here()
_nothing = nullcontext()


def profile(conf: Mapping[str, Any]) -> bool:
    """Return whether the run measures its phases."""
    return conf.get(PROFILE) is True


def start(wanted: bool) -> None:
    """Give this thread a new clock, or take it away."""
    _here.clock = Clock() if wanted else None


def take() -> Taken | None:
    """Return what this thread's clock has measured; it begins anew. None if it has none."""
    return None if _here.clock is None else _here.clock.take()


def phase(name: str, of: str = "") -> AbstractContextManager[None]:
    """Count this thread's time inside for a phase. docs/profile.md lists them."""
    return _nothing if _here.clock is None else _here.clock.during(name, of)


def measure_calls(function: Callable[..., T], name: str, of: str = "") -> Callable[..., T]:
    """Return the function, whose calls count for a phase."""

    def call(*args: Any, **named: Any) -> T:
        with phase(name, of):
            return function(*args, **named)

    return call


def measure_pulls(rows: Iterable[T], name: str, of: str = "") -> Iterable[T]:
    """Return the rows. Waiting for the next one counts for a phase."""
    return rows if _here.clock is None else _measure_pulls(rows, name, of)


def _measure_pulls(rows: Iterable[T], name: str, of: str) -> Iterator[T]:
    iterator = iter(rows)
    while True:
        with phase(name, of):
            try:
                row = next(iterator)
            except StopIteration:
                return
        yield row


def measure_handing(rows: Iterable[T], name: str, of: str = "") -> Iterable[T]:
    """Return the rows. The time that their receiver takes between two of them counts for a phase."""
    return rows if _here.clock is None else _measure_handing(rows, name, of)


def _measure_handing(rows: Iterable[T], name: str, of: str) -> Iterator[T]:
    for row in rows:
        with phase(name, of):
            yield row
