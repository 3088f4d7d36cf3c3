"""``trident_key``: notes which kind of values a column of a table holds: each column of the key, and each that `folds`.

Within one batch, a column refuses two values that it would store as one. Across batches, restarts and states only the
table can tell: a TEXT column of SQLite cannot tell a date from its text, nor a server's timestamp 06:00 from 06:00Z. So
the kind is noted when the table is created or first used; whether the times of a column have a zone is noted with the
first time.
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


def note(store: Store, connection: Connection, name: str, columns: Sequence[Column], new: bool) -> None:
    """Note the kinds when the table is created (``new``) or first used, in a transaction that writes.

    Raises StateError for a key column that holds another kind; the database driver's duplicate key error if another
    process notes it at this moment: the caller calls again.
    """
    table = store.dialect.fold_on_server(connection, name)
    if new:
        connection.execute(f"DELETE FROM {TABLE} WHERE name = ?", (table,))
    if problems := key_problems(store, connection, name, [column for column in columns if column.key]):
        raise StateError(f"table {name!r} in {store.shown} {problems[0]}")
    kinds = _kinds(connection, table)
    text = f"INSERT INTO {TABLE} (name, field, kind) VALUES (?, ?, ?)"
    for column in columns:
        noted = column.key or store.dialect.narrow(column, "").folds
        if noted and column.name not in kinds:
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
    if not any(column.folds for column in columns):
        return list(columns)
    table = store.dialect.fold_on_server(connection, name)
    notes = _notes(connection, table)
    zones = [_zone(notes.get(column.name)) if column.folds else None for column in columns]
    for at, times in enumerate(batch or ()):
        if columns[at].folds and zones[at] is None and (new := detect_zone(times)) is not None:
            zones[at] = _settle_zone(store, connection, (table, columns[at].name), new)
    return [replace(column, zoned=zone) for column, zone in zip(columns, zones, strict=True)]


def _settle_zone(store: Store, connection: Connection, row: tuple[str, str], new: bool) -> bool | None:
    kind = next(text for text, zone in _ZONES.items() if zone is new)
    change = f"UPDATE {TABLE} SET kind = ? {_OF} AND kind = ?"  # the second of two writers waits, and changes nothing
    connection.execute(change, (f"timestamp{kind}", *row, "timestamp"))
    note = connection.execute(f"SELECT kind FROM {TABLE} {_OF}{store.dialect.shared}", row).fetchone()
    return None if note is None else _zone(note[0])


def _zone(kind: str | None) -> bool | None:
    return None if kind is None else _ZONES.get(kind.removeprefix("timestamp"))


def _kinds(connection: Connection, table: str) -> dict[str, str]:
    """Return the kind of each column, without the zone of its times."""
    notes = _notes(connection, table)
    return {name: kind if _zone(kind) is None else "timestamp" for name, kind in notes.items()}


def _notes(connection: Connection, table: str) -> dict[str, str]:
    return dict(connection.execute(f"SELECT field, kind FROM {TABLE} WHERE name = ?", (table,)).fetchall())
