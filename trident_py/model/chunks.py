"""Chunk: the columns of a part of a batch in one partition, and its encoding for other processes.

A column is a Python list (untyped values) or an Arrow array (typed values). An operation converts only the columns it
reads to Python objects, once. All other columns are gathered by index.
"""

from __future__ import annotations

import datetime
import decimal
import pickle
import re
import reprlib
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import TridentError
from ..tuples import MISSING, Fields, TridentTuple, absence_error, short_tuple, tuple_class
from .canonical import UnkeyableError, to_plain
from .pickling import dumps

Column: TypeAlias = "list | pa.Array"
CHUNK_ROWS = 8_192

_ARROW_OF_KIND = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(), bytes: pa.binary()}
_PICKLED = b"pickled:"


class Chunk:
    """Columns of equal length. ``short``: some tuple was emitted with too few values."""

    __slots__ = ("columns", "length", "short")

    def __init__(self, columns: dict[str, Column], length: int, short: bool = False) -> None:
        self.columns = columns
        self.length = length
        self.short = short

    @classmethod
    def of_rows(cls, fields: Fields, rows: Sequence[Sequence[Any]], wanted: Iterable[str] | None = None) -> Chunk:
        """Make the columns of emitted rows. A missing value raises only when it is read. Raises TridentError for a row
        with more values than fields; without fields the values of a row do not matter."""
        if len(fields) and rows and max(map(len, rows)) > len(fields):
            row = next(row for row in rows if len(row) > len(fields))
            shown = reprlib.repr(list(row))
            raise TridentError(f"emitted {len(row)} values for the {len(fields)} fields {fields}: {shown}")
        short = False
        columns: dict[str, Column] = {}
        for name in fields if wanted is None else wanted:
            i = fields.index(name)
            try:
                column = list(map(itemgetter(i), rows))
                if len(column) < len(rows):  # a row of a user's class raised StopIteration, which ended the map
                    column = [row[i] for row in rows]
            except IndexError:
                column = [_value(row, i) for row in rows]
                short = True
            columns[name] = convert(column, fields.types[name], name) if name in fields.types else column
        return cls(columns, len(rows), short)

    def pylist(self, name: str) -> list:
        """Return the column as Python objects. Raises MissingValueError if a value was never emitted."""
        column = to_list(self.columns[name])
        if self.short and lacks(column):
            raise absence_error(name)
        return column

    def rows(self, fields: Iterable[str]) -> list[tuple]:
        """Return the values of these fields, one tuple for each row."""
        names = list(fields)
        return list(zip(*map(self.pylist, names), strict=True)) if names else [()] * self.length

    def tuples(self, fields: Fields) -> list[TridentTuple]:
        """Return the rows as operations see them. A missing value is an error only for an operation that reads it."""
        kind = tuple_class(fields)
        if not len(fields):
            return [kind()] * self.length
        rows = zip(*(to_list(self.columns[name]) for name in fields), strict=True)
        if not self.short:
            return list(map(kind, rows))
        return [short_tuple(fields, row) if lacks(row) else kind(row) for row in rows]

    def only(self, names: Iterable[str]) -> Chunk:
        return Chunk({name: self.columns[name] for name in names}, self.length, self.short)

    def take(self, indices: Any) -> Chunk:
        """Return the rows at these positions, in this order. Positions may repeat."""
        if not self.columns:
            return Chunk({}, len(indices))
        positions = None
        columns: dict[str, Column] = {}
        for name, column in self.columns.items():
            if isinstance(column, list):
                columns[name] = [column[i] for i in indices]
            else:
                positions = pa.array(indices, pa.int64()) if positions is None else positions
                columns[name] = column.take(positions)
        return Chunk(columns, len(indices), self.short)

    def between(self, start: int, end: int) -> Chunk:
        """Return the rows from ``start`` up to ``end``, which is exclusive."""
        if start == 0 and end == self.length:
            return self
        columns: dict[str, Column] = {
            name: column[start:end] if isinstance(column, list) else column.slice(start, end - start)
            for name, column in self.columns.items()
        }
        return Chunk(columns, end - start, self.short)

    def slices(self, size: int = CHUNK_ROWS) -> Iterable[Chunk]:
        """Yield this chunk in parts of at most ``size`` rows."""
        if self.length <= size:
            yield self
            return
        for at in range(0, self.length, size):
            yield self.between(at, min(at + size, self.length))

    def encode(self, compressed: bool = False) -> bytes:
        """Encode the chunk as Arrow IPC: typed and homogeneous columns natively, other columns pickled whole.

        ``compressed``: `decode` takes both. 100,000 numbers below 1,000 take a fifth, and 2 ms.
        """
        arrays, fields, metadata = [], [], {b"rows": str(self.length).encode()}
        for name, column in self.columns.items():
            array = as_arrow(column)
            if array is None:
                metadata[_PICKLED + name.encode()] = dumps(column)
            else:
                arrays.append(array)
                fields.append(pa.field(name, array.type))
        batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, metadata))
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 1) if compressed else None, use_threads=False)
        with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
            writer.write_batch(batch)
        return sink.getvalue().to_pybytes()

    @classmethod
    def decode(cls, block: Any) -> Chunk:
        """Decode a chunk. Its Arrow columns share the buffer's memory."""
        with pa.ipc.open_stream(block) as reader:
            batch = reader.read_next_batch()
        metadata = batch.schema.metadata
        columns: dict[str, Column] = dict(zip(batch.schema.names, batch.columns, strict=True))
        short = False
        for key, value in metadata.items():
            if key.startswith(_PICKLED):
                column = pickle.loads(value)  # noqa: S301  from a task of the same run
                columns[key[len(_PICKLED) :].decode()] = column
                short = short or lacks(column)
        return cls(columns, int(metadata[b"rows"]), short)


class TupleList(Sequence[TridentTuple]):
    """The tuples of several chunks as one list. Reading converts them to Python objects, chunk by chunk."""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.chunks: list[Chunk] = []
        self._read: tuple[int, list[TridentTuple]] = (-1, [])

    def append(self, chunk: Chunk) -> None:
        self.chunks += chunk.only(self.fields).slices()

    def __len__(self) -> int:
        return sum(chunk.length for chunk in self.chunks)

    def __iter__(self) -> Iterator[TridentTuple]:
        for chunk in self.chunks:
            yield from chunk.tuples(self.fields)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = index + len(self) if index < 0 else index
        for number, chunk in enumerate(self.chunks):
            if 0 <= at < chunk.length:
                if self._read[0] != number:
                    self._read = (number, chunk.tuples(self.fields))
                return self._read[1][at]
            at -= chunk.length
        raise IndexError(f"tuple {index} of {len(self)}")


def concat(chunks: Sequence[Chunk]) -> Chunk:
    """Return the rows of all chunks, in order. All chunks must have the same columns."""
    if len(chunks) == 1:
        return chunks[0]
    columns = {name: concat_columns([chunk.columns[name] for chunk in chunks]) for name in chunks[0].columns}
    return Chunk(columns, sum(chunk.length for chunk in chunks), any(chunk.short for chunk in chunks))


def concat_columns(parts: Sequence[Column]) -> Column:
    """Return the values of all parts, in order: an array if all parts are arrays of one type."""
    kinds = {None if isinstance(part, list) else part.type for part in parts}
    if len(kinds) == 1 and None not in kinds:
        return pa.concat_arrays(parts)
    return [value for part in parts for value in to_list(part)]


def lacks(values: Iterable[Any]) -> bool:
    """Return whether one of the values was never emitted. Compares by identity: a value's own ``==`` may do
    anything."""
    return any(value is MISSING for value in values)


def _value(row: Sequence[Any], index: int) -> Any:
    """Return the value, or MISSING. If the row is a ShortTuple, its MissingValueError is an IndexError too."""
    try:
        return row[index]
    except IndexError:
        return MISSING


def to_list(column: Column) -> list:
    """Return a column as Python objects. Raises TridentError for a date or time that Python does not have."""
    if isinstance(column, list):
        return column
    try:
        return column.to_pylist()
    except OverflowError:
        raise TridentError("a date or time is outside the years 1 to 9999, and Python has no other") from None


def single(column: pa.ChunkedArray) -> pa.Array:
    """Return the column of a table as one array."""
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def kinds_of(column: list) -> set[type]:
    """Return the types of the values, without NoneType."""
    return set(map(type, column)) - {type(None)}


def encodable(text: str) -> bool:
    """Return whether the text can be encoded as UTF-8, so has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_arrow(column: Column) -> pa.Array | None:
    """Return the column as an Arrow array that gives back exactly these values; None if no Arrow type does."""
    if not isinstance(column, list):
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kinds = kinds_of(column)
    if len(kinds) > 1:
        return None
    wanted = _ARROW_OF_KIND.get(kinds.pop()) if kinds else pa.null()
    if wanted is None:
        return None
    try:
        array = pa.array(column, type=wanted)
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
        return None
    return None if isinstance(array, pa.ChunkedArray) else array


_DDL = {
    "string": pa.string(), "bigint": pa.int64(), "long": pa.int64(), "int": pa.int32(), "integer": pa.int32(),
    "smallint": pa.int16(), "short": pa.int16(), "tinyint": pa.int8(), "byte": pa.int8(), "double": pa.float64(),
    "float": pa.float32(), "real": pa.float32(), "boolean": pa.bool_(), "binary": pa.binary(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"), "timestamp_ntz": pa.timestamp("us"),
}  # fmt: skip
_SIZED = re.compile(r"decimal(?:\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_DECIMAL = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_PYTHON_OF_ARROW: dict[pa.DataType, type] = {
    pa.string(): str, pa.float64(): float, pa.float32(): float, pa.bool_(): bool, pa.binary(): bytes,
    pa.date32(): datetime.date, pa.timestamp("us", tz="UTC"): datetime.datetime, pa.timestamp("us"): datetime.datetime,
}  # fmt: skip


def compact(array: pa.Array) -> pa.Array:
    """Return a copy whose buffers hold nothing else: a slice, or a column of a decoded chunk, keeps the whole in
    memory."""
    return pa.concat_arrays([array, array.slice(0, 0)])


def arrow_type(ddl: str) -> pa.DataType:
    """Return the Arrow type of a field's DDL type. Raises TridentError for an unknown type."""
    if sizes := _SIZED.fullmatch(ddl):
        precision, scale = int(sizes[1] or 10), int(sizes[2] or 0)
        if scale <= precision and 1 <= precision <= 38:
            return pa.decimal128(precision, scale)
    if ddl not in _DDL:
        raise TridentError(f"unknown field type {ddl!r}; known: {', '.join(sorted(_DDL))}, decimal(p, s) up to 38")
    return _DDL[ddl]


def convert(column: Column, ddl: str, name: str) -> Column:
    """Convert a column to its declared type. Raises TridentError if the type cannot hold a value exactly.

    ``float`` rounds to the nearest 32-bit number, as in Spark. NumPy, pandas and Arrow scalars, and subclasses, are
    converted to their plain values first (`canonical.to_plain`).
    """
    wanted = arrow_type(ddl)
    if not isinstance(column, list):
        return exact_cast(column, wanted, name)
    if wanted == pa.string() and (texts := _texts(column)) is not None:
        return texts
    python = _kinds_of_type(wanted)
    strange = kinds_of(column) - python
    if _Missing in strange:
        return column
    if strange:
        column = _to_plain(column, ddl, name)
        strange = kinds_of(column) - python
    if strange:
        value = next(v for v in column if type(v) in strange)
        raise TridentError(f"field {name!r} is declared {ddl}, but a tuple holds {value!r}, a {type(value).__name__}")
    if pa.types.is_timestamp(wanted):
        _check_zones(column, wanted, ddl, name)
    try:
        array = pa.array(column, type=wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
        raise TridentError(f"field {name!r} is declared {ddl}, but a value does not fit: {error}") from error
    if why := _exceeds(column, array):
        raise TridentError(f"field {name!r} is declared {ddl}, but {why}")
    return array


def _exceeds(column: list, array: pa.Array) -> str:
    """Return which value Arrow took that is none of the type; "" if there is none."""
    if array.type == _DDL["timestamp"] and pc.any(pc.is_in(pc.year(array), pa.array([0, 10_000]))).as_py():
        return "a time is outside the years 1 to 9999 in UTC"
    if array.type == pa.float32() and _grew(pa.array(column, pa.float64()), array):
        return "a number is too large for 32 bits; declare double"
    return ""


def _texts(column: list) -> pa.Array | None:
    """Return the column if Arrow itself finds that it has only texts, and None: sooner than by looking at each type
    first."""
    try:
        array = pa.array(column)
    except Exception:  # of any kind: the values may be of users' classes
        return None
    return array if array.type == pa.string() else None


def _to_plain(column: list, ddl: str, name: str) -> list:
    try:
        return [to_plain(value) for value in column]
    except UnkeyableError as error:
        raise TridentError(f"field {name!r} is declared {ddl}, but {error.reason}") from None


def _kinds_of_type(wanted: pa.DataType) -> set[type]:
    """Return the Python types whose values the Arrow type can hold unchanged."""
    if pa.types.is_decimal(wanted):
        return {decimal.Decimal, int}
    return {_PYTHON_OF_ARROW.get(wanted, int)}


def _check_zones(column: list, wanted: pa.DataType, ddl: str, name: str) -> None:
    """Raise TridentError for a time with a zone (an instant) in a type without, or the reverse."""
    zoned = wanted.tz is not None
    for value in column:
        if value is not None and (value.tzinfo is not None) != zoned:
            other = "timestamp_ntz, or give the time a zone" if zoned else "timestamp"
            raise TridentError(f"field {name!r} is declared {ddl}, but a tuple holds {value!r}; declare {other}")


def exact_cast(column: pa.Array, wanted: pa.DataType, name: str) -> pa.Array:
    """Convert an Arrow column to another type. Raises TridentError if a value would change; see `convert`."""
    if column.type == wanted:
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if is_bytes(column.type) and not (is_bytes(wanted) or is_text(wanted)):  # Arrow would parse them
        raise TridentError(f"field {name!r}: {column.type} cannot be converted to {wanted}")
    if pa.types.is_timestamp(column.type) and pa.types.is_timestamp(wanted) and bool(column.type.tz) != bool(wanted.tz):
        right = "timestamp" if column.type.tz else "timestamp_ntz"
        raise TridentError(f"field {name!r}: {column.type} cannot be converted to {wanted}; declare {right}")
    try:
        if pa.types.is_decimal(wanted) and is_text(column.type):
            return decimals(column.cast(pa.string()), wanted)
        converted = column.cast(wanted)
        exact = _is_exact(column, converted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise TridentError(f"field {name!r}: {column.type} cannot be converted to {wanted}: {error}") from error
    if not exact:
        raise TridentError(f"field {name!r}: converting {column.type} to {wanted} would change a value")
    return converted


def decimals(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Convert texts to decimals. Raises ArrowInvalid if the type cannot hold one exactly.

    Arrow's own parser does not check for overflow when it multiplies up to the scale, so it gets only texts that fit.
    """
    whole = wanted.precision - wanted.scale
    roomy = pc.match_substring_regex(texts, rf"^[+-]?0*[0-9]{{0,{whole}}}(\.[0-9]*)?$")
    if pc.all(roomy).as_py() is not False:
        return texts.cast(wanted)
    strange = pc.and_not(pc.is_valid(texts), pc.match_substring_regex(texts, _DECIMAL))
    if pc.any(strange).as_py():
        raise pa.ArrowInvalid(f"{texts.filter(strange)[0].as_py()!r:.80} is not a decimal number")
    try:
        return pa.array([None if text is None else decimal.Decimal(text) for text in texts.to_pylist()], wanted)
    except decimal.InvalidOperation:
        raise pa.ArrowInvalid("the exponent of a number is too large") from None


def _is_exact(before: pa.Array, after: pa.Array) -> bool:
    """Return whether a cast kept every value. Casts that Arrow calls safe round decimals, truncate times and drop
    zones."""
    kind, wanted = before.type, after.type
    if any(is_text(each) or is_bytes(each) for each in (kind, wanted)) or pa.types.is_null(kind):
        return not _grew(None, after)
    if pa.types.is_temporal(kind) != pa.types.is_temporal(wanted):
        return False
    if pa.types.is_boolean(kind) != pa.types.is_boolean(wanted):
        return False
    if pa.types.is_floating(kind) and wanted == pa.float32():
        return not _grew(before, after)
    back = after.cast(kind, safe=False)
    same = pc.equal(back, before)
    if pa.types.is_floating(kind):
        same = pc.or_(same, pc.and_(pc.is_nan(back), pc.is_nan(before)))
    return pc.all(same).as_py() is not False


def _grew(before: pa.Array | None, after: pa.Array) -> bool:
    """Return whether a finite number became infinite. Without ``before``, as for texts: whether any number is
    infinite."""
    if not pa.types.is_floating(after.type):
        return False
    infinite = pc.is_inf(after)
    grown = infinite if before is None else pc.and_(infinite, pc.is_finite(before))
    return pc.any(grown).as_py() is True


def is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


_Missing = type(MISSING)
