"""Driver processes that start in milliseconds: forked from a server that has everything imported."""

from __future__ import annotations

import functools
import multiprocessing
import os
import resource
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from states.sql import store as stores_of_sql
from trident_py import LocalCluster, TopologyError
from trident_py.model.context import with_context

from .disk import kill_before, kill_before_request
from .readings import Readings
from .steps import DriverSteps, Fault, Hook, use
from .stores import EXACT, Urls, build

ROOT = Path(__file__).parents[2]
PATIENCE = 120
TOPOLOGY = "faults"
PRELOADED = ["faults.preloaded"]
"""What the server of forks imports before its first fork. A module that a start is of belongs here, if it is large."""
_CONTEXT = multiprocessing.get_context("forkserver")


@dataclass(frozen=True)
class Start:
    """One start of a driver: what it runs, and what happens to it. ``checkpoints``: in the folder, or
    a URI with its ``storage``; ``call``: see `disk.kill_before` and `disk.kill_before_request`."""

    url: Urls
    folder: Path
    last: int
    faults: tuple[Fault, ...] = ()
    seed: int = 1
    partitions: int = 2
    only: tuple[str, ...] = EXACT
    conf: tuple[tuple[str, Any], ...] = ()
    lock_seconds: float = 60.0
    checkpoints: str = "checkpoints"
    file_limit: int | None = None
    call: int | None = None
    storage: tuple[tuple[str, str], ...] = ()

    @property
    def place(self) -> str:
        return self.checkpoints if self.storage else str(self.folder / self.checkpoints)

    def topology(self) -> Any:
        return build(self.url, Readings(self.seed), self.last, self.partitions, self.only)

    def beside(self, pipe: Any) -> AbstractContextManager[None]:
        """What the driver does beside its batches."""
        return nullcontext()


class Driver:
    """A running driver. `told` are its events, as far as they were read; ``heard`` gets each when it is read."""

    def __init__(self, start: Start, heard: Callable[[tuple], None] = lambda event: None) -> None:
        self.heard = heard
        self.pipe, theirs = _CONTEXT.Pipe()
        self.process = fork(drive, start, theirs)
        self.process.start()
        theirs.close()
        self.told: list[tuple] = []

    def next(self) -> str:
        """Reads until it stands at a fault ("at") or has ended ("")."""
        while self.pipe.poll(PATIENCE):
            try:
                self.told.append(self.pipe.recv())
            except (EOFError, OSError):
                break
            self.heard(self.told[-1])
            if self.told[-1][0] == "at":
                return "at"
        self.process.join(PATIENCE)
        return ""

    def until(self, *event: Any) -> None:
        """Reads until it tells this, as far as it is given."""
        while self.told[-1:] == [] or self.told[-1][: len(event)] != event:
            assert self.pipe.poll(PATIENCE), self.told[-3:]
            self.told.append(self.pipe.recv())

    def go_on(self) -> None:
        self.pipe.send("go on")

    def close(self) -> None:
        self.process.kill()
        self.process.join(PATIENCE)
        self.pipe.close()

    def of(self, kind: str) -> list[tuple]:
        return [event for event in self.told if event[0] == kind]


def fork(target: Callable[..., Any], *arguments: Any) -> Any:
    """A process that calls this; not started yet. Module and arguments travel by pickle."""
    _warm()
    return _CONTEXT.Process(target=target, args=arguments, daemon=True)


@functools.cache
def _warm() -> None:
    """The server of forks imports this module once; it knows the test's path by its environment only."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    _CONTEXT.set_forkserver_preload(PRELOADED)


def run(start: Start) -> Driver:
    """A driver from its start to its end, whatever that is."""
    driver = Driver(start)
    driver.next()
    driver.close()
    return driver


def run_with(start: Start, happens: Callable[[int], Any], **more: Any) -> Driver:
    """A driver from its start to its end, whatever that is; at its fault in batch n ``happens(n)`` is called."""
    driver = Driver(start, **more)
    try:
        while driver.next() == "at":
            happens(driver.told[-1][2])
            driver.go_on()
    finally:
        driver.close()
    return driver


def live_through(start: Start, happens: Callable[[int], Any], **more: Any) -> Driver:
    """A driver that survives its faults, and ends when the input does."""
    driver = run_with(start, happens, **more)
    assert driver.told[-1] == ("done", start.last), driver.told[-3:]
    return driver


def drive(start: Start, pipe: Any) -> None:
    """In the driver's process: runs the topology and tells what becomes of it, event by event."""
    stores_of_sql.LOCK_SECONDS = start.lock_seconds
    if start.file_limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (start.file_limit, start.file_limit))
    if start.call is not None and start.storage:
        kill_before_request(start.call)
    elif start.call is not None:
        kill_before(start.call, 2000)
    hook = Hook(start.faults, pipe)
    use(hook)

    def listen(event: Any, progress: Any) -> None:
        if event.kind == "committed":
            hook.at("over", "", 0, event.txid)
        if event.kind in ("committed", "replay"):
            pipe.send((event.kind, event.txid, event.attempt, event.reason))

    try:
        topology = start.topology()
        with LocalCluster(start.place, dict(start.storage)) as cluster:
            running = cluster.submitTopology(TOPOLOGY, with_context(dict(start.conf), watcher=DriverSteps()), topology)
            running.addListener(listen)
            with start.beside(pipe):
                running.awaitTermination()
        pipe.send(("done", running.txid))
    except TopologyError as error:
        pipe.send(("error", type(error.__cause__).__name__, str(error)))
    except BaseException:
        pipe.send(("broken", traceback.format_exc()))
