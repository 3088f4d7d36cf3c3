"""The note in a database of whose each table is: ``trident_owner``."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from ..owners import Owner, Tenure
from .connection import Connection
from .store import Store

TABLE = "trident_owner"


def table(options: dict[str, Any]) -> sa.Table:
    """One row for each table that a state updates, also for those beside it."""

    def text(name: str, key: bool = False) -> sa.Column:
        return sa.Column(name, sa.String(190), primary_key=key, nullable=False)

    return sa.Table(
        TABLE, sa.MetaData(), text("name", True), text("topology"), text("state"), text("shared"), **options
    )


def check(tenure: Tenure, store: Store) -> None:
    """Before a start, in each file. Reads only. Raises StateError if a table is another one's."""
    with store.errors("ask whose the table is"):
        if not sa.inspect(store.engine).has_table(TABLE):
            return
        with store.reading() as connection:
            for name in _names(tenure, store, connection):
                tenure.stays(_found(connection, name))


def claim(tenure: Tenure, store: Store, connection: Connection) -> None:
    """Before the first batch, in a transaction that writes. An owner that is replaced writes no more.

    Raises StateError; the driver's duplicate key error where another one comes at this moment, to be called again.
    """
    for name in _names(tenure, store, connection):
        found = _found(connection, name, store.dialect.exclusive)
        if tenure.stays(found):
            continue
        if found is not None:
            connection.execute(f"DELETE FROM {TABLE} WHERE name = ?", (name,))
        if found is not None and found[:2] != tenure.own[:2]:
            shut_out = "UPDATE trident_fence SET generation = generation + 1 WHERE topology = ? AND state = ?"
            connection.execute(shut_out, found[:2])
        connection.execute(
            f"INSERT INTO {TABLE} (name, topology, state, shared) VALUES (?, ?, ?, ?)", (name, *tenure.own)
        )


def _names(tenure: Tenure, store: Store, connection: Connection) -> list[str]:
    """In one order for everybody, for the rows are locked in it."""
    return sorted(store.dialect.named(connection, name) for name in tenure.location.names)


def _found(connection: Connection, name: str, lock: str = "") -> Owner | None:
    text = f"SELECT topology, state, shared FROM {TABLE} WHERE name = ?{lock}"
    found = connection.execute(text, (name,)).fetchone()
    return None if found is None else Owner(*found)
