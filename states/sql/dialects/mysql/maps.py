"""The methods for map states on MySQL and MariaDB."""

from __future__ import annotations

import contextlib
import datetime
import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from trident_py.databases.error_codes import mysql_code_of
from trident_py.state import StateType

from ....columns.arrow import arrow_array
from ....columns.values import Column, transpose
from ...connection import Connection
from ...maps.combiners import PartialResults, Recipe
from ..base import STAGED, check_taken, insert_text, marks, names, undo_if_none
from ..bulk import FEW, blocks
from .bulk import NO_STAGE, ROOM, Incoming, MySqlBulk, name_incoming, temporary_like
from .table import OWN_KEY

T = TypeVar("T")
_KEYS_PER_READ = 1_000
AT = "trident_at"
_ROWS_TO_STAGE = 2_000  # from so many rows on, staging is faster
_ROWS_TO_WRITE_STAGED = 10_000
_ROWS_TO_BUILD = 200
_BLOCK_BYTES = 1 << 19
_DIVISION_BY_ZERO = 1365


class NotStaged(Exception):
    """The server or account has no temporary tables, or takes no files. Never leaves this package."""


class MySqlMaps(MySqlBulk):
    """The methods of `MySql` for map states."""

    listed = FEW
    reserved = (OWN_KEY, AT)

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
        if len(batch) <= self.listed and _size(batch) < connection.packet - ROOM:
            return self._combine_few(connection, recipe, batch, wanted)
        work = partial(self._combine_many, connection, recipe, batch.in_arrow(recipe.columns), wanted)
        return undo_if_none(connection, partial(self._run_unless_refused, work))

    def write(
        self, connection: Any, table: str, keys: Sequence[Column], columns: Sequence[Column], rows: Sequence[tuple]
    ) -> None:
        instead = partial(self.instead, connection, [key.name for key in keys], [column.name for column in columns])
        tail = instead()
        if len(rows) < _ROWS_TO_BUILD:
            text = insert_text(table, [*keys, *columns]) + tail
            check_taken(table, len(rows), connection.executemany(text, rows).rowcount)
            return
        every = [*keys, *columns]
        values = transpose(rows, len(every)) or []
        arrays = [_normalize_zero(arrow_array(c, v)) for c, v in zip(every, values, strict=True)]
        if len(rows) >= _ROWS_TO_WRITE_STAGED and connection.stages:
            with contextlib.suppress(NotStaged):
                with self._stage_rows(connection, table, every, arrays) as staged:
                    text = f'INSERT INTO "{table}" ({names(every)}) SELECT {names(every)} FROM "{staged}"'
                    check_taken(table, len(rows), connection.execute(text + instead(staged)).rowcount)
                return
        self.send(connection, table, every, arrays, tail, _BLOCK_BYTES)

    def _run_unless_refused(self, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except Exception as error:
            if self.refuses(error) or mysql_code_of(error) == _DIVISION_BY_ZERO:
                return None
            raise

    def _combine_few(self, connection: Any, recipe: Recipe, batch: PartialResults, wanted: bool) -> list[Any] | None:
        """Combine with one statement, of which the server undoes everything if it refuses a row: no savepoint."""
        rows: Any = zip(*batch.columns, strict=True)
        if recipe.kind is not StateType.NON_TRANSACTIONAL:
            rows = ((*row, batch.txid) for row in rows)
        insert = _few_text(recipe, len(batch), name_incoming(connection)), list(chain.from_iterable(rows))
        done = self._run_unless_refused(partial(connection.execute, *insert))
        if done is None:
            return None
        check_taken(recipe.table, len(batch), done.rowcount)
        return self._combine_keys(connection, recipe, batch.columns[:-1]) if wanted else []

    def _combine_many(self, connection: Any, recipe: Recipe, batch: PartialResults, wanted: bool) -> list[Any]:
        if len(batch) >= _ROWS_TO_STAGE and connection.stages:
            with contextlib.suppress(NotStaged):
                return self._combine_staged(connection, recipe, batch, wanted)
        return self._combine_rows(connection, recipe, batch, wanted)

    def _combine_staged(self, connection: Any, recipe: Recipe, batch: PartialResults, wanted: bool) -> list[Any]:
        """Combine with one load and one statement. The rows are loaded in key order and read in that order."""
        columns, arrays = recipe.columns, list(batch.columns)
        if wanted:
            columns, arrays = [*columns, Column(AT, "bigint")], [*arrays, pa.array(range(len(batch)))]
        with self._stage_rows(connection, recipe.table, columns, arrays) as staged:
            values, into = names(recipe.columns), names(recipe.columns)
            if recipe.kind is not StateType.NON_TRANSACTIONAL:
                values, into = f"{values}, {batch.txid}", f"{into}, txid"
            changes = _changes(recipe, name_incoming(connection, staged), str(batch.txid))
            text = f'INSERT INTO "{recipe.table}" ({into}) SELECT {values} FROM "{staged}"{changes}'
            check_taken(recipe.table, len(batch), connection.execute(text).rowcount)
            return _news(connection, recipe, staged, len(batch)) if wanted else []

    def _combine_rows(self, connection: Any, recipe: Recipe, batch: PartialResults, wanted: bool) -> list[Any]:
        columns, arrays = recipe.columns, list(batch.columns)
        if recipe.kind is not StateType.NON_TRANSACTIONAL:
            columns = [*columns, Column("txid", "bigint")]
            arrays.append(pa.repeat(pa.scalar(batch.txid, pa.int64()), len(batch)))
        self.send(connection, recipe.table, columns, arrays, _changes(recipe, name_incoming(connection)), _BLOCK_BYTES)
        keys = [array.to_pylist() for array in batch.columns[:-1]]
        return self._combine_keys(connection, recipe, keys) if wanted else []

    def _combine_keys(self, connection: Any, recipe: Recipe, keys: Sequence[list[Any]]) -> list[Any]:
        """Return the new values of the keys, given as columns."""
        rows = self.read(connection, recipe.table, recipe.keys, [recipe.value], list(zip(*keys, strict=True)))
        return [row[0] for row in rows if row is not None]

    @contextlib.contextmanager
    def _stage_rows(
        self, connection: Any, table: str, columns: Sequence[Column], arrays: Sequence[pa.Array]
    ) -> Iterator[str]:
        """A temporary table with these rows in order, with the column types of ``table``."""
        selected = [f'"{c.name}"' if c.name != AT else f'CAST(0 AS SIGNED) AS "{AT}"' for c in columns]
        try:
            try:
                temporary_like(connection, table, STAGED, ", ".join(selected))
                loaded = self.load(connection, STAGED, columns, blocks(columns, arrays))
            except Exception as error:
                if mysql_code_of(error) not in NO_STAGE:
                    raise
                connection.stages = False
                raise NotStaged from error
            if loaded != (len(arrays[0]), 0, 0):  # writing into the table itself names the bad row
                raise NotStaged
            yield STAGED
        finally:
            with contextlib.suppress(Exception):
                connection.execute(f'DROP TEMPORARY TABLE IF EXISTS "{STAGED}"')


def _comparable(key: tuple) -> tuple:
    """Return the key with dates, times and decimals as text, the form in which keys are asked."""
    return tuple(v if isinstance(v, str | int | float | bytes) else _text(v) for v in key)


def _text(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ", timespec="microseconds")
    return str(value)


def _news(connection: Any, recipe: Recipe, staged: str, count: int) -> list[Any]:
    same = " AND ".join(f's."{key.name}" = t."{key.name}"' for key in recipe.keys)
    rows = connection.execute(
        f'SELECT s.{AT}, t."{recipe.value.name}" FROM "{staged}" AS s'
        f' STRAIGHT_JOIN "{recipe.table}" AS t ON {same}'
    ).fetchall()
    news: list[Any] = [None] * count
    for at, new in rows:
        news[at] = new
    return news


def _changes(recipe: Recipe, new: Incoming, txid: str = "") -> str:
    """Return the assignments of an upsert, which MySQL makes from left to right. ``txid``: if it is not in the rows'
    column.

    A row that may not be changed makes the statement fail with a number that no column holds.
    """
    name, txid = recipe.value.name, txid or new.value.format("txid")
    changes = recipe.changes(new.value.format(name), txid, in_turn=True)
    if recipe.limits is not None:
        low, high = recipe.limits
        value = changes[name]
        changes[name] = f"CASE WHEN ({value}) BETWEEN {low} AND {high} THEN {value} ELSE {_overflow(recipe.own)} END"
    allowed = recipe.row_condition(txid)
    if allowed is not None:
        changes["txid"] = f"CASE WHEN {allowed} THEN {txid} ELSE {_overflow(recipe.txid)} END"
    assignments = ", ".join(f'"{name}" = {change}' for name, change in changes.items())
    return f"{new.alias} ON DUPLICATE KEY UPDATE {assignments}"


@lru_cache(maxsize=256)
def _few_text(recipe: Recipe, count: int, new: Incoming) -> str:
    """Return the statement; its parameters are the keys, the partial result and the txid of each row, if the table has
    one."""
    columns: list[Any] = [*recipe.columns]
    if recipe.kind is not StateType.NON_TRANSACTIONAL:
        columns.append("txid")
    rows = ", ".join([f"({marks(len(columns))})"] * count)
    return f'INSERT INTO "{recipe.table}" ({names(columns)}) VALUES {rows}{_changes(recipe, new)}'


def _size(batch: PartialResults) -> int:
    """Estimate, at least, the bytes of the rows in a statement: four for each sign of a text, a hundred for anything
    else."""
    values = chain.from_iterable(batch.columns)
    return sum(100 + (4 * len(value) if isinstance(value, str | bytes) else 0) for value in values)


def _has_negative_zero(numbers: Any) -> bool:
    if isinstance(numbers, list):
        return any(number == 0 and math.copysign(1, number) < 0 for number in numbers)
    return bool(pc.any(pc.equal(pc.divide(1.0, numbers), float("-inf"))).as_py())


def _normalize_zero(array: pa.Array) -> pa.Array:
    """Return the array with -0.0 as 0.0, as an INSERT stores it; a load would keep -0.0."""
    return pc.add(array, 0.0) if pa.types.is_floating(array.type) else array


def _overflow(column: str) -> str:
    return f"9223372036854775807 + greatest(coalesce({column}, 1), 1)"
