"""Reads row ranges of Parquet files as Arrow columns. Runs in the tasks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..chunks import CHUNK_ROWS, Chunk, arrow_type, exact_cast
from ..errors import SpoutError, TridentError
from ..tuples import Fields


class ParquetReader:
    """Reads row ranges of Parquet files; keeps the file open between ranges that follow one another."""

    def __init__(self) -> None:
        self._cursor: ParquetCursor | None = None

    def read(self, path: str, start: int, end: int, fields: Fields) -> Iterator[Chunk]:
        names = list(fields)
        if self._cursor is None or not self._cursor.can_reach(path, names, start):
            self.close()
            self._cursor = ParquetCursor(path, names, start)
        try:
            for batch in self._cursor.rows(start, end):
                columns = {name: plain(batch.column(name), fields, name, path) for name in names}
                yield Chunk(columns, batch.num_rows)
        except SpoutError:
            self.close()  # the cursor's position after an error is unknown
            raise

    def close(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None


class ParquetCursor:
    """An open Parquet file and the position in it."""

    def __init__(self, path: str, names: list[str], start: int) -> None:
        self._path, self._names = path, names
        stat = Path(path).stat()
        self._identity = stat.st_ino, stat.st_mtime_ns
        try:
            self._file = pq.ParquetFile(path)
        except (pa.ArrowInvalid, OSError) as error:
            raise SpoutError(f"FileSpout: cannot read {path}: {error}") from error
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

    def can_reach(self, path: str, names: list[str], start: int) -> bool:
        """Whether to go on in the open file: same file and columns, start not behind, at most one group's border."""
        if path != self._path or names != self._names or start < self.at:
            return False
        stat = Path(path).stat()
        passed = sum(self.at < border <= start for border in self._group_end)
        return self._identity == (stat.st_ino, stat.st_mtime_ns) and passed <= 1

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
        try:
            return next(self._batches)
        except StopIteration:
            raise SpoutError(f"FileSpout: {self._path} has fewer rows than its footer says") from None
        except (pa.ArrowInvalid, OSError) as error:
            raise SpoutError(f"FileSpout: cannot read {self._path}: {error}") from error

    def close(self) -> None:
        self._batches = iter(())
        self._rest = None
        self._file.close()


def plain(column: pa.Array, fields: Fields, name: str, path: str) -> pa.Array:
    """Returns the column as the declared type, else as the file has it; never dictionary encoded."""
    if name not in fields.types:
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    try:
        return exact_cast(column, arrow_type(fields.types[name]), name)
    except TridentError as error:
        raise SpoutError(f"FileSpout: {path}, column {name!r} is {column.type}: {error}") from error
