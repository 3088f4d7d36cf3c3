"""Points of a run, and disturbances at them: what a report names and a command repeats."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from ...errors import DefinitionError
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
