"""Finds where a given number of rows ends, without parsing them, by the rules for text files (docs/files.md)."""

from __future__ import annotations

import csv
import re
from functools import cached_property
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import SpoutError
from ...spouts.json_values import TO_UTF_8
from .file_list import Files, SourceFile, first_block

MARK = b"\xef\xbb\xbf"
TO_LF = "a line ends with CR alone; convert the line ends to LF"

_COMPRESSED = re.compile(
    rb"(?P<gzip>\x1f\x8b)|(?P<bzip2>BZh[1-9]1AY&SY)|(?P<xz>\xfd7zXZ\0)|(?P<zstd>\x28\xb5\x2f\xfd)|(?P<zip>PK\x03\x04)"
    rb"|(?P<lz4>\x04\x22\x4d\x18)"
)
_WIDE = re.compile(rb"\xff\xfe|\xfe\xff|\0\0\xfe\xff|[^\0]\0[^\0]\0|\0[^\0]\0[^\0]|[^\0]\0\0\0|\0\0\0[^\0]", re.DOTALL)
_BARE_CR = re.compile(rb"\r(?!\r*\n)")


def check_content(path: str, beginning: bytes) -> None:
    """Raise SpoutError if a file begins like something else than text in UTF-8."""
    if found := _COMPRESSED.match(beginning):
        raise SpoutError(
            f"FileSpout: {path} is compressed ({found.lastgroup}) and cannot be read in parts; decompress it, or use "
            "Parquet"
        )
    if _WIDE.match(beginning):
        raise SpoutError(f"FileSpout: {path} is UTF-16 or UTF-32; {TO_UTF_8}")


def without_mark(beginning: bytes) -> bytes:
    """Return the beginning of a file without its byte order mark."""
    return beginning.removeprefix(MARK)


def bare_cr(outline: bytes) -> int:
    """Return where a CR ends a line in text whose quoted values are hidden; -1: nowhere."""
    found = _BARE_CR.search(outline) if b"\r" in outline else None
    return found.start() if found is not None else -1


class Quotes:
    """The quotes of CSV, as Arrow's reader and Python's have them: one opens a value only where the value begins.

    ``multiline``: rows may go on behind a line end that is between quotes.
    """

    def __init__(self, delimiter: str, multiline: bool) -> None:
        self.delimiter, self.multiline = delimiter, multiline
        self._begins = delimiter.encode() + b"\r\n"
        begins = re.escape(self._begins)
        plain = rb'"[^"\r\n]*+(?:""[^"\r\n]*+)*+"[%s][^"]*+(?<=[%s])' % (begins, begins)
        self._values = re.compile(rb'(?:%s)*+("[^"]*+(?:""[^"]*+)*+(?:"|\Z))' % plain)

    @property
    def unclosed(self) -> str:
        """What is wrong with a quote that is open where a row ends, and the next step."""
        more = "close it" if self.multiline else "if quoted values contain newlines, set multiline=True"
        return f"a quote is not closed; {more}"

    def outline(self, block: bytes) -> bytes:
        """Return the block, or one as long, in which rows end where lines do."""
        return self.hide(block) if self.multiline else block

    def hide(self, block: bytes) -> bytes:
        """Return the block with an x for each character of a line end between quotes."""
        parts: list[bytes] = []
        done, at = 0, block.find(b'"')
        while at >= 0:
            end = at + 1
            if at == 0 or block[at - 1] in self._begins:
                if (found := self._values.match(block, at)) is None:
                    break
                at, end = found.span(1)
                value = found[1]
                if b"\n" in value or b"\r" in value:
                    parts += block[done:at], value.replace(b"\n", b"x").replace(b"\r", b"x")
                    done = end
            at = block.find(b'"', end)
        return b"".join((*parts, block[done:])) if parts else block

    def rows_in(self, text: bytes) -> tuple[int, tuple[int, str] | None]:
        """Return the number of rows, blank lines left out, and where the text first breaks the rules, and how."""
        hidden = self.hide(text + b"\n")
        found = [(bare_cr(hidden[:-1]), TO_LF)]
        if not hidden.endswith(b"\n"):
            found.append((hidden.rfind(b"\n") + 1, self.unclosed))
        if not self.multiline and hidden.count(b"\n") <= text.count(b"\n"):
            at = next((at for at, each in enumerate(text) if each != hidden[at] and each == ord("\n")), -1)
            found.append((at, self.unclosed))
        rows = sum(map(bool, hidden.replace(b"\r", b"").split(b"\n")))
        return rows, min((each for each in found if each[0] >= 0), default=None)

    def row_at(self, rows: bytes, number: int) -> int:
        """Return where the row of this number begins, counted from 1; blank lines are no rows."""
        at = 0
        for line in self.hide(rows).split(b"\n"):
            number -= bool(line.strip(b"\r"))
            if number == 0:
                break
            at += len(line) + 1
        return at

    def is_open(self, rows: bytes) -> bool:
        """Return whether a quote is still open at the end of these rows."""
        return b'"' in rows and not self.hide(rows + b"\n").endswith(b"\n")


BLOCK = 4 << 20


class RowPositions(Protocol):
    """The positions in one file, for the coordinator: ``begin`` of the first row, ``end`` of the last."""

    @property
    def begin(self) -> int: ...

    @property
    def end(self) -> int: ...

    def advance(self, start: int, rows: int) -> tuple[int, int]:
        """Return the position at most ``rows`` rows after start, and the number of rows up to it."""

    def near(self, start: int, rows: int, slack: int) -> tuple[int, int]:
        """Advance, but up to ``slack`` rows off if that makes reading cheaper."""

    def columns(self) -> list[str] | None:
        """Return the column names; None if each row names its own."""


class TextRows:
    """Lines. With ``quotes`` they are CSV: the first names the columns, and a quoted value may hold newlines."""

    def __init__(self, file: SourceFile, files: Files, quotes: Quotes | None = None) -> None:
        self._file = file
        self._files = files
        self._quotes = quotes

    @cached_property
    def _header(self) -> bytes:
        return b"" if self._quotes is None else header_line(self._files, self._file.path, self._quotes)

    @property
    def begin(self) -> int:
        return len(self._header)

    @property
    def end(self) -> int:
        return self._file.size

    def columns(self) -> list[str] | None:
        return None if self._quotes is None else header_names(self._header, self._quotes.delimiter, self._file.path)

    def advance(self, start: int, rows: int) -> tuple[int, int]:
        path = self._file.path
        taken, at, data, step = 0, start, b"", first_block(path)
        with self._files.explain_errors(path), self._files.open(path) as file:
            file.seek(start)
            while taken < rows and at < self.end:
                more = file.read(min(max(step, len(data)), self.end - at - len(data)))
                step = min(step * 2, BLOCK)
                if not more:
                    break
                data += more
                if at == 0:
                    check_content(path, data)
                size, count = self._rows_in(data, rows - taken, at + len(data) == self.end)
                taken, at = taken + count, at + size
                if start == 0 and taken == 1 and at == self.end and data[-1:] == b"\r" and bare_cr(data[:-1]) >= 0:
                    raise SpoutError(f"FileSpout: {path}: {TO_LF}")
                data = data[size:] if taken < rows else b""
        return at, taken

    def near(self, start: int, rows: int, slack: int) -> tuple[int, int]:
        return self.advance(start, rows)

    def _rows_in(self, data: bytes, rows: int, last: bool) -> tuple[int, int]:
        """Return the bytes to go on by, and how many rows end there: at most ``rows``.

        The last line of a file may lack its newline. Of an unfinished row, CSV needs the beginning again.
        """
        outline = data if self._quotes is None else self._quotes.outline(data)
        newlines = outline.count(b"\n")
        if newlines >= rows:
            return _position_after_newline(outline, rows), rows
        if last:
            return len(data), newlines + (not outline.endswith(b"\n"))
        return (len(data) if self._quotes is None else outline.rfind(b"\n") + 1), newlines


def _position_after_newline(block: bytes, number: int) -> int:
    """Return the position behind the newline of this number, counted from 1."""
    low, high = 0, len(block)
    while high - low > 1:
        middle = (low + high) // 2
        newlines = block.count(b"\n", low, middle)
        if newlines >= number:
            high = middle
        else:
            low, number = middle, number - newlines
    return high


def header_line(files: Files, path: str, quotes: Quotes) -> bytes:
    """Return the first line of a CSV file, with its mark and its end. Raises SpoutError for what is no such line."""
    line, body, end = b"", b"", 0
    with files.explain_errors(path), files.open(path) as file:
        while not end and (block := file.read(max(first_block(path), len(line)))):
            line += block
            check_content(path, line)
            body = without_mark(line)
            end = quotes.outline(body).find(b"\n") + 1
            if bare_cr(quotes.hide(body[: end or -1])) >= 0:
                raise SpoutError(f"FileSpout: {path}, line 1: {TO_LF}")
    header = body[:end] if end else body
    if quotes.is_open(header):
        raise SpoutError(f"FileSpout: {path}, line 1: {quotes.unclosed}")
    return line[: len(line) - len(body) + len(header)]


def header_names(line: bytes, delimiter: str, path: str) -> list[str]:
    """Return the column names of a header line. Raises SpoutError for a file without one."""
    text = line.decode("utf-8-sig", errors="replace").rstrip("\r\n")
    if not text:
        raise SpoutError(f"FileSpout: {path} has no header line; a CSV file must begin with its column names")
    try:
        return next(csv.reader([text], delimiter=delimiter))
    except csv.Error as error:  # a name of more than 131,072 characters
        raise SpoutError(f"FileSpout: {path}, line 1: these are no column names: {error}") from error


class ParquetRows:
    """Rows of a Parquet file, from its footer."""

    begin = 0

    def __init__(self, file: SourceFile, files: Files) -> None:
        self._file = file
        self._files = files

    @cached_property
    def _footer(self) -> tuple[pq.FileMetaData, list[str]]:
        """The metadata, and the names of the columns, which may be damaged too."""
        path = self._file.path
        try:
            with self._files.explain_errors(path), self._files.open(path) as file:
                metadata = pq.read_metadata(file)
            return metadata, metadata.schema.to_arrow_schema().names
        except pa.ArrowException as error:
            raise SpoutError(f"FileSpout: {self._file.path} is not a Parquet file: {error}") from error

    @property
    def end(self) -> int:
        return self._footer[0].num_rows

    def columns(self) -> list[str] | None:
        return self._footer[1]

    def advance(self, start: int, rows: int) -> tuple[int, int]:
        end = min(start + rows, self.end)
        return end, end - start

    def near(self, start: int, rows: int, slack: int) -> tuple[int, int]:
        """End at a row group's border if one is close: reading half a group costs as much as a whole one."""
        end, taken = self.advance(start, rows)
        border = min(self._borders, key=lambda position: abs(position - end))
        close = abs(border - end) <= slack and border > start
        return (border, border - start) if close else (end, taken)

    @cached_property
    def _borders(self) -> list[int]:
        borders, metadata = [0], self._footer[0]
        for group in range(metadata.num_row_groups):
            borders.append(borders[-1] + metadata.row_group(group).num_rows)
        return borders
