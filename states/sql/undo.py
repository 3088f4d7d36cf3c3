"""How the tables of a state go back to an earlier batch, in the transaction in which the ledger does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import sqlalchemy as sa

from .connection import Connection
from .store import Store


class Undo(Protocol):
    """What a kind of table needs to go back."""

    def why_not(self, store: Store, txid: int) -> str | None:
        """Return why the table cannot go back to this batch; None if it can. Reads only."""

    def undo(self, connection: Connection, txid: int) -> None:
        """Undo what the batches after this one have written. Does nothing if it was done."""


@dataclass(frozen=True)
class Never:
    """A table that cannot go back, and why."""

    why: str

    def why_not(self, store: Store, txid: int) -> str | None:
        return self.why

    def undo(self, connection: Connection, txid: int) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class RowUndo:
    """Rows with the txid that wrote them in a column: those of later batches are deleted."""

    table: str
    column: str

    def why_not(self, store: Store, txid: int) -> str | None:
        unknown = ask(store, self.table, f'SELECT count(*) FROM "{self.table}" WHERE "{self.column}" IS NULL')
        if not unknown:
            return None
        return (
            f"{unknown} rows have no batch in the column {self.column!r}; set it, to 0 for rows that stay wherever it "
            "goes back to"
        )

    def undo(self, connection: Connection, txid: int) -> None:
        connection.execute(f'DELETE FROM "{self.table}" WHERE "{self.column}" > ?', (txid,))


@dataclass(frozen=True)
class OpaqueUndo:
    """Opaque values, each with the one before its last batch. One that went back has -n for its txid: it was written
    in batch n or earlier, and the value before that one is unknown."""

    table: str
    values: tuple[str, ...]

    def why_not(self, store: Store, txid: int) -> str | None:
        later = ask(store, self.table, f'SELECT max(txid) FROM "{self.table}"') or 0
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
    with store.errors(f"look at table {table!r}"):
        if not sa.inspect(store.engine).has_table(table):
            return 0
        with store.reading() as connection:
            return int(connection.execute(text).fetchone()[0] or 0)
