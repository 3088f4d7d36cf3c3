"""The batches that a test has written down: their spouts, and the parts of them that still show a defect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, unquote

from ...errors import DefinitionError
from ...spouts import IOpaquePartitionedTridentSpout, IPartitionedTridentSpout
from ...tuples import Fields, FieldsLike, declare

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


Row = tuple[Any, ...]
Batch = tuple[Row, ...]
KINDS = ("transactional", "opaque")
_TYPES = {bool: "boolean", int: "bigint", float: "double", str: "string", bytes: "binary"}


class OneForAll:
    """A partitioned spout that is its own coordinator and emitter, over txids up to ``last``."""

    last: int
    partitions: int = 2

    def getCoordinator(self, conf: dict, context: Any) -> Any:
        return self

    def getEmitter(self, conf: dict, context: Any) -> Any:
        return self

    def isReady(self, txid: int) -> bool:
        return txid <= self.last

    def isExhaustedAt(self, txid: int) -> bool:
        return txid > self.last

    def getPartitionsForBatch(self) -> list[int]:
        return list(range(self.partitions))

    def getOrderedPartitions(self, allPartitionInfo: list[int]) -> Sequence[int]:
        return allPartitionInfo

    def close(self) -> None: ...


@dataclass(frozen=True)
class _Fed(OneForAll):
    """Has the batches, every second row of one in each of two partitions."""

    fields: Fields
    batches: tuple[Batch, ...]

    @property
    def last(self) -> int:  # type: ignore[override]
        return len(self.batches)

    def getOutputFields(self) -> Fields:
        return self.fields


@dataclass(frozen=True)
class FedSpout(_Fed, IPartitionedTridentSpout):
    """Transactional: batch n has these rows in every attempt."""

    def emitBatchNew(self, tx: Any, collector: Any, partitions: Sequence[int], lastPartitionMeta: dict) -> dict:
        for partition in partitions:
            self.reEmitPartitionBatch(tx, collector, partition, tx.txid)
        return dict.fromkeys(partitions, tx.txid)

    def reEmitPartitionBatch(self, tx: Any, collector: Any, partition: int, partitionMeta: int) -> None:
        for row in self.batches[partitionMeta - 1][partition :: self.partitions] if partitionMeta <= self.last else ():
            collector.emit(row)


@dataclass(frozen=True)
class FedOpaqueSpout(_Fed, IOpaquePartitionedTridentSpout):
    """Opaque: goes on behind what it has committed, up to the end of batch n. ``other``: in the first attempt at this
    batch it has, as a source that grows, only the first half. ``longer``: goes on for one batch more,
    for the other half if that attempt has counted."""

    other: int = 0
    longer: bool = False

    @property
    def last(self) -> int:  # type: ignore[override]
        return super().last + self.longer

    def emitBatchNew(self, tx: Any, collector: Any, partitions: Sequence[int], lastPartitionMeta: dict) -> dict:
        made = {}
        for partition in partitions:
            start, end = lastPartitionMeta[partition] or 0, self._end(tx.txid, partition)
            rows = [row for batch in self.batches for row in batch[partition :: self.partitions]]
            if (tx.txid, tx.attemptId) == (self.other, 0):
                end = start + (end - start + 1) // 2
            for row in rows[start:end]:
                collector.emit(row)
            made[partition] = end
        return made

    def _end(self, txid: int, partition: int) -> int:
        """Return how many rows the partition has in the batches up to this one."""
        return sum(len(batch[partition :: self.partitions]) for batch in self.batches[:txid])


@dataclass(frozen=True)
class Feed:
    """What a test feeds: for each spout its fields and batches. ``single``: build gets the spout itself, not a dict."""

    fields: tuple[tuple[str, Fields], ...]
    batches: tuple[tuple[str, tuple[Batch, ...]], ...]
    kind: str = "transactional"
    single: bool = True

    @classmethod
    def of(cls, batches: Any, fields: Any, kind: str) -> Feed:
        """Build from the arguments of `everywhere`. Raises DefinitionError."""
        if kind not in KINDS:
            raise DefinitionError(f"kind={kind!r}: it is one of {', '.join(KINDS)}")
        single = not isinstance(batches, Mapping)
        named = {"": batches or ()} if single else dict(batches)
        given = {"": fields} if single else dict(fields or {})
        made = [(name, *_rows_of(name, list(of), given.get(name))) for name, of in named.items()]
        return cls(tuple((name, f) for name, f, _ in made), tuple((name, b) for name, _, b in made), kind, single)

    @property
    def count(self) -> int:
        """The number of batches."""
        return max((len(batches) for _, batches in self.batches), default=0)

    def spouts(self, other: int = 0, longer: bool = False) -> Any:
        """Return the first argument of ``build``: a spout, or spouts by name; None if nothing is fed."""
        fields = dict(self.fields)
        made: dict[str, Any] = {}
        for name, batches in self.batches:
            if self.kind == "opaque":
                made[name] = FedOpaqueSpout(fields[name], batches, other, longer)
            else:
                made[name] = FedSpout(fields[name], batches)
        if self.single:
            return made[""] if self.count else None
        return made


def _rows_of(name: str, batches: list, fields: FieldsLike | None) -> tuple[Fields, tuple[Batch, ...]]:
    rows = [row for batch in batches for row in batch]
    if fields is None and rows:
        if not isinstance(rows[0], Mapping):
            raise DefinitionError(f"batches{f' of {name!r}' if name else ''}: rows that are no dicts need fields=...")
        fields = [_field(key, [row[key] for row in rows]) for key in rows[0]]
    made = Fields() if fields is None else Fields.of(fields)
    return made, tuple(tuple(_row(row, made) for row in batch) for batch in batches)


def _field(name: str, values: Sequence[Any]) -> str:
    """Return the field with its type, if all values have one."""
    types = {type(value) for value in values if value is not None}
    ddl = _TYPES.get(types.pop()) if len(types) == 1 else None
    return declare(name, ddl)


def _row(row: Any, fields: Fields) -> Row:
    values = tuple(row[name] for name in fields) if isinstance(row, Mapping) else tuple(row)
    if len(values) != len(fields):
        raise DefinitionError(f"batches: the row {row!r} has {len(values)} values for the fields {fields}")
    return values
