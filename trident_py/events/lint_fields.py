"""What the linter learns about single fields: missing, null, never varying, (nearly) unique; and which make a key.

Counts are over all events. Distinct values are counted over the first `SAMPLE` different events, as 8-byte hashes in
arrays: at most 8 bytes for each of them and each of at most `MOST_FIELDS` fields.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .canonical import canonical

SAMPLE = 100_000
MOST_FIELDS = 200
NEARLY = 0.99  # of the events that have the field
ABSENT = 0  # in place of a value's hash; that a value has it is as likely as any other collision of 64 bits


@dataclass(frozen=True)
class Field:
    """One field in the sample. ``distinct`` of ``sampled`` different events; ``varies``: over all events."""

    name: str
    missing: int
    null: int
    distinct: int
    sampled: int
    varies: bool

    @property
    def unique(self) -> float:
        """The share of different values among the sampled events that have the field."""
        return self.distinct / self.sampled if self.sampled else 0.0


class FieldCounts:
    """Takes events one after the other; of those that repeat a payload only the count."""

    def __init__(self, sample: int = SAMPLE) -> None:
        self.sample = sample
        self.events = 0
        self.left_out = 0
        self._sampled = 0
        self._present: dict[str, int] = {}
        self._null: dict[str, int] = {}
        self._first: dict[str, int] = {}
        self._varying: set[str] = set()
        self._columns: dict[str, array[int]] = {}

    def add(self, event: Mapping[str, Any], is_new: bool) -> None:
        """``is_new``: no event before it had this payload."""
        self.events += 1
        sampled = is_new and self._sampled < self.sample
        for name, value in dict(leaves(event)).items():
            if name not in self._columns and not self._begin(name):
                continue
            self._present[name] += 1
            self._null[name] += value is None
            if not sampled and name in self._varying:
                continue
            hashed = _hash(value)
            if hashed != self._first.setdefault(name, hashed):
                self._varying.add(name)
            if sampled:
                column = self._columns[name]
                column.extend([ABSENT] * (self._sampled - len(column)))
                column.append(hashed)
        self._sampled += sampled

    def fields(self) -> list[Field]:
        """What is known of each field, in the order of their first appearance."""
        return [self._field(name) for name in self._columns]

    def key(self, leave_out: Iterable[str] = ()) -> list[str] | None:
        """Few fields that together tell all sampled events apart; None if all of them do not. A greedy hint.

        Takes the field that tells most events apart, then the next, then drops those that were not needed.
        """
        columns = {name: self._column(name) for name in self._columns if name not in set(leave_out)}
        chosen: list[str] = []
        groups: Sequence[int] = [0] * self._sampled
        parts = min(1, self._sampled)
        while parts < self._sampled:
            counts = {name: len(set(zip(groups, column, strict=True))) for name, column in columns.items()}
            best = max(counts, key=lambda name: counts[name], default=None)
            if best is None or counts[best] <= parts:
                return None
            chosen.append(best)
            parts, groups = counts[best], _numbered(zip(groups, columns.pop(best), strict=True))
        return self._needed(chosen)

    def _needed(self, chosen: list[str]) -> list[str]:
        for name in list(chosen):
            others = [self._column(other) for other in chosen if other != name]
            if others and len(set(zip(*others, strict=True))) == self._sampled:
                chosen.remove(name)
        return chosen

    def _begin(self, name: str) -> bool:
        if len(self._columns) >= MOST_FIELDS:
            self.left_out += 1
            return False
        self._present[name] = self._null[name] = 0
        self._columns[name] = array("Q")
        return True

    def _column(self, name: str) -> array[int]:
        column = self._columns[name]
        column.extend([ABSENT] * (self._sampled - len(column)))
        return column

    def _field(self, name: str) -> Field:
        missing = self.events - self._present[name]
        column = self._column(name)
        has = len(column) - column.count(ABSENT) if ABSENT in column else len(column)
        distinct = len(set(column) - {ABSENT})
        varies = name in self._varying or 0 < missing < self.events
        return Field(name, missing, self._null[name], distinct, has, varies)


def leaves(event: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Each value with its dotted path; an array or an empty object is one value."""
    for key, value in event.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{before}{key}.")
        else:
            yield before + key, value


def _hash(value: Any) -> int:
    return int.from_bytes(hashlib.blake2b(canonical(value), digest_size=8).digest(), "little")


def _numbered(pairs: Iterable[tuple[int, int]]) -> list[int]:
    numbers: dict[tuple[int, int], int] = {}
    return [numbers.setdefault(pair, len(numbers)) for pair in pairs]
