"""SQLite: durable, without a server, one writer at a time for each file (WAL)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy.engine import URL, Engine
from sqlalchemy.pool import NullPool

from trident_py.databases.error_codes import lost_a_lock_on_sqlite, sqlite_code_of
from trident_py.errors import DefinitionError
from trident_py.model.retry import again_for
from trident_py.state import Needs

from ...connection import Connection, Statement, driver_connection
from .maps import SqliteMaps
from .table import FileConnection, unopenable

_BUSY_MILLISECONDS = 60_000


class Sqlite(SqliteMaps):
    """The dialect of ``sqlite:///path``."""

    name = "sqlite"
    selects = 500  # SQLITE_MAX_COMPOUND_SELECT
    served = False
    pool: ClassVar[dict[str, Any]] = {"poolclass": NullPool}  # opening a file costs nothing
    shared = exclusive = ""  # a transaction that may write locks its file from the start

    def address(self, url: URL) -> str:
        return str(Path(url.database or "").resolve())

    def fold_name(self, table: str) -> str:
        return table.lower()

    def fold_on_server(self, connection: Connection, table: str) -> str:
        return self.fold_name(table)

    def absolute(self, url: URL) -> URL:
        if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
            raise DefinitionError(
                "a SQLite state needs a file that several processes can open: sqlite:///counts.db"
            )
        return url.set(database=str(Path(url.database).absolute()))

    def needs(self, url: URL) -> Needs:
        file = f"it is the SQLite file {url.database}, and each machine would write a file of its own"
        return Needs(modules=("sqlalchemy",), one_machine=file)

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

    def begin(self, connection: Any, seconds: float, first: Sequence[Statement] = ()) -> list[Any]:
        """Take the write lock at once; retries every millisecond, since SQLite's own pauses last up to 100."""
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            again_for(seconds, 0.001, self.is_lock, partial(connection.execute, "BEGIN IMMEDIATE"))
        finally:
            connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
        return list(connection.together(first))

    def is_lock(self, error: BaseException) -> bool:
        return lost_a_lock_on_sqlite(sqlite_code_of(error))

    def is_lost(self, error: BaseException) -> bool:
        return False

    def is_read_only(self, error: BaseException) -> bool:
        return False  # a file's permissions do not change by themselves

    def advice(self, url: URL, error: BaseException) -> str:
        code = sqlite_code_of(error)
        if code == sqlite3.SQLITE_NOTADB:
            return "it is not a SQLite database; name another file"
        opens = code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
        return (unopenable(Path(url.database or "")) or "") if opens else ""

    def is_duplicate(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.IntegrityError) and "UNIQUE" in str(error)


SQLITE = Sqlite()
