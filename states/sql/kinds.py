"""``trident_key``: notes which kind of values each key column of a table holds.

Within one batch, a column refuses two values that it would store as one. Across batches, restarts and states only the
table can tell: a TEXT column of SQLite cannot tell a date from its text, nor a server's timestamp 06:00 from 06:00Z. So
the kind of each key column is noted when the table is created or first used; whether its times have a zone is noted
with the first time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from trident_py.errors import StateError

from ..columns.arrow import zoned
from ..columns.values import Column
from .connection import Connection
from .store import Store

TABLE = "trident_key"
_ZONES = {", with a zone": True, ", without a zone": False}
_OF = "WHERE name = ? AND field = ?"


def table(options: dict[str, Any]) -> sa.Table:
    """The definition of the table: one row for each column of a key."""

    def text(name: str, key: bool = False) -> sa.Column:
        return sa.Column(name, sa.String(190), primary_key=key, nullable=False)

    return sa.Table(TABLE, sa.MetaData(), text("name", True), text("field", True), text("kind"), **options)


def note(store: Store, connection: Connection, name: str, keys: Sequence[Column], new: bool) -> None:
    """Notes the kinds when the table is created (``new``) or first used, in a transaction that writes.

    Raises StateError for a column that holds another kind; the database driver's duplicate key error if another process
    notes it at this moment: the caller calls again.
    """
    own = store.dialect.named(connection, name)
    if new:
        connection.execute(f"DELETE FROM {TABLE} WHERE name = ?", (own,))
    if problems := key_problems(store, connection, name, keys):
        raise StateError(f"table {name!r} in {store.shown} {problems[0]}")
    found = _noted(connection, own)
    text = f"INSERT INTO {TABLE} (name, field, kind) VALUES (?, ?, ?)"
    for column in keys:
        if column.name not in found:
            connection.execute(text, (own, column.name, column.kind))


def key_problems(store: Store, connection: Connection, name: str, keys: Sequence[Column]) -> list[str]:
    """The problems of key columns that hold values of another kind."""
    found = _noted(connection, store.dialect.named(connection, name))
    return [
        f"has the key column {column.name!r}, which holds values of the kind {there!r} (recorded in {TABLE}). It is "
        f"declared {column.ddl} now: different keys would be stored as one, or equal keys as two. Declare it as "
        f"before, or use another table; if you have rewritten its keys, delete its row from {TABLE}"
        for column in keys
        if (there := found.get(column.name, column.kind)) != column.kind
    ]


def settled(
    store: Store, connection: Connection, name: str, columns: Sequence[Column], batch: Sequence[Any] | None = None
) -> list[Column]:
    """The columns with what the table notes: a column that folds gets the kind of time that it holds.

    ``batch``, the values of each column, settles a kind that is still open. Then this is called in the transaction that
    writes the values, and waits for another transaction that settles the kind at this moment.
    """
    own = store.dialect.named(connection, name)
    values = [None] * len(columns) if batch is None else batch
    return [
        replace(column, zoned=_zoned(store, connection, (own, column.name), given)) if column.folds else column
        for column, given in zip(columns, values, strict=True)
    ]


def _zoned(store: Store, connection: Connection, row: tuple[str, str], values: Any) -> bool | None:
    known = _known(connection, row)
    own = zoned(values) if known is None and values is not None else None
    if own is None:
        return known
    kind = next(text for text, zone in _ZONES.items() if zone is own)
    change = f"UPDATE {TABLE} SET kind = ? {_OF} AND kind = ?"  # the second of two writers waits, and changes nothing
    connection.execute(change, (f"timestamp{kind}", *row, "timestamp"))
    return _known(connection, row, store.dialect.shared)


def _known(connection: Connection, row: tuple[str, str], lock: str = "") -> bool | None:
    found = connection.execute(f"SELECT kind FROM {TABLE} {_OF}{lock}", row).fetchone()
    return None if found is None else _ZONES.get(found[0].removeprefix("timestamp"))


def _noted(connection: Connection, own: str) -> dict[str, str]:
    """The kind of each column, without the zone of its times."""
    found = connection.execute(f"SELECT field, kind FROM {TABLE} WHERE name = ?", (own,)).fetchall()
    return {name: "timestamp" if kind.removeprefix("timestamp") in _ZONES else kind for name, kind in found}
