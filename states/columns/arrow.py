"""Whole columns: `Column.encode` for Arrow arrays, and the rows of a batch in the order of their keys."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trident_py.model.canonical import UnkeyableError, to_plain
from trident_py.model.chunks import TupleList, is_bytes, is_text, to_list
from trident_py.tuples import Fields

from .values import Column, RefusedValue, transpose

_AT_ONCE = 100_000
_PARTS = 16
_SAMPLE = 1_024


class KeyedRows:
    """Columns of equal length, checked and in their own Arrow type (`states.columns.arrow.encoded`)."""

    def __init__(self, columns: Sequence[Column], arrays: Sequence[pa.Array]) -> None:
        self.columns = list(columns)
        self.arrays = list(arrays)
        self.at = [i for i, column in enumerate(columns) if column.key]
        self.keys = [columns[i] for i in self.at]
        self.others = [column for column in columns if not column.key]

    def __len__(self) -> int:
        return len(self.arrays[0])

    def take(self, positions: pa.Array) -> KeyedRows:
        return KeyedRows(self.columns, [array.take(positions) for array in self.arrays])

    def in_key_order(self) -> Iterator[pa.Array]:
        """Yield the positions of all rows in key order, part by part. Equal keys are in one part, in their old order.

        A large batch is cut by key first and sorted part by part, so the first part is ready early.
        """
        every = pc.indices_nonzero(pc.is_valid(self.arrays[self.at[0]]))  # keys have no nulls: all positions
        if self._is_sorted():
            yield from (every.slice(at, _AT_ONCE) for at in range(0, len(self), _AT_ONCE))
            return
        for positions in self._cut(every):
            keys = pa.table({str(i): self.arrays[i].take(positions) for i in self.at})
            yield positions.take(pc.sort_indices(keys, sort_keys=[(str(i), "ascending") for i in self.at]))

    def unique(self) -> pa.Array:
        """Return the positions of the first row of each key, in key order."""
        ordered = pa.concat_arrays(list(self.in_key_order()))
        return ordered.filter(self.first(ordered))

    def first(self, positions: pa.Array) -> pa.Array:
        """Return for each of these rows, which are in key order: whether it is the first of its key."""
        if len(positions) == 0:
            return pa.array([], pa.bool_())
        same: Any = None
        for i in self.at:
            key = self.arrays[i].take(positions)
            equal = pc.equal(key.slice(1), key.slice(0, len(key) - 1))
            same = equal if same is None else pc.and_(same, equal)
        return pa.concat_arrays([pa.array([True]), pc.invert(same)])

    def row(self, position: int) -> tuple:
        return tuple(array[position].as_py() for array in self.arrays)

    def key(self, position: int) -> tuple:
        return tuple(self.arrays[i][position].as_py() for i in self.at)

    def python(self) -> list[tuple]:
        """Return the rows as tuples that a database driver takes."""
        return list(zip(*map(_to_driver, self.columns, self.arrays), strict=True))

    def python_keys(self) -> list[tuple]:
        return list(zip(*(_to_driver(self.columns[i], self.arrays[i]) for i in self.at), strict=True))

    def _is_sorted(self) -> bool:
        key = self.arrays[self.at[0]]
        if len(key) < 2:
            return True
        test = pc.less if len(self.at) > 1 else pc.less_equal
        return bool(pc.all(test(key.slice(0, len(key) - 1), key.slice(1))).as_py())

    def _cut(self, positions: pa.Array) -> Iterator[pa.Array]:
        key = self.arrays[self.at[0]]
        if len(key) > _AT_ONCE:
            for edge in _edges(key):
                below = pc.less(key, edge)
                if len(part := positions.filter(below)):
                    yield part
                rest = pc.invert(below)
                key, positions = key.filter(rest), positions.filter(rest)
        if len(positions):
            yield positions


def _edges(key: pa.Array) -> list[pa.Scalar]:
    """Return keys that cut the rows into parts of about equal size."""
    step = max(1, len(key) // _SAMPLE)
    sample = key.take(pa.array(range(0, len(key), step), pa.int64()))
    sample = sample.take(pc.array_sort_indices(sample))
    return [sample[len(sample) * i // _PARTS] for i in range(1, _PARTS)]


def _to_driver(column: Column, array: pa.Array) -> Sequence[Any]:
    values = array.to_pylist()
    already = column.family in ("json", "decimal", "timestamp") and pa.types.is_large_string(array.type)
    return values if already else column.encode(values)


_FIRST_DAY = -719162  # 0001-01-01
_LAST_DAY = 2932896  # 9999-12-31
_MICROSECONDS = 86_400_000_000
_TYPES = {
    "integer": pa.int64(), "double": pa.float64(), "boolean": pa.bool_(), "binary": pa.large_binary(),
    "date": pa.date32(), "timestamp": pa.timestamp("us"),
}  # fmt: skip


def arrow_type(column: Column) -> pa.DataType:
    """Return the Arrow type of a column; text for decimals with more digits than Arrow's."""
    if column.family == "decimal":
        precision, scale = column.digits
        if precision <= 76 and scale <= precision:
            return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    return _TYPES.get(column.family, pa.large_string())


def arrow_array(column: Column, values: Any) -> pa.Array:
    """Return the values of a column, given in the form of `Column.encode` or as Arrow, as one Arrow array."""
    if isinstance(values, pa.ChunkedArray):
        return pa.concat_arrays([*values.chunks, pa.array([], values.type)])
    if isinstance(values, pa.Array):
        return values
    wanted = arrow_type(column)
    if column.family == "timestamp":
        return _times(pa.array(values, pa.large_string()))
    if column.family == "date":
        return pa.array(values, pa.string()).cast(wanted)
    if pa.types.is_decimal(wanted):
        values = [None if value is None else decimal.Decimal(value) for value in values]
    return pa.array(values, wanted)


def _times(texts: pa.Array) -> pa.Array:
    """Cast times with a zone (UTC) or without one to Arrow's type; a column that has both stays text."""
    for zone in (None, "UTC"):
        try:
            return texts.cast(pa.timestamp("us", zone))
        except pa.ArrowInvalid:
            continue
    return texts


def gather_columns(tuples: Sequence[Any], fields: Fields, names: Sequence[str]) -> list[Any] | None:
    """Return the columns of these fields as Arrow arrays or lists; None if a tuple has another number of values."""
    if isinstance(tuples, TupleList):
        return [_of_chunks(tuples, name) for name in names]
    values = transpose(tuples, len(fields))
    return None if values is None else [values[fields.fieldIndex(name)] for name in names]


def encode_column(column: Column, values: Any) -> pa.Array:
    """Return the values in the column's Arrow type. Raises RefusedValue with the index of the first bad value."""
    if isinstance(values, pa.Array) and _passes(column, values):
        if values.null_count == len(values):
            return pa.nulls(len(values), arrow_type(column))
        if pa.types.is_timestamp(values.type) and values.type.tz is not None:
            values = values.cast(pa.timestamp("us", "UTC"))
            return values if "zone" not in column.without else values.cast(arrow_type(column))
        return values.cast(arrow_type(column))
    return arrow_array(column, column.encode(_objects(values)))


def detect_zone(values: Any) -> bool | None:
    """Return whether the first time among the values has a zone; None if there is no time."""
    if isinstance(values, pa.Array):
        times = pa.types.is_timestamp(values.type) and values.null_count < len(values)
        return values.type.tz is not None if times else None
    for value in values:
        with suppress(UnkeyableError):
            if isinstance(plain := to_plain(value), datetime.datetime):
                return plain.utcoffset() is not None
    return None


def refusals(column: Column, values: Any) -> dict[int, str]:
    """Return the values that the column cannot hold: index to reason."""
    try:
        encode_column(column, values)
    except RefusedValue:
        pass
    else:
        return {}
    reasons = {}
    for index in range(len(values)):
        try:
            column.encode(_objects(values[index : index + 1]))
        except RefusedValue as why:
            reasons[index] = why.reason
    good = [index for index in range(len(values)) if index not in reasons]
    strangers = column.strangers([_objects(values[index : index + 1])[0] for index in good])
    return reasons | {good[at]: reason for at, reason in strangers.items()}


def _objects(values: Any) -> list[Any]:
    """Return the values as Python objects. Raises RefusedValue for a date that Python cannot represent."""
    if isinstance(values, pa.Array) and pa.types.is_temporal(values.type):
        for index in range(len(values)):
            try:
                values[index].as_py()
            except (ValueError, OverflowError):
                raise RefusedValue("its year is outside 1 to 9999", index) from None
    return to_list(values)


def _of_chunks(tuples: TupleList, name: str) -> Any:
    columns = [chunk.columns[name] for chunk in tuples.chunks]
    types = {None if isinstance(column, list) else column.type for column in columns}
    if len(types) == 1 and None not in types:
        return pa.concat_arrays([_large(column) for column in columns])
    return [value for chunk in tuples.chunks for value in chunk.pylist(name)]


def _large(array: pa.Array) -> pa.Array:
    """Cast texts and bytes to Arrow's large types, since those of a batch may exceed 2 GB."""
    if pa.types.is_string(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pa.types.is_binary(array.type) else array


def _passes(column: Column, array: pa.Array) -> bool:
    if array.null_count and not column.nullable:
        return False
    if pa.types.is_null(array.type):
        return True
    test = _TESTS.get(column.family)
    return test is not None and (array.null_count == len(array) or test(column, array))


def _integer(column: Column, array: pa.Array) -> bool:
    return bool(pa.types.is_integer(array.type)) and between(array, *column.limits)


def _double(column: Column, array: pa.Array) -> bool:
    if not (pa.types.is_float64(array.type) or pa.types.is_float32(array.type)) or _any(pc.is_nan(array)):
        return False
    if "infinity" in column.without and _any(pc.is_inf(array)):
        return False
    return not column.key or not _any(pc.equal(array, pa.scalar(0, array.type)))  # 0.0 may be -0.0


def _text(column: Column, array: pa.Array) -> bool:
    if not is_text(array.type):
        return False
    if column.sizes and pc.max(pc.utf8_length(array)).as_py() > column.sizes[0]:
        return False
    if column.most and pc.max(pc.binary_length(array)).as_py() > column.most:
        return False
    return "NUL" not in column.without or b"\0" not in memoryview(array.buffers()[2] or b"").tobytes()


def _boolean(column: Column, array: pa.Array) -> bool:
    return bool(pa.types.is_boolean(array.type))


def _binary(column: Column, array: pa.Array) -> bool:
    if not is_bytes(array.type):
        return False
    return not column.sizes or pc.max(pc.binary_length(array)).as_py() <= column.sizes[0]


def _date(column: Column, array: pa.Array) -> bool:
    return bool(pa.types.is_date32(array.type)) and between(array.cast(pa.int32()), _FIRST_DAY, _LAST_DAY)


def _timestamp(column: Column, array: pa.Array) -> bool:
    if not pa.types.is_timestamp(array.type) or array.type.unit != "us":
        return False
    if column.zoned not in (None, array.type.tz is not None):
        return False
    return between(array.cast(pa.int64()), _FIRST_DAY * _MICROSECONDS, (_LAST_DAY + 1) * _MICROSECONDS - 1)


def _decimal(column: Column, array: pa.Array) -> bool:
    wanted = arrow_type(column)
    if not pa.types.is_decimal(array.type) or not pa.types.is_decimal(wanted):
        return False
    try:
        array.cast(wanted)
    except pa.ArrowInvalid:
        return False
    return True


def between(array: pa.Array, low: int, high: int) -> bool:
    """Return whether all numbers of an array that has one are in these bounds."""
    bounds = pc.min_max(array).as_py()
    return low <= bounds["min"] and bounds["max"] <= high


def _any(mask: pa.Array) -> bool:
    return bool(pc.any(mask).as_py())


_TESTS: dict[str, Callable[[Column, pa.Array], bool]] = {
    "integer": _integer, "double": _double, "text": _text, "boolean": _boolean, "binary": _binary,
    "date": _date, "timestamp": _timestamp, "decimal": _decimal,
}  # fmt: skip
