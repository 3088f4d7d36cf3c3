"""The binary form of COPY, which PostgreSQL reads faster than text: each value is its length and its bytes.

The server takes the bytes for what the table's column holds. So a table gets this form only if each of its columns has
exactly the type that the values are written for; `KINDS` lists those types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....columns.values import Column
from ..bulk import BLOCK_BYTES, join_bytes, slices

_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = b"\xff\xff"
_NULL = pa.scalar(b"\xff\xff\xff\xff", pa.large_binary())
_NOTHING = pa.scalar(b"", pa.large_binary())
_DAYS = 10_957  # PostgreSQL counts from the year 2000, Arrow from 1970
_FEW = 1_000  # the types of a table are asked for in the time of writing so many rows

KINDS = {
    "integer": ("int8", "int4", "int2"), "double": ("float8",), "boolean": ("bool",), "date": ("date",),
    "timestamp": ("timestamp",), "text": ("text", "varchar"), "json": ("text", "varchar", "json"), "binary": ("bytea",),
}  # fmt: skip
_NUMBERS: dict[str, np.dtype] = {
    "int8": np.dtype(">i8"), "int4": np.dtype(">i4"), "int2": np.dtype(">i2"), "float8": np.dtype(">f8"),
    "bool": np.dtype("i1"), "date": np.dtype(">i4"), "timestamp": np.dtype(">i8"),
}  # fmt: skip
_TYPES = (
    "SELECT attname, typname FROM pg_attribute JOIN pg_type AS t ON t.oid = atttypid"
    " WHERE attrelid = to_regclass(?) AND attnum > 0 AND typnamespace = 'pg_catalog'::regnamespace"
)


def binary_kinds(
    connection: Any, table: str, columns: Sequence[Column], arrays: Sequence[pa.Array]
) -> list[str] | None:  # fmt: skip
    """Return the type of each column of the table (a quoted name); None if the rows should be sent as text. Called in a
    transaction, which locks the table as COPY will: nobody can alter it in between."""
    if len(arrays[0]) < _FEW:
        return None
    connection.execute(f"LOCK TABLE {table} IN ROW EXCLUSIVE MODE")
    types = dict(connection.execute(_TYPES, (table,)).fetchall())
    kinds = [types.get(column.name, "") for column in columns]
    return kinds if all(map(_holds, kinds, columns, arrays)) else None


def binary_blocks(kinds: Sequence[str], parts: Iterable[Sequence[pa.Array]]) -> Iterator[bytes]:
    """Yield the rows of all parts, which have arrays of the same types."""
    count = pa.scalar(len(kinds).to_bytes(2, "big"), pa.large_binary())
    yield _HEADER
    for part in parts:
        for arrays in slices(part, BLOCK_BYTES):
            pieces = [piece for kind, array in zip(kinds, arrays, strict=True) for piece in _pieces(kind, array)]
            rows = pc.binary_join_element_wise(count, *pieces, _NOTHING)
            yield join_bytes(rows)
    yield _END


def _holds(kind: str, column: Column, array: pa.Array) -> bool:
    """Return whether the type holds every value of the column, and the array is not the text of a value."""
    if kind not in KINDS.get(column.family, ()):
        return False
    if column.family == "integer":
        return column.bits <= 8 * _NUMBERS[kind].itemsize
    return column.family != "timestamp" or bool(pa.types.is_timestamp(array.type))


def _pieces(kind: str, array: pa.Array) -> list[pa.Array]:
    """Return the bytes of each row's value, in one array or as a length and the rest."""
    if kind in _NUMBERS:
        return [_encode_fixed(_number(kind, array), _NUMBERS[kind])]
    values = array.cast(pa.large_binary())
    lengths = pc.fill_null(pc.binary_length(values), -1).cast(pa.int32())
    return [_bytes(lengths.to_numpy().astype(">i4")), pc.fill_null(values, b"")]


def _number(kind: str, array: pa.Array) -> pa.Array:
    if kind == "date":
        return pc.subtract(array.cast(pa.int32()), _DAYS)
    if kind == "timestamp":
        since_1970 = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
        return pc.subtract(since_1970, _DAYS * 86_400_000_000)
    return array.cast(pa.from_numpy_dtype(_NUMBERS[kind].newbyteorder("=")))


def _encode_fixed(numbers: pa.Array, kind: np.dtype) -> pa.Array:
    made = np.empty(len(numbers), [("length", ">i4"), ("value", kind)])
    made["length"] = kind.itemsize
    made["value"] = pc.fill_null(numbers, 0).to_numpy()
    values = _bytes(made)
    return pc.if_else(pc.is_valid(numbers), values, _NULL) if numbers.null_count else values


def _bytes(items: np.ndarray) -> pa.Array:
    kind = pa.binary(items.itemsize)
    return pa.Array.from_buffers(kind, len(items), [None, pa.py_buffer(items)]).cast(pa.large_binary())
