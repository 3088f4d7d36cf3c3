"""Checks whole columns at once: `Column.encode` for Arrow arrays.

An array that passes its column's quick test holds only values that `Column.encode` takes; it is cast to the column's
Arrow type. Any other array goes through `Column.encode` itself, which names the first bad value. A property test
compares the two.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trident_py.model.canonical import UnkeyableError, to_plain
from trident_py.model.chunks import TupleList, to_list
from trident_py.tuples import Fields

from .values import Column, RefusedValue, transpose

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
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return False
    if column.sizes and pc.max(pc.utf8_length(array)).as_py() > column.sizes[0]:
        return False
    if column.most and pc.max(pc.binary_length(array)).as_py() > column.most:
        return False
    return "NUL" not in column.without or b"\0" not in memoryview(array.buffers()[2] or b"").tobytes()


def _boolean(column: Column, array: pa.Array) -> bool:
    return bool(pa.types.is_boolean(array.type))


def _binary(column: Column, array: pa.Array) -> bool:
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    if not any(is_kind(array.type) for is_kind in kinds):
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
