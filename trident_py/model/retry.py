"""Retry loops, and one rule for an unavailable store: a start waits for it, a run only fails the batch.

Every state raises FailedException if its store is unavailable or locked by others; any other error means that waiting
does not help. In a run, the batch loop replays the batch. At a start there is no batch yet, so calls to a store go
through `Patience`. A store that is read-only (ReadOnlyStore) may be failing over, or be the wrong one: a run waits for
it too, but no longer than a start does (`ReadOnlyFor`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import TypeVar

from ..errors import DefinitionError, FailedException, ReadOnlyStore, StateError

log = logging.getLogger("trident_py")

T = TypeVar("T")
START_WAIT = "topology.start.wait.secs"
START_WAIT_SECONDS = 60.0
LONGEST = 1e9
"""The longest wait, in seconds, that every clock of Python takes: 31 years. More, or infinity, is as long."""
TOLD = {"told": True}
"""The extra of a record of the log that says what an event of the run says too."""


class Stopped(Exception):
    """The run is being stopped; raised between two attempts."""


def start_wait(conf: dict) -> float:
    """Return the seconds that a start waits for unavailable stores. Raises DefinitionError unless it is a number from 0
    on."""
    given = conf.get(START_WAIT)
    seconds = START_WAIT_SECONDS if given is None else given
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise DefinitionError(f"{START_WAIT} must be a number of seconds, at least 0; got {seconds!r}")
    return float(seconds)


@dataclass(frozen=True)
class Patience:
    """Waits for stores at a start, before the first batch. ``tell`` gets a line for every failed try."""

    seconds: float
    stopping: Event
    tell: Callable[[str], None]

    def wait_until_available(self, store: str, work: Callable[[], T]) -> T:
        """Repeat the work until it raises no FailedException. Called on the driver; the work must be repeatable.

        Raises StateError after ``seconds``, Stopped if the run is stopped meanwhile. Any other error of the work is
        raised at once.
        """
        until, failures = time.monotonic() + self.seconds, 0
        while True:
            try:
                return work()
            except FailedException as error:
                failures += 1
                left = until - time.monotonic()
                if left <= 0:
                    raise StateError(
                        f"{store} is unavailable: {error}. The start waited {self.seconds:g} s for it ({START_WAIT}). "
                        "Fix the cause, or wait longer. No batch was begun"
                    ) from error
                line = f"waiting for {store}, up to {left:.0f} s more ({START_WAIT}): {error}"
                log.warning(line, extra=TOLD)
                self.tell(line)
                if self.stopping.wait(min(back_off_seconds(failures), left)):
                    raise Stopped from error


@dataclass
class ReadOnlyFor:
    """How long a store has taken no writes. A run waits for one as long as a start does, see `start_wait`."""

    limit: float
    since: float | None = None

    def too_long(self, error: BaseException) -> str:
        """Called at each failure: why there is to be no replay, or ""."""
        if not isinstance(error, ReadOnlyStore):
            self.since = None
            return ""
        now = time.monotonic()
        self.since = now if self.since is None else self.since
        return "" if now - self.since < self.limit else f"; it took no writes for {self.limit:g} s ({START_WAIT})"


def until_stopped(work: Callable[[], T], stopping: Event, failed: Callable[[FailedException, int], None]) -> T:
    """Repeat the work in a run until it raises no FailedException. Raises Stopped if it fails while the run stops.

    ``failed`` gets the error and the number of failures before each pause. An exception of ``failed`` ends the loop.
    """
    failures = 0
    while True:
        try:
            return work()
        except FailedException as error:
            failures += 1
            if stopping.is_set():
                raise Stopped from error
            failed(error, failures)
            stopping.wait(back_off_seconds(failures))


def again_for(seconds: float, pause: float, passes: Callable[[Exception], bool], work: Callable[[], T]) -> T:
    """Repeat the work for up to ``seconds`` after an error that ``passes``. Raises any other error at once."""
    until = time.monotonic() + seconds
    while True:
        try:
            return work()
        except Exception as error:
            if time.monotonic() > until or not passes(error):
                raise
        time.sleep(pause)


def back_off_seconds(failures: int) -> float:
    """Return the pause after this number of failures in a row: 50 ms, doubling up to 10 s."""
    return min(0.05 * 2 ** min(failures - 1, 10), 10.0)
