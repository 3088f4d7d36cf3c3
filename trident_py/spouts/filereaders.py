"""Ranges of files as Arrow columns, a part at a time. Runs in the tasks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json

from ..chunks import CHUNK_ROWS, Chunk, arrow_type, typed
from ..errors import SpoutError, TridentError
from ..tuples import Fields
from .filerows import header_line, header_names
from .parquetfiles import ParquetReader

if TYPE_CHECKING:
    from .files import FileSpout

BLOCK = 4 << 20


class RangeReader(Protocol):
    """Reads ranges of one format; lives as long as its emitter."""

    def read(self, path: str, start: int, end: int, fields: Fields) -> Iterator[Chunk]:
        """The rows between two positions. Raises SpoutError naming file and place."""

    def close(self) -> None: ...


def make_reader(spout: FileSpout, kind: str) -> RangeReader:
    if kind == "parquet":
        return ParquetReader()
    if kind == "csv":
        return CsvReader(spout.nulls, spout.delimiter, spout.multiline)
    return JsonReader() if kind == "json" else LineReader()


def blocks(path: str, start: int, end: int, size: int) -> Iterator[tuple[int, bytes]]:
    """The bytes of whole lines between two offsets, about ``size`` at a time, each with its offset."""
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
    """Lines as one text column, without their line ends."""

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
    """CSV rows; typed fields are parsed as their type, untyped ones stay text."""

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
        types = {name: arrow_type(kept.types.get(name, "string")) for name in kept}
        convert = pa_csv.ConvertOptions(
            include_columns=list(kept),
            column_types=types,
            null_values=self._nulls,
            strings_can_be_null=True,
        )
        # Inside quotes a newline ends no row, so such a range is one block.
        size = end - start if self._multiline else BLOCK
        for at, block in blocks(path, start, end, size):
            if block.strip():
                table = self._table(path, at, block, names, convert)
                columns = {name: single(table.column(name)) for name in fields}
                yield from sliced(columns, table.num_rows)

    def _table(self, path: str, at: int, block: bytes, names: list[str], convert: Any) -> pa.Table:
        options = pa_csv.ReadOptions(column_names=names, use_threads=False, block_size=len(block) + 1)
        self._bad = None
        try:
            return pa_csv.read_csv(pa.BufferReader(block), options, self._parse, convert)
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


def lines_before(path: str, offset: int) -> int:
    """How many lines end before an offset."""
    return sum(block.count(b"\n") for _, block in blocks(path, 0, offset, BLOCK))


def single(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


class JsonReader:
    """An object in each line. Values are Python's; typed fields become their type; a missing key is None."""

    def read(self, path: str, start: int, end: int, fields: Fields) -> Iterator[Chunk]:
        for at, block in blocks(path, start, end, BLOCK):
            objects = objects_in(block)
            table = json_table(block, fields) if objects is not None else None
            if table is not None and table.num_rows == objects:
                yield from sliced({name: single(table.column(name)) for name in fields}, table.num_rows)
                continue
            rows = [self._row(path, at, number, line) for number, line in enumerate(block.split(b"\n")) if line.strip()]
            yield from sliced({name: self._column(path, at, rows, name, fields) for name in fields}, len(rows))

    def _row(self, path: str, at: int, number: int, line: bytes) -> dict:
        try:
            row = json.loads(line)
        except ValueError as error:
            where = f"line {lines_before(path, at) + number + 1}"
            raise SpoutError(f"FileSpout: {path}, {where}: not JSON: {error}") from error
        if not isinstance(row, dict):
            where = f"line {lines_before(path, at) + number + 1}"
            raise SpoutError(f"FileSpout: {path}, {where}: a line must be a JSON object, got {row!r:.80}")
        return row

    def _column(self, path: str, at: int, rows: list[dict], name: str, fields: Fields) -> Any:
        values = [row.get(name) for row in rows]
        if name not in fields.types:
            return values
        return json_typed(values, fields.types[name], name, f"FileSpout: {path}, behind byte {at}")

    def close(self) -> None: ...


def objects_in(block: bytes) -> int | None:
    """How many lines hold something, if each looks like one object, in UTF-8; else None.

    Arrow's reader takes the lines as one stream: what begins in one line must not be able to end in another.
    """
    body = block.strip()
    newlines = body.count(b"\n")
    if body[:1] == b"{" and body[-1:] == b"}" and newlines == body.count(b"}\n{") + body.count(b"}\r\n{"):
        return newlines + 1 if is_text(body) else None
    lines = [stripped for line in body.split(b"\n") if (stripped := line.strip())]
    whole = all(line.startswith(b"{") and line.endswith(b"}") for line in lines)
    return len(lines) if whole and is_text(body) else None


def is_text(block: bytes) -> bool:
    """Whether it is UTF-8."""
    try:
        pa.array([block], pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def json_table(block: bytes, fields: Fields) -> pa.Table | None:
    """The block by Arrow's own reader, where all fields are of plain types. None: let Python read it.

    Python's reader takes some values that this one refuses, and explains the others better.
    """
    types = [(name, arrow_type(ddl)) for name, ddl in fields.types.items()]
    if not types or len(types) < len(fields) or not all(map(_simple, dict(types).values())) or not block.strip():
        return None
    parse = pa_json.ParseOptions(explicit_schema=pa.schema(types), unexpected_field_behavior="ignore")
    options = pa_json.ReadOptions(use_threads=False, block_size=len(block) + 1)
    try:
        return pa_json.read_json(pa.BufferReader(block), options, parse)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _simple(kind: pa.DataType) -> bool:
    return kind in (pa.int64(), pa.int32(), pa.float64(), pa.string(), pa.bool_())


def json_typed(values: list, ddl: str, name: str, where: str) -> pa.Array:
    """JSON has neither dates nor decimals, and writes 1.0 as 1: such values are parsed or widened."""
    wanted = arrow_type(ddl)
    try:
        if pa.types.is_floating(wanted):
            values = [float(v) if type(v) is int else v for v in values]
        elif pa.types.is_temporal(wanted) or pa.types.is_decimal(wanted):
            return pa.array([v if v is None else str(v) for v in values], pa.string()).cast(wanted)
        return typed(values, ddl, name)
    except (TridentError, pa.ArrowInvalid) as error:
        raise SpoutError(f"{where}: {error}") from error
