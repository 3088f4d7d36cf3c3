"""Two partitioned spouts over the input of `story`: one that repeats a batch exactly, one that never does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trident_py import Fields
from trident_py.spouts import IOpaquePartitionedTridentSpout, IPartitionedTridentSpout

from .story import PARTITIONS, drifting_row, size_of_try, tried_batch, written_batch

ROW = Fields("id string", "word string", "n bigint")


class _Coordinator:
    """Ends after txid ``last``; ``asked`` is a test's hook, called before a batch is described."""

    def __init__(self, last: int, asked: Any) -> None:
        self.last, self.asked, self.txid = last, asked, 0

    def isReady(self, txid: int) -> bool:
        self.txid = txid
        return txid <= self.last

    def isExhaustedAt(self, txid: int) -> bool:
        return txid > self.last

    def getPartitionsForBatch(self) -> list[int]:
        self.asked(self.txid)
        return list(range(PARTITIONS))

    def close(self) -> None: ...


def _not_asked(txid: int) -> None: ...


@dataclass(frozen=True)
class Repeating(IPartitionedTridentSpout):
    """Transactional: the n-th batch after ``skipped`` is always `story.written_batch` n.

    ``emitting`` is called in the task that emits a batch for the first time, before it is noted.
    """

    last: int
    skipped: int = 0
    asked: Any = _not_asked
    emitting: Any = _not_asked

    def getOutputFields(self) -> Fields:
        return ROW

    def getCoordinator(self, conf: dict, context: Any) -> _Coordinator:
        return _Coordinator(self.last, self.asked)

    def getEmitter(self, conf: dict, context: Any) -> Repeats:
        return Repeats(self.skipped, self.emitting)


class Repeats(IPartitionedTridentSpout.Emitter):
    def __init__(self, skipped: int, emitting: Any) -> None:
        self.skipped, self.emitting = skipped, emitting

    def getOrderedPartitions(self, allPartitionInfo: list[int]) -> Sequence[int]:
        return allPartitionInfo

    def emitBatchNew(self, tx: Any, collector: Any, partitions: Sequence[int], lastPartitionMeta: dict) -> dict:
        made = {}
        self.emitting(tx.txid)
        for partition in partitions:
            last = lastPartitionMeta[partition]
            made[partition] = self.skipped + 1 if last is None else last + 1
            self.reEmitPartitionBatch(tx, collector, partition, made[partition])
        return made

    def reEmitPartitionBatch(self, tx: Any, collector: Any, partition: int, partitionMeta: int) -> None:
        for row in written_batch(partitionMeta, partition):
            collector.emit(row)


@dataclass(frozen=True)
class Drifting(IOpaquePartitionedTridentSpout):
    """Opaque: goes on behind the last committed number, each try of a batch with another count of them."""

    last: int
    folder: str
    first: tuple[int, ...] = (0, 0)

    def getOutputFields(self) -> Fields:
        return ROW

    def getCoordinator(self, conf: dict, context: Any) -> _Coordinator:
        return _Coordinator(self.last, _not_asked)

    def getEmitter(self, conf: dict, context: Any) -> Drifts:
        return Drifts(Path(self.folder), self.first)


class Drifts(IOpaquePartitionedTridentSpout.Emitter):
    def __init__(self, folder: Path, first: tuple[int, ...]) -> None:
        self.folder, self.first = folder, first

    def getOrderedPartitions(self, allPartitionInfo: list[int]) -> Sequence[int]:
        return allPartitionInfo

    def emitBatchNew(self, tx: Any, collector: Any, partitions: Sequence[int], lastPartitionMeta: dict) -> dict:
        made = {}
        for partition in partitions:
            last = lastPartitionMeta[partition]
            start = self.first[partition] if last is None else last
            made[partition] = start + size_of_try(tx.txid, self._tries(tx.txid, partition))
            for number in range(start, made[partition]):
                collector.emit(drifting_row(partition, number))
        return made

    def _tries(self, txid: int, partition: int) -> int:
        """How often this batch was emitted before, in whichever process."""
        with tried_batch(self.folder, txid, partition).open("ab") as file:
            file.write(b".")
            file.flush()
            return os.fstat(file.fileno()).st_size - 1
