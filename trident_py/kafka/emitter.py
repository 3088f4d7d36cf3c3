"""The task side of `KafkaSpout`: reads the ranges of its task as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..model.chunks import Chunk
from ..operations.base import TridentCollector
from ..spouts.interfaces import OPAQUE, ITridentSpout
from ..tuples import TransactionAttempt
from .batches import Range
from .offsets import Judge
from .options import KafkaOptions
from .reader import Lost, RecordReader
from .records import PartitionMessages, RecordParser, Skipped, group_segments


class KafkaEmitter(ITridentSpout.Emitter):
    """Emits the records of its partitions, one partition after the other, in a fixed order."""

    def __init__(self, options: KafkaOptions, txStateId: str) -> None:
        self._options = options
        self._id = txStateId
        self.reportTo(lambda error: None)
        group = options.groupId or f"trident-{txStateId}"  # a consumer must name a group; it does not join it
        settings = {"group.id": group, "isolation.level": options.isolationLevel}
        self._reader = RecordReader(options.cluster, settings, self._skip_lost)

    def reportTo(self, report: Callable[[BaseException], Any]) -> None:
        """Set the receiver of events that do not fail the batch."""
        self._judge = Judge(self._id, self._options.kind == OPAQUE, report)

    def emitChunks(
        self, tx: TransactionAttempt, coordinatorMeta: Any, wanted: Iterable[str] | None = None
    ) -> Iterator[Chunk]:
        """Yield the records as columns. A further attempt reads the same offsets again.

        Raises FailedException if the brokers are away, SpoutError for records that are lost or cannot be read.
        """
        places = [(topic, partition) for topic, partition in coordinatorMeta["places"]]
        ranges = [Range(*values) for values in coordinatorMeta["ranges"]]
        if not ranges:
            return
        self._reader.prepare(places, ranges, tx.attemptId)
        skipped = Skipped()
        reading = RecordParser(self._options, skipped)
        names = list(self._options.output) if wanted is None else list(wanted)
        for group in group_segments(self._segments(ranges)):
            yield reading.chunk(group, names)
        if skipped.count:
            self._judge.tell(f"{skipped.count} records were skipped; the first: {skipped.first}")

    def _segments(self, ranges: list[Range]) -> Iterator[PartitionMessages]:
        for r in ranges:
            for messages in self._reader.read(r):
                yield PartitionMessages(r.place, messages)

    def _skip_lost(self, lost: Lost) -> int:
        """Return the offset to go on from; an opaque spout skips records that no longer exist."""
        r = lost.range
        upto = min(r.end, lost.begin) if lost.begin > lost.at else r.end
        where = f"topic {r.topic}, partition {r.partition}: offsets {lost.at} to {upto - 1}"
        self._judge.go_on_without(f"{where} are lost: the log goes from {lost.begin} to {lost.end}")
        return upto

    def emitBatch(self, tx: TransactionAttempt, coordinatorMeta: Any, collector: TridentCollector) -> None:
        for chunk in self.emitChunks(tx, coordinatorMeta):
            for row in chunk.rows(self._options.output):
                collector.emit(row)

    def close(self) -> None:
        self._reader.close()
