"""Converts many rows into bytes for a server: the text of LOAD DATA and COPY, and the rows of a long INSERT.

Columns stay Arrow arrays until they become text: no row becomes a Python object.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ...columns.arrow import arrow_array
from ...columns.values import Column

BLOCK_BYTES = 1 << 20
_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))
_QUOTES = (("\\", "\\\\"), ("'", "''"), ("\0", "\\0"))


class Loaded(NamedTuple):
    """The server's counts of a load: rows read, rows left out, warnings."""

    records: int
    skipped: int
    warnings: int


def lines(columns: Sequence[Column], values: Sequence[Any]) -> bytes:
    r"""Rows in the text form that LOAD DATA and COPY share: tabs, newlines, backslash escapes, ``\N`` for NULL.

    ``values`` are the columns: Arrow arrays, or lists in the form of `Column.encode`. Bytes are written as ``\x`` and
    hexadecimal digits, PostgreSQL's own form; MySQL's `load` converts it back.
    """
    return b"".join(blocks(columns, [arrow_array(c, v) for c, v in zip(columns, values, strict=True)]))


def blocks(columns: Sequence[Column], arrays: Sequence[pa.Array], size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Like `lines`; yields blocks of about ``size`` bytes."""
    for part in slices(_without_zone(columns, arrays), size):
        texts = [_line_text(array) for array in part]
        texts[-1] = pc.binary_join_element_wise(pc.fill_null(texts[-1], "\\N"), _one(""), _one("\n"))
        yield _bytes(_joined(texts, "\t", "\\N"))


def insertions(
    columns: Sequence[Column], arrays: Sequence[pa.Array], size: int = BLOCK_BYTES, most: int = sys.maxsize
) -> Iterator[bytes]:
    """The rows after VALUES in MySQL's multi-row INSERT, in blocks of about ``size`` bytes.

    No block has more than ``most`` bytes, unless it is a single row.
    """
    for part in slices(_without_zone(columns, arrays), min(size, most)):
        yield from _short_enough(part, most)


def _short_enough(arrays: list[pa.Array], most: int) -> Iterator[bytes]:
    block, rows = _insertion(arrays), len(arrays[0])
    if len(block) <= most or rows == 1:
        yield block
        return
    for at, count in ((0, rows // 2), (rows // 2, rows - rows // 2)):
        yield from _short_enough([array.slice(at, count) for array in arrays], most)


def _insertion(arrays: Sequence[pa.Array]) -> bytes:
    texts = [_literal(array) for array in arrays]
    texts[0] = pc.binary_join_element_wise(_one("("), pc.fill_null(texts[0], "NULL"), _one(""))
    texts[-1] = pc.binary_join_element_wise(pc.fill_null(texts[-1], "NULL"), _one("),"), _one(""))
    return _bytes(_joined(texts, ",", "NULL"))[:-1]


def too_long(columns: Sequence[Column], arrays: Sequence[pa.Array], most: int) -> dict[int, int]:
    """The rows whose text in an INSERT has more than ``most`` bytes, with the length of that text."""
    return dict(_too_long(_without_zone(columns, arrays), 0, len(arrays[0]), most))


def _too_long(arrays: Sequence[pa.Array], at: int, count: int, most: int) -> Iterator[tuple[int, int]]:
    """Halves the rows until a part is short: escapes and digits make at most twice as many bytes of it."""
    part = [array.slice(at, count) for array in arrays]
    if count == 0 or 2 * sum(array.nbytes for array in part) < most:
        return
    if count > 1:
        yield from _too_long(arrays, at, count // 2, most)
        yield from _too_long(arrays, at + count // 2, count - count // 2, most)
    elif (size := len(_insertion(part))) > most:
        yield at, size


def slices(arrays: Sequence[pa.Array], size: int) -> Iterator[list[pa.Array]]:
    """The rows in parts of about ``size`` bytes, at least one row in each."""
    length = len(arrays[0])
    total = sum(array.nbytes for array in arrays) + length
    rows = max(1, size * length // max(total, 1))
    for at in range(0, length, rows):
        yield [array.slice(at, rows) for array in arrays]


def packets(data: bytes | Iterable[bytes], size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The data in parts that a connection can send at once."""
    for block in [data] if isinstance(data, bytes) else data:
        for at in range(0, len(block), size):
            yield block[at : at + size]


def _without_zone(columns: Sequence[Column], arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """Removes the zone (UTC) from times that are text, as servers expect."""
    return [
        pc.replace_substring(array, "+00:00", "") if column.family == "timestamp" and _is_text(array.type) else array
        for column, array in zip(columns, arrays, strict=True)
    ]


def _one(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _joined(texts: Sequence[pa.Array], separator: str, null: str) -> pa.Array:
    if len(texts) == 1:
        return texts[0]
    return pc.binary_join_element_wise(*texts, _one(separator), null_handling="replace", null_replacement=null)


def _bytes(texts: pa.Array) -> bytes:
    """The concatenated texts of an array without nulls."""
    return bytes(memoryview(texts.buffers()[2] or b""))


def _plain(array: pa.Array) -> pa.Array | None:
    """Numbers, dates and times as text, the same for LOAD DATA, COPY and INSERT; None for texts and bytes."""
    kind = array.type
    if _is_text(kind) or _is_binary(kind):
        return None
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif pa.types.is_timestamp(kind):
        array = array.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
    elif pa.types.is_float32(kind):
        array = array.cast(pa.float64())
    return array.cast(pa.string()).cast(pa.large_string())


def _line_text(array: pa.Array) -> pa.Array:
    plain = _plain(array)
    if plain is not None:
        return plain
    if _is_binary(array.type):
        return pc.binary_join_element_wise(_one("\\\\x"), _hex(array), _one(""))
    return _replaced(array, _ESCAPES)


def _literal(array: pa.Array) -> pa.Array:
    plain = _plain(array)
    if plain is not None and not pa.types.is_temporal(array.type):
        return plain
    if _is_binary(array.type):
        return pc.binary_join_element_wise(_one("x'"), _hex(array), _one("'"), _one(""))
    text = _replaced(array, _QUOTES) if plain is None else plain
    return pc.binary_join_element_wise(_one("'"), text, _one("'"), _one(""))


def _replaced(array: pa.Array, changes: Iterable[tuple[str, str]]) -> pa.Array:
    array = _own(array.cast(pa.large_string()))
    data = memoryview(array.buffers()[2] or b"").tobytes()
    for old, new in changes:
        if old.encode() in data:
            array = pc.replace_substring(array, old, new)
    return array


def _hex(array: pa.Array) -> pa.Array:
    """Bytes as hexadecimal digits; converts the whole buffer at once."""
    array = _own(array.cast(pa.large_binary()))
    valid, offsets, data = array.buffers()
    digits = pa.py_buffer(memoryview(data or b"").hex().encode())
    ends = pa.Array.from_buffers(pa.int64(), len(array) + 1, [None, offsets])
    ends = pc.multiply(ends, pa.scalar(2, pa.int64()))
    return pa.LargeStringArray.from_buffers(len(array), ends.buffers()[1], digits, valid)


def _own(array: pa.Array) -> pa.Array:
    """Copies a slice into an array whose buffers hold nothing else."""
    return pa.concat_arrays([array, array.slice(0, 0)])


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    )
