"""Displays a run: one live line for people. Extras have other displays."""

from __future__ import annotations

import copy
import logging
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import Any, Protocol

from rich.console import Console
from rich.status import Status

from ..model.retry import TOLD
from ..report.progress import Event, Progress, RunningTopology

News = tuple[datetime, Event, Progress | None]
INTERRUPTED, TERMINATED = 130, 143
POLL_SECONDS = 0.1


class Display(Protocol):
    """Shows a run."""

    def event(self, time: datetime, event: Event, progress: Progress | None) -> None:
        """Called with each event of the run."""


def now() -> datetime:
    return datetime.now(UTC)


def is_no_event(record: logging.LogRecord) -> bool:
    """Return whether a record of the log says what no event does."""
    return not TOLD.items() <= vars(record).items()


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived, which stops a service. As with Ctrl-C, the run ends after its batch, but with exit code 0."""


@contextmanager
def terminable() -> Iterator[None]:
    """Inside, SIGTERM raises Terminated in the main thread."""

    def terminate(*_: Any) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def follow(running: RunningTopology, displays: Sequence[Display]) -> int:
    """Display a run until it ends, and return the exit code. Ctrl-C and SIGTERM stop the run after its batch. After a
    second one it returns though the batch runs.

    Raises TopologyError if the run failed.
    """
    news: SimpleQueue[News] = SimpleQueue()
    running.addListener(lambda event, progress: news.put((now(), event, copy.deepcopy(progress))))
    early, begun = list(running.events), now()  # events from before the listener was added
    shown = {id(event) for event in early}
    fallback = logging.lastResort or logging.NullHandler()
    fallback.addFilter(is_no_event)  # the displays have the events
    try:
        for display in displays:
            for event in early:
                display.event(begun, event, None)
        while not running.awaitTermination(timeout=POLL_SECONDS):
            drain(news, shown, displays)
    except KeyboardInterrupt as stopped:
        _stop(running)
        how = "ended in the middle of a batch, which the next start repeats" if running.isActive else "stopped"
        print(f"{how}; last committed txid: {_format_txids(running.txids)}", file=sys.stderr, flush=True)
        return TERMINATED if running.isActive and isinstance(stopped, Terminated) else exit_code(stopped)
    finally:
        drain(news, shown, displays)
        fallback.removeFilter(is_no_event)
    return 0


def _stop(running: RunningTopology) -> None:
    """Stop a run whose signal came while something was displayed. A second signal ends the wait."""
    if not running.stopping.is_set():
        with suppress(KeyboardInterrupt):
            running.stop()


def _format_txids(txids: Mapping[str, int | None]) -> str:
    """Return the txid, with several components that of each."""
    shown = {name: "none" if txid is None else str(txid) for name, txid in txids.items()}
    return ", ".join(shown.values() if len(shown) == 1 else (f"{txid} of {name}" for name, txid in shown.items()))


def exit_code(stopped: KeyboardInterrupt) -> int:
    return 0 if isinstance(stopped, Terminated) else INTERRUPTED


def drain(news: SimpleQueue[News], shown: set[int], displays: Sequence[Display]) -> None:
    while not news.empty():
        time, event, progress = news.get()
        for display in displays if id(event) not in shown else ():
            display.event(time, event, progress)


class ProgressLine:
    """Shows one live line on stderr: the progress. What else happened, with its reason, is printed above it and stays.

    The end of a run is its last line; a failure is printed by the command, with its cause.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.console = Console(stderr=True, highlight=False)
        self.status = Status(f"{name}: starting", console=self.console)
        self.last: str | None = None
        self.begun_after = 0

    def __enter__(self) -> ProgressLine:
        self.status.start()
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self.status.stop()
        if self.last is not None or error is None:
            after = f" after txid {self.begun_after}" if self.begun_after else ""
            line = self.last or f"{self.name}: there was no new batch{after}"
            self.console.print(line, markup=False, soft_wrap=True)

    def event(self, time: datetime, event: Event, progress: Progress | None) -> None:
        match event.kind:
            case "committed":
                self._show_committed(event, progress)
            case "started":
                self.begun_after = max(self.begun_after, event.txid or 0)
            case "failed" | "ended":
                pass
            case _:
                at = "" if event.txid is None else f"txid {event.txid}, attempt {event.attempt}: "
                self.console.print(f"{event.kind}: {at}{event.reason}", markup=False, soft_wrap=True)

    def _show_committed(self, event: Event, progress: Progress | None) -> None:
        if progress is not None:
            self.last = f"{self.name}: {format_progress(progress)}"
            self.status.update(self.last)


def format_progress(progress: Progress) -> str:
    """Return the progress of a component, in one line."""
    tuples = [f"{count:,} from {spout}" for spout, count in progress.emitted.items()]
    written = [f"{count:,} into {state}" for state, count in progress.persisted.items()]
    waiting = [f"{sum(lag.values()):,} waiting for {spout}" for spout, lag in progress.backlog.items()]
    seconds = f"{sum(progress.seconds.values()):.3f} s for the last batch"
    return ", ".join([f"txid {progress.txid}", *tuples, *written, *waiting, seconds])
