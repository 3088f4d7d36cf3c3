"""One partition of a FileState, in the task that has its tuples: it writes hidden files and returns their receipt."""

from __future__ import annotations

import logging
import secrets
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from states.columns.arrow import gather_columns
from states.columns.values import short

from ...errors import StateError, TridentError
from ...model.chunks import TupleList, arrow_type, convert
from ...state import State
from ...tuples import Fields, TridentTuple
from .folder import StateFolder
from .formats import ROWS_AT_ONCE, FileFormat, explain_refusal, strange
from .ledger import STAGING, FileFence, FileLedger
from .names import format_staged_name

log = logging.getLogger("trident_py")


class FilePartition(State):
    """One partition of a FileState; the driver decides which of its files become visible.

    On replay: the rows are written again into files with other hidden names, which nobody reads unless the driver has
    decided on them.
    """

    def __init__(self, factory: Any, fence: FileFence | None, partition: int) -> None:
        self.factory = factory
        self.partition = partition
        self._fence = fence
        self._folder: StateFolder = factory.folder()
        self._ledger = FileLedger(self._folder)
        self._txid = 0
        self._epoch = 0
        self._shown = False
        self._columns: Fields | None = None
        self._before: tuple[str, ...] = ()
        self._files: list[_StagedFile] = []

    def beginCommit(self, txid: int | None) -> None:
        """Read the ledger. Raises StateError without a driver or a txid."""
        if self._fence is None or txid is None:
            raise StateError(
                f"{self.factory.shown}: a FileState shows the rows of a txid when its driver decides to, but there is "
                "no driver or no txid here. Run the topology on a cluster, outside of DRPC streams"
            )
        record = self._fence.admits(self._ledger.read(), txid)
        self._txid, self._epoch, self._shown = txid, record.epoch, record.txid >= txid
        self._files, self._columns, self._before = [], None, record.columns

    def insert(self, tuples: Sequence[TridentTuple], tell: bool) -> Sequence[TridentTuple]:
        """Write the rows; with ``tell`` returns them, unless the batch is already visible. Raises StateError."""
        if self._shown or len(tuples) == 0:
            return []
        fields = tuples.fields if isinstance(tuples, TupleList) else tuples[0].getFields()
        if self._columns is None:
            self._columns = self._declare_columns(fields)
        rows: Any = self._table(fields, tuples) if self.factory.rows.typed else list(tuples)
        for at in range(0, len(tuples), ROWS_AT_ONCE):
            end = min(at + ROWS_AT_ONCE, len(tuples))
            self._write(rows.slice(at, end - at) if isinstance(rows, pa.Table) else rows[at:end], end - at)
        return tuples if tell else []

    def commit(self, txid: int | None) -> Any:
        for file in self._files:
            file.close()
        if self._files:
            self._folder.sync(STAGING)
        columns = [] if self._columns is None else ddl_of(self._columns)
        files = [[file.name, file.count, file.out.size, f"{file.out.crc:08x}"] for file in self._files]
        count = sum(file.count for file in self._files)
        self._files = []
        return {"partition": self.partition, "count": count, "columns": columns, "files": files}

    def rollback(self, txid: int | None) -> None:
        """Delete the files; what stays is swept by the driver."""
        files, self._files = self._files, []
        for file in files:
            try:
                file.out.close()
                self._folder.delete(file.name)
            except TridentError as error:
                log.info("batch %s: %s will be deleted later: %s", txid, file.name, error)

    def _declare_columns(self, fields: Fields) -> Fields:
        """Return the columns of the files. Raises StateError if they lack a type, or differ from those of the other
        files."""
        columns = self.factory.declare_columns(fields)
        now = tuple(ddl_of(columns))
        if self._before and now != self._before:
            raise StateError(
                f"{self.factory.shown}: the files there have the columns {', '.join(self._before)}, and those of this "
                f"batch are {', '.join(now)}: readers could not read both as one table. Write them into another folder"
            )
        return columns

    def _table(self, fields: Fields, tuples: Sequence[Any]) -> pa.Table:
        assert self._columns is not None
        names = list(self._columns)
        values = gather_columns(tuples, fields, names)
        if values is None:
            raise StateError(f"{self.factory.shown}: a tuple lacks values for {fields}")
        arrays = []
        for name, column in zip(names, values, strict=True):
            ddl = self._columns.types[name]
            check = partial(_convert_column, self.factory.rows, ddl, name, len(names) == 1)
            if isinstance(array := check(column), str):
                at = _first_bad(column, check)
                raise self._bad(name, ddl, names, [_plain(each[at]) for each in values], at, array)
            arrays.append(array)
        return pa.table(arrays, schema=schema_of(self._columns))

    def _bad(self, name: str, ddl: str, names: list[str], row: list[Any], at: int, why: str) -> StateError:
        text = ", ".join(f"{each}={short(value)}" for each, value in zip(names, row, strict=True))
        value = row[names.index(name)]
        return StateError(
            f"{self.factory.shown}, row {at} of the batch ({text}): column {name!r} ({ddl}) cannot hold {short(value)} "
            f"({type(value).__name__}): {why}. Nothing of the batch is written. Convert the value before the state, or "
            "give the column another type"
        )

    def _write(self, rows: Any, count: int) -> None:
        if not self._files or self._files[-1].out.size >= self.factory.rotate_bytes:
            if self._files:
                self._files[-1].close()
            self._files.append(self._new())
        self._files[-1].write(rows, count)

    def _new(self) -> _StagedFile:
        assert self._fence is not None and self._columns is not None
        name = format_staged_name(
            self._txid, self._epoch, self._fence.generation, self._fence.attempt, self.partition,
            secrets.token_hex(8), len(self._files), self.factory.rows.suffix,
        )  # fmt: skip
        return _StagedFile(name, self._folder, self.factory.rows, schema_of(self._columns))


class _StagedFile:
    """One hidden file while it is written."""

    def __init__(self, name: str, folder: StateFolder, format: FileFormat, schema: pa.Schema) -> None:
        self.name = name
        self.count = 0
        self.out = folder.open_writer(name)
        self._rows = format.rows(self.out, schema)

    def write(self, rows: Any, count: int) -> None:
        self._rows.write(rows)
        self.count += count

    def close(self) -> None:
        if not self.out.closed:
            self._rows.close()
            self.out.close()


def ddl_of(columns: Fields) -> list[str]:
    return columns.declarations()


def schema_of(columns: Fields) -> pa.Schema:
    """Return the Arrow schema of the files; columns without a type have none."""
    return pa.schema([(name, arrow_type(columns.types[name])) for name in columns if name in columns.types])


def check_columns(format: FileFormat, columns: Fields, shown: str) -> None:
    """Raise StateError for columns that a format cannot hold."""
    if missing := [name for name in columns if name not in columns.types]:
        raise StateError(
            f"{shown}: the fields {', '.join(missing)} have no type, and {format.name} files need one. Declare them: "
            "columns=[\"word string\", \"n bigint\"], or type the fields of the stream"
        )
    if len(columns) == 0:
        raise StateError(f"{shown}: the tuples have no fields, so a row has no columns. Name the fields of the tuples")
    if why := explain_refusal(format, schema_of(columns)):
        raise StateError(f"{shown}: {why}")


def _convert_column(format: FileFormat, ddl: str, name: str, alone: bool, column: Any) -> pa.Array | str:
    """Return the column in its declared type; or why it cannot be."""
    try:
        array = convert(column, ddl, name)
    except TridentError as error:
        return str(error)
    if not isinstance(array, pa.Array):
        return "a value was never emitted"
    return strange(format, array, alone) or array


def _first_bad(column: Any, check: Callable[[Any], pa.Array | str]) -> int:
    """Return the first value that the column cannot hold."""
    return bisect_left(range(len(column)), True, key=lambda at: isinstance(check(column[: at + 1]), str))


def _plain(value: Any) -> Any:
    return value.as_py() if isinstance(value, pa.Scalar) else value
