"""The methods for map states on MySQL and MariaDB."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trident_py.sqlcodes import mysql_code_of
from trident_py.state import StateType

from ....columns.arrow import arrow_array
from ....columns.values import Column, transposed
from ...connection import Connection
from ...maps.combining import PartialResults, Recipe
from ..base import insert_text, names
from ..bulk import blocks, insertions
from .bulk import NO_STAGE, ROOM, MySqlBulk, temporary_like

_KEYS_PER_READ = 1_000
_STAGED = "trident_staged"
_ROWS_TO_STAGE = 2_000  # from so many rows on, staging is faster
_ROWS_TO_WRITE_STAGED = 10_000
_ROWS_TO_BUILD = 200
_BLOCK_BYTES = 1 << 19
_DIVISION_BY_ZERO = 1365


class NotStaged(Exception):
    """The server or account has no temporary tables, or takes no files. Never leaves this package."""


class MySqlMaps(MySqlBulk):
    """The methods of `MySql` for map states."""

    columnar = True

    def read(
        self, connection: Connection, table: str, keys: Sequence[Column], columns: Sequence[Column],
        asked: Sequence[tuple],
    ) -> list[tuple | None]:  # fmt: skip
        width = len(keys)
        place = "?" if width == 1 else f"({', '.join('?' * width)})"
        which = names(keys) if width == 1 else f"({names(keys)})"
        decoders = [self.decoder(key) for key in keys]
        rows: dict[tuple, tuple] = {}
        for start in range(0, len(asked), _KEYS_PER_READ):
            part = asked[start : start + _KEYS_PER_READ]
            places = ", ".join([place] * len(part))
            text = f'SELECT {names([*keys, *columns])} FROM "{table}" WHERE {which} IN ({places})'
            for row in connection.execute(text, list(chain.from_iterable(part))).fetchall():
                key = tuple(d(v) if d else v for d, v in zip(decoders, row, strict=False))
                rows[_comparable(key)] = row[width:]
        return [rows.get(_comparable(key)) for key in asked]

    def combine(self, connection: Any, recipe: Recipe, batch: PartialResults, wanted: bool) -> list[Any] | None:
        if recipe.value.family == "double" and _has_negative_zero(batch.columns[-1]):
            return None
        try:
            if len(batch) >= _ROWS_TO_STAGE and connection.stages:
                try:
                    return self._combine_staged(connection, recipe, batch, wanted)
                except NotStaged as error:
                    connection.stages = error.__cause__ is None  # a bad row does not mean that the server cannot stage
            return self._combine_rows(connection, recipe, batch, wanted)
        except Exception as error:
            if self.refuses(error) or mysql_code_of(error) == _DIVISION_BY_ZERO:
                return None
            raise

    def write(
        self, connection: Any, table: str, keys: Sequence[Column], columns: Sequence[Column], rows: Sequence[tuple]
    ) -> None:
        tail = self.instead([key.name for key in keys], [column.name for column in columns])
        if len(rows) < _ROWS_TO_BUILD:
            connection.executemany(insert_text(table, [*keys, *columns]) + tail, rows)
            return
        every = [*keys, *columns]
        arrays = [_stored(arrow_array(c, v)) for c, v in zip(every, transposed(rows, len(every)) or [], strict=True)]
        if len(rows) >= _ROWS_TO_WRITE_STAGED and connection.stages:
            try:
                with self._staged(connection, table, every, arrays) as staged:
                    text = f'INSERT INTO "{table}" ({names(every)}) SELECT {names(every)} FROM "{staged}"{tail}'
                    connection.execute(text)
                return
            except NotStaged as error:
                connection.stages = error.__cause__ is None  # a bad row does not mean that the server cannot stage
        self._insert(connection, table, every, arrays, tail)

    def _combine_staged(self, connection: Any, recipe: Recipe, batch: PartialResults, wanted: bool) -> list[Any] | None:
        """Combines with one load and one statement. The rows are loaded in key order and read in that order."""
        columns, arrays = recipe.columns, list(batch.columns)
        if wanted:
            columns, arrays = [*columns, Column("trident_at", "bigint")], [*arrays, pa.array(range(len(batch)))]
        with self._staged(connection, recipe.table, columns, arrays) as staged:
            values, into = names(recipe.columns), names(recipe.columns)
            if recipe.kind is not StateType.NON_TRANSACTIONAL:
                values, into = f"{values}, {batch.txid}", f"{into}, txid"
            connection.execute(
                f'INSERT INTO "{recipe.table}" ({into}) SELECT {values} FROM "{staged}"{_changes(recipe)}'
            )
            return _news(connection, recipe, staged, len(batch)) if wanted else []

    def _combine_rows(self, connection: Any, recipe: Recipe, batch: PartialResults, wanted: bool) -> list[Any]:
        columns, arrays = recipe.columns, list(batch.columns)
        if recipe.kind is not StateType.NON_TRANSACTIONAL:
            columns = [*columns, Column("txid", "bigint")]
            arrays.append(pa.repeat(pa.scalar(batch.txid, pa.int64()), len(batch)))
        self._insert(connection, recipe.table, columns, arrays, _changes(recipe))
        if not wanted:
            return []
        keys = zip(*(array.to_pylist() for array in batch.columns[:-1]), strict=True)
        rows = self.read(connection, recipe.table, recipe.keys, [recipe.value], list(keys))
        return [row[0] for row in rows if row is not None]

    def _insert(
        self, connection: Any, table: str, columns: Sequence[Column], arrays: Sequence[pa.Array], tail: str
    ) -> None:
        head, end = f'INSERT INTO "{table}" ({names(columns)}) VALUES '.encode(), tail.encode()
        for block in insertions(columns, arrays, _BLOCK_BYTES, int(connection.packet) - ROOM):
            connection.raw.query(head + block + end)

    @contextlib.contextmanager
    def _staged(
        self, connection: Any, table: str, columns: Sequence[Column], arrays: Sequence[pa.Array]
    ) -> Iterator[str]:
        """A temporary table with these rows in order, with the column types of ``table``."""
        _create(connection, table, columns)
        try:
            try:
                loaded = self.load(connection, _STAGED, columns, blocks(columns, arrays))
            except Exception as error:
                if mysql_code_of(error) in NO_STAGE:
                    raise NotStaged from error
                raise
            if loaded.warnings or loaded.records != len(arrays[0]):  # writing into the table itself names the bad row
                raise NotStaged
            yield _STAGED
        finally:
            with contextlib.suppress(Exception):
                connection.execute(f'DROP TEMPORARY TABLE IF EXISTS "{_STAGED}"')


def _comparable(key: tuple) -> tuple:
    """The key with dates, times and decimals as text, the form in which keys are asked."""
    return tuple(v if isinstance(v, str | int | float | bytes) else _text(v) for v in key)


def _text(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ", timespec="microseconds")
    return str(value)


def _create(connection: Any, table: str, columns: Sequence[Column]) -> None:
    selected = [f'"{c.name}"' if c.name != "trident_at" else 'CAST(0 AS SIGNED) AS "trident_at"' for c in columns]
    try:
        temporary_like(connection, table, _STAGED, ", ".join(selected))
    except Exception as error:
        if mysql_code_of(error) in NO_STAGE:
            raise NotStaged from error
        raise


def _news(connection: Any, recipe: Recipe, staged: str, count: int) -> list[Any]:
    same = " AND ".join(f's."{key.name}" = t."{key.name}"' for key in recipe.keys)
    rows = connection.execute(
        f'SELECT s.trident_at, t."{recipe.value.name}" FROM "{staged}" AS s'
        f' STRAIGHT_JOIN "{recipe.table}" AS t ON {same}'
    ).fetchall()
    news: list[Any] = [None] * count
    for at, new in rows:
        news[at] = new
    return news


@lru_cache(maxsize=256)
def _changes(recipe: Recipe) -> str:
    """The assignments of an upsert, which MySQL makes from left to right.

    A row that may not be changed makes the statement fail with a number that no column holds.
    """
    name, txid = recipe.value.name, "VALUES(txid)"
    changes = recipe.changes(f'VALUES("{name}")', txid, in_turn=True)
    if recipe.limits is not None:
        low, high = recipe.limits
        value = changes[name]
        changes[name] = f"CASE WHEN ({value}) BETWEEN {low} AND {high} THEN {value} ELSE {_failing(recipe.own)} END"
    allowed = recipe.allowed(txid)
    if allowed is not None:
        changes["txid"] = f"CASE WHEN {allowed} THEN {txid} ELSE {_failing(recipe.txid)} END"
    return " ON DUPLICATE KEY UPDATE " + ", ".join(f'"{name}" = {change}' for name, change in changes.items())


def _has_negative_zero(numbers: pa.Array) -> bool:
    return bool(pc.any(pc.equal(pc.divide(1.0, numbers), float("-inf"))).as_py())


def _stored(array: pa.Array) -> pa.Array:
    """The array with -0.0 as 0.0, as an INSERT stores it; a load would keep -0.0."""
    return pc.add(array, 0.0) if pa.types.is_floating(array.type) else array


def _failing(column: str) -> str:
    return f"9223372036854775807 + greatest(coalesce({column}, 1), 1)"
