"""``trident_key``: notes which kind of values each key column of a table holds, one row for each column.

Within one batch, a column refuses two values that it would store as one. Across batches, restarts and states only the
table can tell: a TEXT column of SQLite cannot tell a date from its text, nor a server's timestamp 06:00 from 06:00Z. So
the kind of each key column is noted when the table is created or first used; whether its times have a zone is noted
with the first time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trident_py.errors import StateError

from ..columns.arrow import detect_zone
from ..columns.values import Column
from .connection import Connection
from .store import Store

TABLE = "trident_key"
_ZONES = {", with a zone": True, ", without a zone": False}
_OF = "WHERE name = ? AND field = ?"


def note(store: Store, connection: Connection, name: str, keys: Sequence[Column], new: bool) -> None:
    """Note the kinds when the table is created (``new``) or first used, in a transaction that writes.

    Raises StateError for a column that holds another kind; the database driver's duplicate key error if another process
    notes it at this moment: the caller calls again.
    """
    table = store.dialect.fold_on_server(connection, name)
    if new:
        connection.execute(f"DELETE FROM {TABLE} WHERE name = ?", (table,))
    if problems := key_problems(store, connection, name, keys):
        raise StateError(f"table {name!r} in {store.shown} {problems[0]}")
    kinds = _kinds(connection, table)
    text = f"INSERT INTO {TABLE} (name, field, kind) VALUES (?, ?, ?)"
    for column in keys:
        if column.name not in kinds:
            connection.execute(text, (table, column.name, column.kind))


def key_problems(store: Store, connection: Connection, name: str, keys: Sequence[Column]) -> list[str]:
    """Return the problems of key columns that hold values of another kind."""
    kinds = _kinds(connection, store.dialect.fold_on_server(connection, name))
    return [
        f"has the key column {column.name!r}, which holds values of the kind {kind!r} (recorded in {TABLE}). It is "
        f"declared {column.ddl} now: different keys would be stored as one, or equal keys as two. Declare it as "
        f"before, or use another table; if you have rewritten its keys, delete its row from {TABLE}"
        for column in keys
        if (kind := kinds.get(column.name, column.kind)) != column.kind
    ]


def settle_types(
    store: Store, connection: Connection, name: str, columns: Sequence[Column], batch: Sequence[Any] | None = None
) -> list[Column]:
    """Return the columns with what the table notes: a column that folds gets the kind of time that it holds.

    ``batch``, the values of each column, settles a kind that is still open. Then this is called in the transaction that
    writes the values, and waits for another transaction that settles the kind at this moment.
    """
    table = store.dialect.fold_on_server(connection, name)
    values = [None] * len(columns) if batch is None else batch
    return [
        replace(column, zoned=_settle_zone(store, connection, (table, column.name), times)) if column.folds else column
        for column, times in zip(columns, values, strict=True)
    ]


def _settle_zone(store: Store, connection: Connection, row: tuple[str, str], values: Any) -> bool | None:
    noted = _read_note(connection, row)
    new = detect_zone(values) if noted is None and values is not None else None
    if new is None:
        return noted
    kind = next(text for text, zone in _ZONES.items() if zone is new)
    change = f"UPDATE {TABLE} SET kind = ? {_OF} AND kind = ?"  # the second of two writers waits, and changes nothing
    connection.execute(change, (f"timestamp{kind}", *row, "timestamp"))
    return _read_note(connection, row, store.dialect.shared)


def _read_note(connection: Connection, row: tuple[str, str], lock: str = "") -> bool | None:
    note = connection.execute(f"SELECT kind FROM {TABLE} {_OF}{lock}", row).fetchone()
    return None if note is None else _ZONES.get(note[0].removeprefix("timestamp"))


def _kinds(connection: Connection, table: str) -> dict[str, str]:
    """Return the kind of each column, without the zone of its times."""
    notes = connection.execute(f"SELECT field, kind FROM {TABLE} WHERE name = ?", (table,)).fetchall()
    return {name: "timestamp" if kind.removeprefix("timestamp") in _ZONES else kind for name, kind in notes}
