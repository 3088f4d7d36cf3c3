"""Watches the steps of a run: writes down those it reaches, or ends, fails or holds the run at one of them."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from ...errors import FailedException, TridentError
from .points import LINE, AnyPoint, Point

ACTIONS = ("kill", "fail", "hold")
REACHED, HIT, GO = "reached", "hit", "go"
PATIENCE = 120
PASSES = 2
_OURS = Path(__file__).parents[2]
_FOREIGN = tuple(f"{path}{os.sep}" for path in (Path(os.__file__).parent, _OURS, _OURS.parent / "states"))
_INSTALLED = {"site-packages", "dist-packages"}


@dataclass(frozen=True)
class KillPoint:
    """A `trident_py.model.fault_points.Watcher`. Made in the driver, picklable, goes to the workers.

    ``record``: writes every step that is reached to a file. ``point``: there, once, ``action`` happens: "kill" sends
    SIGKILL to ``processes`` and this one, "fail" raises FailedException, "hold" waits for a file of the test.
    ``labels``: other names for states.
    """

    folder: str
    record: bool = False
    point: Point | AnyPoint | None = None
    action: str = "kill"
    processes: tuple[int, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()

    def at(self, step: str, name: str, partition: int, txid: int) -> None:
        name = dict(self.labels).get(name, name)
        if step == "committed":
            sys.settrace(None)
        self.reach(Point(step, name, partition, txid))
        if step == "begin" and self._follows(name, partition, txid):
            sys.settrace(_Lines(self, name, partition, txid))

    def reach(self, point: Point) -> None:
        if self.record:
            with (Path(self.folder) / REACHED).open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(point)) + "\n")
        if point == self.point or (isinstance(self.point, AnyPoint) and point in self.point):
            self._act()

    def _follows(self, name: str, partition: int, txid: int) -> bool:
        """Return whether the lines of this commit matter."""
        point = self.point
        here = isinstance(point, Point) and (point.step, point.name, point.partition, point.txid) == (
            LINE, name, partition, txid)  # fmt: skip
        return self.record or here

    def _act(self) -> None:
        try:
            (Path(self.folder) / HIT).touch(exist_ok=False)
        except FileExistsError:
            return  # it comes once
        if self.action == "kill":
            end_now(self.processes)
        if self.action == "fail":
            raise FailedException(f"asked by the test: {self.point}")
        wait_for(Path(self.folder) / GO)


def reached(folder: Path) -> list[Point]:
    """Return the points that a recorded run has reached, in order, each once."""
    lines = (folder / REACHED).read_text(encoding="utf-8").splitlines()
    return list(dict.fromkeys(Point(**json.loads(line)) for line in lines))


def end_now(processes: tuple[int, ...]) -> None:
    """Send SIGKILL: no process of the run does anything after this."""
    for process in (*processes, os.getpid()):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue  # it was quicker


def wait_for(file: Path) -> None:
    """Wait until it is there. Raises TridentError after `PATIENCE` seconds."""
    until = time.monotonic() + PATIENCE
    while not file.exists():
        if time.monotonic() > until:
            raise TridentError(f"{file} did not come in {PATIENCE} s")
        time.sleep(0.005)


class _Lines:
    """A trace function: reaches a point before each line of the user's code, in the first passes of one commit."""

    def __init__(self, wire: KillPoint, name: str, partition: int, txid: int) -> None:
        self.wire, self.place = wire, (name, partition, txid)
        self.passes: Counter[str] = Counter()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        return self._line if is_users(frame.f_code.co_filename) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "line":
            line = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
            self.passes[line] += 1
            if self.passes[line] <= PASSES:
                self.wire.reach(Point(LINE, *self.place, f"{line}@{self.passes[line]}"))
        return self._line


@cache
def is_users(file: str) -> bool:
    """Return whether a source file is the user's own: neither Python's, nor installed, nor ours."""
    return not file.startswith(("<", *_FOREIGN)) and _INSTALLED.isdisjoint(Path(file).parts)
