"""The methods for map states on PostgreSQL."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from trident_py.sqlcodes import sqlstate_of
from trident_py.state import StateType

from ....columns.arrow import arrow_array
from ....columns.values import Column, transposed
from ...maps.combining import PartialResults, Recipe
from ..base import names, upsert_text
from ..bulk import blocks
from .bulk import PostgreSqlBulk

CASTS = {
    "integer": "bigint[]", "double": "float8[]", "text": "text[]", "boolean": "bool[]", "binary": "bytea[]",
    "date": "text[]::date[]", "timestamp": "text[]::timestamp[]", "decimal": "text[]::numeric[]",
}  # fmt: skip
_STAGED = "trident_staged"
_ROWS_TO_STAGE = 5_000  # from so many rows on, staging is faster
_ROWS_TO_WRITE_STAGED = 200


class PostgreSqlMaps(PostgreSqlBulk):
    """The methods of `PostgreSql` for map states."""

    columnar = True

    def combine(self, connection: Any, recipe: Recipe, batch: PartialResults, wanted: bool) -> list[Any] | None:
        try:
            if len(batch) < _ROWS_TO_STAGE:
                written = self._combine_rows(connection, recipe, batch)
            else:
                with self._staged(connection, recipe.table, recipe.columns, batch.columns) as staged:
                    written = connection.execute(_text(recipe, staged), _txid(recipe, batch)).rowcount
        except Exception as error:
            if sqlstate_of(error)[:2] in ("22", "23"):
                return None
            raise
        if written != len(batch):
            return None
        if not wanted:
            return []
        keys = zip(*(array.to_pylist() for array in batch.columns[:-1]), strict=True)
        found = self.read(connection, recipe.table, recipe.keys, [recipe.value], list(keys))  # type: ignore[attr-defined]
        return [row[0] for row in found]

    def write(
        self, connection: Any, table: str, keys: Sequence[Column], columns: Sequence[Column], rows: Sequence[tuple]
    ) -> None:
        if len(rows) < _ROWS_TO_WRITE_STAGED:
            connection.executemany(upsert_text(table, keys, columns), rows)
            return
        last = {row[: len(keys)]: row for row in rows}
        whole = [*keys, *columns]
        lists = transposed(list(last.values()), len(whole)) or []
        arrays = [arrow_array(c, v) for c, v in zip(whole, lists, strict=True)]
        tail = self.instead([each.name for each in keys], [each.name for each in columns])
        with self._staged(connection, table, whole, arrays) as staged:
            text = f'INSERT INTO "{table}" ({names(whole)}) SELECT {names(whole)} FROM {staged}{tail}'
            connection.execute(text)

    def _combine_rows(self, connection: Any, recipe: Recipe, batch: PartialResults) -> int:
        arrays = ", ".join(f"?::{CASTS[each.family]}" for each in recipe.columns)
        source = f"unnest({arrays}) AS q({names(recipe.columns)})"
        values = [_texts(array).to_pylist() for array in batch.columns]
        found: int = connection.execute(_text(recipe, source), (*_txid(recipe, batch), *values)).rowcount
        return found

    @contextlib.contextmanager
    def _staged(
        self, connection: Any, table: str, columns: Sequence[Column], arrays: Sequence[pa.Array]
    ) -> Iterator[str]:
        """A temporary table with these rows in order, with the column types of ``table``."""
        connection.execute(
            f'CREATE TEMP TABLE "{_STAGED}" ON COMMIT DROP AS SELECT {names(columns)} FROM "{table}" WITH NO DATA'
        )
        self.load(connection, _STAGED, columns, blocks(columns, arrays), temporary=True)
        yield f"{self.aside}{_STAGED}"
        connection.execute(f"DROP TABLE {self.aside}{_STAGED}")


def _txid(recipe: Recipe, batch: PartialResults) -> tuple:
    return () if recipe.kind is StateType.NON_TRANSACTIONAL else (batch.txid,)


def _texts(array: pa.Array) -> pa.Array:
    return array.cast(pa.string()) if pa.types.is_temporal(array.type) else array


@lru_cache(maxsize=256)
def _text(recipe: Recipe, source: str) -> str:
    """The statement; its first parameter is the txid, if the table has one. The row count leaves out rows that may not
    be changed."""
    value = recipe.value.name
    made = recipe.changes(f'excluded."{value}"', "excluded.txid")
    changes = ", ".join(f'"{name}" = {change}' for name, change in made.items())
    conditions = [recipe.allowed("excluded.txid"), *_bounds(recipe, made[value])]
    where = " AND ".join(each for each in conditions if each is not None)
    into, given = names(recipe.columns), names(recipe.columns)
    if recipe.kind is not StateType.NON_TRANSACTIONAL:
        into, given = f"{into}, txid", f"{given}, ?::bigint"
    return (
        f'INSERT INTO "{recipe.table}" ({into}) SELECT {given} FROM {source} '
        f"ON CONFLICT ({names(recipe.keys)}) DO UPDATE SET {changes}{f' WHERE {where}' if where else ''}"
    )


def _bounds(recipe: Recipe, value: str) -> list[str]:
    """Conditions against values that the map refuses but the column accepts: NaN, more bits than declared."""
    if recipe.value.family == "double":
        nan = "'NaN'::float8"
        return [f"({value}) <> {nan}", f"({recipe.base('excluded.txid')}) IS DISTINCT FROM {nan}"]
    if recipe.limits is None:
        return []
    return [f"({value}) BETWEEN {recipe.limits[0]} AND {recipe.limits[1]}"]
