"""From messages to columns: the fields of records, translators, and records that cannot be read. Runs in tasks."""

from __future__ import annotations

import datetime
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ..chunks import CHUNK_ROWS, Chunk, Column
from ..errors import SpoutError
from ..spouts.collectors import checked
from .batches import Place
from .formats import Bytes, Format, Raw

if TYPE_CHECKING:
    from .spout import KafkaSpout

TYPES = {
    "topic": "topic string", "partition": "partition int", "offset": "offset bigint",
    "headers": "headers", "timestamp": "timestamp timestamp",
}  # fmt: skip
HEAVY = 32 << 20  # bytes of values in a chunk
STORM = ("topic", "partition", "offset", "key", "value")
KNOWN = (*STORM, "headers", "timestamp")


class KafkaRecord(NamedTuple):
    """What a translator gets. ``key`` and ``value`` are what their formats make of them, ``headers`` pairs of a name
    and bytes; ``timestamp`` is in UTC."""

    topic: str
    partition: int
    offset: int
    key: Any
    value: Any
    headers: list[tuple[str, bytes | None]]
    timestamp: datetime.datetime | None


class Segment(NamedTuple):
    """Messages of one partition, in order."""

    place: Place
    messages: list[Any]


def gathered(segments: Iterable[Segment], size: int = CHUNK_ROWS) -> Iterator[list[Segment]]:
    """The segments in groups of ``size`` messages, or of `HEAVY` bytes and the message that exceeds them; the last
    one has the rest. The cuts depend on nothing else."""
    group: list[Segment] = []
    room, weight = size, HEAVY
    for place, messages in segments:
        at = 0
        while at < len(messages):
            part, weight = _light(messages[at : at + room], weight)
            group.append(Segment(place, part))
            at, room = at + len(part), room - len(part)
            if not room or weight <= 0:
                yield group
                group, room, weight = [], size, HEAVY
    if group:
        yield group


def _light(messages: list[Any], weight: int) -> tuple[list[Any], int]:
    """As many of them as weigh so much, with the one that exceeds it, and what is left of the weight."""
    sums = list(accumulate(map(len, messages)))
    count = min(bisect_left(sums, weight) + 1, len(sums))
    return messages[:count], weight - sums[count - 1]


class Skipped:
    """The records of a batch that were left out because they could not be read."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""

    def add(self, what: str) -> None:
        self.first = self.first or what
        self.count += 1


class Reading:
    """Makes chunks of segments, as one spout declares it."""

    def __init__(self, spout: KafkaSpout, skipped: Skipped) -> None:
        self._spout = spout
        self._skipped = skipped
        self._formats: dict[str, Format] = {"key": spout.keyFormat, "value": spout.valueFormat}

    def chunk(self, group: list[Segment], wanted: Iterable[str]) -> Chunk:
        """The rows of a group. Raises SpoutError for a record that cannot be read, unless it is to be skipped."""
        if self._spout.translator is not None:
            return self._translated(group)
        messages = [message for segment in group for message in segment.messages]
        columns: dict[str, Column] = {}
        needed, bad = set(wanted), set()
        for name in self._spout.columns:
            if name in self._formats:
                found, wrong = self._decoded(name, group, messages, needed, self._columns)
                columns |= found
                bad |= wrong
            elif name in needed:
                columns[name] = COLUMNS[name](group, messages)
        chunk = Chunk(columns, len(messages))
        return chunk if not bad else chunk.take([at for at in range(len(messages)) if at not in bad])

    def _decoded(
        self, name: str, group: list[Segment], messages: list[Any], needed: set[str], read: Callable[..., Any]
    ) -> tuple[Any, set[int]]:
        """Keys or values, and the rows that cannot be read: there stands what a record without a value gives.

        Read even if nobody wants them: which records are bad must not depend on who looks.
        """
        form = self._formats[name]
        declared = {one.split(" ")[0] for one in form.declared(name)}
        if isinstance(form, Bytes) and not declared & needed:
            return {}, set()
        raw: list[bytes | None] = [m.value() for m in messages] if name == "value" else [m.key() for m in messages]
        try:
            return read(name, raw), set()
        except Exception:
            bad = self._bad(name, group, raw, read)
            if not bad:
                raise
            return read(name, [None if at in bad else one for at, one in enumerate(raw)]), bad

    def _columns(self, name: str, raw: Raw) -> dict[str, Column]:
        return self._formats[name].columns(name, raw)

    def _objects(self, name: str, raw: Raw) -> list[Any]:
        return self._formats[name].objects(raw)

    def _bad(self, name: str, group: list[Segment], raw: list[bytes | None], read: Callable[..., Any]) -> set[int]:
        bad = set()
        places = [(segment.place, message) for segment in group for message in segment.messages]
        for at, one in enumerate(raw):
            try:
                read(name, [one])
            except Exception as error:
                what = f"{where(*places[at])}: its {name} cannot be read: {error}"
                if self._spout.onBadRecord == "fail":
                    raise SpoutError(
                        f"Kafka {what}. Give the spout the right format, or let it skip such records: "
                        'onBadRecord="skip"'
                    ) from error
                self._skipped.add(what)
                bad.add(at)
        return bad

    def _translated(self, group: list[Segment]) -> Chunk:
        rows: list[Any] = []
        emit = checked("KafkaSpout", self._spout.output, rows.append)
        for record in self._records(group):
            translate = self._translator(record.topic)
            try:
                values = translate(record)
            except Exception as error:
                at = f"topic {record.topic}, partition {record.partition}, offset {record.offset}"
                error.add_note(f"in the translator, at {at}")
                raise
            if values is not None:
                emit(values)
        return Chunk.of_rows(self._spout.output, rows)

    def _translator(self, topic: str) -> Callable[[KafkaRecord], Any]:
        given = self._spout.translator
        if not isinstance(given, Mapping):
            assert given is not None
            return given
        found = given.get(topic, given.get(None))
        if found is None:
            known = ", ".join(str(name) for name in given)
            raise SpoutError(
                f"KafkaSpout: no translator for topic {topic}, only for: {known}; give one for None (others)"
            )
        return found

    def _records(self, group: list[Segment]) -> Iterator[KafkaRecord]:
        messages = [message for segment in group for message in segment.messages]
        keys, bad_keys = self._decoded("key", group, messages, {"key"}, self._objects)
        values, bad = self._decoded("value", group, messages, {"value"}, self._objects)
        at = -1
        for segment in group:
            for message in segment.messages:
                at += 1
                if at not in bad and at not in bad_keys:
                    both = keys[at], values[at]
                    more = message.headers() or [], time_of(message)
                    yield KafkaRecord(*segment.place, message.offset(), *both, *more)


def where(place: Place, message: Any) -> str:
    return f"topic {place[0]}, partition {place[1]}, offset {message.offset()}"


def time_of(message: Any) -> datetime.datetime | None:
    kind, at = message.timestamp()
    return datetime.datetime.fromtimestamp(at / 1000, datetime.UTC) if kind else None


def _topics(group: list[Segment], messages: list[Any]) -> Column:
    return pa.concat_arrays([pa.repeat(pa.scalar(s.place[0], pa.string()), len(s.messages)) for s in group])


def _partitions(group: list[Segment], messages: list[Any]) -> Column:
    return pa.concat_arrays([pa.repeat(pa.scalar(s.place[1], pa.int32()), len(s.messages)) for s in group])


def _offsets(group: list[Segment], messages: list[Any]) -> Column:
    return pa.array([message.offset() for message in messages], pa.int64())


def _headers(group: list[Segment], messages: list[Any]) -> Column:
    return [message.headers() or [] for message in messages]


def _timestamps(group: list[Segment], messages: list[Any]) -> Column:
    times = [message.timestamp() for message in messages]
    millis = pa.array([at if kind else None for kind, at in times], pa.timestamp("ms", tz="UTC"))
    return millis.cast(pa.timestamp("us", tz="UTC"))


COLUMNS = {
    "topic": _topics, "partition": _partitions, "offset": _offsets, "headers": _headers, "timestamp": _timestamps,
}  # fmt: skip
