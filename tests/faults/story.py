"""The input of the fault tests and what a plain fold over it gives. No Spark and no trident_py states here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

Row = tuple[str, str, int]
PARTITIONS = 2
EMPTY = 13
ONE_WORD = 14
WORDS = [f"w{n}" for n in range(8)]


def written_batch(batch: int, partition: int) -> list[Row]:
    """What the repeating spout has in batch 1, 2, ...: every word, other numbers each time.

    Batch EMPTY has nothing, batch ONE_WORD one word only, so that one of two state partitions gets no tuple.
    """
    if batch == EMPTY:
        return []
    words = WORDS[:1] * 3 if batch == ONE_WORD else WORDS
    return [(f"r{batch}-{partition}-{i}", word, 10 * batch + i + partition) for i, word in enumerate(words)]


def drifting_row(partition: int, number: int) -> Row:
    """Number 0, 1, ... of a partition of the drifting spout; eight in a row have every word of the partition."""
    return f"d{partition}-{number}", f"d{partition}-{number % 8}", number


def size_of_try(txid: int, tries: int) -> int:
    """Another count in each try; every word is in each, so no key is only touched by a failed attempt."""
    return 0 if txid in (EMPTY, ONE_WORD) else 8 + (5 * tries + txid) % 7


def tried_batch(folder: Path, txid: int, partition: int) -> Path:
    return folder / f"tries-{txid}-{partition}"


# -- the fold ---------------------------------------------------------------------------------------------------


def batch(number: int) -> list[Row]:
    return [row for partition in range(PARTITIONS) for row in written_batch(number, partition)]


def drifted(counts: Iterable[int]) -> list[Row]:
    """The first so many rows of each partition of the drifting spout."""
    return [drifting_row(p, number) for p, count in enumerate(counts) for number in range(count)]


def sums(rows: Iterable[Row]) -> dict[tuple[str], int]:
    """Sum per word."""
    found: Counter[tuple[str]] = Counter()
    for _, word, n in rows:
        found[(word,)] += n
    return dict(found)


def table(rows: Iterable[Row]) -> dict[tuple[str], tuple[str, int]]:
    """Rows by their key, as an InsertIgnoreState shows them."""
    return {(id_,): (word, n) for id_, word, n in rows}


class Fold:
    """Per word: the sum, the last batch that had it, and the sum before that batch."""

    def __init__(self) -> None:
        self.now: dict[tuple[str], tuple[int, int, int | None]] = {}

    def add(self, txid: int, rows: Iterable[Row]) -> Fold:
        for key, amount in sums(rows).items():
            _, before, _ = self.now.get(key, (0, None, None))
            self.now[key] = (txid, (before or 0) + amount, before)
        return self

    def transactional(self) -> dict[tuple[str], tuple[int, int]]:
        return {key: value[:2] for key, value in self.now.items()}

    def opaque(self) -> dict[tuple[str], tuple[int, int, int | None]]:
        return self.now


def fold(batches: Iterable[int]) -> Fold:
    """The fold over batches of the repeating spout, in order; the txid is the batch's number."""
    made = Fold()
    for number in batches:
        made.add(number, batch(number))
    return made
