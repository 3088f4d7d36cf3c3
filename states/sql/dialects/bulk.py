"""Converts many rows into bytes for a server: the text of LOAD DATA and COPY, and the rows of a long INSERT."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from trident_py.model.chunks import compact, is_bytes, is_text

from ...columns.values import Column

FEW = 20  # up to so many rows, lists are faster than Arrow arrays
BLOCK_BYTES = 1 << 20
_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))
_QUOTES = (("\\", "\\\\"), ("'", "''"), ("\0", "\\0"))


class Loaded(NamedTuple):
    """The server's counts of a load: rows read, rows left out, warnings."""

    records: int
    skipped: int
    warnings: int


def blocks(columns: Sequence[Column], arrays: Sequence[pa.Array], size: int = BLOCK_BYTES) -> Iterator[bytes]:
    r"""Return rows in the text form that LOAD DATA and COPY share, in blocks of about ``size`` bytes: tabs, newlines,
    backslash escapes, ``\N`` for NULL.

    Bytes are written as ``\x`` and hexadecimal digits, PostgreSQL's own form; MySQL's `load` converts it back.
    """
    for part in slices(_without_zone(columns, arrays), size):
        texts = [_line_text(array) for array in part]
        texts[-1] = pc.binary_join_element_wise(pc.fill_null(texts[-1], "\\N"), _scalar(""), _scalar("\n"))
        yield join_bytes(_join(texts, "\t", "\\N"))


def insertions(
    columns: Sequence[Column], arrays: Sequence[pa.Array], size: int = BLOCK_BYTES, most: int = sys.maxsize
) -> Iterator[bytes]:
    """Yield the rows after VALUES in MySQL's multi-row INSERT, in blocks of about ``size`` bytes.

    No block has more than ``most`` bytes, unless it is a single row.
    """

    def text_of(part: list[pa.Array]) -> bytes | None:
        text = _insertion(part)
        return text if len(text) <= most or len(part[0]) == 1 else None

    for part in slices(_without_zone(columns, arrays), min(size, most)):
        yield from (text for _, text in _halve(part, text_of))


def too_long(columns: Sequence[Column], arrays: Sequence[pa.Array], most: int) -> dict[int, int]:
    """Return the rows whose text in an INSERT has more than ``most`` bytes, with the length of that text."""

    def text_of(part: list[pa.Array]) -> bytes | None:
        if 2 * sum(array.nbytes for array in part) < most:
            return b""  # no row is too long: escapes and digits make at most twice as many bytes of it
        return _insertion(part) if len(part[0]) == 1 else None

    texts = _halve(_without_zone(columns, arrays), text_of)
    return {at: len(text) for at, text in texts if len(text) > most}


def _halve(
    arrays: list[pa.Array], text_of: Callable[[list[pa.Array]], bytes | None], at: int = 0
) -> Iterator[tuple[int, bytes]]:
    """Halve the rows until each part has a text; yield it with the number of the part's first row."""
    text = text_of(arrays)
    if text is not None:
        yield at, text
        return
    half = len(arrays[0]) // 2
    yield from _halve([array.slice(0, half) for array in arrays], text_of, at)
    yield from _halve([array.slice(half) for array in arrays], text_of, at + half)


def _insertion(arrays: Sequence[pa.Array]) -> bytes:
    texts = [_literal(array) for array in arrays]
    texts[0] = pc.binary_join_element_wise(_scalar("("), pc.fill_null(texts[0], "NULL"), _scalar(""))
    texts[-1] = pc.binary_join_element_wise(pc.fill_null(texts[-1], "NULL"), _scalar("),"), _scalar(""))
    return join_bytes(_join(texts, ",", "NULL"))[:-1]


def slices(arrays: Sequence[pa.Array], size: int) -> Iterator[list[pa.Array]]:
    """Yield the rows in parts of about ``size`` bytes, at least one row in each."""
    length = len(arrays[0])
    total = sum(array.nbytes for array in arrays) + length
    rows = max(1, size * length // max(total, 1))
    for at in range(0, length, rows):
        yield [array.slice(at, rows) for array in arrays]


def packets(data: Iterable[bytes], size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Yield the data in parts that a connection can send at once."""
    for block in data:
        for at in range(0, len(block), size):
            yield block[at : at + size]


def _without_zone(columns: Sequence[Column], arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """Remove the zone (UTC) from times that are text, as servers expect."""
    return [
        pc.replace_substring(array, "+00:00", "") if column.family == "timestamp" and is_text(array.type) else array
        for column, array in zip(columns, arrays, strict=True)
    ]


def _scalar(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _join(texts: Sequence[pa.Array], separator: str, null: str) -> pa.Array:
    if len(texts) == 1:
        return texts[0]
    return pc.binary_join_element_wise(*texts, _scalar(separator), null_handling="replace", null_replacement=null)


def join_bytes(texts: pa.Array) -> bytes:
    """Return the concatenated texts or bytes of an array without nulls."""
    return bytes(memoryview(texts.buffers()[2] or b""))


def _plain(array: pa.Array) -> pa.Array | None:
    """Return numbers, dates and times as text, the same for LOAD DATA, COPY and INSERT; None for texts and bytes."""
    kind = array.type
    if is_text(kind) or is_bytes(kind):
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
    if is_bytes(array.type):
        return pc.binary_join_element_wise(_scalar("\\\\x"), _hex(array), _scalar(""))
    return _replace(array, _ESCAPES)


def _literal(array: pa.Array) -> pa.Array:
    plain = _plain(array)
    if plain is not None and not pa.types.is_temporal(array.type):
        return plain
    if is_bytes(array.type):
        return pc.binary_join_element_wise(_scalar("x'"), _hex(array), _scalar("'"), _scalar(""))
    text = _replace(array, _QUOTES) if plain is None else plain
    return pc.binary_join_element_wise(_scalar("'"), text, _scalar("'"), _scalar(""))


def _replace(array: pa.Array, changes: Iterable[tuple[str, str]]) -> pa.Array:
    array = compact(array.cast(pa.large_string()))
    data = memoryview(array.buffers()[2] or b"").tobytes()
    for old, new in changes:
        if old.encode() in data:
            array = pc.replace_substring(array, old, new)
    return array


def _hex(array: pa.Array) -> pa.Array:
    """Return bytes as hexadecimal digits; converts the whole buffer at once."""
    array = compact(array.cast(pa.large_binary()))
    valid, offsets, data = array.buffers()
    digits = pa.py_buffer(memoryview(data or b"").hex().encode())
    ends = pa.Array.from_buffers(pa.int64(), len(array) + 1, [None, offsets])
    ends = pc.multiply(ends, pa.scalar(2, pa.int64()))
    return pa.LargeStringArray.from_buffers(len(array), ends.buffers()[1], digits, valid)
