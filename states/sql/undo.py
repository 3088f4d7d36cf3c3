"""How the tables of a state go back to an earlier batch, in the transaction in which the ledger does."""

from __future__ import annotations

from dataclasses import dataclass

from .connection import Connection
from .ledger import Undo
from .store import Store
from .table import describe


@dataclass(frozen=True)
class Never(Undo):
    """A table that cannot go back, and why."""

    why: str

    def why_not(self, store: Store, txid: int) -> str | None:
        return self.why


@dataclass(frozen=True)
class _TableUndo(Undo):
    """A table that can."""

    table: str

    def is_there(self, store: Store) -> bool:
        return describe(store, self.table) is not None

    def _ask(self, store: Store, wanted: str, where: str = "") -> list[int]:
        """Return numbers that a query finds; the table is there."""
        with store.errors(f"look at table {self.table!r}"), store.reading() as connection:
            row = connection.execute(f'SELECT {wanted} FROM "{self.table}" {where}').fetchone()
        return [int(found or 0) for found in row]


@dataclass(frozen=True)
class RowUndo(_TableUndo):
    """Rows with the txid that wrote them in a column: those of later batches are deleted, and their dead letters."""

    column: str
    rejected: str | None = None
    """The table of the dead letters; None if the state keeps none."""

    @property
    def _txid(self) -> str:
        """The column under its table's name: alone, SQLite takes the name of a missing one for a text."""
        return f'"{self.table}"."{self.column}"'

    def last(self, store: Store) -> int:
        there = self.column in (describe(store, self.table) or ())
        return self._ask(store, f"max({self._txid})")[0] if there else 0

    def why_not(self, store: Store, txid: int) -> str | None:
        columns = describe(store, self.table)
        if columns is None:
            return None
        if self.column not in columns:
            return f"table {self.table!r} has no column {self.column!r} yet, so its rows do not tell their batch"
        (unknown,) = self._ask(store, "count(*)", f"WHERE {self._txid} IS NULL")
        if not unknown:
            return None
        return (
            f"{unknown} rows have no batch in the column {self.column!r}; set it, to 0 for rows that stay wherever it "
            "goes back to"
        )

    def undo(self, connection: Connection, own: tuple[str, str], txid: int) -> None:
        connection.execute(f'DELETE FROM "{self.table}" WHERE {self._txid} > ?', (txid,))
        if self.rejected is not None:
            of_later = '"topology" = ? AND "state" = ? AND "txid" > ?'
            connection.execute(f'DELETE FROM "{self.rejected}" WHERE {of_later}', (*own, txid))


@dataclass(frozen=True)
class OpaqueUndo(_TableUndo):
    """Opaque values, each with the one before its last batch. One that went back has -n for its txid: it was written
    in batch n or earlier, and the value before that one is unknown."""

    values: tuple[str, ...]

    def why_not(self, store: Store, txid: int) -> str | None:
        if not self.is_there(store):
            return None
        last, first = self._ask(store, "max(txid), min(txid)")
        if txid >= max(last - 1, -first):
            return None
        if -first < last:
            return f"it has values of batch {last}, and keeps one value before that: it can go back to {last - 1}"
        return f"it went back to batch {-first} before, and has no values from before that"

    def undo(self, connection: Connection, own: tuple[str, str], txid: int) -> None:
        new = " AND ".join(f'"prev_{name}" IS NULL' for name in self.values)
        before = ", ".join(f'"{name}" = "prev_{name}", "prev_{name}" = NULL' for name in self.values)
        connection.execute(f'DELETE FROM "{self.table}" WHERE txid > ? AND {new}', (txid,))
        connection.execute(f'UPDATE "{self.table}" SET {before}, txid = ? WHERE txid > ?', (-txid, txid))
