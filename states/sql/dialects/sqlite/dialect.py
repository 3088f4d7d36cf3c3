"""SQLite: durable, without a server, one writer at a time for each file (WAL)."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.engine import URL, Engine
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateTable

from trident_py.databases.error_codes import is_lock_conflict_on_sqlite, sqlite_code_of
from trident_py.errors import DefinitionError
from trident_py.model.retry import again_for
from trident_py.state import Needs, StateType

from ....columns.arrow import KeyedRows
from ....columns.values import Column
from ...connection import Connection, Statement, driver_connection
from ...maps.combiners import PartialResults, Recipe
from ..base import check_taken, insert_text, names, undo_if_none, upsert_text
from .table import FileConnection, SqliteTable, unopenable

_BUSY_MILLISECONDS = 60_000
_KEYS_PER_READ = 400
_READS = (1, 8, 64)
_SIZES = (100, 10, 1)
_TABLE_BYTES = (
    "SELECT sum(d.pgsize) FROM sqlite_master AS m CROSS JOIN dbstat AS d ON d.name = m.name"
    " WHERE m.tbl_name = ? COLLATE NOCASE AND d.aggregate = 1"
)
_FILE_BYTES = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"


class Sqlite(SqliteTable):
    """The dialect of ``sqlite:///path``."""

    name = "sqlite"
    selects = 500  # SQLITE_MAX_COMPOUND_SELECT
    served = False
    pool: ClassVar[dict[str, Any]] = {"poolclass": NullPool}  # opening a file costs nothing
    shared = exclusive = ""  # a transaction that may write locks its file from the start
    listed = sys.maxsize
    temporary = "TABLE"
    aside = "temp."
    joined = "CROSS JOIN"
    same = "{0} IS {1}"
    exact = "{0} COLLATE BINARY"
    stage_order = " ORDER BY trident_row"

    def address(self, url: URL) -> str:
        return str(Path(url.database or "").resolve())

    def fold_name(self, table: str) -> str:
        return table.lower()

    def measure_table(self, connection: Any, table: str) -> int | None:
        """Return the bytes of its pages; those of the file, if this SQLite counts no pages of a table."""
        size: int | None
        try:
            (size,) = connection.execute(_TABLE_BYTES, (table,)).fetchone()
        except sqlite3.OperationalError:
            (size,) = connection.execute(_FILE_BYTES).fetchone()
        return size

    def absolute(self, url: URL) -> URL:
        if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
            raise DefinitionError(
                "a SQLite state needs a file that several processes can open: sqlite:///counts.db"
            )
        return url.set(database=str(Path(url.database).absolute()))

    def needs(self, url: URL) -> Needs:
        file = f"it is the SQLite file {url.database}, and each machine would write a file of its own"
        return Needs(modules=("sqlalchemy",), one_machine=file)

    def connect(self, engine: Engine) -> Any:
        connection = driver_connection(
            engine, isolation_level=None, check_same_thread=False, cached_statements=256, detect_types=0,
            factory=FileConnection,
        )  # fmt: skip
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
        wal = partial(connection.execute, "PRAGMA journal_mode = WAL")
        again_for(_BUSY_MILLISECONDS / 1000, 0.005, self.is_lock, wal)  # busy_timeout does not cover this statement
        connection.execute("PRAGMA synchronous = FULL")
        connection.remember_file(engine.url.database)
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
        return is_lock_conflict_on_sqlite(sqlite_code_of(error))

    def advice(self, url: URL, error: BaseException) -> str:
        code = sqlite_code_of(error)
        if code == sqlite3.SQLITE_NOTADB:
            return "it is not a SQLite database; name another file"
        opens = code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
        return (unopenable(Path(url.database or "")) or "") if opens else ""

    def is_duplicate(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.IntegrityError) and "UNIQUE" in str(error)

    def direct(self, connection: Any, table: str, rows: KeyedRows, known: float, every: bool) -> int | None:
        """Return None if the table refuses a row or a trigger may have left one out."""
        ordered = rows.take(pa.concat_arrays(list(rows.in_key_order())))
        text = f"{insert_text(table, rows.columns)}{self.unless_there(rows.keys)}"

        def insert() -> int | None:
            try:
                inserted = int(connection.executemany(text, ordered.python()).rowcount)
            except Exception as error:
                if self.refuses(error):
                    return None
                raise
            return inserted if inserted == len(rows) or not (every or _has_triggers(connection, table)) else None

        return undo_if_none(connection, insert)

    def stage(self, engine: Engine, connection: Any, table: str, columns: Sequence[Column], name: str) -> None:
        stored = [sa.Column(c.name, self.storage(c), primary_key=i == 0) for i, c in enumerate(columns)]
        temporary = sa.Table(name, sa.MetaData(), *stored, prefixes=["TEMPORARY"])
        connection.execute(str(CreateTable(temporary).compile(dialect=engine.dialect)))

    def fill(
        self, connection: Any, table: str, columns: Sequence[Column], arrays: Sequence[pa.Array],
        temporary: bool = False,
    ) -> None:  # fmt: skip
        rows = KeyedRows(columns, arrays)
        check_taken(table, len(rows), connection.executemany(insert_text(table, columns), rows.python()).rowcount)

    def refuses(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.IntegrityError | sqlite3.DataError)

    def read(
        self, connection: Connection, table: str, keys: Sequence[Column], columns: Sequence[Column],
        asked: Sequence[tuple],
    ) -> list[tuple | None]:  # fmt: skip
        rows: list[tuple] = []
        for start in range(0, len(asked), _KEYS_PER_READ):
            part = list(asked[start : start + _KEYS_PER_READ])
            size = next((s for s in _READS if s >= len(part)), _KEYS_PER_READ)
            part += part[-1:] * (size - len(part))  # few different statements, so each is prepared once
            text = self._select(table, keys, columns, size)
            rows += connection.execute(text, list(chain.from_iterable(part))).fetchall()
        del rows[len(asked) :]
        return [None if row[0] is None else row[1:] for row in rows]

    def _select(self, table: str, keys: Sequence[Column], columns: Sequence[Column], count: int) -> str:
        """Return a SELECT of one row for each key, in order: the first key column (NULL if missing), and the
        columns."""
        wanted = ", ".join(f't."{column.name}"' for column in [keys[0], *columns])
        values = ", ".join([f"({', '.join('?' * len(keys))})"] * count)
        same = " AND ".join(f't."{key.name}" = q.column{i + 1}' for i, key in enumerate(keys))
        return f'SELECT {wanted} FROM (VALUES {values}) AS q LEFT JOIN "{table}" AS t ON {same}'

    def write(
        self, connection: Connection, table: str, keys: Sequence[Column], columns: Sequence[Column],
        rows: Sequence[tuple],
    ) -> None:  # fmt: skip
        taken = connection.executemany(upsert_text(table, keys, columns), rows).rowcount
        check_taken(table, len(rows) if columns else 0, taken)  # a row of keys alone that is there stays

    def combine(self, connection: Connection, recipe: Recipe, batch: PartialResults, wanted: bool) -> list[Any] | None:
        """Combine many rows in one statement; the returned rows show whether the map would get the same result."""
        if sqlite3.sqlite_version_info < (3, 35):  # no RETURNING
            return None
        return undo_if_none(connection, partial(self._combine, connection, recipe, batch, wanted))

    def _combine(self, connection: Connection, recipe: Recipe, batch: PartialResults, wanted: bool) -> list[Any] | None:
        rows: list[tuple] = []
        start = 0
        while start < len(batch):
            size = next(size for size in _SIZES if size <= len(batch) - start)
            part = zip(*(column[start : start + size] for column in batch.columns), strict=True)
            text = _text(recipe, size, wanted)
            returned = connection.execute(text, [batch.txid, *chain.from_iterable(part)]).fetchall()
            if len(returned) < size:
                return None
            rows += returned
            start += size
        news = list(map(itemgetter(0), rows))
        if not recipe.takes(news):  # a sum that became a float or exceeds the declared type
            return None
        return _in_order(news, rows, batch) if wanted else []


def _has_triggers(connection: Any, table: str) -> bool:
    text = "SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND lower(tbl_name) = lower(?)"
    return connection.execute(text, (table,)).fetchone() is not None


def _in_order(news: list[Any], rows: list[tuple], batch: PartialResults) -> list[Any]:
    """Return the new values in the order of the batch, since SQL guarantees no order."""
    keys = list(zip(*batch.columns[:-1], strict=True))
    if all(row[1:] == key for row, key in zip(rows, keys, strict=True)):
        return news
    by_key = {row[1:]: row[0] for row in rows}
    return [by_key[key] for key in keys]


@lru_cache(maxsize=256)
def _text(recipe: Recipe, count: int, wanted: bool) -> str:
    """Return the statement; its parameters are the txid, then the keys and the partial result of each row."""
    plain = recipe.kind is StateType.NON_TRANSACTIONAL
    columns: list[Any] = [*recipe.columns] if plain else [*recipe.columns, "txid"]
    width = len(recipe.columns)
    rows = [[f"?{2 + row * width + i}" for i in range(width)] for row in range(count)]
    values = ", ".join(f"({', '.join(row if plain else [*row, '?1'])})" for row in rows)
    changes = recipe.changes(f'excluded."{recipe.value.name}"', "excluded.txid")
    assignments = ", ".join(f'"{column}" = {change}' for column, change in changes.items())
    allowed = recipe.row_condition("excluded.txid")
    where = "" if allowed is None else f" WHERE {allowed}"
    returned = names([recipe.value, *recipe.keys] if wanted else [recipe.value])
    return (
        f'INSERT INTO "{recipe.table}" ({names(columns)}) VALUES {values} ON CONFLICT ({names(recipe.keys)}) '
        f"DO UPDATE SET {assignments}{where} RETURNING {returned}"
    )


SQLITE = Sqlite()
