"""The tables of a SequenceState: the rows, the senders, and the waiting rows or the gaps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import sqlalchemy as sa

from trident_py.errors import StateError

from ....columns.values import Column, decode_row
from ...connection import Connection
from ...dialects.base import Dialect, check_taken, insert_text, marks, names
from ...store import Store
from ...table import Shape, TablePlace, prepare
from .numbers import Decided, Gap, Key, SenderRow

BESIDE = ("_senders", "_held", "_gaps")
RESERVED = ("first", "held", "last", "missing", "time", "txid")
_PER_STATEMENT = 400
_SENDER = [Column(name, "bigint") for name in SenderRow._fields]
_GAP = [Column("first", "bigint", True), Column("last", "bigint"), Column("txid", "bigint"),
        Column("time", "string(40)")]  # fmt: skip


@dataclass(frozen=True)
class Tables(Shape):
    """The tables of one state: their names, their columns and the statements on them. The table's own columns are the
    sender's, the number, the others."""

    dialect: Dialect
    table: str
    first: int
    """The number that a new sender begins with."""

    @property
    def sender(self) -> list[Column]:
        return self.keys[:-1]

    @property
    def senders(self) -> str:
        return f"{self.table}_senders"

    @property
    def held(self) -> str:
        return f"{self.table}_held"

    @property
    def gaps(self) -> str:
        return f"{self.table}_gaps"

    def beside(self, onGap: str) -> dict[str, list[Column]]:
        """Return the further tables and their columns."""
        third = {self.held: list(self.columns)} if onGap == "hold" else {self.gaps: [*self.sender, *_GAP]}
        return {self.senders: [*self.sender, *_SENDER], **third}

    def lock(self, connection: Connection, senders: Sequence[tuple]) -> dict[tuple, SenderRow]:
        """Lock the rows of these senders for this transaction and return them; create missing ones."""
        self._lock(connection, senders)
        rows = self._read(connection, senders)
        if new := [sender for sender in senders if sender not in rows]:
            self._make(connection, new)
            self._lock(connection, new)
            rows |= self._read(connection, new)
        if missing := [sender for sender in senders if sender not in rows]:
            raise StateError(
                f"table {self.senders!r}: the row of sender {missing[0]!r} cannot be read back by its key: a trigger "
                "or a rule changes inserted rows. Remove the trigger or rule"
            )
        return rows

    def _lock(self, connection: Connection, senders: Sequence[tuple]) -> None:
        if self.dialect.exclusive == "":
            return
        for where, values in _chunks(self.sender, senders):
            text = f'SELECT 1 FROM "{self.senders}" WHERE {where} ORDER BY {names(self.sender)}'
            connection.execute(text + self.dialect.exclusive, values).fetchall()

    def _read(self, connection: Connection, senders: Sequence[tuple]) -> dict[tuple, SenderRow]:
        rows = self.dialect.read(connection, self.senders, self.sender, _SENDER, senders)
        return {sender: SenderRow(*row) for sender, row in zip(senders, rows, strict=True) if row is not None}

    def _make(self, connection: Connection, senders: Sequence[tuple]) -> None:
        """Insert a row for each of these senders; wait for another transaction that inserts the same row."""
        unless_there = self.dialect.instead(connection, [column.name for column in self.sender], [])
        rows = [(*sender, *SenderRow(self.first - 1)) for sender in senders]
        connection.executemany(insert_text(self.senders, [*self.sender, *_SENDER]) + unless_there, rows)

    def read_stored(self, connection: Connection, table: str, keys: Sequence[Key]) -> dict[Key, tuple]:
        """Return the other columns, encoded, of the keys that the table holds."""
        rows = self.dialect.read(connection, table, self.keys, self.others, keys)
        by_key = {key: row for key, row in zip(keys, rows, strict=True) if row is not None}
        return dict(zip(by_key, encode_rows(self.dialect, self.others, list(by_key.values())), strict=True))

    def same(self, row: tuple, other: tuple) -> bool:
        """Return whether the other columns of two encoded rows hold the same values."""
        return row == other or all(
            a == b or (column.family == "json" and None not in (a, b) and _sort_keys(a) == _sort_keys(b))
            for column, a, b in zip(self.others, row, other, strict=True)
        )

    def read_waiting(self, connection: Connection, senders: Sequence[tuple]) -> dict[tuple, set[int]]:
        """Return the waiting numbers of each sender."""
        numbers: dict[tuple, set[int]] = {}
        for where, values in _chunks(self.sender, senders):
            text = f'SELECT {names(self.keys)} FROM "{self.held}" WHERE {where}'
            rows = connection.execute(text, values).fetchall()
            for key in encode_rows(self.dialect, self.keys, rows):
                numbers.setdefault(key[:-1], set()).add(key[-1])
        return numbers

    def read_gaps(self, connection: Connection, senders: Sequence[tuple]) -> dict[tuple, list[Gap]]:
        """Return the gaps of each sender."""
        gaps: dict[tuple, list[Gap]] = {}
        columns, width = [*self.sender, *_GAP], len(self.sender)
        for where, values in _chunks(self.sender, senders):
            text = f'SELECT {names(columns)} FROM "{self.gaps}" WHERE {where}'
            for row in connection.execute(text, values).fetchall():
                sender = encode_rows(self.dialect, self.sender, [row[:width]])[0]
                gaps.setdefault(sender, []).append(Gap(*row[width:]))
        return gaps

    def write(self, connection: Connection, decided: Decided, rows: dict[Key, tuple]) -> None:
        """Write everything that was decided. ``rows``: the encoded rows of the batch by key."""
        self._insert(connection, self.table, [rows[key] for key in decided.applied])
        self._insert(connection, self.held, [rows[key] for key in decided.waiting])
        if decided.changed:
            changed = [(*sender, *counts) for sender, counts in sorted(decided.changed.items())]
            self.dialect.write(connection, self.senders, self.sender, _SENDER, changed)
        if decided.released:
            self._release(connection, sorted({key[:-1] for key in decided.released}), len(decided.released))
        if decided.closed:
            same = " AND ".join(f'"{column.name}" = ?' for column in [*self.sender, _GAP[0]])
            gone = connection.executemany(f'DELETE FROM "{self.gaps}" WHERE {same}', decided.closed).rowcount
            check_taken(self.gaps, len(decided.closed), gone)
        if gaps := [(*sender, *gap) for sender, gap in [*decided.remaining, *decided.opened]]:
            self.dialect.insert(connection, self.gaps, [*self.sender, *_GAP], gaps)

    def _insert(self, connection: Connection, table: str, rows: Sequence[tuple]) -> None:
        if not rows:
            return
        try:
            self.dialect.insert(connection, table, self.columns, rows)
        except Exception as error:
            if not self.dialect.is_duplicate(error):
                raise
            raise StateError(
                f"table {table!r} has a row above the last number in {self.senders!r}, or another unique key refuses a "
                f"row ({error}). Nothing of the batch is written. Only this state may write the table"
            ) from error

    def _release(self, connection: Connection, senders: Sequence[tuple], released: int) -> None:
        """Move the released rows into the table. Called after the senders' rows hold their new last numbers."""
        moved = gone = 0
        same = " AND ".join(f's."{column.name}" = "{self.held}"."{column.name}"' for column in self.sender)
        last = f'(SELECT s."last" FROM "{self.senders}" AS s WHERE {same})'
        for where, values in _chunks(self.sender, senders):
            free = f'FROM "{self.held}" WHERE {where} AND "{self.keys[-1].name}" <= {last}'
            columns = names(self.columns)
            text = f'INSERT INTO "{self.table}" ({columns}) SELECT {columns} {free}'
            moved += connection.execute(text, values).rowcount
            gone += connection.execute(f"DELETE {free}", values).rowcount
        check_taken(self.table, released, moved)
        check_taken(self.held, released, gone)

    def read_rows(self, connection: Connection, keys: Sequence[Key]) -> list[tuple]:
        """Return the other columns of waiting rows, in the order of the keys."""
        rows = self.dialect.read(connection, self.held, self.keys, self.others, keys)
        return [row for row in rows if row is not None]


def make_beside(place: TablePlace, tables: Tables, onGap: str) -> None:
    """Create and check the further tables, once per process. Raises StateError for rows of the other ``onGap``."""
    store = place.store()
    for name, columns in tables.beside(onGap).items():
        prepare(TablePlace(place.url, name), Shape(tuple(columns)))
    done = (place, "sequence", onGap)
    if done not in store.ready:
        with store.errors(f"look for rows that onGap={onGap!r} does not read"):
            _refuse_other(store, tables, onGap)
        store.ready[done] = True


def _refuse_other(store: Store, tables: Tables, onGap: str) -> None:
    other, contents = ("hold", "waiting rows") if onGap == "report" else ("report", "open gaps")
    name = tables.held if onGap == "report" else tables.gaps
    if not sa.inspect(store.engine).has_table(name):
        return
    with store.reading() as connection:
        row = connection.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone()
    if row is not None:
        raise StateError(
            f"table {name!r} in {store.shown} has {contents}, written with onGap={other!r}; onGap={onGap!r} never "
            f"reads them. Use onGap={other!r}, or empty that table if you give up its rows"
        )


def encode_rows(dialect: Dialect, columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> list[tuple]:
    """Return rows that the database driver returned, encoded as they were when sent."""
    if not rows or not columns:
        return [()] * len(rows)
    decoders = [dialect.decoder(column) for column in columns]
    values = zip(*(decode_row(row, decoders) for row in rows), strict=True)
    return list(zip(*(c.encode(v) for c, v in zip(columns, values, strict=True)), strict=True))


def _chunks(keys: Sequence[Column], rows: Sequence[tuple]) -> Iterator[tuple[str, list[Any]]]:
    """Return conditions that hold for these keys, with their values: one for each chunk of keys."""
    same = " AND ".join(f'"{key.name}" = ?' for key in keys)
    for start in range(0, len(rows), _PER_STATEMENT):
        part = rows[start : start + _PER_STATEMENT]
        where = " OR ".join([f"({same})"] * len(part))
        if len(keys) == 1:
            where = f'"{keys[0].name}" IN ({marks(len(part))})'
        yield f"({where})", list(chain.from_iterable(part))


def _sort_keys(text: str) -> str:
    """JSON with sorted keys, since some databases do not keep their order."""
    return json.dumps(json.loads(text), sort_keys=True)
