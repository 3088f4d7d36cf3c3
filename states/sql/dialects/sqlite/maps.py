"""The methods for map states on SQLite."""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any

from trident_py.state import StateType

from ...connection import Connection
from ...maps.combining import PartialResults, Recipe
from ..base import names

_SIZES = (100, 10, 1)


class SqliteMaps:
    """The methods of `Sqlite` for map states."""

    columnar = False

    def combine(self, connection: Connection, recipe: Recipe, batch: PartialResults, wanted: bool) -> list[Any] | None:
        """Combines many rows in one statement; the returned rows show whether the map would get the same result."""
        if sqlite3.sqlite_version_info < (3, 35):  # no RETURNING
            return None
        rows: list[tuple] = []
        start = 0
        while start < len(batch):
            size = next(each for each in _SIZES if each <= len(batch) - start)
            some = zip(*(column[start : start + size] for column in batch.columns), strict=True)
            text = _text(recipe, size, wanted)
            found = connection.execute(text, [batch.txid, *chain.from_iterable(some)]).fetchall()
            if len(found) < size:
                return None
            rows += found
            start += size
        news = list(map(itemgetter(0), rows))
        if not recipe.takes(news):  # a sum that became a float or exceeds the declared type
            return None
        return _in_order(news, rows, batch) if wanted else []


def _in_order(news: list[Any], rows: list[tuple], batch: PartialResults) -> list[Any]:
    """The new values in the order of the batch, since SQL guarantees no order."""
    keys = list(zip(*batch.columns[:-1], strict=True))
    if all(row[1:] == key for row, key in zip(rows, keys, strict=True)):
        return news
    by_key = {row[1:]: row[0] for row in rows}
    return [by_key[key] for key in keys]


@lru_cache(maxsize=256)
def _text(recipe: Recipe, count: int, wanted: bool) -> str:
    """The statement; its parameters are the txid, then the keys and the partial result of each row."""
    plain = recipe.kind is StateType.NON_TRANSACTIONAL
    columns: list[Any] = [*recipe.columns] if plain else [*recipe.columns, "txid"]
    width = len(recipe.columns)
    rows = [[f"?{2 + row * width + i}" for i in range(width)] for row in range(count)]
    values = ", ".join(f"({', '.join(row if plain else [*row, '?1'])})" for row in rows)
    made = recipe.changes(f'excluded."{recipe.value.name}"', "excluded.txid")
    changes = ", ".join(f'"{column}" = {change}' for column, change in made.items())
    allowed = recipe.allowed("excluded.txid")
    where = "" if allowed is None else f" WHERE {allowed}"
    returned = names([recipe.value, *recipe.keys] if wanted else [recipe.value])
    return (
        f'INSERT INTO "{recipe.table}" ({names(columns)}) VALUES {values} ON CONFLICT ({names(recipe.keys)}) '
        f"DO UPDATE SET {changes}{where} RETURNING {returned}"
    )
