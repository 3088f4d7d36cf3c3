"""Where two values of a key differ, and since which batch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from ...errors import DefinitionError
from ...model.canonical import canonical
from .storm_values import Key

SHOWN = 200  # characters of a value


class Version(NamedTuple):
    """What a side holds of a key. ``txid``: of the batch that wrote it; ``before``: the value that it replaced, if
    ``remembers`` says that the side keeps it. A key that is not there counts as null that nobody has written."""

    value: Any
    txid: int | None = None
    before: Any = None
    remembers: bool = False

    @property
    def is_null(self) -> bool:
        row = self.value.values() if isinstance(self.value, Mapping) else (self.value,)
        return all(part is None for part in row)

    def describe(self) -> str:
        text = shorten(repr(self.value))
        before = shorten(f", before it {self.before!r}") if self.remembers else ""
        return text if self.txid is None else f"{text} (txid {self.txid}{before})"


def shorten(text: str) -> str:
    """Return what is shown of a text."""
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


@dataclass(frozen=True)
class Divergence:
    """A key whose values differ, or that one side lacks (None). ``exact``: it is this batch that made them differ, not
    it or an earlier one."""

    key: Key
    left: Version | None
    right: Version | None
    txid: int | None
    exact: bool

    @property
    def order(self) -> Any:
        """The smallest one is the first: by txid where there is one, then by key."""
        return math.inf if self.txid is None else self.txid, list(map(_rank, self.key))


def _rank(part: Any) -> tuple[int, Any]:
    if isinstance(part, (int, float, Decimal)) and part == part:  # a NaN has no place among the numbers
        return 0, part
    return (1, part) if isinstance(part, str) else (2, canonical(part))


@dataclass(frozen=True)
class Rules:
    """What counts as equal. ``tolerance``: by how much numbers may differ; ``txids``: compare these, too, and the
    values before them; ``zoneless``: a side has no zones, so a time with a zone is its time in UTC."""

    tolerance: float = 0.0
    txids: bool = False
    zoneless: bool = False

    def __post_init__(self) -> None:
        if not math.isfinite(self.tolerance):
            raise DefinitionError(f"--tolerance {self.tolerance}: name a number that is finite")

    def read(self, value: Any) -> Any:
        """Return a key or a value as it counts."""
        if not self.zoneless:
            return value
        if isinstance(value, Mapping):
            return {name: self.read(part) for name, part in value.items()}
        if isinstance(value, (list, tuple)):
            parts = map(self.read, value)
            return list(parts) if isinstance(value, list) else tuple.__new__(type(value), parts)
        zoned = isinstance(value, datetime) and value.utcoffset() is not None
        return value.astimezone(UTC).replace(tzinfo=None) if zoned else value

    def agree(self, left: Version, right: Version) -> bool:
        if not self.same(left.value, right.value):
            return False
        return not self.txids or (left.txid == right.txid and self.same(left.before, right.before))

    def same(self, left: Any, right: Any) -> bool:
        """Return whether two values are equal. NaN is equal to NaN alone, null to null alone; a list is a row."""
        if _is_number(left) and _is_number(right):
            return left == right or self._is_near(left, right)
        if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
            return len(left) == len(right) and all(map(self.same, left, right))
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            return left.keys() == right.keys() and all(self.same(left[name], right[name]) for name in left)
        return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)

    def _is_near(self, left: Any, right: Any) -> bool:
        if left != left or right != right:
            return left != left and right != right
        if math.inf in (abs(left), abs(right)):
            return False
        if {type(left), type(right)} == {float, Decimal} and float(left) == float(right):
            return True
        return abs(Fraction(left) - Fraction(right)) <= Fraction(self.tolerance)

    def diverge(self, key: Key, left: Version | None, right: Version | None) -> Divergence:
        """Return since which batch two versions differ, as far as they tell."""
        older, newer = sorted((left or Version(None), right or Version(None)), key=lambda each: each.txid or 0)
        if newer.txid is None:
            return Divergence(key, left, right, None, False)
        if not newer.remembers or (older.txid is None and left and right):
            return Divergence(key, left, right, newer.txid, False)
        both = older.txid == newer.txid
        if both and not older.remembers:
            return Divergence(key, left, right, newer.txid, False)
        until = older.before if both else older.value
        exact = self.same(until, newer.before)
        return Divergence(key, left, right, newer.txid - (not exact), exact)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
