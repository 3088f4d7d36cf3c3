"""SQLite: durable, without a server, one writer at a time per file (WAL)."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy.engine import URL, Engine
from sqlalchemy.types import UserDefinedType

from trident_py.errors import DefinitionError
from trident_py.state import StateType

from .columns import Column

_BUSY_MILLISECONDS = 60_000
# date, timestamp, decimal and json are kept as text: any other affinity would turn them into floats
_STORAGE = {
    "integer": "BIGINT", "double": "DOUBLE", "text": "TEXT", "boolean": "BOOLEAN", "binary": "BLOB",
    "date": "TEXT", "timestamp": "TEXT", "decimal": "TEXT", "json": "TEXT",
}  # fmt: skip
_DECLARED = [
    (r"BOOL", "boolean"), (r"INT", "bigint"), (r"CHAR|CLOB|TEXT|STRING", "string"),
    (r"BLOB|BINARY", "binary"), (r"REAL|FLOA|DOUB", "double"),
]  # fmt: skip


class _Declared(UserDefinedType):
    """A column type that is written into the DDL as it is."""

    cache_ok = True

    def __init__(self, text: str) -> None:
        self.text = text

    def get_col_spec(self, **kwargs: Any) -> str:
        return self.text


class Sqlite:
    """The dialect of ``sqlite:///path``."""

    name = "sqlite"
    chunk = 400

    def absolute(self, url: URL) -> URL:
        if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
            raise DefinitionError(
                "a SQLite state needs a file that several processes can open: sqlite:///counts.db"
            )
        return url.set(database=str(Path(url.database).absolute()))

    def part(self, url: URL, index: int) -> URL:
        path = Path(url.database or "")
        name = path.name if index == 0 else f"{path.stem}.{index}{path.suffix}"
        return url.set(database=str(path.with_name(name)))

    def connect(self, engine: Engine) -> Any:
        arguments, options = engine.dialect.create_connect_args(engine.url)
        options.update({"isolation_level": None, "check_same_thread": False, "cached_statements": 256})
        connection = engine.dialect.connect(*arguments, **options)
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
        until = time.monotonic() + _BUSY_MILLISECONDS / 1000
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:  # SQLite does not wait for this one
                if not self.is_lock(error) or time.monotonic() > until:
                    raise
            time.sleep(0.005)
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def begin(self, connection: Any, seconds: float) -> None:
        """Takes the writer's place at once; asks every millisecond, SQLite's own waits are up to 100."""
        until = time.monotonic() + seconds
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            while True:
                try:
                    connection.execute("BEGIN IMMEDIATE")
                    return
                except sqlite3.OperationalError as error:
                    if not self.is_lock(error) or time.monotonic() > until:
                        raise
                time.sleep(0.001)
        finally:
            connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")

    def relaxed(self, connection: Any, on: bool) -> None:
        connection.execute(f"PRAGMA synchronous = {'NORMAL' if on else 'FULL'}")

    def is_lock(self, error: BaseException) -> bool:
        code = getattr(error, "sqlite_errorcode", None)
        return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

    def storage(self, column: Column) -> Any:
        sized = column.family == "text" and column.sizes
        return _Declared(f"VARCHAR({column.sizes[0]})" if sized else _STORAGE[column.family])

    def declared(self, type_name: str) -> str | None:
        return next((ddl for pattern, ddl in _DECLARED if re.search(pattern, type_name.upper())), None)

    def fits(self, column: Column, type_name: str) -> bool:
        family = Column(column.name, self.declared(type_name) or "blob").family
        return family == Column(column.name, self.declared(_STORAGE[column.family]) or "blob").family

    def table_options(self) -> dict[str, Any]:
        return {"sqlite_with_rowid": False}  # the key is the tree: one look-up instead of two

    def select(self, table: str, keys: Sequence[str], columns: Sequence[str], count: int) -> str:
        asked = [f"q.column{i + 1}" for i in range(len(keys))]
        wanted = ", ".join([*asked, *(f't."{name}"' for name in [keys[0], *columns])])
        values = ", ".join([f"({', '.join('?' * len(keys))})"] * count)
        same = " AND ".join(f't."{key}" = {ask}' for key, ask in zip(keys, asked, strict=True))
        return f'SELECT {wanted} FROM (VALUES {values}) AS q LEFT JOIN "{table}" AS t ON {same}'

    def upsert(self, table: str, keys: Sequence[str], columns: Sequence[str]) -> str:
        changes = ", ".join(f'"{name}" = excluded."{name}"' for name in columns)
        insert = self._insert(table, [*keys, *columns])
        return f"{insert} ON CONFLICT ({_names(keys)}) DO UPDATE SET {changes}"

    def add(self, table: str, keys: Sequence[str], value: str, kind: StateType, count: int) -> str | None:
        if sqlite3.sqlite_version_info < (3, 35):  # RETURNING
            return None
        plain = kind is StateType.NON_TRANSACTIONAL
        columns = [*keys, value] if plain else [*keys, value, "txid"]
        width = len(keys) + 1
        rows = [[f"?{2 + row * width + i}" for i in range(width)] for row in range(count)]
        values = ", ".join(f"({', '.join(row if plain else [*row, '?1'])})" for row in rows)
        changes = ", ".join(f"{column} = {change}" for column, change in _sums(value, kind).items())
        txid = "?1" if plain else "txid"
        return (
            f'INSERT INTO "{table}" ({_names(columns)}) VALUES {values} ON CONFLICT ({_names(keys)}) '
            f"DO UPDATE SET {changes}{_unless(kind)} RETURNING {_names([*keys, value])}, {txid}"
        )

    def insert_new(self, table: str, keys: Sequence[str], columns: Sequence[str]) -> str:
        return f"{self._insert(table, columns)} ON CONFLICT ({_names(keys)}) DO NOTHING"

    def _insert(self, table: str, columns: Sequence[str]) -> str:
        return f'INSERT INTO "{table}" ({_names(columns)}) VALUES ({", ".join("?" * len(columns))})'


def _sums(value: str, kind: StateType) -> dict[str, str]:
    """The changes of a row that is there, by column: the rules of the three maps, with + as the updater."""
    old, prev, new = f'"{value}"', f'"prev_{value}"', f'excluded."{value}"'
    more = f"coalesce({old} + {new}, {new})"
    if kind is StateType.NON_TRANSACTIONAL:
        return {old: more}
    if kind is StateType.TRANSACTIONAL:
        return {old: more, "txid": "max(coalesce(txid, 0), excluded.txid)"}
    same = "CASE WHEN txid = excluded.txid THEN"
    return {
        prev: f"{same} {prev} ELSE {old} END",
        old: f"{same} coalesce({prev} + {new}, {new}) ELSE {more} END",
        "txid": "max(txid, excluded.txid)",
    }


def _unless(kind: StateType) -> str:
    """A transactional row that this batch has written is left alone, and then not returned."""
    return " WHERE txid IS NOT excluded.txid" if kind is StateType.TRANSACTIONAL else ""


def _names(columns: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)


SQLITE = Sqlite()
