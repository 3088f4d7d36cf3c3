"""Row positions in files: finds where a given number of rows ends, without parsing them.

A position is a byte offset in a text file and a row number in a Parquet file.
"""

from __future__ import annotations

import csv
from functools import cached_property
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import SpoutError
from .filelist import SourceFile
from .filestores import Files, first_block

BLOCK = 4 << 20


class RowPositions(Protocol):
    """The positions in one file, for the coordinator: ``begin`` of the first row, ``end`` of the last."""

    @property
    def begin(self) -> int: ...

    @property
    def end(self) -> int: ...

    def advance(self, start: int, rows: int) -> tuple[int, int]:
        """Returns the position at most ``rows`` rows after start, and the number of rows up to it."""

    def near(self, start: int, rows: int, slack: int) -> tuple[int, int]:
        """As `advance`, but up to ``slack`` rows off if that makes reading cheaper."""

    def columns(self) -> list[str] | None:
        """Returns the column names; None if each row names its own."""


class TextRows:
    """Lines. With a delimiter, the first line names the columns; with ``quoted``, a field may hold newlines."""

    def __init__(
        self, file: SourceFile, files: Files, delimiter: str | None = None, quoted: bool = False
    ) -> None:
        self._file = file
        self._files = files
        self._delimiter = delimiter
        self._quoted = quoted

    @cached_property
    def _header(self) -> bytes:
        return b"" if self._delimiter is None else header_line(self._files, self._file.path)

    @property
    def begin(self) -> int:
        return len(self._header)

    @property
    def end(self) -> int:
        return self._file.size

    def columns(self) -> list[str] | None:
        if self._delimiter is None:
            return None
        return header_names(self._header, self._delimiter, self._file.path)

    def advance(self, start: int, rows: int) -> tuple[int, int]:
        taken, at, last, inside, step = 0, start, b"\n", False, first_block(self._file.path)
        with self._files.reading(self._file.path), self._files.open(self._file.path) as file:
            file.seek(start)
            while taken < rows and at < self.end:
                block = file.read(min(step, self.end - at))
                step = min(step * 2, BLOCK)
                if not block:
                    break
                size, count, inside = self._rows_in(block, rows - taken, inside)
                taken, at, last = taken + count, at + size, block[size - 1 : size]
        # The last line of a file may lack its newline.
        return (at, taken + 1) if taken < rows and last != b"\n" else (at, taken)

    def near(self, start: int, rows: int, slack: int) -> tuple[int, int]:
        return self.advance(start, rows)

    def _rows_in(self, block: bytes, rows: int, inside: bool) -> tuple[int, int, bool]:
        """Returns the bytes that hold at most ``rows`` rows, the number of rows, and whether a quote is open."""
        if self._quoted:
            return _quoted_rows(block, rows, inside)
        newlines = block.count(b"\n")
        if newlines < rows:
            return len(block), newlines, False
        low, high, missing = 0, len(block), rows
        while high - low > 1:
            middle = (low + high) // 2
            newlines = block.count(b"\n", low, middle)
            if newlines >= missing:
                high = middle
            else:
                low, missing = middle, missing - newlines
        return high, rows, False


def _quoted_rows(block: bytes, rows: int, inside: bool) -> tuple[int, int, bool]:
    at, count = 0, 0
    while count < rows and at < len(block):
        newline = block.find(b"\n", at)
        stop = len(block) if newline < 0 else newline + 1
        inside ^= bool(block.count(b'"', at, stop) & 1)
        at = stop
        count += newline >= 0 and not inside
    return at, count, inside


def header_line(files: Files, path: str) -> bytes:
    line = b""
    with files.reading(path), files.open(path) as file:
        while b"\n" not in line and (block := file.read(first_block(path))):
            line += block
    return line[: line.find(b"\n") + 1] or line


def header_names(line: bytes, delimiter: str, path: str) -> list[str]:
    """Returns the column names of a header line. Raises SpoutError for a file without one."""
    text = line.decode("utf-8-sig", errors="replace").rstrip("\r\n")
    if not text:
        raise SpoutError(f"FileSpout: {path} has no header line; a CSV file must begin with its column names")
    return next(csv.reader([text], delimiter=delimiter))


class ParquetRows:
    """Rows of a Parquet file, from its footer."""

    def __init__(self, file: SourceFile, files: Files) -> None:
        self._file = file
        self._files = files

    @cached_property
    def _metadata(self) -> pq.FileMetaData:
        path = self._file.path
        try:
            with self._files.reading(path), self._files.open(path) as file:
                return pq.read_metadata(file)
        except pa.ArrowInvalid as error:
            raise SpoutError(f"FileSpout: {self._file.path} is not a Parquet file: {error}") from error

    @property
    def begin(self) -> int:
        return 0

    @property
    def end(self) -> int:
        return self._metadata.num_rows

    def columns(self) -> list[str] | None:
        return self._metadata.schema.to_arrow_schema().names

    def advance(self, start: int, rows: int) -> tuple[int, int]:
        end = min(start + rows, self.end)
        return end, end - start

    def near(self, start: int, rows: int, slack: int) -> tuple[int, int]:
        """Ends at a row group's border if one is close: reading half a group costs as much as a whole one."""
        end, taken = self.advance(start, rows)
        border = min(self._borders, key=lambda position: abs(position - end))
        close = abs(border - end) <= slack and border > start
        return (border, border - start) if close else (end, taken)

    @cached_property
    def _borders(self) -> list[int]:
        borders = [0]
        for group in range(self._metadata.num_row_groups):
            borders.append(borders[-1] + self._metadata.row_group(group).num_rows)
        return borders
