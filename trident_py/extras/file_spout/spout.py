"""FileSpout: a transactional spout that reads files by columns.

The coordinator describes a batch as ranges of files, one list per task. The emitters in the tasks read the ranges
straight into Arrow. The metadata of a batch, a JSON value:

    files   [[path, size, mtime, tag], ...]        the files not yet read, frozen when the run began
    tasks   [[[file, start, end], ...], ...]       the ranges of this batch, by index into files
    next    [file, position]                       where the next batch begins

A task gets only its own part of it: ``files``, those that it reads, and ``ranges``, by index into these.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ...errors import DefinitionError, SpoutError, TridentError
from ...filesystems.uris import Storage, check_storage, naming, needs_of_paths, show_storage
from ...model.chunks import Chunk, arrow_type
from ...model.requirements import Needs
from ...operations.base import TridentCollector
from ...spouts.interfaces import TRANSACTIONAL, ITridentSpout, SpoutContext
from ...tuples import Fields, FieldsLike, TransactionAttempt
from .file_list import FORMATS, Files, SourceFile, format_of
from .readers import CsvReader, JsonReader, LineReader, ParquetReader, RangeReader
from .row_positions import ParquetRows, Quotes, RowPositions, TextRows

PathsLike = str | os.PathLike | Iterable[str | os.PathLike]


class FileSpout(ITridentSpout):
    """Reads files as batches of batchSize rows over all partitions; ends with the last file.

    ``paths``: files, folders or globs, read in this order; the files of each are sorted. They are local, or in a store
    that a URI names (``s3://``, ``hdfs://``, ``gs://``, ``abfs://``; docs/files.md). The list of files is frozen when
    the run begins and survives restarts. ``storage``: addresses and credentials of that store, as keywords of the class
    that reads it; what it lacks comes from the environment of driver and executors.

    ``format``: "lines" (one field), "csv" (with a header), "json" (one object per line) or "parquet"; None: by the file
    names' suffixes. ``fields`` name columns. A typed field (``Fields("temp double")``) becomes that type; an untyped
    one is text in CSV and the file's value in JSON and Parquet. ``nulls``: the CSV texts that mean null; a quoted one
    is a text. ``multiline``: quoted CSV values may hold newlines. A missing JSON key is None.

    Batches depend only on the files and batchSize, so replays are identical. Raises SpoutError for a file that has
    changed since, a missing file or column, a store that refuses access, and a row that cannot be read (naming file and
    line). While a store does not answer, the batch fails and is tried again.
    On Spark every executor must see local files under the same paths.
    """

    kind = TRANSACTIONAL

    def __init__(
        self,
        paths: PathsLike,
        fields: FieldsLike,
        batchSize: int = 10_000,
        format: str | None = None,
        nulls: Iterable[str] = ("", "NA"),
        delimiter: str = ",",
        multiline: bool = False,
        storage: Storage | None = None,
    ) -> None:
        listed = [paths] if isinstance(paths, str | os.PathLike) else paths
        self.paths = tuple(str(os.fspath(path)) for path in listed)
        self.fields = Fields.of(fields)
        self.batchSize = batchSize
        self.format = format
        self.nulls = (nulls,) if isinstance(nulls, str) else tuple(nulls)
        self.delimiter = delimiter
        self.multiline = multiline
        self.storage = dict(storage or {})
        self._check()

    def _check(self) -> None:
        if not self.paths:
            raise DefinitionError("FileSpout: paths is empty; name at least one file, folder or glob")
        if isinstance(self.batchSize, bool) or not isinstance(self.batchSize, int) or self.batchSize < 1:
            raise DefinitionError(f"FileSpout: batchSize must be an integer of at least 1, got {self.batchSize!r}")
        if self.format is not None and self.format not in FORMATS:
            raise DefinitionError(f"FileSpout: no format {self.format!r}; there are: {', '.join(FORMATS)}")
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n':
            raise DefinitionError(
                f"FileSpout: delimiter must be one ASCII character, no quote and no line end; got {self.delimiter!r}"
            )
        if len(self.fields) == 0:
            raise DefinitionError("FileSpout: fields is empty; name at least one field")
        if self.format == "lines":
            check_lines(self.fields)
        for ddl in self.fields.types.values():
            arrow_type(ddl)
        with naming("FileSpout"):
            check_storage(self.paths, self.storage)
        Files(self.storage).prepare(self.paths)

    def __repr__(self) -> str:
        storage = f", storage={show_storage(self.storage)}" if self.storage else ""
        return f"FileSpout({', '.join(self.paths)}; {self.fields}, batchSize={self.batchSize}{storage})"

    def getOutputFields(self) -> Fields:
        return self.fields

    @property
    def needs(self) -> Needs:
        """The files and the folders of globs of this machine's file system; the stores of URIs."""
        return needs_of_paths(self.paths, self.storage)

    def getCoordinator(self, txStateId: str, conf: dict, context: SpoutContext) -> FileCoordinator:
        return FileCoordinator(self, context.numPartitions())

    def getEmitter(self, txStateId: str, conf: dict, context: SpoutContext) -> FileEmitter:
        return FileEmitter(self)

    def format_of(self, files: Iterable[SourceFile]) -> str:
        """Return the format of these files. Raises DefinitionError if the fields do not suit it."""
        kind = self.format or format_of(file.path for file in files)
        if kind == "lines":
            check_lines(self.fields)
        return kind


def check_lines(fields: Fields) -> None:
    """Raise DefinitionError unless there is one field, of type string or untyped."""
    if len(fields) != 1 or set(fields.types.values()) - {"string"}:
        raise DefinitionError(f"FileSpout: format 'lines' has one field of type string, got {fields.declarations()}")


class Segment(NamedTuple):
    """A range of rows of one file; ``file`` is an index into the files of the batch."""

    file: int
    start: int
    end: int
    rows: int


class FileCoordinator(ITridentSpout.BatchCoordinator):
    """Cuts the files into batches, and each batch into ranges, one list per task."""

    def __init__(self, spout: FileSpout, partitions: int) -> None:
        self._spout = spout
        self._partitions = partitions
        self._files = Files(spout.storage)
        self._rows: dict[SourceFile, RowPositions] = {}
        self._first: tuple[list[SourceFile], int] | None = None
        self._next: tuple[list[SourceFile], int] | None = None
        self._kind = ""
        self._waiting = 0

    def restore(self, txid: int, metadata: Any) -> None:
        if metadata is not None:
            self._next = self._after(metadata)

    def isReady(self, txid: int) -> bool:
        return not self.isExhausted()

    def isExhausted(self) -> bool:
        """Return whether all files are read. Leaves unreadable files for initializeTransaction to report."""
        try:
            files, _ = self._begin() if self._next is None else self._next
        except TridentError:
            return False
        return not files

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        metadata = currMetadata
        if metadata is None:
            files, start = self._begin() if prevMetadata is None else self._after(prevMetadata)
            metadata = self._batch(txid, files, start)
        self._next = self._after(metadata)
        return metadata

    def metadataForTasks(self, metadata: Any, numTasks: int) -> list[Any]:
        """Share the metadata among tasks: a log written with more tasks is shared among the present ones."""
        return [_part(metadata, metadata["tasks"][index::numTasks]) for index in range(numTasks)]

    def backlog(self) -> dict[str, int]:
        """Estimate the rows of the rest: as many a byte as the last batch had. Nothing before the first batch."""
        return {"rows": self._waiting} if self._waiting else {}

    def tuplesAtMost(self, metadata: Any) -> int:
        return self._spout.batchSize if any(metadata["tasks"]) else 0

    def _begin(self) -> tuple[list[SourceFile], int]:
        """Return the files and the first position in them; looked up once."""
        if self._first is None:
            files = self._files.find(self._spout.paths)
            self._kind = self._spout.format_of(files)
            self._first = self._normalize(files, None)
        return self._first

    def _after(self, metadata: Any) -> tuple[list[SourceFile], int]:
        """Return the files and position after a batch. Touches no file: the batch's `next` is final."""
        file, position = metadata["next"]
        return [SourceFile(*values) for values in metadata["files"][file:]], position

    def _normalize(self, files: list[SourceFile], position: int | None) -> tuple[list[SourceFile], int]:
        """Return the position; at the end of a file, the first of the next file that has rows."""
        while files:
            rows = self._rows_of(files[0])
            at = rows.begin if position is None else position
            if at < rows.end:
                return files, at
            files, position = files[1:], None
        return [], 0

    def _rows_of(self, file: SourceFile) -> RowPositions:
        if file not in self._rows:
            rows = self._open_reader(file)
            check_columns(self._spout.fields, rows.columns(), file.path)
            self._rows[file] = rows
        return self._rows[file]

    def _open_reader(self, file: SourceFile) -> RowPositions:
        if self._kind == "parquet":
            return ParquetRows(file, self._files)
        if self._kind == "csv":
            return TextRows(file, self._files, Quotes(self._spout.delimiter, self._spout.multiline))
        return TextRows(file, self._files)

    def _batch(self, txid: int, files: list[SourceFile], start: int) -> dict:
        if not self._kind and files:
            self._kind = self._spout.format_of(files)  # the run began in another process
        segments: list[Segment] = []
        missing, rest, at = self._spout.batchSize, files, start
        while rest and missing:
            self._files.check(rest[0], txid)
            end, taken = self._rows_of(rest[0]).advance(at, missing)
            segments.append(Segment(len(files) - len(rest), at, end, taken))
            missing -= taken
            rest, at = self._normalize(rest, end)
        size, left = self._bytes(files, start), self._bytes(rest, at)
        taken = sum(segment.rows for segment in segments)
        self._waiting = round(taken * left / (size - left)) if size > left else 0
        tasks = self._split(segments, files)
        used = len(files) - len(rest)
        for file in files[: used + 1]:  # the ranges and `next` are those of what was read since the check before
            self._files.check(file, txid)
        for file in files[:used]:
            self._rows.pop(file, None)
        return {"files": [list(file) for file in files], "tasks": tasks, "next": [used, at]}

    def _bytes(self, files: list[SourceFile], position: int) -> float:
        """Return how many bytes the files have from a position in the first of them on."""
        if not files:
            return 0.0
        rows, first = self._rows_of(files[0]), files[0]
        part = (rows.end - position) / max(rows.end - rows.begin, 1)
        return first.size * part + sum(file.size for file in files[1:])

    def _split(self, segments: list[Segment], files: list[SourceFile]) -> list[list[list[int]]]:
        """Split the rows into equal shares, in order. A Parquet cut may move by a quarter of a share."""
        total = sum(segment.rows for segment in segments)
        queue, done = list(segments), 0
        tasks: list[list[list[int]]] = []
        for index in range(self._partitions):
            quota = total * (index + 1) // self._partitions - done
            ranges: list[list[int]] = []
            while queue and quota > 0:
                fits = queue[0].rows <= quota
                part, queue = self._take(queue, quota, total // self._partitions // 4, files)
                quota, done = quota - part.rows if fits else 0, done + part.rows
                ranges.append([part.file, part.start, part.end])
            tasks.append(ranges)
        return tasks

    def _take(
        self, queue: list[Segment], quota: int, slack: int, files: list[SourceFile]
    ) -> tuple[Segment, list[Segment]]:
        """Take the first rows of the queue, about ``quota`` of them, from one file."""
        first, rest = queue[0], queue[1:]
        if first.rows <= quota:
            return first, rest
        end, taken = self._rows_of(files[first.file]).near(first.start, quota, slack)
        if end >= first.end:
            return first, rest
        cut = Segment(first.file, first.start, end, taken)
        return cut, [Segment(first.file, end, first.end, first.rows - taken), *rest]


def _part(metadata: Any, tasks: list[list[list[int]]]) -> dict:
    """Return what a task gets to know of a batch: the ranges of these tasks of its metadata."""
    ranges = [each for of_task in tasks for each in of_task]
    files = sorted({file for file, _, _ in ranges})
    places = {file: place for place, file in enumerate(files)}
    return {
        "files": [metadata["files"][file] for file in files],
        "ranges": [[places[file], start, end] for file, start, end in ranges],
    }


def check_columns(fields: Fields, columns: list[str] | None, path: str) -> None:
    """Raise SpoutError for a column that the file lacks or has twice; lists the file's columns."""
    if columns is None:
        return
    for name in fields:
        if columns.count(name) != 1:
            count = "several columns" if name in columns else "no column"
            raise SpoutError(f"FileSpout: {path} has {count} {name!r}; it has: {', '.join(columns)}")


class FileEmitter(ITridentSpout.Emitter):
    """Reads the ranges of its task."""

    def __init__(self, spout: FileSpout) -> None:
        self._spout = spout
        self._files = Files(spout.storage)
        self._reader: RangeReader | None = None

    def emitChunks(
        self, tx: TransactionAttempt, coordinatorMeta: Any, wanted: Iterable[str] | None = None
    ) -> Iterator[Chunk]:
        """Yield the rows as columns of at most 64k rows, reading each only when it is asked for."""
        files = [SourceFile(*values) for values in coordinatorMeta["files"]]
        fields = self._spout.fields if wanted is None else self._spout.fields.only(wanted)
        for file, start, end in coordinatorMeta["ranges"]:
            self._files.check(files[file], tx.txid)
            if self._reader is None:
                self._reader = make_reader(self._spout, self._files, self._spout.format_of(files))
            yield from self._reader.read(files[file], start, end, fields)
            self._files.check(files[file], tx.txid)

    def emitBatch(self, tx: TransactionAttempt, coordinatorMeta: Any, collector: TridentCollector) -> None:
        for chunk in self.emitChunks(tx, coordinatorMeta):
            for row in chunk.rows(self._spout.fields):
                collector.emit(row)

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()


def make_reader(spout: FileSpout, files: Files, kind: str) -> RangeReader:
    if kind == "parquet":
        return ParquetReader(files)
    if kind == "csv":
        return CsvReader(files, spout.nulls, Quotes(spout.delimiter, spout.multiline))
    return JsonReader(files) if kind == "json" else LineReader(files)
