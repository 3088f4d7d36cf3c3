"""The methods for map states on SQLite."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import chain
from operator import itemgetter
from typing import Any

from trident_py.state import StateType

from ....columns.values import Column
from ...connection import Connection
from ...maps.combiners import PartialResults, Recipe
from ..base import check_taken, insert_text, names, undoing, upsert_text
from .bulk import SqliteBulk

_KEYS_PER_READ = 400
_READS = (1, 8, 64)
_SIZES = (100, 10, 1)


class SqliteMaps(SqliteBulk):
    """The methods of `Sqlite` for map states."""

    listed = sys.maxsize

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

    def insert(self, connection: Connection, table: str, columns: Sequence[Column], rows: Sequence[tuple]) -> None:
        check_taken(table, len(rows), connection.executemany(insert_text(table, columns), rows).rowcount)

    def combine(self, connection: Connection, recipe: Recipe, batch: PartialResults, wanted: bool) -> list[Any] | None:
        """Combine many rows in one statement; the returned rows show whether the map would get the same result."""
        if sqlite3.sqlite_version_info < (3, 35):  # no RETURNING
            return None
        return undoing(connection, partial(self._combine, connection, recipe, batch, wanted))

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
    allowed = recipe.allowed("excluded.txid")
    where = "" if allowed is None else f" WHERE {allowed}"
    returned = names([recipe.value, *recipe.keys] if wanted else [recipe.value])
    return (
        f'INSERT INTO "{recipe.table}" ({names(columns)}) VALUES {values} ON CONFLICT ({names(recipe.keys)}) '
        f"DO UPDATE SET {assignments}{where} RETURNING {returned}"
    )
