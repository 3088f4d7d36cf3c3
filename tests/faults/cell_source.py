"""Spouts of the three kinds over the same numbered rows, functions of three kinds behind them, and a journal.

Partition p of every spout has the rows 0, 1, 2, ...; a batch is a range of them:

    Steady     transactional       the same range each time
    Drifting   opaque              from the last committed row on, each try with another count
    Forgetful  non-transactional   from the last emitted row on: a batch that fails is gone

What reaches the states is written to the journal before, with the try that it belongs to: that, and what the tables
hold at the end, is all that a verdict rests on.
"""

from __future__ import annotations

import functools
import json
import os
import random
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from trident_py import Fields
from trident_py.operations import Consumer, Function, nondeterministic
from trident_py.spouts import IBatchSpout, IOpaquePartitionedTridentSpout, IPartitionedTridentSpout
from trident_py.testing.faults.feed import OneForAll

PARTITIONS = 2
SIZE = 16
WORDS = 8
SENDERS = 4
ROW = Fields("of string", "name string", "number bigint", "sender string", "txid bigint", "try bigint")


def row(partition: int, number: int, txid: int, tries: int) -> tuple:
    """Any eight in a row have every word and every sender of the partition."""
    of, sender = f"p{partition}-{number}", f"s{partition}-{number % SENDERS}"
    return of, f"w{number % WORDS}", number // SENDERS + 1, sender, txid, tries


def drifting_size(txid: int, tries: int) -> int:
    """Each try of a batch is longer or shorter than the one before."""
    return (8, 16, 12)[(txid + tries * (1 + txid % 2)) % 3]


def count_up(folder: str, name: str, by: int = 1) -> int:
    """A number that outlives the process; returns what it was."""
    with (Path(folder) / f"count-{name}").open("ab") as file:
        before = os.fstat(file.fileno()).st_size
        file.write(b"." * by)
    return before


@dataclass(frozen=True)
class _Source(OneForAll):
    """What the partitioned spouts share."""

    last: int
    folder: str

    def getOutputFields(self) -> Fields:
        return ROW

    def emit(self, collector: Any, partition: int, txid: int, tries: int, numbers: Sequence[int]) -> None:
        for number in numbers:
            collector.emit(row(partition, number, txid, tries))


@dataclass(frozen=True)
class Steady(_Source, IPartitionedTridentSpout):
    def emitBatchNew(self, tx: Any, collector: Any, partitions: Sequence[int], lastPartitionMeta: dict) -> dict:
        for partition in partitions:
            self.reEmitPartitionBatch(tx, collector, partition, tx.txid)
        return dict.fromkeys(partitions, tx.txid)

    def reEmitPartitionBatch(self, tx: Any, collector: Any, partition: int, partitionMeta: int) -> None:
        tries = count_up(self.folder, f"{tx.txid}-{partition}")
        self.emit(collector, partition, tx.txid, tries, range((partitionMeta - 1) * SIZE, partitionMeta * SIZE))


@dataclass(frozen=True)
class Drifting(_Source, IOpaquePartitionedTridentSpout):
    def emitBatchNew(self, tx: Any, collector: Any, partitions: Sequence[int], lastPartitionMeta: dict) -> dict:
        made = {}
        for partition in partitions:
            tries = count_up(self.folder, f"{tx.txid}-{partition}")
            start = lastPartitionMeta[partition] or 0
            made[partition] = start + self.size(tx.txid, tries)
            self.emit(collector, partition, tx.txid, tries, range(start, made[partition]))
        return made

    def size(self, txid: int, tries: int) -> int:
        return drifting_size(txid, tries)


@dataclass(frozen=True)
class Shrinking(Drifting):
    """The first try of batch 2 has all eight words, its replay only the first four of them."""

    def size(self, txid: int, tries: int) -> int:
        return 4 if (txid, tries > 0) == (2, True) else 8


class Forgetful(IBatchSpout):
    """Goes on behind what it has emitted, whatever became of it."""

    def __init__(self, last: int, folder: str) -> None:
        self.last, self.folder, self.partition = last, folder, 0

    def getOutputFields(self) -> Fields:
        return ROW

    def open(self, conf: dict, context: Any) -> None:
        self.partition = context.getPartitionIndex()

    def emitBatch(self, batchId: int, collector: Any) -> None:
        tries = count_up(self.folder, f"{batchId}-{self.partition}")
        start = count_up(self.folder, f"rows-{self.partition}", SIZE)
        for number in range(start, start + SIZE):
            collector.emit(row(self.partition, number, batchId, tries))

    def isExhausted(self) -> bool:
        return count_up(self.folder, f"rows-{self.partition}", 0) >= self.last * SIZE


SPOUTS = {"transactional": Steady, "opaque": Drifting, "non-transactional": Forgetful}


# -- functions --------------------------------------------------------------------------------------------------------


class Keys(Function):
    """id, word and place of a row, from the row alone."""

    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit(tuple[:3])


@nondeterministic
class OtherKeys(Function):
    """A name with a part drawn anew each time, a word drawn, and a place counted by this process."""

    def prepare(self, conf: dict, context: Any) -> None:
        self.places: Counter[str] = Counter()

    def execute(self, tuple: Any, collector: Any) -> None:
        of, _, _, sender, txid, tries = tuple
        draw = random.Random(f"{of}/{txid}/{tries}")
        self.places[sender] += 1
        collector.emit([f"{of}/{draw.randrange(1 << 30)}", f"w{draw.randrange(3 * WORDS)}", self.places[sender]])


class Value(Function):
    """A number that belongs to the row."""

    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([zlib.crc32(tuple[0].encode())])


@nondeterministic
class OtherValue(Function):
    """Another number in each try."""

    def execute(self, tuple: Any, collector: Any) -> None:
        of, txid, tries = tuple
        collector.emit([random.Random(f"n/{of}/{txid}/{tries}").randrange(1 << 30)])


FUNCTIONS = {
    "deterministic": (Keys, Value),
    "other values": (Keys, OtherValue),
    "other keys": (OtherKeys, Value),
}


# -- the journal ------------------------------------------------------------------------------------------------------


@functools.cache
def _journal(folder: str) -> Any:
    return (Path(folder) / "journal").open("a", encoding="utf-8", buffering=1)


class Noted(Consumer):
    """Writes down what reaches the states: txid, try, row, number. Survives SIGKILL of this process."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def accept(self, tuple: Any) -> None:
        print(json.dumps(tuple[:]), file=_journal(self.folder))


class Entry(NamedTuple):
    """A row as it has reached a state; ``tries``: how often its batch was emitted before."""

    txid: int
    tries: int
    of: str
    n: int
    id: str
    word: str
    sender: str
    place: int


def journal(folder: Path) -> list[Entry]:
    return [Entry(*json.loads(line)) for line in (folder / "journal").read_text().splitlines()]
