"""How the tables of a state go back to an earlier batch, in the transaction in which the ledger does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import sqlalchemy as sa

from .connection import Connection
from .store import Store


class Undo(Protocol):
    """What a kind of table needs to go back."""

    def is_there(self, store: Store) -> bool:
        """Return whether the store has the table. A state that no row has reached has none."""

    def last(self, store: Store) -> int:
        """Return the highest batch that rows tell; 0 if none does."""

    def why_not(self, store: Store, txid: int) -> str | None:
        """Return why the table cannot go back to this batch; None if it can. Reads only."""

    def undo(self, connection: Connection, txid: int) -> None:
        """Undo what the batches after this one have written. Does nothing if it was done."""


@dataclass(frozen=True)
class Never:
    """A table that cannot go back, and why."""

    why: str

    def is_there(self, store: Store) -> bool:
        return False

    def last(self, store: Store) -> int:
        return 0

    def why_not(self, store: Store, txid: int) -> str | None:
        return self.why

    def undo(self, connection: Connection, txid: int) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class RowUndo:
    """Rows with the txid that wrote them in a column: those of later batches are deleted."""

    table: str
    column: str

    @property
    def _txid(self) -> str:
        """The column under its table's name: alone, SQLite takes the name of a missing one for a text."""
        return f'"{self.table}"."{self.column}"'

    def is_there(self, store: Store) -> bool:
        return bool(columns_of(store, self.table))

    def last(self, store: Store) -> int:
        there = self.column in columns_of(store, self.table)
        return ask(store, self.table, f'SELECT max({self._txid}) FROM "{self.table}"') if there else 0

    def why_not(self, store: Store, txid: int) -> str | None:
        columns = columns_of(store, self.table)
        if columns and self.column not in columns:
            return f"table {self.table!r} has no column {self.column!r} yet, so its rows do not tell their batch"
        unknown = ask(store, self.table, f'SELECT count(*) FROM "{self.table}" WHERE {self._txid} IS NULL')
        if not unknown:
            return None
        return (
            f"{unknown} rows have no batch in the column {self.column!r}; set it, to 0 for rows that stay wherever it "
            "goes back to"
        )

    def undo(self, connection: Connection, txid: int) -> None:
        connection.execute(f'DELETE FROM "{self.table}" WHERE {self._txid} > ?', (txid,))


@dataclass(frozen=True)
class OpaqueUndo:
    """Opaque values, each with the one before its last batch. One that went back has -n for its txid: it was written
    in batch n or earlier, and the value before that one is unknown."""

    table: str
    values: tuple[str, ...]

    def is_there(self, store: Store) -> bool:
        return bool(columns_of(store, self.table))

    def last(self, store: Store) -> int:
        return ask(store, self.table, f'SELECT max(txid) FROM "{self.table}"')

    def why_not(self, store: Store, txid: int) -> str | None:
        later = self.last(store)
        if later > txid + 1:
            return f"it has values of batch {later}, and keeps one value before that: it can go back to {later - 1}"
        unknown = -(ask(store, self.table, f'SELECT min(txid) FROM "{self.table}"') or 0)
        if unknown > txid:
            return f"it went back to batch {unknown} before, and has no values from before that"
        return None

    def undo(self, connection: Connection, txid: int) -> None:
        new = " AND ".join(f'"prev_{name}" IS NULL' for name in self.values)
        before = ", ".join(f'"{name}" = "prev_{name}", "prev_{name}" = NULL' for name in self.values)
        connection.execute(f'DELETE FROM "{self.table}" WHERE txid > ? AND {new}', (txid,))
        connection.execute(f'UPDATE "{self.table}" SET {before}, txid = ? WHERE txid > ?', (-txid, txid))


def ask(store: Store, table: str, text: str) -> int:
    """Return the number that a query has found; 0 if the table is missing."""
    if not columns_of(store, table):
        return 0
    with store.errors(f"look at table {table!r}"):
        with store.reading() as connection:
            return int(connection.execute(text).fetchone()[0] or 0)


def columns_of(store: Store, table: str) -> set[str]:
    """Return the names of a table's columns; none if the table is missing."""
    with store.errors(f"look at table {table!r}"):
        there = sa.inspect(store.engine)
        return {column["name"] for column in there.get_columns(table)} if there.has_table(table) else set()
