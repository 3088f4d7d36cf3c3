"""Reads ranges of files as Arrow columns, a part at a time. Runs in the tasks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from ...errors import SpoutError, TridentError
from ...model.chunks import CHUNK_ROWS, Chunk, arrow_type, decimals, exact_cast, single
from ...spouts.json_values import is_text, json_columns, json_table, with_advice
from ...tuples import Fields
from .file_list import Files, SourceFile
from .row_positions import MARK, Quotes, bare_cr, header_line, header_names, without_mark

BLOCK = 4 << 20


class RangeReader:
    """Reads ranges of one format. Lives as long as its emitter."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def read(self, file: SourceFile, start: int, end: int, fields: Fields) -> Iterator[Chunk]:
        """Return the rows between two positions. Raises SpoutError that names file and place."""
        raise NotImplementedError

    def close(self) -> None: ...


def blocks(
    files: Files, path: str, start: int, end: int, quotes: Quotes | None = None
) -> Iterator[tuple[int, bytes]]:
    """Return whole rows between two offsets, about `BLOCK` bytes at a time, each block with its offset."""
    with files.explain_errors(path), files.open(path) as file:
        file.seek(start)
        at, rest = start, b""
        while at + len(rest) < end:
            block = file.read(min(max(BLOCK, len(rest)), end - at - len(rest)))
            if not block:
                raise SpoutError(f"FileSpout: {path} ends before byte {end}: it was truncated while being read")
            data = rest + block
            outline = data if quotes is None else quotes.outline(data)
            cut = len(data) if at + len(data) >= end else outline.rfind(b"\n") + 1
            rest = data[cut:]
            if cut:
                yield at, data[:cut]
                at += cut


class LineReader(RangeReader):
    """Reads lines as one text column, without line ends."""

    def read(self, file: SourceFile, start: int, end: int, fields: Fields) -> Iterator[Chunk]:
        for at, block in blocks(self._files, file.path, start, end):
            body = block if at else without_mark(block)
            text = pa.array([body.removesuffix(b"\n")], pa.binary())
            try:
                text = text.cast(pa.string())
            except pa.ArrowInvalid as error:
                where = f"{file.path}, after byte {at}"
                raise SpoutError(f"FileSpout: {where}: not UTF-8 text: {with_advice(str(error))}") from error
            lines = pc.split_pattern(text, "\n").flatten()
            if b"\r\n" in block or block.endswith(b"\r"):
                lines = pc.replace_substring_regex(lines, r"\r$", "")
            yield from Chunk(dict.fromkeys(fields, lines), len(lines)).slices()


class CsvReader(RangeReader):
    """Reads CSV rows. Typed fields are parsed as their type, untyped ones stay text."""

    def __init__(self, files: Files, nulls: tuple[str, ...], quotes: Quotes) -> None:
        super().__init__(files)
        self._nulls = list(nulls)
        self._quoted_null = re.compile(b'"(?:%s)"' % b"|".join(re.escape(null.encode()) for null in nulls))
        self._quotes = quotes
        self._parse = pa_csv.ParseOptions(delimiter=quotes.delimiter, newlines_in_values=quotes.multiline)
        self._headers: dict[str, list[str]] = {}

    def read(self, file: SourceFile, start: int, end: int, fields: Fields) -> Iterator[Chunk]:
        path = file.path
        if path not in self._headers:
            header = header_line(self._files, path, self._quotes)
            self._headers = {path: header_names(header, self._quotes.delimiter, path)}
        names = self._headers[path]
        kept = list(fields) or [next(name for name in names if names.count(name) == 1)]
        types = {name: arrow_type(fields.types.get(name, "string")) for name in kept}
        for at, block in blocks(self._files, path, start, end, self._quotes):
            if not block.strip(b"\r\n"):
                self._count_checked_rows(path, at, block)
                continue
            table = self._table(path, at, block, names, types)
            columns = {name: self._column(path, at, table, name, types[name]) for name in fields}
            yield from Chunk(columns, table.num_rows).slices()

    def _column(self, path: str, at: int, table: pa.Table, name: str, wanted: pa.DataType) -> pa.Array:
        column = single(table.column(name))
        if not pa.types.is_decimal(wanted):
            return column
        try:
            return decimals(pc.ascii_trim_whitespace(column), wanted)
        except pa.ArrowInvalid as error:
            raise SpoutError(f"FileSpout: {path}, after byte {at}: column {name!r}: {error}") from error

    def _table(self, path: str, at: int, block: bytes, names: list[str], types: dict[str, pa.DataType]) -> pa.Table:
        options = pa_csv.ReadOptions(column_names=names, use_threads=False, block_size=len(block) + 2)
        source = b"\n" + block if block.startswith(MARK) else block  # Arrow drops a mark; a blank line is no row

        def read(convert: pa_csv.ConvertOptions) -> pa.Table:
            return pa_csv.read_csv(pa.BufferReader(source), options, self._parse, convert)

        try:
            table = self._convert(block, types, read)
            infinite = [name for name in table.column_names if _has_infinite(table.column(name))]
            if infinite:
                as_text = dict.fromkeys(infinite, pa.string())
                _check_infinite(table, read(pa_csv.ConvertOptions(include_columns=infinite, column_types=as_text)))
        except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
            self._count_checked_rows(path, at, block)
            raise SpoutError(self._describe(path, at, block, names, str(error))) from error
        self._check_rows(path, at, block, table.num_rows)
        return table

    def _convert(self, block: bytes, types: dict[str, pa.DataType], read: Callable[[Any], pa.Table]) -> pa.Table:
        """Read the columns. A null text between quotes is a text in a column of texts, and a null in another one."""
        texts = [name for name, wanted in types.items() if wanted in (pa.string(), pa.binary())]
        others = [name for name in types if name not in texts]
        if texts and self._quoted_null.search(block) is None:
            texts, others = list(types), []
        tables = [
            read(pa_csv.ConvertOptions(
                include_columns=columns, column_types={name: _read_as(types[name]) for name in columns},
                null_values=self._nulls, strings_can_be_null=True, quoted_strings_can_be_null=columns is others,
            ))
            for columns in (texts, others) if columns
        ]  # fmt: skip
        return pa.table({name: each.column(name) for each in tables for name in each.column_names})

    def _check_rows(self, path: str, at: int, block: bytes, rows: int) -> None:
        """Raise SpoutError unless Arrow took each row for one: quotes and line ends of all rows keep the rules."""
        lines = block.count(b"\n") + (not block.endswith(b"\n"))
        last = block[block.rfind(b"\n", 0, -1) + 1 :]
        if rows == lines and bare_cr(block) < 0 and not self._quotes.is_open(last):
            return  # there is a row in each line
        if rows != (there := self._count_checked_rows(path, at, block)):
            raise SpoutError(f"FileSpout: {path}, after byte {at}: {there} rows were read as {rows}")

    def _count_checked_rows(self, path: str, at: int, block: bytes) -> int:
        """Return the number of rows. Raises SpoutError for one that breaks the rules for quotes and line ends."""
        rows, wrong = self._quotes.rows_in(block)
        if wrong is not None:
            raise SpoutError(f"FileSpout: {path}, line {self._line(path, at, block, wrong[0])}: {wrong[1]}")
        return rows

    def _line(self, path: str, at: int, block: bytes, offset: int) -> int:
        return lines_before(self._files, path, at) + block.count(b"\n", 0, offset) + 1

    def _describe(self, path: str, at: int, block: bytes, names: list[str], message: str) -> str:
        where = f"after byte {at}"
        column = re.search(r"CSV column #(\d+)", message)
        row = re.search(r"Row #(\d+): ", message)
        if row is not None:
            where = f"line {self._line(path, at, block, self._quotes.row_at(block, int(row.group(1))))}"
            message = message[row.end() :]
        text = f"FileSpout: {path}, {where}: {with_advice(message)}"
        return text if column is None else f"{text} (column {names[int(column.group(1))]!r})"


def _read_as(wanted: pa.DataType) -> pa.DataType:
    """Return the type to read as. Decimals are read as text and parsed by `decimals`: Arrow's CSV reader overflows
    silently in long ones."""
    return pa.string() if pa.types.is_decimal(wanted) else wanted


def _has_infinite(column: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py() is True


def _check_infinite(table: pa.Table, texts: pa.Table) -> None:
    """Raise ArrowInvalid for a number too large for its type, which Arrow reads as infinity."""
    for name in texts.column_names:
        written = pc.match_substring_regex(texts.column(name), r"(?i)^\s*[+-]?inf")
        grown = pc.and_not(pc.is_inf(table.column(name)), written)
        if pc.any(grown).as_py():
            text = texts.column(name).filter(grown)[0].as_py()
            raise pa.ArrowInvalid(f"{text[:40]!r} is too large for the {table.column(name).type} of field {name!r}")


def lines_before(files: Files, path: str, offset: int) -> int:
    """Return the number of lines that end before an offset."""
    return sum(block.count(b"\n") for _, block in blocks(files, path, 0, offset))


class JsonReader(RangeReader):
    """Reads one JSON object per line. Untyped values are Python's; a missing key is None."""

    def read(self, file: SourceFile, start: int, end: int, fields: Fields) -> Iterator[Chunk]:
        for at, block in blocks(self._files, file.path, start, end):
            objects = objects_in(block)
            table = json_table(block, fields) if objects is not None else None
            if table is not None and table.num_rows == objects:
                yield from Chunk({name: single(table.column(name)) for name in fields}, table.num_rows).slices()
                continue
            lines = [(number, line) for number, line in enumerate(block.split(b"\n")) if line.strip()]
            describe = partial(_describe_line, self._files, file.path, at, lines)
            columns = json_columns([line for _, line in lines], fields, describe)
            yield from Chunk(columns, len(lines)).slices()


def _describe_line(
    files: Files, path: str, at: int, lines: list[tuple[int, bytes]], number: int, problem: str
) -> str:
    return f"FileSpout: {path}, line {lines_before(files, path, at) + lines[number][0] + 1}: {problem}"


def objects_in(block: bytes) -> int | None:
    """Return the number of non-blank lines if each looks like one object and the block is UTF-8; else None.

    Arrow's reader takes the lines as one stream, so a value that begins in one line must not end in another.
    """
    body = block.strip()
    newlines = body.count(b"\n")
    if body[:1] == b"{" and body[-1:] == b"}" and newlines == body.count(b"}\n{") + body.count(b"}\r\n{"):
        return newlines + 1 if is_text(body) else None
    lines = [stripped for line in body.split(b"\n") if (stripped := line.strip())]
    plain = all(line.startswith(b"{") and line.endswith(b"}") for line in lines)
    return len(lines) if plain and is_text(body) else None


class ParquetReader(RangeReader):
    """Reads row ranges of Parquet files; keeps the file open between ranges that follow one another."""

    def __init__(self, files: Files) -> None:
        super().__init__(files)
        self._cursor: ParquetCursor | None = None

    def read(self, file: SourceFile, start: int, end: int, fields: Fields) -> Iterator[Chunk]:
        names = list(fields)
        if self._cursor is None or not self._cursor.can_reach(file, names, start):
            self.close()
            self._cursor = ParquetCursor(self._files, file, names, start)
        try:
            for batch in self._cursor.rows(start, end):
                columns = {name: _cast_to_declared(batch.column(name), fields, name, file.path) for name in names}
                yield Chunk(columns, batch.num_rows)
        except TridentError:
            self.close()  # the cursor's position after an error is unknown
            raise

    def close(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None


class ParquetCursor:
    """An open Parquet file and the position in it."""

    def __init__(self, files: Files, file: SourceFile, names: list[str], start: int) -> None:
        self._files, self._source, self._names = files, file, names
        self._opened = files.open(file.path)
        with self._reading():
            self._file = pq.ParquetFile(self._opened, page_checksum_verification=True)
        groups = [self._file.metadata.row_group(g).num_rows for g in range(self._file.num_row_groups)]
        first, self.at = 0, 0
        while first < len(groups) and self.at + groups[first] <= start:
            self.at += groups[first]
            first += 1
        self._group_end = [sum(groups[: g + 1]) for g in range(len(groups))]
        self._batches = self._file.iter_batches(
            CHUNK_ROWS, row_groups=list(range(first, len(groups))), columns=names, use_threads=False
        )
        self._rest: pa.RecordBatch | None = None

    def can_reach(self, file: SourceFile, names: list[str], start: int) -> bool:
        """Return whether to go on in the open file: same file and columns, start not behind, at most one group's
        border."""
        if file != self._source or names != self._names or start < self.at:
            return False
        return sum(self.at < border <= start for border in self._group_end) <= 1

    def rows(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        while self.at < end:
            batch = self._rest if self._rest is not None else self._next()
            self._rest = None
            skip = min(max(start - self.at, 0), batch.num_rows)
            stop = min(end - self.at, batch.num_rows)
            self._rest = batch.slice(stop) if stop < batch.num_rows else None
            self.at += stop
            if stop > skip:
                yield batch.slice(skip, stop - skip)

    def _next(self) -> pa.RecordBatch:
        with self._reading():
            batch = next(self._batches, None)
            if batch is not None:
                batch.validate(full=True)  # texts that are not UTF-8 fail later, and far from the file
        if batch is None:
            raise SpoutError(f"FileSpout: {self._source.path} has fewer rows than its footer says")
        return batch

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            with self._files.explain_errors(self._source.path):
                yield
        except pa.ArrowException as error:
            raise SpoutError(f"FileSpout: cannot read {self._source.path}: {error}") from error

    def close(self) -> None:
        self._batches = iter(())
        self._rest = None
        self._file.close()
        self._opened.close()


def _cast_to_declared(column: pa.Array, fields: Fields, name: str, path: str) -> pa.Array:
    """Return the column as the declared type, else as the file has it; never dictionary encoded.

    A float16 becomes a float first: Arrow can neither compare it nor convert it further.
    """
    if column.type == pa.float16():
        column = column.cast(pa.float32())
    if name not in fields.types:
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    try:
        return exact_cast(column, arrow_type(fields.types[name]), name)
    except TridentError as error:
        raise SpoutError(f"FileSpout: {path}, column {name!r} is {column.type}: {error}") from error
