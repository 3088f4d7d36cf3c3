"""SQLite: durable, without a server, one writer at a time for each file (WAL)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy.engine import URL, Engine
from sqlalchemy.pool import NullPool

from trident_py.errors import DefinitionError
from trident_py.patience import again_for

from ....columns.values import DECODERS, Column, Refused
from ...connection import Connection, driver_connection
from ..base import insert_text, upsert_text
from .bulk import SqliteBulk
from .maps import SqliteMaps
from .table import STORAGE, FileConnection, declared, keeps, numbered, unfit, unique_keys, unopenable

_BUSY_MILLISECONDS = 60_000
_KEYS_PER_READ = 400
_SIZES = (1, 8, 64)


class Sqlite(SqliteMaps, SqliteBulk):
    """The dialect of ``sqlite:///path``."""

    name = "sqlite"
    pool: ClassVar[dict[str, Any]] = {"poolclass": NullPool}  # opening a file costs nothing
    shared = exclusive = ""  # a transaction that may write locks its file from the start

    def address(self, url: URL) -> str:
        return str(Path(url.database or "").resolve())

    def folded(self, table: str) -> str:
        return table.lower()

    def named(self, connection: Connection, table: str) -> str:
        return self.folded(table)

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
        connection = driver_connection(
            engine, isolation_level=None, check_same_thread=False, cached_statements=256, detect_types=0,
            factory=FileConnection,
        )  # fmt: skip
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
        wal = partial(connection.execute, "PRAGMA journal_mode = WAL")
        again_for(_BUSY_MILLISECONDS / 1000, 0.005, self.is_lock, wal)  # busy_timeout does not cover this statement
        connection.execute("PRAGMA synchronous = FULL")
        connection.opened(engine.url.database)
        return connection

    def alive(self, connection: Any) -> bool:
        return connection.is_current()

    def begin(self, connection: Any, seconds: float) -> None:
        """Takes the write lock at once; retries every millisecond, since SQLite's own pauses last up to 100."""
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            again_for(seconds, 0.001, self.is_lock, partial(connection.execute, "BEGIN IMMEDIATE"))
        finally:
            connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")

    def is_lock(self, error: BaseException) -> bool:
        code = getattr(error, "sqlite_errorcode", None)
        return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

    def is_lost(self, error: BaseException) -> bool:
        return False

    def advice(self, url: URL, error: BaseException) -> str:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            return "it is not a SQLite database; name another file"
        opens = code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
        return (unopenable(Path(url.database or "")) or "") if opens else ""

    def is_duplicate(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.IntegrityError) and "UNIQUE" in str(error)

    def declared(self, type_name: str) -> str | None:
        return declared(type_name)

    def fits(self, column: Column, type_name: str) -> bool:
        if keeps(type_name, column.family):
            return True
        raise Refused(f"cannot hold {column.ddl} unchanged; make it {STORAGE[column.family]}")

    def type_names(self, engine: Engine, table: str) -> dict[str, str]:
        with engine.connect() as connection:
            found = connection.exec_driver_sql(f'PRAGMA table_xinfo("{table}")').fetchall()
        return {row[1]: row[2].upper() for row in found}

    def unfit(self, connection: Connection, table: str) -> str | None:
        return unfit(connection, table)

    def unique_keys(self, connection: Connection, table: str) -> list[set[str]]:
        return unique_keys(connection, table)

    def numbered(self, connection: Connection, table: str) -> set[str]:
        return numbered(connection, table)

    def narrowed(self, column: Column, type_name: str) -> Column:
        return column

    def decoder(self, column: Column) -> Callable[[Any], Any] | None:
        return DECODERS.get(column.family)

    def table_options(self, connection: Connection, keyed: bool) -> dict[str, Any]:
        return {"sqlite_with_rowid": False} if keyed else {}  # the key itself is the tree: one look-up instead of two

    def inexact(self, connection: Connection, table: str, names: Sequence[str]) -> dict[str, str]:
        bad = {}
        for index in connection.execute(f'PRAGMA index_list("{table}")').fetchall():
            for row in connection.execute(f'PRAGMA index_xinfo("{index[1]}")').fetchall():
                if row[2] in names and row[4] != "BINARY":
                    bad[row[2]] = f"collates {row[4]}; make the table with that column COLLATE BINARY"
        return bad

    def read(
        self, connection: Connection, table: str, keys: Sequence[Column], columns: Sequence[Column],
        asked: Sequence[tuple],
    ) -> list[tuple | None]:  # fmt: skip
        rows: list[tuple] = []
        for start in range(0, len(asked), _KEYS_PER_READ):
            part = list(asked[start : start + _KEYS_PER_READ])
            size = next((s for s in _SIZES if s >= len(part)), _KEYS_PER_READ)
            part += part[-1:] * (size - len(part))  # few different statements, so each is prepared once
            text = self._select(table, keys, columns, size)
            rows += connection.execute(text, list(chain.from_iterable(part))).fetchall()
        del rows[len(asked) :]
        return [None if row[0] is None else row[1:] for row in rows]

    def _select(self, table: str, keys: Sequence[Column], columns: Sequence[Column], count: int) -> str:
        """A SELECT of one row for each key, in order: the first key column (NULL if missing), and the columns."""
        wanted = ", ".join(f't."{each.name}"' for each in [keys[0], *columns])
        values = ", ".join([f"({', '.join('?' * len(keys))})"] * count)
        same = " AND ".join(f't."{key.name}" = q.column{i + 1}' for i, key in enumerate(keys))
        return f'SELECT {wanted} FROM (VALUES {values}) AS q LEFT JOIN "{table}" AS t ON {same}'

    def write(
        self, connection: Connection, table: str, keys: Sequence[Column], columns: Sequence[Column],
        rows: Sequence[tuple],
    ) -> None:  # fmt: skip
        connection.executemany(upsert_text(table, keys, columns), rows)

    def insert(self, connection: Connection, table: str, columns: Sequence[Column], rows: Sequence[tuple]) -> None:
        connection.executemany(insert_text(table, columns), rows)


SQLITE = Sqlite()
