"""What a SQLite table is like: its columns' affinities, its keys, its behaviour in a conflict."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Engine
from sqlalchemy.types import UserDefinedType

from ....columns.values import DECODERS, Column, RefusedValue, decoder_of
from ...connection import Connection, QueryResult, Statement
from ..base import Dialect

# date, timestamp, decimal and json are stored as text: any other affinity would turn them into floats
_STORAGE = {
    "integer": "BIGINT", "double": "DOUBLE", "text": "TEXT", "boolean": "BOOLEAN", "binary": "BLOB",
    "date": "TEXT", "timestamp": "TEXT", "decimal": "TEXT", "json": "TEXT",
}  # fmt: skip
_TEXTS = {"text", "date", "timestamp", "decimal", "json"}


class _Declared(UserDefinedType):
    """A column type written into the DDL unchanged."""

    cache_ok = True

    def __init__(self, text: str) -> None:
        self.text = text

    def get_col_spec(self, **kwargs: Any) -> str:
        return self.text


class FileConnection(sqlite3.Connection):
    """A connection that knows which file it has open. A replaced (`mv backup.db counts.db`) or deleted file lives on
    for the connections that have it open: their writes are lost with the last of them, without an error."""

    _path = ""
    _file: tuple[int, int] | None = None

    def remember_file(self, path: str) -> None:
        """Called once the file exists; remembers it."""
        self._path, self._file = path, _file_at(path)

    def together(self, statements: Sequence[Statement]) -> list[Any]:
        cursors = (self.execute(text, parameters) for text, parameters in statements)
        return [QueryResult(cursor.fetchall(), cursor.rowcount, cursor.description) for cursor in cursors]

    def is_current(self) -> bool:
        """Return whether the path still names the open file."""
        return self._file == _file_at(self._path)


def _file_at(path: str) -> tuple[int, int] | None:
    try:
        file = Path(path).stat()
    except FileNotFoundError:
        return None
    return file.st_dev, file.st_ino


def unopenable(path: Path) -> str | None:
    """Return why the file cannot be opened; None if no problem is found. SQLite also writes the folder, for the log
    beside the file."""
    if not path.parent.is_dir():
        return f"the folder {path.parent} does not exist; create it"
    if path.is_dir():
        return f"{path} is a folder; name a file in it"
    if not os.access(path.parent, os.W_OK | os.X_OK):
        return f"no permission to write in the folder {path.parent}"
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        return f"no permission to write the file {path}"
    return None


_KEPT = {  # the families that a column of this affinity returns unchanged
    "INTEGER": {"integer", "boolean"}, "TEXT": _TEXTS, "BLOB": {"binary"}, "REAL": {"double"},
    "": {*_TEXTS, "integer", "boolean", "binary", "double"},
}  # fmt: skip
# NUMERIC turns texts that look like numbers into numbers; these types are accepted for families that never do.
_NAMED = [
    (re.compile(r"BOOL(?:EAN)?"), "boolean", {"boolean"}),
    (re.compile(r"DATE"), "date", {"date", "timestamp"}),
    (re.compile(r"(?:DATETIME|TIMESTAMP)(?:\(\d\))?"), "timestamp", {"date", "timestamp"}),
]
_DDL = {"INTEGER": "bigint", "TEXT": "string", "BLOB": "binary", "REAL": "double"}
_LITERALS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/", re.DOTALL)
_CONFLICT = re.compile(r"\bON\s+CONFLICT\s+(REPLACE|IGNORE|FAIL|ROLLBACK)\b", re.IGNORECASE)


class SqliteTable(Dialect):
    """The methods of `Sqlite` about tables."""

    def storage(self, column: Column) -> Any:
        sized = column.family == "text" and column.sizes
        return _Declared(f"VARCHAR({column.sizes[0]})" if sized else _STORAGE[column.family])

    def ddl_of(self, type_name: str) -> str | None:
        named = [ddl for pattern, ddl, _ in _NAMED if pattern.fullmatch(type_name.upper())]
        return named[0] if named else _DDL.get(_affinity(type_name))

    def fits(self, column: Column, type_name: str) -> bool:
        if _keeps(type_name, column.family):
            return True
        raise RefusedValue(f"cannot hold {column.ddl} unchanged; make it {_STORAGE[column.family]}")

    def type_names(self, engine: Engine, table: str) -> dict[str, str]:
        with engine.connect() as connection:
            columns = connection.exec_driver_sql(f'PRAGMA table_xinfo("{table}")').fetchall()
        return {column[1]: column[2].upper() for column in columns}

    def columns_now(self, table: str, columns: Sequence[Column]) -> Statement:
        """Return the number of the last change to the file's tables. Only the transaction that may write can change
        them."""
        return "PRAGMA schema_version", ()

    def decoder(self, column: Column) -> Callable[[Any], Any] | None:
        return decoder_of(column) if column.family in DECODERS else None

    def table_options(self, connection: Connection, keyed: bool) -> dict[str, Any]:
        return {"sqlite_with_rowid": False} if keyed else {}  # the key itself is the tree: one look-up instead of two

    def inexact(self, connection: Connection, table: str, names: Sequence[str]) -> dict[str, str]:
        bad = {}
        for index in connection.execute(f'PRAGMA index_list("{table}")').fetchall():
            for row in connection.execute(f'PRAGMA index_xinfo("{index[1]}")').fetchall():
                if row[2] in names and row[4] != "BINARY":
                    bad[row[2]] = f"collates {row[4]}; make the table with that column COLLATE BINARY"
        return bad

    def unfit(self, connection: Connection, table: str) -> str | None:
        text = "SELECT type, sql FROM sqlite_master WHERE lower(name) = lower(?) AND type IN ('table', 'view')"
        entry = connection.execute(text, (table,)).fetchone()
        if entry is None:
            return None
        kind, sql = entry
        if kind == "view" or re.match(r"CREATE\s+VIRTUAL", sql, re.IGNORECASE):
            return f"is a {'view' if kind == 'view' else 'virtual table'}; a state needs a table"
        clause = _CONFLICT.search(_LITERALS.sub(" ", sql))
        if clause is None:
            return None
        effects = {"REPLACE": "removes the older row", "IGNORE": "leaves the row out"}
        effect = effects.get(clause[1].upper(), "keeps half of a statement")
        return f"has a constraint with {clause[0].upper()}, which silently {effect}. Create it without that clause"

    def find_auto_increment(self, connection: Connection, table: str) -> set[str]:
        """Return the column that is an alias of the rowid: INTEGER PRIMARY KEY, without an index of its own."""
        keys = [row for row in connection.execute(f'PRAGMA table_info("{table}")').fetchall() if row[5] > 0]
        indexes = connection.execute(f'PRAGMA index_list("{table}")').fetchall()
        alias = len(keys) == 1 and keys[0][2].upper() == "INTEGER" and "pk" not in [row[3] for row in indexes]
        return {keys[0][1]} if alias else set()

    def unique_keys(self, connection: Connection, table: str) -> list[set[str]]:
        columns = connection.execute(f'PRAGMA table_xinfo("{table}")').fetchall()
        keys = [{row[1] for row in columns if row[5] > 0}]
        for _, index, is_unique, _, is_partial in connection.execute(f'PRAGMA index_list("{table}")').fetchall():
            if is_unique and not is_partial:  # None stands for an expression
                keys.append({row[2] for row in connection.execute(f'PRAGMA index_info("{index}")').fetchall()})
        return [key for key in keys if None not in key]


def _affinity(type_name: str) -> str:
    """Apply SQLite's rule (https://sqlite.org/datatype3.html, 3.1); "" for a column without a type, which changes
    nothing."""
    kind = type_name.upper()
    rules = {"INTEGER": ("INT",), "TEXT": ("CHAR", "CLOB", "TEXT"), "BLOB": ("BLOB",), "REAL": ("REAL", "FLOA", "DOUB")}
    if not kind:
        return ""
    return next((name for name, parts in rules.items() if any(part in kind for part in parts)), "NUMERIC")


def _keeps(type_name: str, family: str) -> bool:
    """Return whether a column of this type returns the values of a family unchanged."""
    named = [kept for pattern, _, kept in _NAMED if pattern.fullmatch(type_name.upper())]
    return family in (named[0] if named else _KEPT.get(_affinity(type_name), set()))
