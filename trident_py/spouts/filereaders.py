"""Ranges of files as Arrow columns, a part at a time. Runs in the tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from ..chunks import CHUNK_ROWS, Chunk, arrow_type, decimals
from ..errors import SpoutError
from ..tuples import Fields
from .filerows import header_line, header_names
from .jsonvalues import is_text, json_columns, json_table

BLOCK = 4 << 20


class RangeReader(Protocol):
    """Reads ranges of one format. Lives as long as its emitter."""

    def read(self, path: str, start: int, end: int, fields: Fields) -> Iterator[Chunk]:
        """Returns the rows between two positions. Raises SpoutError that names file and place."""

    def close(self) -> None: ...


def blocks(path: str, start: int, end: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Returns whole lines between two offsets, about ``size`` bytes at a time, each block with its offset."""
    with open(path, "rb") as file:  # noqa: PTH123
        file.seek(start)
        at, rest = start, b""
        while at + len(rest) < end:
            block = file.read(min(size, end - at - len(rest)))
            if not block:
                raise SpoutError(f"FileSpout: {path} ends before byte {end}: it was cut while it was read")
            whole = rest + block
            cut = len(whole) if at + len(whole) >= end else whole.rfind(b"\n") + 1
            rest = whole[cut:]
            if cut:
                yield at, whole[:cut]
                at += cut


def sliced(columns: dict[str, Any], length: int) -> Iterator[Chunk]:
    yield from Chunk(columns, length).slices(CHUNK_ROWS)


class LineReader:
    """Reads lines as one text column, without line ends."""

    def read(self, path: str, start: int, end: int, fields: Fields) -> Iterator[Chunk]:
        for at, block in blocks(path, start, end, BLOCK):
            text = pa.array([block.removesuffix(b"\n")], pa.binary())
            try:
                text = text.cast(pa.string())
            except pa.ArrowInvalid as error:
                raise SpoutError(f"FileSpout: {path}, behind byte {at}: not UTF-8 text: {error}") from error
            lines = pc.split_pattern(text, "\n").flatten()
            if b"\r\n" in block or block.endswith(b"\r"):
                lines = pc.replace_substring_regex(lines, r"\r$", "")
            yield from sliced(dict.fromkeys(fields, lines), len(lines))

    def close(self) -> None: ...


class CsvReader:
    """Reads CSV rows. Typed fields are parsed as their type, untyped ones stay text."""

    def __init__(self, nulls: tuple[str, ...], delimiter: str, multiline: bool) -> None:
        self._nulls = list(nulls)
        self._multiline = multiline
        self._parse = pa_csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=multiline, invalid_row_handler=self._remember
        )
        self._bad: Any = None
        self._headers: dict[str, list[str]] = {}

    def read(self, path: str, start: int, end: int, fields: Fields) -> Iterator[Chunk]:
        if path not in self._headers:
            self._headers = {path: header_names(header_line(path), self._parse.delimiter, path)}
        names = self._headers[path]
        kept = fields if len(fields) else Fields(names[:1])
        types = {name: _read_as(arrow_type(kept.types.get(name, "string"))) for name in kept}
        convert = pa_csv.ConvertOptions(
            include_columns=list(kept),
            column_types=types,
            null_values=self._nulls,
            strings_can_be_null=True,
        )
        # Inside quotes a newline does not end a row, so the whole range is one block.
        size = end - start if self._multiline else BLOCK
        for at, block in blocks(path, start, end, size):
            if block.strip():
                table = self._table(path, at, block, names, convert)
                columns = {name: self._column(path, at, table, name, fields) for name in fields}
                yield from sliced(columns, table.num_rows)

    def _column(self, path: str, at: int, table: pa.Table, name: str, fields: Fields) -> pa.Array:
        column, wanted = single(table.column(name)), arrow_type(fields.types.get(name, "string"))
        if not pa.types.is_decimal(wanted):
            return column
        try:
            return decimals(pc.ascii_trim_whitespace(column), wanted)
        except pa.ArrowInvalid as error:
            raise SpoutError(f"FileSpout: {path}, behind byte {at}: column {name!r}: {error}") from error

    def _table(self, path: str, at: int, block: bytes, names: list[str], convert: Any) -> pa.Table:
        options = pa_csv.ReadOptions(column_names=names, use_threads=False, block_size=len(block) + 1)
        self._bad = None
        try:
            table = pa_csv.read_csv(pa.BufferReader(block), options, self._parse, convert)
            infinite = [name for name in table.column_names if _has_infinite(table.column(name))]
            if infinite:
                as_text = dict.fromkeys(infinite, pa.string())
                texts = pa_csv.ConvertOptions(include_columns=infinite, column_types=as_text)
                _check_infinite(table, pa_csv.read_csv(pa.BufferReader(block), options, self._parse, texts))
            return table
        except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
            raise SpoutError(self._explained(path, at, names, str(error))) from error

    def _remember(self, row: Any) -> str:
        self._bad = row
        return "error"

    def _explained(self, path: str, at: int, names: list[str], message: str) -> str:
        where = f"behind byte {at}"
        column = re.search(r"CSV column #(\d+)", message)
        found = re.search(r"Row #(\d+): ", message)
        if found is not None:
            where = f"line {lines_before(path, at) + int(found.group(1))}"
            message = message[found.end() :]
        text = f"FileSpout: {path}, {where}: {message}"
        if column is not None:
            text += f" (column {names[int(column.group(1))]!r})"
        if self._bad is not None and not self._multiline and '"' in self._bad.text:
            text += "; if quoted values hold newlines, say multiline=True"
        return text

    def close(self) -> None: ...


def _read_as(wanted: pa.DataType) -> pa.DataType:
    """Decimals are read as text and parsed by `decimals`: Arrow's CSV reader overflows silently in long ones."""
    return pa.string() if pa.types.is_decimal(wanted) else wanted


def _has_infinite(column: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py() is True


def _check_infinite(table: pa.Table, texts: pa.Table) -> None:
    """Raises ArrowInvalid for a number too large for its type, which Arrow reads as infinity."""
    for name in texts.column_names:
        written = pc.match_substring_regex(texts.column(name), r"(?i)^\s*[+-]?inf")
        grown = pc.and_not(pc.is_inf(table.column(name)), written)
        if pc.any(grown).as_py():
            text = texts.column(name).filter(grown)[0].as_py()
            raise pa.ArrowInvalid(f"{text[:40]!r} is too large for the {table.column(name).type} of field {name!r}")


def lines_before(path: str, offset: int) -> int:
    """Returns the number of lines that end before an offset."""
    return sum(block.count(b"\n") for _, block in blocks(path, 0, offset, BLOCK))


def single(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


class JsonReader:
    """Reads one JSON object per line. Untyped values are Python's; a missing key is None."""

    def read(self, path: str, start: int, end: int, fields: Fields) -> Iterator[Chunk]:
        for at, block in blocks(path, start, end, BLOCK):
            objects = objects_in(block)
            table = json_table(block, fields) if objects is not None else None
            if table is not None and table.num_rows == objects:
                yield from sliced({name: single(table.column(name)) for name in fields}, table.num_rows)
                continue
            lines = [(number, line) for number, line in enumerate(block.split(b"\n")) if line.strip()]
            columns = json_columns([line for _, line in lines], fields, partial(_told, path, at, lines))
            yield from sliced(columns, len(lines))

    def close(self) -> None: ...


def _told(path: str, at: int, lines: list[tuple[int, bytes]], number: int, what: str) -> str:
    return f"FileSpout: {path}, line {lines_before(path, at) + lines[number][0] + 1}: {what}"


def objects_in(block: bytes) -> int | None:
    """Returns the number of non-blank lines if each looks like one object and the block is UTF-8; else None.

    Arrow's reader takes the lines as one stream, so a value that begins in one line must not end in another.
    """
    body = block.strip()
    newlines = body.count(b"\n")
    if body[:1] == b"{" and body[-1:] == b"}" and newlines == body.count(b"}\n{") + body.count(b"}\r\n{"):
        return newlines + 1 if is_text(body) else None
    lines = [stripped for line in body.split(b"\n") if (stripped := line.strip())]
    whole = all(line.startswith(b"{") and line.endswith(b"}") for line in lines)
    return len(lines) if whole and is_text(body) else None
