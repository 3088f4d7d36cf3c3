"""``trident_owner``: notes in the database which state owns each table, further tables included."""

from __future__ import annotations

import sqlalchemy as sa

from ..ledger.owner import Owner, Tenure
from .connection import Connection
from .store import Store

TABLE = "trident_owner"


def check(tenure: Tenure, store: Store) -> None:
    """Called before a start, for each file. Only reads. Raises StateError if another state owns a table."""
    with store.errors("look up the owner of the table"):
        if not sa.inspect(store.engine).has_table(TABLE):
            return
        with store.reading() as connection:
            for name in _names(tenure, store, connection):
                tenure.stays(_owner(connection, name))


def holds(tenure: Tenure, store: Store, connection: Connection) -> bool:
    """Return whether the note of a table names this state."""
    return any(_owner(connection, name) == tenure.own for name in _names(tenure, store, connection))


def claim(tenure: Tenure, store: Store, connection: Connection) -> None:
    """Called before the first batch, in a transaction that writes. A replaced owner can no longer write.

    Raises StateError if another state owns a table; the database driver's duplicate key error if another driver claims
    it at this moment: the caller calls again.
    """
    for name in _names(tenure, store, connection):
        owner = _owner(connection, name, store.dialect.exclusive)
        if tenure.stays(owner):
            continue
        if owner is not None:
            connection.execute(f"DELETE FROM {TABLE} WHERE name = ?", (name,))
        if owner is not None and owner[:2] != tenure.own[:2]:
            shut_out = "UPDATE trident_fence SET generation = generation + 1 WHERE topology = ? AND state = ?"
            connection.execute(shut_out, owner[:2])
        connection.execute(
            f"INSERT INTO {TABLE} (name, topology, state, shared) VALUES (?, ?, ?, ?)", (name, *tenure.own)
        )


def _names(tenure: Tenure, store: Store, connection: Connection) -> list[str]:
    """Return the tables' names in one fixed order, since their rows are locked in it."""
    return sorted(store.dialect.fold_on_server(connection, name) for name in tenure.location.names)


def _owner(connection: Connection, name: str, lock: str = "") -> Owner | None:
    text = f"SELECT topology, state, shared FROM {TABLE} WHERE name = ?{lock}"
    row = connection.execute(text, (name,)).fetchone()
    return None if row is None else Owner(*row)
