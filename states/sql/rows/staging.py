"""Writes rows through a temporary table: one load, then one INSERT of the rows whose key is missing.

The temporary table accepts every row, so only the strict INSERT into the real table can fail. A savepoint undoes a
failed INSERT, and halving the range finds the refused row. A key that another transaction inserts at the same moment is
a duplicate like any other: the work since the savepoint is repeated.

Rows whose keys are probably all there are first compared from a table that is faster to fill and may only be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from trident_py.errors import FailedException

from ...columns.keyed import KeyedRows
from ...columns.values import Column, decode_row
from ..dialects.base import check_taken, names
from ..store import Store, hide_secrets

STAGE = "trident_stage"
ROW = Column("trident_row", "bigint")
_TRIES = 8
_SHOWN = 3


class Conflict(NamedTuple):
    """A row whose key the table has with other values."""

    row: int
    stored: tuple


class Written(NamedTuple):
    """The result for each row; rows are named by their index in the input."""

    inserted: int
    new: list[int]
    refused: dict[int, str]
    conflicts: int
    examples: list[Conflict]


class _Arrived(Exception):
    """Another transaction has inserted a key that was missing a moment ago."""


class Stage:
    """The temporary table of one batch; ``rows`` are in the order of their keys, each key once."""

    def __init__(self, store: Store, connection: Any, table: str, rows: KeyedRows) -> None:
        self.store = store
        self.dialect = store.dialect
        self.connection = connection
        self.table = table
        self.rows = rows
        self._columns = [ROW, *rows.columns]
        self._stage = f"{self.dialect.aside}{STAGE}"  # never a permanent table of that name
        self._exact = self.dialect.exact
        self._waits = True
        self._tail = self.dialect.unless_there(self.rows.keys)

    def all_known(self, compare: bool) -> Written | None:
        """Return the result if the table has the key of every row; else None, and `fill` and `insert` must follow."""
        self.drop()
        try:
            return self._only_read(compare)
        except Exception as error:
            if self.dialect.cannot_stage(error):
                return None
            raise

    def fill(self) -> None:
        self.drop()
        self._exact = self.dialect.exact
        self.dialect.stage(self.store.engine, self.connection, self.table, self._columns, STAGE)
        self.dialect.fill(self.connection, STAGE, self._columns, self._arrays(), temporary=True)

    def insert(self, compare: bool, tell: bool, all_refused: bool) -> Written:
        """Insert the rows whose key is missing. With ``all_refused``, continues after a row that the table refuses."""
        for tried in range(1, _TRIES + 1):  # not `again_for`: a fixed count, no pause
            self._waits = tried < _TRIES
            try:
                with self._savepoint("trident_rows"):
                    return self._once(compare, tell, all_refused)
            except _Arrived:
                continue
        raise FailedException(f"table {self.table!r}: other transactions kept inserting the same keys")

    def drop(self) -> None:
        self.connection.execute(f"DROP {self.dialect.temporary} IF EXISTS {self._stage}")

    def _only_read(self, compare: bool) -> Written | None:
        arrays = self._arrays()
        exact = self.dialect.stage_to_read(self.connection, self.table, self._columns, arrays, STAGE)
        if exact is None:
            return None
        self._exact = exact
        there, conflicts = self._there(compare)
        if there < len(self.rows):
            return None
        return Written(0, [], {}, conflicts, self._examples() if conflicts else [])

    def _arrays(self) -> list[pa.Array]:
        numbers = pc.indices_nonzero(pa.repeat(True, len(self.rows)))
        return [numbers, *self.rows.arrays]

    def _once(self, compare: bool, tell: bool, all_refused: bool) -> Written:
        missing, conflicts, examples = len(self.rows), 0, []
        if compare or tell or not self._tail:
            self._tail = ""  # a key that arrives must be an error
            there, conflicts = self._there(compare)
            examples = self._examples() if conflicts else []
            if there == len(self.rows):
                return Written(0, [], {}, conflicts, examples)
            if there and self._drop_those_there() != there:  # one was not compared
                raise _Arrived
            missing -= there
        new = self._numbers() if tell else []
        refused: dict[int, str] = {}
        inserted = self._insert(0, len(self.rows) - 1, refused, all_refused)
        if all_refused or not refused:
            self._check_taken(missing, inserted, len(refused))
        return Written(inserted, [n for n in new if n not in refused], refused, conflicts, examples)

    def _check_taken(self, sent: int, inserted: int, refused: int) -> None:
        """Also where the INSERT itself leaves out the rows whose key exists: then each row must have its key there."""
        if inserted + refused < sent:
            check_taken(self.table, sent, refused + (self._there(False)[0] if self._tail else inserted))

    def _there(self, compare: bool) -> tuple[int, int]:
        """Return how many rows have a key that the table has, and with ``compare`` how many of these have other
        values."""
        differs = f"sum(CASE WHEN {self._differs()} THEN 1 ELSE 0 END)" if compare and self.rows.others else "0"
        there, conflicts = self.connection.execute(f"SELECT count(*), {differs} FROM {self._both()}").fetchone()
        return there, int(conflicts or 0)

    def _examples(self) -> list[Conflict]:
        others = self.rows.others
        wanted = ", ".join(f't."{column.name}"' for column in others)
        text = f"SELECT s.{ROW.name}, {wanted} FROM {self._both()} WHERE {self._differs()}"
        rows = self.connection.execute(f"{text} ORDER BY s.{ROW.name} LIMIT {_SHOWN}").fetchall()
        decoders = [self.dialect.decoder(column) for column in others]
        return [Conflict(row[0], decode_row(row[1:], decoders)) for row in rows]

    def _drop_those_there(self) -> int:
        known = f'EXISTS (SELECT 1 FROM "{self.table}" AS t WHERE {self._equal(STAGE)})'
        return int(self.connection.execute(f"DELETE FROM {self._stage} WHERE {known}").rowcount)

    def _numbers(self) -> list[int]:
        return [row[0] for row in self.connection.execute(f"SELECT {ROW.name} FROM {self._stage}").fetchall()]

    def _insert(self, low: int, high: int, refused: dict[int, str], all_refused: bool) -> int:
        """Insert a range of rows and return how many were inserted; find refused rows by halving the range."""
        if refused and not all_refused:
            return 0
        try:
            with self._savepoint("trident_range"):
                return int(self.connection.execute(self._text(), (low, high)).rowcount)
        except Exception as error:
            if not self.dialect.refuses(error):
                raise
            if low == high:
                if self._waits and self._is_there(low):  # there in every try: a trigger maps two keys to one
                    raise _Arrived from error
                refused[low] = hide_secrets(str(error), self.store.url)
                return 0
        middle = (low + high) // 2
        done = self._insert(low, middle, refused, all_refused)
        return done + self._insert(middle + 1, high, refused, all_refused)

    def _text(self) -> str:
        columns = names(self.rows.columns)
        return (
            f'INSERT INTO "{self.table}" ({columns}) SELECT {columns} FROM {self._stage}'
            f" WHERE {ROW.name} BETWEEN ? AND ?{self.dialect.stage_order}{self._tail}"
        )

    def _is_there(self, row: int) -> bool:
        text = f"SELECT 1 FROM {self._both()} WHERE s.{ROW.name} = ?"
        return self.connection.execute(text, (row,)).fetchone() is not None

    def _both(self) -> str:
        """Return the rows whose key the table has, beside the row there."""
        return f'{self._stage} AS s {self.dialect.joined} "{self.table}" AS t ON {self._equal("s")}'

    def _differs(self) -> str:
        return f"NOT ({' AND '.join(map(self._same, self.rows.others))})"

    def _equal(self, stage: str) -> str:
        return " AND ".join(f't."{key.name}" = {stage}."{key.name}"' for key in self.rows.keys)

    def _same(self, column: Column) -> str:
        exact = self._exact if column.family in ("text", "json") else "{0}"
        pair = [exact.format(f'{alias}."{column.name}"') for alias in "ts"]
        return self.dialect.same.format(*pair)

    @contextmanager
    def _savepoint(self, name: str) -> Iterator[None]:
        """Undoes the work after a refused row or an arrived key. (A lost lock or connection ends the transaction.)"""
        self.connection.execute(f"SAVEPOINT {name}")
        try:
            yield
        except Exception as error:
            if isinstance(error, _Arrived) or self.dialect.refuses(error):
                self.connection.execute(f"ROLLBACK TO SAVEPOINT {name}")
            raise
        self.connection.execute(f"RELEASE SAVEPOINT {name}")
