"""Partitioners: how each repartition of a plan chooses the target partition of a tuple.

`partitionBy` chooses as Storm does, by Java's hash of the values, so a key gets the same partition number. Each choice
is a pure function of the tuple, or of its position in its source partition, so a replay makes the same choices.
Source in Storm: TupleUtils.chooseTaskIndex, org.apache.storm.trident.partition.
"""

from __future__ import annotations

import copy
import datetime
import decimal
import operator
import struct
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import TridentError
from ..operations.roles import Chooses, Prepares
from ..tuples import Fields
from .canonical import UnkeyableError, canonical, identity, to_plain
from .chunks import Chunk
from .secrets import HIDDEN, hide, is_secret

_PLAIN = bool | int | float | str | bytes | None
Targets = Iterator[tuple[int, Chunk]]
FEW = 32  # tuples
SHORT = 64  # letters
ASCII = 128
_NAN = 0x7FF8000000000000  # the one that Java hashes
ROUTING_VERSION = 2
"""The version of routing by content. It must change whenever `java_hash` changes for any value: a batch that is half
written under one version must not be replayed under another."""


@dataclass(frozen=True)
class Route:
    """The information for a partitioner besides the tuples."""

    txid: int
    source: int
    sent: int
    targets: int


class Partitioner:
    """Distributes the tuples of a chunk over ``route.targets`` partitions."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The fields that choose partitions."""
        return ()

    @property
    def name(self) -> str:
        """The grouping as text, the same in every process. Partitioners with equal names route tuples the same way."""
        return type(self).__name__

    @property
    def shown(self) -> str:
        """The name without secrets, for texts."""
        return self.name

    @property
    def operations(self) -> tuple[Any, ...]:
        """The user code that chooses partitions."""
        return ()

    def prepare(self, context: Any, stream: str, targets: int) -> Partitioner:
        """Return the partitioner of one task that sends. Called once, before its first tuple."""
        return self

    def split(self, chunk: Chunk, route: Route) -> Targets:
        raise NotImplementedError


@dataclass(frozen=True)
class FieldsPartition(Partitioner):
    """By the hash of these fields' values, the same for all batches."""

    fields: Fields

    @property
    def reads(self) -> tuple[str, ...]:
        return self.fields.names

    @property
    def name(self) -> str:
        return f"partitionBy {', '.join(self.fields)}"

    def split(self, chunk: Chunk, route: Route) -> Targets:
        if route.targets == 1:
            yield 0, chunk
            return
        if chunk.length <= FEW:
            yield from self._split_few(chunk, route.targets)
            return
        hashes = np.ones(chunk.length, np.uint32)
        for name in self.fields:
            hashes = hashes * np.uint32(31) + column_hashes(chunk, name)
        targets = hashes.view(np.int32).astype(np.int64) % route.targets
        yield from _scatter(chunk, targets, route.targets)

    def _split_few(self, chunk: Chunk, count: int) -> Targets:
        """Return the same without numpy, whose calls take longer than a few tuples."""
        columns = [_hashes_of(chunk, name) for name in self.fields]
        rows: dict[int, list[int]] = {}
        for row in range(chunk.length):
            code = _join(column[row] for column in columns)
            rows.setdefault(_to_signed(code) % count, []).append(row)
        for target, chosen in sorted(rows.items()):
            yield target, chunk if len(chosen) == chunk.length else chunk.take(chosen)


@dataclass(frozen=True)
class Shuffle(Partitioner):
    """Round robin, starting at the source partition's own number."""

    local: bool = False

    @property
    def name(self) -> str:
        return "localOrShuffle" if self.local else "shuffle"

    def split(self, chunk: Chunk, route: Route) -> Targets:
        if route.targets == 1:
            yield 0, chunk
            return
        targets = (np.arange(chunk.length) + route.source + route.sent) % route.targets
        yield from _scatter(chunk, targets, route.targets)


@dataclass(frozen=True)
class Global(Partitioner):
    """All tuples to partition 0."""

    name = "global_"

    def split(self, chunk: Chunk, route: Route) -> Targets:
        yield 0, chunk


@dataclass(frozen=True)
class BatchGlobal(Partitioner):
    """All tuples of a batch to one partition: txid modulo the partition count."""

    name = "batchGlobal"

    def split(self, chunk: Chunk, route: Route) -> Targets:
        yield route.txid % route.targets, chunk


@dataclass(frozen=True)
class Broadcast(Partitioner):
    """Every tuple to every partition."""

    name = "broadcast"

    def split(self, chunk: Chunk, route: Route) -> Targets:
        for target in range(route.targets):
            yield target, chunk


@dataclass(frozen=True)
class Identity(Partitioner):
    """From partition i to partition i. Both sides have the same number of partitions."""

    name = "identityPartition"

    def split(self, chunk: Chunk, route: Route) -> Targets:
        yield route.source, chunk


@dataclass(frozen=True)
class Custom(Partitioner):
    """By the user's grouping, a CustomStreamGrouping, or a callable of the tuple that returns a number."""

    grouping: Any
    fields: Fields

    @property
    def reads(self) -> tuple[str, ...]:
        return self.fields.names

    @property
    def operations(self) -> tuple[Any, ...]:
        return (self.grouping,)

    @property
    def name(self) -> str:
        return self._name(lambda name, value: repr(value))

    @property
    def shown(self) -> str:
        return self._name(lambda name, value: HIDDEN if is_secret(name) else hide(repr(value)))

    def _name(self, show: Callable[[str, Any], str]) -> str:
        # A function has a name; an object of a user's class may have attributes.
        if hasattr(self.grouping, "__qualname__"):
            return f"partition {self.grouping.__qualname__}"
        attributes = getattr(self.grouping, "__dict__", {})  # the user's object may have none
        plain = {name: value for name, value in attributes.items() if isinstance(value, _PLAIN)}
        options = ", ".join(f"{name}={show(name, value)}" for name, value in sorted(plain.items()))
        return f"partition {type(self.grouping).__name__}({options})"

    def prepare(self, context: Any, stream: str, targets: int) -> Custom:
        """Return a copy, so that what a grouping remembers is one task's, in one process or many."""
        if not (isinstance(self.grouping, Chooses) and isinstance(self.grouping, Prepares)):
            return self
        grouping = copy.copy(self.grouping)
        grouping.prepare(context, stream, list(range(targets)))
        return Custom(grouping, self.fields)

    def split(self, chunk: Chunk, route: Route) -> Targets:
        choose = self._chooser(route.targets)
        rows: list[list[int]] = [[] for _ in range(route.targets)]
        for i, values in enumerate(chunk.tuples(self.fields)):
            chosen = choose(route.source, values)
            if type(chosen) is not list:
                self._check_choice(chosen)
            for target in chosen:
                number = target if type(target) is int else self._number(target)
                if not 0 <= number < route.targets:
                    raise TridentError(
                        f"{self.shown}: the custom grouping chose partition {target}; return a number from 0 to "
                        f"{route.targets - 1}"
                    )
                rows[number].append(i)
        for target, taken in enumerate(rows):
            if taken:
                yield target, chunk.take(taken)

    def _chooser(self, targets: int) -> Callable[[int, Any], Any]:
        if not isinstance(self.grouping, Chooses):
            return lambda source, values: [self._number(self.grouping(values)) % targets]
        return self.grouping.chooseTasks

    def _check_choice(self, chosen: Any) -> None:
        if not isinstance(chosen, Iterable) or isinstance(chosen, str | bytes | Mapping):
            raise TridentError(f"{self.shown}: chooseTasks returned {chosen!r}; return a list of partition numbers")

    def _number(self, target: Any) -> int:
        try:
            return operator.index(target)
        except TypeError:
            raise TridentError(
                f"{self.shown}: the custom grouping chose partition {target!r}; return a whole number"
            ) from None


def _scatter(chunk: Chunk, targets: np.ndarray, count: int) -> Targets:
    """Return the rows of each target, in their order. Sorts once: a look for each target would cost rows times
    targets."""
    if chunk.length == 0:
        return
    narrow = targets.astype(np.uint16) if count <= 1 << 16 else targets  # numpy sorts 16 bits in linear time
    order = np.argsort(narrow, kind="stable")
    sent = targets[order]
    starts = np.flatnonzero(np.diff(sent, prepend=-1))
    for start, end in pairwise([*starts.tolist(), chunk.length]):
        chosen = order[start:end]
        if len(chosen) == chunk.length:
            yield int(sent[start]), chunk
        else:
            yield int(sent[start]), chunk.take(chosen if _all_arrow(chunk) else chosen.tolist())


def _all_arrow(chunk: Chunk) -> bool:
    return not any(isinstance(column, list) for column in chunk.columns.values())


def column_hashes(chunk: Chunk, name: str) -> np.ndarray:
    """Return `java_hash` of each value of a column, as unsigned 32 bits. Each distinct value is hashed once, numbers
    all at once.

    Raises UnkeyableError, naming the field, if a value cannot be a key.
    """
    column = chunk.columns[name]
    try:
        if isinstance(column, pa.Array) and not pa.types.is_nested(column.type):
            numbers = _number_hashes(column)
            if numbers is not None:
                return numbers
            encoded = column.dictionary_encode(null_encoding="encode")
            distinct = _text_hashes(encoded.dictionary)
            if distinct is None:
                distinct = np.array([java_hash(v) for v in encoded.dictionary.to_pylist()], np.uint32)
            return distinct[encoded.indices.to_numpy(zero_copy_only=False)]
        return _list_hashes(chunk.pylist(name))
    except UnkeyableError as error:
        raise UnkeyableError(f"field {name!r}: {error.reason}") from None


def _hashes_of(chunk: Chunk, name: str) -> list[int]:
    """Return `column_hashes` of a few tuples."""
    try:
        return [java_hash(value) for value in chunk.pylist(name)]
    except UnkeyableError as error:
        raise UnkeyableError(f"field {name!r}: {error.reason}") from None


def _number_hashes(numbers: pa.Array) -> np.ndarray | None:
    """Return `java_hash` of numbers of at most 64 bits, all of them at once; None for any other type."""
    kind = numbers.type
    if pa.types.is_signed_integer(kind):
        bits = numbers.cast(pa.int64()).fill_null(0).to_numpy().view(np.uint64)
    elif pa.types.is_float32(kind) or pa.types.is_float64(kind):
        doubles = numbers.cast(pa.float64()).fill_null(0.0).to_numpy()
        bits = np.where(np.isnan(doubles), np.uint64(_NAN), doubles.view(np.uint64))
    else:
        return None
    return (bits ^ (bits >> np.uint64(32))).astype(np.uint32)


def _text_hashes(texts: pa.Array) -> np.ndarray | None:
    """Return `java_hash` of short ASCII texts, letter by letter for all of them at once; None for any others."""
    if not pa.types.is_string(texts.type) or not len(texts) or texts.null_count:
        return None
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    lengths = np.diff(ends)
    letters = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data is not None else np.empty(0, np.uint8)
    if lengths.max() > SHORT or (len(letters) and letters.max() >= ASCII):
        return None
    hashes = np.zeros(len(texts), np.uint32)
    starts = ends[:-1] - ends[0]
    for at in range(lengths.max()):
        longer = lengths > at
        hashes[longer] = hashes[longer] * np.uint32(31) + letters[starts[longer] + at].astype(np.uint32)
    return hashes


def _list_hashes(values: list) -> np.ndarray:
    distinct: dict[Any, int] = {}
    hashes = np.empty(len(values), np.uint32)
    for i, value in enumerate(values):
        key = value if type(value) is str else identity(value)
        code = distinct.get(key)
        if code is None:
            code = distinct[key] = java_hash(value)
        hashes[i] = code
    return hashes


def java_hash(value: Any) -> int:
    """Return Java's hashCode of the value (int as Long, float as Double), as unsigned 32 bits.

    A function of the value's canonical form. A value without a counterpart in Java gets a hash of its canonical bytes.
    A time with a zone hashes like the UTC time without one, a whole decimal like the integer: a table's column may
    store both as one value, so both must reach the same partition, where they are rejected. Raises UnkeyableError if
    the value has no canonical form.
    """
    if value is None:
        return 0
    plain = to_plain(value)
    hasher = _HASHES.get(type(plain))
    if hasher is not None:
        return hasher(plain)
    if isinstance(plain, list | tuple):
        return _hash_list(plain)
    return zlib.crc32(canonical(plain))


def _hash_integer(value: int) -> int:
    return _fold(value & 0xFFFFFFFFFFFFFFFF) if -(2**63) <= value < 2**63 else zlib.crc32(canonical(value))


def _hash_float(value: float) -> int:
    return _fold(_NAN if value != value else int.from_bytes(struct.pack(">d", value), "big"))


def _hash_list(values: list | tuple) -> int:
    return _join(map(java_hash, values))


def _join(hashes: Iterable[int]) -> int:
    result = 1
    for code in hashes:
        result = (result * 31 + code) & 0xFFFFFFFF
    return result


def _to_signed(code: int) -> int:
    """Return 32 bits as Java's int."""
    return code - (1 << 32) if code >= 1 << 31 else code


def _hash_decimal(value: decimal.Decimal) -> int:
    if value.is_finite() and value.adjusted() < 19 and value == value.to_integral_value():
        return _hash_integer(int(value))
    return zlib.crc32(canonical(value))


def _hash_datetime(value: datetime.datetime) -> int:
    return zlib.crc32(canonical(value)[1:])  # without the tag that distinguishes times with and without a zone


def _fold(bits: int) -> int:
    return (bits ^ (bits >> 32)) & 0xFFFFFFFF


def _hash_string(value: str) -> int:
    result = 0
    for unit in array("H", value.encode("utf-16", "surrogatepass")[2:]):  # the first unit is the byte order mark
        result = (result * 31 + unit) & 0xFFFFFFFF
    return result


_HASHES: dict[type, Callable[[Any], int]] = {
    type(None): lambda value: 0,
    bool: lambda value: 1231 if value else 1237,
    str: _hash_string,
    int: _hash_integer,
    float: _hash_float,
    list: _hash_list,
    tuple: _hash_list,
    decimal.Decimal: _hash_decimal,
    datetime.datetime: _hash_datetime,
}
