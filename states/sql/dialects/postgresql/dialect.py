"""PostgreSQL, through psycopg 3."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa
from sqlalchemy.engine import URL, Engine

from trident_py.databases.error_codes import (
    is_lock_conflict_on_postgresql,
    postgresql_has_it,
    postgresql_is_lost,
    postgresql_is_read_only,
    sqlstate_of,
)
from trident_py.databases.sessions import local_postgresql, pin_postgresql
from trident_py.errors import DefinitionError
from trident_py.state import StateType

from ....columns.arrow import arrow_array
from ....columns.values import Column, transpose
from ...connection import Connection, Statement, driver_connection, pin_session
from ...maps.combiners import PartialResults, Recipe
from ..base import STAGED, check_taken, names, undo_if_none, upsert_text
from ..bulk import FEW
from .bulk import PostgreSqlBulk

_NO_PRIVILEGE = "42501"
_CASTS = {
    "integer": "bigint[]", "double": "float8[]", "text": "text[]", "boolean": "bool[]", "binary": "bytea[]",
    "date": "text[]::date[]", "timestamp": "text[]::timestamp[]", "decimal": "text[]::numeric[]",
}  # fmt: skip
_ROWS_TO_STAGE = 5_000  # from so many rows on, staging is faster
_ROWS_TO_WRITE_STAGED = 200


class PostgreSql(PostgreSqlBulk):
    """The dialect of ``postgresql+psycopg://``."""

    name = "postgresql"
    title = "PostgreSQL"
    port = 5432
    shared = " FOR SHARE"
    exclusive = " FOR UPDATE"
    selects = 2_000
    listed = FEW

    def measure_table(self, connection: Connection, table: str) -> int | None:
        size: int | None
        (size,) = connection.execute("SELECT pg_total_relation_size(to_regclass(?))", (f'"{table}"',)).fetchone()
        return size

    def absolute(self, url: URL) -> URL:
        if url.get_driver_name() != "psycopg" or not url.database:
            raise DefinitionError(
                "a PostgreSQL state needs a URL such as postgresql+psycopg://user:password@host:5432/database"
            )
        return url

    def connect(self, engine: Engine) -> Connection:
        from psycopg import ClientCursor
        from psycopg.types.string import TextLoader

        raw = driver_connection(engine, autocommit=True, prepare_threshold=None)  # poolers keep no prepared statements
        raw.adapters.register_loader("json", TextLoader)  # JSON columns unparsed, like texts
        return pin_session(raw, pin_postgresql, ClientCursor)

    def alive(self, connection: Connection) -> bool:
        try:
            connection.execute("SELECT 1")
        except Exception:
            return False
        return True

    def begin(self, connection: Any, seconds: float, first: Sequence[Statement] = ()) -> list[Any]:
        """Ask the server once, or twice if a value is not plain ASCII: the server reads all of a request in the
        encoding of the session, which is pinned only when the first request is over."""
        pinning = local_postgresql(max(int(seconds * 1000), 1))
        opening: list[Statement] = [("BEGIN ISOLATION LEVEL READ COMMITTED", ()), (pinning, ())]
        connection.saved = False
        if all(str(value).isascii() for _, parameters in first for value in parameters):
            return list(connection.together([*opening, *first])[len(opening) :])
        connection.together(opening)
        return list(connection.together(first))

    def is_lock(self, error: BaseException) -> bool:
        return is_lock_conflict_on_postgresql(sqlstate_of(error))

    def is_lost(self, error: BaseException) -> bool:
        return postgresql_is_lost(error)

    def is_read_only(self, error: BaseException) -> bool:
        return postgresql_is_read_only(sqlstate_of(error))

    def is_duplicate(self, error: BaseException) -> bool:
        return postgresql_has_it(sqlstate_of(error))

    def may_not_read(self, error: BaseException) -> bool:
        return sqlstate_of(error) == _NO_PRIVILEGE

    def read(
        self, connection: Connection, table: str, keys: Sequence[Column], columns: Sequence[Column],
        asked: Sequence[tuple],
    ) -> list[tuple | None]:  # fmt: skip
        if not asked:
            return []
        arrays = ", ".join(f"?::{_CASTS[key.family]}" for key in keys)
        same = " AND ".join(f't."{key.name}" = q.k{i}' for i, key in enumerate(keys))
        wanted = ", ".join(f't."{column.name}"' for column in [keys[0], *columns])
        columns_of_q = ", ".join([*(f"k{i}" for i in range(len(keys))), "at"])
        text = (
            f"SELECT {wanted} FROM unnest({arrays}) WITH ORDINALITY AS q({columns_of_q})"
            f' LEFT JOIN "{table}" AS t ON {same} ORDER BY q.at'
        )
        rows = connection.execute(text, [list(values) for values in zip(*asked, strict=True)]).fetchall()
        return [None if row[0] is None else row[1:] for row in rows]

    def combine(self, connection: Any, recipe: Recipe, batch: PartialResults, wanted: bool) -> list[Any] | None:
        few = len(batch) <= self.listed
        if few:
            written = self._combine_few(connection, recipe, batch)
        else:
            written = undo_if_none(connection, partial(self._combine_many, connection, recipe, batch))
        if written is None:
            return None
        if not wanted:
            return []
        keys = batch.columns[:-1] if few else [array.to_pylist() for array in batch.columns[:-1]]
        rows = self.read(connection, recipe.table, recipe.keys, [recipe.value], list(zip(*keys, strict=True)))
        return [row[0] for row in rows if row is not None]

    def write(
        self, connection: Any, table: str, keys: Sequence[Column], columns: Sequence[Column], rows: Sequence[tuple]
    ) -> None:
        if len(rows) < _ROWS_TO_WRITE_STAGED:
            taken = connection.executemany(upsert_text(table, keys, columns), rows).rowcount
            check_taken(table, len(rows) if columns else 0, taken)  # a row of keys alone that is there stays
            return
        last = {row[: len(keys)]: row for row in rows}
        every = [*keys, *columns]
        lists = transpose(list(last.values()), len(every)) or []
        arrays = [arrow_array(c, v) for c, v in zip(every, lists, strict=True)]
        tail = self.instead(connection, [key.name for key in keys], [column.name for column in columns])
        with self._stage_rows(connection, table, every, arrays) as staged:
            text = f'INSERT INTO "{table}" ({names(every)}) SELECT {names(every)} FROM {staged}{tail}'
            check_taken(table, len(last), connection.execute(text).rowcount)

    def _combine_few(self, connection: Any, recipe: Recipe, batch: PartialResults) -> int | None:
        """Send the savepoint, without which a refused row would end the transaction, with the statement. It is released
        with the next one, or by COMMIT."""
        before: list[Statement] = [("RELEASE SAVEPOINT trident", ())] if connection.saved else []
        insert = _rows_text(recipe), (*_txid(recipe, batch), *batch.columns)
        work = partial(connection.together, [*before, ("SAVEPOINT trident", ()), insert])
        written = _run_unless_refused(len(batch), lambda: work()[-1].rowcount)
        connection.saved = written is not None
        if written is None:
            connection.together([("ROLLBACK TO SAVEPOINT trident", ()), ("RELEASE SAVEPOINT trident", ())])
        return written

    def _combine_many(self, connection: Any, recipe: Recipe, batch: PartialResults) -> int | None:
        if len(batch) >= _ROWS_TO_STAGE:
            return _run_unless_refused(len(batch), partial(self._combine_staged, connection, recipe, batch))
        values = [_texts(array).to_pylist() for array in batch.columns]
        insert = _rows_text(recipe), (*_txid(recipe, batch), *values)
        return _run_unless_refused(len(batch), lambda: connection.execute(*insert).rowcount)

    def _combine_staged(self, connection: Any, recipe: Recipe, batch: PartialResults) -> int:
        with self._stage_rows(connection, recipe.table, recipe.columns, batch.columns) as staged:
            return int(connection.execute(_text(recipe, staged), _txid(recipe, batch)).rowcount)

    @contextlib.contextmanager
    def _stage_rows(
        self, connection: Any, table: str, columns: Sequence[Column], arrays: Sequence[pa.Array]
    ) -> Iterator[str]:
        """A temporary table with these rows in order, with the column types of ``table``."""
        connection.execute(
            f'CREATE TEMP TABLE "{STAGED}" ON COMMIT DROP AS SELECT {names(columns)} FROM "{table}" WITH NO DATA'
        )
        self.load(connection, STAGED, columns, [arrays], True)
        yield f"{self.aside}{STAGED}"
        connection.execute(f"DROP TABLE {self.aside}{STAGED}")


def _run_unless_refused(rows: int, work: Callable[[], int]) -> int | None:
    """Return how many rows were written, if all were."""
    try:
        written = work()
    except Exception as error:
        if sqlstate_of(error)[:2] in ("22", "23"):
            return None
        raise
    return written if written == rows else None


def _rows_text(recipe: Recipe) -> str:
    arrays = ", ".join(f"?::{_CASTS[column.family]}" for column in recipe.columns)
    return _text(recipe, f"unnest({arrays}) AS q({names(recipe.columns)})")


def _txid(recipe: Recipe, batch: PartialResults) -> tuple:
    return () if recipe.kind is StateType.NON_TRANSACTIONAL else (batch.txid,)


def _texts(array: pa.Array) -> pa.Array:
    return array.cast(pa.string()) if pa.types.is_temporal(array.type) else array


@lru_cache(maxsize=256)
def _text(recipe: Recipe, source: str) -> str:
    """Return the statement; its first parameter is the txid, if the table has one. The row count leaves out rows that
    may not be changed."""
    value = recipe.value.name
    changes = recipe.changes(f'excluded."{value}"', "excluded.txid")
    assignments = ", ".join(f'"{name}" = {change}' for name, change in changes.items())
    conditions = [recipe.row_condition("excluded.txid"), *_bounds(recipe, changes[value])]
    where = " AND ".join(condition for condition in conditions if condition is not None)
    into, selected = names(recipe.columns), names(recipe.columns)
    if recipe.kind is not StateType.NON_TRANSACTIONAL:
        into, selected = f"{into}, txid", f"{selected}, ?::bigint"
    return (
        f'INSERT INTO "{recipe.table}" ({into}) SELECT {selected} FROM {source} '
        f"ON CONFLICT ({names(recipe.keys)}) DO UPDATE SET {assignments}{f' WHERE {where}' if where else ''}"
    )


def _bounds(recipe: Recipe, value: str) -> list[str]:
    """Return conditions against values that the map refuses but the column accepts: NaN, more bits than declared."""
    if recipe.value.family == "double":
        nan = "'NaN'::float8"
        return [f"({value}) <> {nan}", f"({recipe.base('excluded.txid')}) IS DISTINCT FROM {nan}"]
    if recipe.limits is None:
        return []
    return [f"({value}) BETWEEN {recipe.limits[0]} AND {recipe.limits[1]}"]


POSTGRESQL = PostgreSql()
