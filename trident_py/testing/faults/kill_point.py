"""Points of a run: written down as they are reached, or the run ends, fails or is held at one of them."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import quote, unquote

from ...errors import DefinitionError, FailedException, TridentError
from ...model.fault_points import DRIVER, STEPS

LINE = "line"
"""A step of the kit's own: before a line of the user's code, between a state's `begin` and `committed`."""
IN_STATE = ("begin", "begun", "written", "committed")
"""The steps that every partition of a state goes through."""


@dataclass(frozen=True, order=True)
class Point:
    """A step of one batch in one partition of one state or spout. ``place``: for `LINE`, "file.py:line@pass", where
    pass 2 is the second time in one commit."""

    step: str
    name: str = ""
    partition: int = DRIVER
    txid: int = 0
    place: str = ""

    def __post_init__(self) -> None:
        if self.step not in STEPS and self.step != LINE:
            raise DefinitionError(f"no step {self.step!r}; there are: {', '.join([*STEPS, LINE])}")

    def __str__(self) -> str:
        where = f" before {self.place}" if self.place else ""
        of = f" of {self.name}" if self.name else ""
        partition = f" in partition {self.partition}" if self.partition != DRIVER else ""
        return f"step {self.step}{where}{of}{partition}, batch {self.txid}"

    def is_like(self, other: Point) -> bool:
        """Return whether both are the same step, of whichever batch."""
        return replace(self, txid=0) == replace(other, txid=0)


@dataclass(frozen=True)
class AnyPoint:
    """A step of one batch, in whichever partition of whichever state comes first; None leaves open."""

    step: str
    name: str | None
    partition: int | None
    txid: int

    def __contains__(self, point: Point) -> bool:
        named = self.name in (None, point.name) and self.partition in (None, point.partition)
        return named and (self.step, self.txid) == (point.step, point.txid)

    def __str__(self) -> str:
        of = f" of {self.name}" if self.name is not None else ""
        partition = f" in partition {self.partition}" if self.partition is not None else ""
        return f"step {self.step}{of}{partition}, batch {self.txid}"


@dataclass(frozen=True, order=True)
class FaultCase:
    """One disturbance of one run on one store. ``fault``: one of `FAULTS` in `disturbances`."""

    store: str
    fault: str
    point: Point

    def __str__(self) -> str:
        return f"{self.fault} at {self.point}, on {self.store}"

    @property
    def text(self) -> str:
        """The case in one word, as the option --trident-point takes it."""
        point = self.point
        parts = [self.store, self.fault, point.step, point.name, str(point.partition), str(point.txid), point.place]
        return "/".join(quote(part, safe=":.@") for part in parts).rstrip("/")

    @classmethod
    def of(cls, text: str) -> FaultCase:
        """Return the case of a `text`. Raises DefinitionError."""
        parts = [unquote(part) for part in text.split("/")]
        if len(parts) not in (6, 7) or not all(part.lstrip("-").isdigit() for part in parts[4:6]):
            raise DefinitionError(f"{text!r} names no point; they are STORE/FAULT/STEP/NAME/PARTITION/TXID[/PLACE]")
        store, fault, step, name, partition, txid = parts[:6]
        return cls(store, fault, Point(step, name, int(partition), int(txid), "".join(parts[6:])))


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


def read_points(folder: Path) -> list[Point]:
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
