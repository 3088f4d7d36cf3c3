"""A part of a feed: the fewest rows that still show a defect, and how a command names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from urllib.parse import quote, unquote

from ...errors import DefinitionError
from .feed import Batch, Feed

RowPlace = tuple[str, int]
"""A spout, and the number of a row in its batch."""
Selection = tuple[tuple[int, tuple[RowPlace, ...]], ...]
"""The batches that are kept, by their numbers from 1 on, each with its rows."""


def select_all(feed: Feed) -> Selection:
    """Select everything."""
    return tuple(
        (n + 1, tuple((name, k) for name, batches in feed.batches if n < len(batches) for k in range(len(batches[n]))))
        for n in range(feed.count)
    )


def choose(feed: Feed, selection: Selection) -> Feed:
    """Return the feed of these batches and rows; later batches move up. Raises DefinitionError for one that is not
    there."""
    made: list[tuple[str, tuple[Batch, ...]]] = []
    try:
        for name, batches in feed.batches:
            kept = tuple(tuple(batches[n - 1][k] for spout, k in rows if spout == name) for n, rows in selection)
            made.append((name, kept))
    except IndexError:
        raise DefinitionError(f"--trident-rows={to_text(selection)!r} names rows that the test does not feed") from None
    return replace(feed, batches=tuple(made))


def to_text(selection: Selection) -> str:
    """Format for the option --trident-rows: "1:0,2+3:1" are rows 0 and 2 of batch 1, and row 1 of batch 3."""
    batches = []
    for n, rows in selection:
        batches.append(f"{n}:" + ",".join(f"{quote(spout, safe='')}.{k}" if spout else str(k) for spout, k in rows))
    return "+".join(batches)


def from_text(text: str) -> Selection:
    """Return the selection of a `to_text`. Raises DefinitionError."""
    try:
        return tuple(_batch_of(part) for part in text.split("+"))
    except ValueError:
        raise DefinitionError(f"--trident-rows={text!r}: expected batches as 1:0,2+3:1") from None


def _batch_of(text: str) -> tuple[int, tuple[RowPlace, ...]]:
    n, _, rows = text.partition(":")
    places = [row.rpartition(".") for row in rows.split(",") if row]
    return int(n), tuple((unquote(spout), int(k)) for spout, _, k in places)


def shrink(selection: Selection, fails: Callable[[Selection], bool]) -> Selection:
    """Return the smallest selection found of which ``fails`` is still true: fewer batches first, then fewer rows."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in _candidates(selection):
            if fails(candidate):
                selection, smaller = candidate, True
                break
    return selection


def _candidates(selection: Selection) -> Iterator[Selection]:
    """Yield it without one batch; then with half of a batch's rows; then without one row."""
    for at in reversed(range(len(selection) if len(selection) > 1 else 0)):
        yield (*selection[:at], *selection[at + 1 :])
    for at, (n, rows) in enumerate(selection):
        for part in (rows[: len(rows) // 2], rows[len(rows) // 2 :]) if len(rows) > 3 else ():
            yield (*selection[:at], (n, part), *selection[at + 1 :])
    for at, (n, rows) in enumerate(selection):
        for k in range(len(rows)):
            yield (*selection[:at], (n, (*rows[:k], *rows[k + 1 :])), *selection[at + 1 :])
