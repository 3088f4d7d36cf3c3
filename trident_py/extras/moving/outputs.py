"""Rows as a side of a comparison: those of our states that keep rows, of a table, and of files."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ...errors import DefinitionError, StateError
from ...model.canonical import canonical
from ...model.json_text import parse_json
from ...state import StateType, TransactionalValue
from ...state.roles import StoredRows
from ...tuples import Fields
from ..file_spout.file_list import Files, SourceFile, format_of
from ..file_spout.readers import CsvReader, LineReader, ParquetReader
from ..file_spout.row_positions import ParquetRows, Quotes, TextRows
from .comparison import NotComparable, Side
from .declared_types import exact_numbers, fit_decimals, fit_row, key_fields
from .sources import Batch
from .state_import import SIZE
from .storm_values import Key

Row = tuple[int | None, dict[str, Any]]
SUFFIXES, LINES = (".csv", ".parquet", ".pq"), (".json", ".jsonl", ".ndjson")
LINE = Fields("line")


@dataclass(frozen=True)
class Output:
    """Rows by the names of their columns, each with the txid of its batch if that is in no column. ``key``: the columns
    that its state declares as key; ``columns``: the declared ones; ``batch``: the column of the txid; ``batched``:
    whether the rows have one elsewhere; ``read`` gets the types that are known of them."""

    shown: str
    read: Callable[[Fields], Iterable[Row]]
    key: tuple[str, ...] = ()
    columns: Fields = field(default_factory=Fields)
    batch: str | None = None
    batched: bool = False

    @classmethod
    def of_state(cls, shown: str, stored: StoredRows) -> Output:
        names = stored.columns.names

        def read(types: Fields) -> Iterator[Row]:
            return ((txid, dict(zip(names, row, strict=True))) for txid, row in stored.rows)

        return cls(shown, read, stored.key.names, stored.columns, stored.txid, stored.batched)

    @classmethod
    def of_files(cls, path: str) -> Output:
        """Make the output of a file, of all files of a folder, or of a glob."""
        return cls(path, partial(_read_files, path))


@dataclass(frozen=True)
class RowChoice:
    """How rows are compared. ``key``, ``value``: columns, none: those of the state, all others; ``batch``: the column
    of the txid; ``types``: those of texts; ``renamed``: names of the left side, with those of the right one."""

    key: tuple[str, ...] = ()
    value: tuple[str, ...] = ()
    batch: str | None = None
    types: Fields = field(default_factory=Fields)
    renamed: Mapping[str, str] = field(default_factory=dict)

    def side_of(self, output: Output, name: str, other: Any) -> Side:
        """Make the side of rows. ``other`` has the key and the types that the other side declares."""
        renamed = self.renamed if name == "left" else {}
        own = {renamed.get(each, each): ddl for each, ddl in output.columns.types.items()}
        types = {**other.declared.types, **own, **self.types.types}
        columns = [renamed.get(each, each) for each in output.columns]
        key = self.key or tuple(renamed.get(each, each) for each in output.key) or other.key
        batch = self.batch if output.batch is None or self.batch in columns else renamed.get(output.batch, output.batch)
        kind = StateType.TRANSACTIONAL if batch or output.batched else StateType.NON_TRANSACTIONAL
        names = set(output.columns)
        read = partial(self._read, output, renamed, key, batch, Fields.of_names(types, types), names)
        declared = Fields.of_names(key, types) if key else None
        return Side(name, output.shown, kind, declared, None, read, rows=True, names=names)

    def _read(
        self, output: Output, renamed: Mapping[str, str], key: Sequence[str], batch: str | None, types: Fields,
        names: set[str],
    ) -> Iterator[Batch]:  # fmt: skip
        own = types.types | {left: types.types[right] for left, right in renamed.items() if right in types}
        rows = iter(output.read(Fields.of_names(own, own)))
        while part := list(islice(rows, SIZE)):
            keys: list[Key] = []
            values = []
            for txid, row in part:
                names.update(row)
                named = {renamed.get(each, each): value for each, value in row.items()}
                self._check(output.shown, named, [*key, *self.value])
                fitted = fit_row(named, types)
                txid = fitted.pop(batch, None) if batch else txid
                keys.append(tuple(fitted.pop(each) for each in key))
                value = {each: fitted[each] for each in self.value or fitted}
                values.append(value if txid is None else TransactionalValue(_whole(output, txid), value))
            yield keys, values

    def _check(self, shown: str, row: Mapping[str, Any], wanted: Sequence[str]) -> None:
        """Raise NotComparable for a column that a row lacks."""
        if missing := [name for name in wanted if name not in row]:
            raise NotComparable(f"{shown}: a row has no column {missing[0]!r}; it has: {', '.join(row)}")


def _whole(output: Output, txid: Any) -> int:
    try:
        return int(txid)
    except (TypeError, ValueError):
        raise NotComparable(f"{output.shown}: {txid!r} is no txid; name its column with --batch") from None


def _read_files(path: str, types: Fields) -> Iterator[Row]:
    files = Files({})
    found = files.find([path])
    kind = format_of(file.path for file in found)
    for file in found:
        yield from ((None, row) for row in _READ[kind](files, file, types))


def _read_csv(files: Files, file: SourceFile, types: Fields) -> Iterator[dict[str, Any]]:
    quotes = Quotes(",", True)
    rows = TextRows(file, files, quotes)
    return _read_columns(CsvReader(files, ("",), quotes), file, rows)


def _read_parquet(files: Files, file: SourceFile, types: Fields) -> Iterator[dict[str, Any]]:
    return _read_columns(ParquetReader(files), file, ParquetRows(file, files))


def _read_columns(reader: Any, file: SourceFile, rows: Any) -> Iterator[dict[str, Any]]:
    names = rows.columns()
    if len(set(names)) < len(names):
        raise NotComparable(f"{file.path} has two columns of one name: {', '.join(names)}")
    for chunk in reader.read(file, rows.begin, rows.end, Fields.of_names(names)):
        yield from (dict(zip(names, row, strict=True)) for row in chunk.rows(names))
    reader.close()


def _read_json(files: Files, file: SourceFile, types: Fields) -> Iterator[dict[str, Any]]:
    number = 0
    for chunk in LineReader(files).read(file, 0, file.size, LINE):
        for (line,) in chunk.rows(LINE):
            number += 1
            if line.strip():
                yield _parse_line(file.path, number, line, types)


def _parse_line(path: str, number: int, line: str, types: Fields) -> dict[str, Any]:
    try:
        row = parse_json(line, exact_numbers(types))
    except ValueError as error:
        raise NotComparable(f"{path}, line {number}: {error}") from error
    if not isinstance(row, dict):
        raise NotComparable(f"{path}, line {number}: expected an object, got {line[:80]}")
    return fit_decimals(row, types)


_READ: dict[str, Callable[[Files, SourceFile, Fields], Iterator[dict[str, Any]]]] = {
    "csv": _read_csv, "parquet": _read_parquet, "json": _read_json,
}  # fmt: skip


def read_key_map(file: Path, declared: Fields | None) -> dict[bytes, Key]:
    """Return the keys of the right side by the canonical form of those of the left one. The file is CSV without a
    header: the fields of the one, then those of the other. Raises DefinitionError."""
    pairs: dict[bytes, Key] = {}
    mapped: dict[bytes, bytes] = {}
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            for number, row in enumerate(csv.reader(lines), 1):
                half, odd = divmod(len(row), 2)
                if odd:
                    raise DefinitionError(f"--map {file}, line {number}: expected as many fields for the right key")
                if row:
                    left, right = key_fields([tuple(row[:half]), tuple(row[half:])], declared, None)
                    if pairs.setdefault(canonical(left), right) != right:
                        raise DefinitionError(f"--map {file}, line {number}: key {list(left)!r} is there twice")
                    if mapped.setdefault(canonical(right), canonical(left)) != canonical(left):
                        raise DefinitionError(
                            f"--map {file}, line {number}: key {list(right)!r} of the right side is there twice"
                        )
    except (OSError, UnicodeDecodeError, csv.Error, StateError) as error:
        raise DefinitionError(f"--map {file}: {error}") from error
    return pairs
