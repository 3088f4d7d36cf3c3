"""Decides which numbers of a sender are applied, wait, are missing or are repeats. Plain values, no store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Key = tuple
"""The sender's values, then the number."""


class Gap(NamedTuple):
    """A run of missing numbers, both ends included, with the batch and time at which it was found."""

    first: int
    last: int
    txid: int | None = None
    time: str = ""


class SenderRow(NamedTuple):
    """The row of a sender: the last number applied, and the counts of waiting rows and of missing numbers before it."""

    last: int
    held: int = 0
    missing: int = 0


@dataclass
class Arrived:
    """The numbers of a batch by sender, each with the position of its first row."""

    first: dict[tuple, dict[int, int]] = field(default_factory=dict)
    again: list[int] = field(default_factory=list)
    """Positions of rows that repeat a number of the same batch."""

    @classmethod
    def of(cls, rows: Iterable[Sequence], width: int) -> Arrived:
        """Number the rows, which begin with the ``width`` values of the sender and the number."""
        arrived = cls()
        for position, row in enumerate(rows):
            if arrived.first.setdefault(tuple(row[:width]), {}).setdefault(row[width], position) != position:
                arrived.again.append(position)
        return arrived

    def senders(self) -> list[tuple]:
        return sorted(self.first)

    def keys(self, senders: dict[tuple, SenderRow], past: bool) -> list[Key]:
        """Sorted; with ``past`` the numbers up to their sender's last number, else those above it."""
        return sorted(
            (*sender, number)
            for sender, numbers in self.first.items()
            for number in numbers
            if (number <= senders[sender].last) is past
        )

    def position(self, key: Key) -> int:
        return self.first[key[:-1]][key[-1]]


@dataclass
class Decided:
    """What a batch does to its senders; keys are sorted."""

    applied: list[Key] = field(default_factory=list)
    waiting: list[Key] = field(default_factory=list)
    released: list[Key] = field(default_factory=list)
    late: int = 0
    """How many of the applied numbers were missing before."""
    changed: dict[tuple, SenderRow] = field(default_factory=dict)
    """The new rows of the senders whose row changes."""
    closed: list[Key] = field(default_factory=list)
    """The gaps to delete, by sender and first number."""
    opened: list[tuple[tuple, Gap]] = field(default_factory=list)
    """Gaps that this batch found."""
    remaining: list[tuple[tuple, Gap]] = field(default_factory=list)
    """The remains of older gaps that late numbers have split or shrunk."""


def hold(
    arrived: Arrived, senders: dict[tuple, SenderRow], held: Collection[Key], queued: dict[tuple, set[int]]
) -> Decided:
    """Return the rules of onGap="hold": a number behind a gap waits.

    ``held``: the batch's numbers that already wait. ``queued``: all waiting numbers of the senders whose next number
    is in the batch.
    """
    decided = Decided()
    for sender in arrived.senders():
        was = senders[sender]
        new = {n for n in arrived.first[sender] if n > was.last and (*sender, n) not in held}
        waiting = queued.get(sender, set())
        last = was.last
        while last + 1 in new or last + 1 in waiting:
            last += 1
        decided.applied += [(*sender, n) for n in sorted(new) if n <= last]
        decided.waiting += [(*sender, n) for n in sorted(new) if n > last]
        decided.released += [(*sender, n) for n in sorted(waiting) if n <= last]
        more = sum(n > last for n in new) - sum(n <= last for n in waiting)
        _change(decided, sender, was, SenderRow(last, was.held + more, was.missing))
    return decided


def report(
    arrived: Arrived, senders: dict[tuple, SenderRow], gaps: dict[tuple, list[Gap]], txid: int | None, time: str
) -> Decided:
    """Return the rules of onGap="report": a number behind a gap is applied and the gap is recorded.

    ``gaps``: the recorded gaps of the senders that have past numbers in the batch.
    """
    decided = Decided()
    for sender in arrived.senders():
        was = senders[sender]
        numbers = sorted(arrived.first[sender])
        late = _late(decided, sender, gaps.get(sender, []), [n for n in numbers if n <= was.last])
        decided.late += len(late)
        last, missing = was.last, was.missing - len(late)
        for number in (n for n in numbers if n > was.last):
            if number > last + 1:
                decided.opened.append((sender, Gap(last + 1, number - 1, txid, time)))
                missing += number - 1 - last
            last = number
        decided.applied += [(*sender, n) for n in numbers if n > was.last or n in late]
        _change(decided, sender, was, SenderRow(last, was.held, missing))
    return decided


def _late(decided: Decided, sender: tuple, gaps: list[Gap], past: list[int]) -> set[int]:
    """Return the past numbers that were missing; shrinks, split or closes their gaps."""
    late: set[int] = set()
    for gap in gaps:
        numbers = [n for n in past if gap.first <= n <= gap.last]
        if numbers:
            late.update(numbers)
            decided.closed.append((*sender, gap.first))
            decided.remaining += [(sender, rest) for rest in _without(gap, numbers)]
    return late


def _without(gap: Gap, numbers: list[int]) -> Iterator[Gap]:
    start = gap.first
    for number in [*numbers, gap.last + 1]:
        if number > start:
            yield gap._replace(first=start, last=number - 1)
        start = number + 1


def _change(decided: Decided, sender: tuple, was: SenderRow, now: SenderRow) -> None:
    if now != was:
        decided.changed[sender] = now
