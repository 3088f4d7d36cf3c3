"""The input of the store tests, made from a seed, and what a plain fold over it gives. No trident_py here.

Senders number their readings from 1 on. A reading may come one batch late, and may be sent again later; every
reading has an id, a word and a number that follow from its sender and its place.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

Row = tuple[str, str, int, str, int]
"""id, word, n, sender, place."""
PARTITIONS = 2
SENDERS = 3
NEW = 5
WORDS = 8


@dataclass(frozen=True)
class Readings:
    """The batches that come from one seed."""

    seed: int

    def batch(self, txid: int) -> list[Row]:
        return [row for partition in range(PARTITIONS) for row in self.part(txid, partition)]

    def part(self, txid: int, partition: int) -> list[Row]:
        """What one partition of the spout emits in a batch: the same rows each time."""
        rows = []
        for k in range(SENDERS):
            sender = f"s{partition}-{k}"
            fresh = [n for n in self._numbers(txid) if not self._late(sender, n)]
            late = [n for n in self._numbers(txid - 1) if self._late(sender, n)]
            draw = random.Random(f"{self.seed}/{txid}/{sender}")
            again = [n for n in self._numbers(txid - draw.randrange(1, 4)) if draw.random() < 0.2]
            order = fresh + late + again
            draw.shuffle(order)
            rows += [self.row(sender, n) for n in order]
        return rows

    def row(self, sender: str, number: int) -> Row:
        draw = random.Random(f"{self.seed}/{sender}/{number}")
        return f"{sender}-{number}", f"w{draw.randrange(WORDS)}", draw.randrange(100), sender, number

    def _numbers(self, txid: int) -> range:
        return range((txid - 1) * NEW + 1, txid * NEW + 1) if txid > 0 else range(0)

    def _late(self, sender: str, number: int) -> bool:
        return random.Random(f"late/{self.seed}/{sender}/{number}").random() < 0.15


@dataclass(frozen=True)
class Fold:
    """What must be in every table after the batches 1 to ``last``, or after these ``batches``."""

    readings: Readings
    last: int
    batches: tuple[int, ...] | None = None

    @property
    def txids(self) -> Iterable[int]:
        return range(1, self.last + 1) if self.batches is None else self.batches

    @property
    def delivered(self) -> list[Row]:
        return [row for txid in self.txids for row in self.readings.batch(txid)]

    def by_id(self) -> dict[str, Row]:
        return {row[0]: row for row in self.delivered}

    def counted(self) -> Counter[Row]:
        return Counter(self.delivered)

    def sums(self) -> dict[str, tuple[int, int, int | None]]:
        """Word: the sum, the last txid that had the word, the sum before that batch."""
        found: dict[str, tuple[int, int, int | None]] = {}
        for txid in self.txids:
            batch: Counter[str] = Counter()
            for _, word, n, _, _ in self.readings.batch(txid):
                batch[word] += n
            for word, n in batch.items():
                before = found[word][0] if word in found else None
                found[word] = ((before or 0) + n, txid, before)
        return found

    def in_order(self) -> tuple[set[Row], set[Row], dict[str, int]]:
        """The rows up to each sender's first gap, the rows behind it, and each sender's last number."""
        by_sender: dict[str, dict[int, Row]] = defaultdict(dict)
        for row in self.delivered:
            by_sender[row[3]][row[4]] = row
        applied, held, last = set(), set(), {}
        for sender, rows in by_sender.items():
            upto = 0
            while upto + 1 in rows:
                upto += 1
            last[sender] = upto
            applied |= {row for number, row in rows.items() if number <= upto}
            held |= {row for number, row in rows.items() if number > upto}
        return applied, held, last


def sizes(readings: Readings, last: int) -> Iterable[int]:
    """How many rows there are after 0, 1, ... ``last`` batches: all that a reader of whole batches may see."""
    total = 0
    yield total
    for txid in range(1, last + 1):
        total += len(readings.batch(txid))
        yield total
