"""Turns messages into columns: fields of records, translators, and records that cannot be read. Runs in tasks."""

from __future__ import annotations

import datetime
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import pyarrow as pa

from ..errors import SpoutError
from ..model.chunks import CHUNK_ROWS, Chunk, Column
from ..spouts.collectors import check_tuples
from ..tuples import Fields
from .batches import Place
from .formats import Bytes, Format
from .options import TYPES, KafkaOptions

HEAVY = 32 << 20  # bytes of values per chunk
NO_TIMESTAMP = -1  # Kafka's own value
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLI = datetime.timedelta(milliseconds=1)
FIRST = (datetime.datetime.min.replace(tzinfo=datetime.UTC) - EPOCH) // _MILLI
LAST = (datetime.datetime.max.replace(tzinfo=datetime.UTC) - EPOCH) // _MILLI


class BadTimestamp(SpoutError):
    """A timestamp outside the years 1 to 9999."""


class KafkaRecord(NamedTuple):
    """The argument of a translator. ``key`` and ``value`` come from their formats; ``headers`` are pairs of a name and
    bytes; ``millis`` is the record's timestamp in ms since 1970, None if it has none."""

    topic: str
    partition: int
    offset: int
    key: Any
    value: Any
    headers: list[tuple[str, bytes | None]]
    millis: int | None

    @property
    def timestamp(self) -> datetime.datetime | None:
        """The timestamp in UTC. Raises SpoutError if it is outside the years 1 to 9999; ``millis`` still has it. If a
        translator does not catch the error, the record counts as bad, see ``onBadRecord``."""
        return None if self.millis is None else EPOCH + datetime.timedelta(milliseconds=_check_range(self.millis))


class PartitionMessages(NamedTuple):
    """Messages of one partition, in order."""

    place: Place
    messages: list[Any]


def group_segments(segments: Iterable[PartitionMessages], size: int = CHUNK_ROWS) -> Iterator[list[PartitionMessages]]:
    """Yield the segments in groups of ``size`` messages, or of `HEAVY` bytes and the message that exceeds them. The
    last group has the rest. The cuts depend on nothing else."""
    group: list[PartitionMessages] = []
    room, weight = size, HEAVY
    for place, messages in segments:
        at = 0
        while at < len(messages):
            part, weight = _light(messages[at : at + room], weight)
            group.append(PartitionMessages(place, part))
            at, room = at + len(part), room - len(part)
            if not room or weight <= 0:
                yield group
                group, room, weight = [], size, HEAVY
    if group:
        yield group


def _light(messages: list[Any], weight: int) -> tuple[list[Any], int]:
    """Return the messages up to this weight, with the one that exceeds it, and the weight that is left."""
    sums = list(accumulate(map(len, messages)))
    count = min(bisect_left(sums, weight) + 1, len(sums))
    return messages[:count], weight - sums[count - 1]


class Skipped:
    """The records of a batch that were skipped because they could not be read."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""

    def add(self, description: str) -> None:
        self.first = self.first or description
        self.count += 1


class RecordParser:
    """Makes chunks of message segments, as the spout declares them."""

    def __init__(self, options: KafkaOptions, skipped: Skipped) -> None:
        self._options = options
        self._skipped = skipped
        self._formats: dict[str, Format] = {
            "key": options.keyFormat, "value": options.valueFormat, "timestamp": Times(), "headers": Headers(),
        }  # fmt: skip

    def chunk(self, group: list[PartitionMessages], wanted: Iterable[str]) -> Chunk:
        """Return the rows of a group. Raises SpoutError for an unreadable record, unless such records are skipped."""
        if self._options.translator is not None:
            return self._translate(group)
        messages = [message for segment in group for message in segment.messages]
        columns: dict[str, Column] = {}
        needed, bad = set(wanted), set[int]()
        for name in self._options.columns:
            if name in self._formats:
                form = self._formats[name]
                read = partial(form.columns, name)
                decoded, unreadable = self._decode_part(name, group, messages, bad, needed, read)
                columns |= decoded
                bad |= unreadable
            elif name in needed:
                columns[name] = COLUMNS[name](group, messages)
        chunk = Chunk(columns, len(messages))
        return chunk if not bad else chunk.take([at for at in range(len(messages)) if at not in bad])

    def _decode_part(
        self, name: str, group: list[PartitionMessages], messages: list[Any], left_out: set[int], needed: set[str],
        read: Callable[..., Any],
    ) -> tuple[Any, set[int]]:  # fmt: skip
        """Return one part of the records, and the rows where it is unreadable; those hold the value of a record without
        it. Those that another part has ``left_out`` count once.

        Reads it even if no field is wanted: which records are bad must not depend on the wanted fields.
        """
        form = self._formats[name]
        declared = set(Fields(form.declare(name)))
        if isinstance(form, Bytes) and not declared & needed:
            return {}, set()
        raw = list(map(RAW[name], messages))
        try:
            return read(raw), set()
        except Exception:
            bad = self._bad(name, group, raw, left_out, read)
            if not bad:
                raise
            return read([None if at in bad else data for at, data in enumerate(raw)]), bad

    def _bad(
        self, name: str, group: list[PartitionMessages], raw: list[Any], left_out: set[int], read: Callable[..., Any]
    ) -> set[int]:
        bad = set()
        places = [(segment.place, message) for segment in group for message in segment.messages]
        for at, data in enumerate(raw):
            try:
                read([data])
            except Exception as error:
                place, message = places[at]
                if at not in left_out:
                    self._is_bad(place, message.offset(), name, error)
                bad.add(at)
        return bad

    def _is_bad(self, place: Place, offset: int, name: str, error: Exception) -> None:
        """Count the record as skipped, or raises SpoutError."""
        text = f"topic {place[0]}, partition {place[1]}, offset {offset}: its {name} cannot be read: {error}"
        if self._options.onBadRecord == "fail":
            raise SpoutError(
                f'Kafka {text}. {_ADVICE[name]}, or skip such records with onBadRecord="skip"'
            ) from error
        self._skipped.add(text)

    def _translate(self, group: list[PartitionMessages]) -> Chunk:
        rows: list[Any] = []
        emit = check_tuples("KafkaSpout", self._options.output, rows.append)
        for record in self._records(group):
            translate = self._translator(record.topic)
            try:
                values = translate(record)
            except BadTimestamp as error:
                self._is_bad((record.topic, record.partition), record.offset, "timestamp", error)
                continue
            except Exception as error:
                at = f"topic {record.topic}, partition {record.partition}, offset {record.offset}"
                error.add_note(f"in the translator, at {at}")
                raise
            if values is not None:
                emit(values)
        return Chunk.of_rows(self._options.output, rows)

    def _translator(self, topic: str) -> Callable[[KafkaRecord], Any]:
        translator = self._options.translator
        if not isinstance(translator, Mapping):
            assert translator is not None
            return translator
        function = translator.get(topic, translator.get(None))
        if function is None:
            raise SpoutError(
                f"KafkaSpout: no translator for topic {topic}, only for: {', '.join(map(str, translator))}; the key "
                "None covers all other topics"
            )
        return function

    def _records(self, group: list[PartitionMessages]) -> Iterator[KafkaRecord]:
        messages = [message for segment in group for message in segment.messages]
        parts: list[list[Any]] = []
        bad: set[int] = set()
        for name in ("key", "value", "headers"):
            objects, unreadable = self._decode_part(name, group, messages, bad, {name}, self._formats[name].objects)
            parts.append(objects)
            bad |= unreadable
        places = (segment.place for segment in group for _ in segment.messages)
        for at, (place, message, key, value, headers) in enumerate(zip(places, messages, *parts, strict=True)):
            if at not in bad:
                yield KafkaRecord(place[0], place[1], message.offset(), key, value, headers, millis_of(message))


_FORMAT = "Correct the spout's format"
_ADVICE = {
    "key": _FORMAT, "value": _FORMAT, "headers": "Leave headers out of the spout's fields",
    "timestamp": "Leave timestamp out of the spout's fields, or read record.millis in a translator",
}  # fmt: skip


def millis_of(message: Any) -> int | None:
    """Return the record's timestamp in ms; None in a log of a very old format."""
    kind, at = message.timestamp()
    return None if kind == 0 or at == NO_TIMESTAMP else at


def _check_range(millis: int) -> int:
    if not FIRST <= millis <= LAST:
        raise BadTimestamp(
            f"{millis} ms since 1970 is outside the years 1 to 9999; does the producer write micro- or nanoseconds?"
        )
    return millis


class Times:
    """Timestamps as a column, in UTC."""

    def declare(self, name: str) -> list[str]:
        return [TYPES[name]]

    def columns(self, name: str, raw: Sequence[Any]) -> dict[str, Column]:
        """Raise BadTimestamp."""
        present = [millis for millis in raw if millis is not None]
        if present:
            _check_range(min(present))
            _check_range(max(present))
        return {name: pa.array(raw, pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC"))}

    def objects(self, raw: Sequence[Any]) -> list[Any]:
        return list(raw)


class Headers:
    """The headers of messages; an empty list if there are none. Raises the client's error for unreadable ones."""

    def declare(self, name: str) -> list[str]:
        return [TYPES[name]]

    def columns(self, name: str, raw: Sequence[Any]) -> dict[str, Column]:
        return {name: self.objects(raw)}

    def objects(self, raw: Sequence[Any]) -> list[Any]:
        return [[] if message is None else message.headers() or [] for message in raw]


RAW: dict[str, Callable[[Any], Any]] = {
    "key": lambda message: message.key(), "value": lambda message: message.value(), "timestamp": millis_of,
    "headers": lambda message: message,
}  # fmt: skip


def _topics(group: list[PartitionMessages], messages: list[Any]) -> Column:
    return pa.concat_arrays([pa.repeat(pa.scalar(s.place[0], pa.string()), len(s.messages)) for s in group])


def _partitions(group: list[PartitionMessages], messages: list[Any]) -> Column:
    return pa.concat_arrays([pa.repeat(pa.scalar(s.place[1], pa.int32()), len(s.messages)) for s in group])


def _offsets(group: list[PartitionMessages], messages: list[Any]) -> Column:
    return pa.array([message.offset() for message in messages], pa.int64())


COLUMNS = {"topic": _topics, "partition": _partitions, "offset": _offsets}
