"""The task side of `KafkaSpout`: reads offset ranges in order, while it prefetches the other partitions."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from ..errors import FailedException, SpoutError
from ..model.chunks import Chunk
from ..operations.base import TridentCollector
from ..spouts.interfaces import OPAQUE, ITridentSpout
from ..tuples import TransactionAttempt
from . import confluent
from .batches import Place, Range
from .blocking_calls import call_client
from .clients import Cluster, describe_error, errors, is_passing, means
from .error_codes import Meaning
from .offsets import Judge
from .options import KafkaOptions
from .records import PartitionMessages, RecordParser, Skipped, group_segments
from .topic_metadata import ANSWER


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
        segments = (PartitionMessages(r.place, messages) for r in ranges for messages in self._reader.read(r))
        for group in group_segments(segments):
            yield reading.chunk(group, names)
        if skipped.count:
            self._judge.tell(f"{skipped.count} records were skipped; the first: {skipped.first}")

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


TAKE = 10_000
WAIT = 0.010
STALLED = 10.0
PATIENT_ATTEMPTS = 30
HELD = 64 << 20
OVERHEAD = 200
# Our defaults for librdkafka; the user's settings override them.
TUNED = {
    "fetch.wait.max.ms": 100, "fetch.queue.backoff.ms": 5, "fetch.error.backoff.ms": 50,
    "fetch.message.max.bytes": 4 << 20, "queued.min.messages": 100_000, "queued.max.messages.kbytes": 65_536,
    "reconnect.backoff.max.ms": 1_000,
}  # fmt: skip
FIXED = {
    "enable.auto.commit": False, "enable.auto.offset.store": False, "enable.partition.eof": True,
    "auto.offset.reset": "error",
}  # fmt: skip


class Lost(NamedTuple):
    """A range whose records are gone: the next offset wanted, and the log's begin and end."""

    range: Range
    at: int
    begin: int
    end: int


class FetchedPartition:
    """One partition: the messages fetched and not yet returned, and the next offset that the consumer brings."""

    def __init__(self, id: str, start: int) -> None:
        self.id = id
        self.begin: int | None = start  # offset of the next message to return; None in the middle of a range
        self.fetched = start
        self.messages: list[Any] = []
        self.size = 0
        self.assigned = False
        self.live = False  # something came since the partition was assigned

    def add(self, messages: list[Any]) -> None:
        if messages[0].offset() < self.fetched:
            messages = [message for message in messages if message.offset() >= self.fetched]
        if messages:
            self.messages += messages
            self.size += sum(map(len, messages)) + OVERHEAD * len(messages)
            self.fetched = messages[-1].offset() + 1
            self.live = True

    def cut(self, end: int) -> list[Any]:
        """Remove and return the messages before ``end``."""
        if not self.messages or self.messages[-1].offset() < end:
            taken, self.messages = self.messages, []
        else:
            at = bisect_left(self.messages, end, key=lambda message: message.offset())
            taken, self.messages = self.messages[:at], self.messages[at:]
        self.size = sum(map(len, self.messages)) + OVERHEAD * len(self.messages)
        return taken


class RecordReader:
    """Reads through one consumer of one task. ``on_lost`` handles a range whose records are gone: it returns the offset
    to go on from, or raises."""

    def __init__(self, cluster: Cluster, settings: dict[str, Any], on_lost: Callable[[Lost], int]) -> None:
        self._cluster = cluster
        self._settings = {**settings, **FIXED, "error_cb": self._remember}
        self._on_lost = on_lost
        self._consumer: Any = None
        self._parts: dict[Place, FetchedPartition] = {}
        self._error = ""
        self._patience = STALLED

    def _remember(self, error: Any) -> None:
        self._error = f" ({describe_error(error)})"

    def prepare(self, places: list[Place], ranges: list[Range], attempt: int = 0) -> None:
        """Start fetching all ranges of a batch. Called before they are read. ``places``: all partitions of the task.

        Each further ``attempt`` waits longer: after a long aborted transaction nothing may come for a while.
        """
        self._patience = STALLED * min(1 + attempt, PATIENT_ATTEMPTS)
        fetched = [(self._parts[r.place], r) for r in ranges if r.place in self._parts]
        if any(part.begin != r.start or part.id != r.id for part, r in fetched) or set(self._parts) - set(places):
            self.close()  # a new consumer cannot return messages that were fetched before
        for r in ranges:
            if r.place not in self._parts:
                self._parts[r.place] = FetchedPartition(r.id, r.start)
        with errors(self._cluster, "begin to read", SpoutError):
            if self._consumer is None:
                self._consumer = self._cluster.consumer(self._settings, TUNED)
            self._assign([r.place for r in ranges if not self._parts[r.place].assigned])

    def read(self, r: Range) -> Iterator[list[Any]]:
        """Yield the messages of a range, in order, as they come. Raises FailedException if no more come."""
        part = self._parts[r.place]
        part.begin = None
        with errors(self._cluster, f"read topic {r.topic}, partition {r.partition}", SpoutError):
            moved = time.monotonic()
            while True:
                messages = part.cut(r.end)
                if messages:
                    yield messages
                if part.fetched >= r.end:
                    break
                before = part.fetched
                self._pump(r, part)
                moved = time.monotonic() if messages or part.fetched > before else moved
                self._check_stalled(r, part, moved)
        part.begin = r.end

    def _check_stalled(self, r: Range, part: FetchedPartition, moved: float) -> None:
        if time.monotonic() - moved > self._patience and not self._was_cut(r, part):
            cause = self._cluster.hide_secrets(self._error)
            raise FailedException(
                f"Kafka at {self._cluster.bootstrap}: topic {r.topic}, partition {r.partition}: no records arrived for "
                f"{self._patience:.0f} s at offset {part.fetched}{cause}; the batch will be replayed"
            )

    def _was_cut(self, r: Range, part: FetchedPartition) -> bool:
        """Return whether the log ends before the range does: the missing records are lost."""
        try:
            begin, end = call_client(self._consumer.get_watermark_offsets, _partition(r.place), timeout=ANSWER)
        except confluent.KafkaException:
            return False  # no answer
        if not begin <= end <= part.fetched:
            return False
        self._skip_to(r.place, part, self._on_lost(Lost(r, part.fetched, begin, end)))
        return True

    def _skip_to(self, place: Place, part: FetchedPartition, offset: int) -> None:
        self._unassign(place, part)
        part.fetched = offset

    def _unassign(self, place: Place, part: FetchedPartition) -> None:
        call_client(self._consumer.incremental_unassign, [_partition(place)])
        part.assigned = part.live = False

    def _pump(self, r: Range, part: FetchedPartition) -> None:
        """Take fetched messages of any partition; wait a moment if there are none."""
        if not part.assigned:
            self._assign([r.place])
        messages = call_client(self._consumer.consume, TAKE, 0)
        if not messages:
            first = call_client(self._consumer.poll, WAIT)
            if first is None:
                self._move_on(r, part)
                return
            messages = [first]
        self._sort(messages, r)

    def _move_on(self, r: Range, part: FetchedPartition) -> None:
        """Advance past transaction markers, which may follow the last record and are not messages."""
        if part.live:
            at = call_client(self._consumer.position, [_partition(r.place)])[0].offset
            part.fetched = max(part.fetched, at)

    def _sort(self, messages: list[Any], wanted: Range) -> None:
        others = [message for message in messages if message.error() is not None]
        if others:
            messages = [message for message in messages if message.error() is None]
        if len(self._parts) == 1 and messages:
            self._parts[wanted.place].add(messages)
        else:
            for place, run in groupby(messages, lambda message: (message.topic(), message.partition())):
                self._add(place, list(run), wanted)
        for message in others:
            self._handle_error(message, wanted)

    def _add(self, place: Place, messages: list[Any], wanted: Range) -> None:
        part = self._parts.get(place)
        if part is None or not part.assigned:
            return
        part.add(messages)
        if place != wanted.place and sum(other.size for other in self._parts.values()) > HELD:
            self._unassign(place, part)  # assigned again in its turn

    def _handle_error(self, message: Any, wanted: Range) -> None:
        """Handle the end of a partition, or an error. Ignores a passing error: `_check_stalled` ends a stall."""
        error, place = message.error(), (message.topic(), message.partition())
        part = self._parts.get(place)
        if part is None or not part.assigned:
            return  # the messages before it were not taken either
        if error.code() == confluent.KafkaError._PARTITION_EOF:
            part.fetched = max(part.fetched, message.offset())
            part.live = True
        elif error.code() in (confluent.KafkaError._AUTO_OFFSET_RESET, confluent.KafkaError.OFFSET_OUT_OF_RANGE):
            self._out_of_range(place, part, wanted)
        elif is_passing(error) or means(error, Meaning.MISSING):
            self._remember(error)
        else:
            raise confluent.KafkaException(error)

    def _out_of_range(self, place: Place, part: FetchedPartition, wanted: Range) -> None:
        if place != wanted.place:
            self._unassign(place, part)  # checked in its turn
            return
        begin, end = call_client(self._consumer.get_watermark_offsets, _partition(place), timeout=STALLED)
        if begin <= part.fetched <= end:
            raise FailedException(
                f"Kafka at {self._cluster.bootstrap}: topic {place[0]}, partition {place[1]}: offset {part.fetched} "
                "cannot be read now; the batch will be replayed"
            )
        self._skip_to(place, part, self._on_lost(Lost(wanted, part.fetched, begin, end)))

    def _assign(self, places: list[Place]) -> None:
        if places:
            starts = [_partition(place, self._parts[place].fetched) for place in places]
            call_client(self._consumer.incremental_assign, starts)
            for place in places:
                self._parts[place].assigned = True

    def close(self) -> None:
        """Close the consumer and drop all fetched messages."""
        self._parts = {}
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def _partition(place: Place, *offset: Any) -> Any:
    return confluent.TopicPartition(*place, *offset)
