"""Writes checked rows into one table: directly where that is safe, else through a temporary table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from trident_py.errors import FailedException, StateError

from ...columns.arrow import KeyedRows
from ...columns.values import Column, decode_row, row_text
from ..dialects.base import STAGE, check_taken, names
from ..store import Store, hide_secrets
from .row_checks import shorten

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
    """The temporary table of one batch; ``rows`` are in the order of their keys, each key once.

    It accepts every row, so only the strict INSERT from it can fail. A savepoint undoes that, and halving the range
    finds the refused row. A key that another transaction inserts at the same moment is a duplicate like any other: the
    work since the savepoint is repeated.
    """

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


_SAMPLE = 64
_ROWS_TO_SAMPLE = 1_000  # fewer rows are sooner written than asked for
_A_FEW = 0.01


class Wanted(NamedTuple):
    """What the state's options require of a write."""

    compare: bool
    """Look for rows that have the key of another row and other values."""
    tell: bool
    """Name the new rows."""
    all_refused: bool
    """Continue after a row that the table refuses."""


class _History:
    """What this process's last batches for a table were like. It decides which way is tried first, never the result."""

    surprised = False  # the last sample without a known key was of rows that were not all new
    gaps = False  # the last sample with known keys only was of rows that were not all known
    refused = False  # the table refused a row


class TableWriter:
    """Writes into one table of one store, for one partition."""

    def __init__(self, store: Store, table: str) -> None:
        self.store = store
        self.table = table
        self._history: _History = store.ready.setdefault((_History, table), _History())

    def write(self, connection: Any, rows: KeyedRows, wanted: Wanted) -> Written:
        """Insert the rows whose key is missing; of rows with equal keys, the first. Called in a transaction.

        If every row is new, none has to be compared and all are told, so each option takes the direct way first.
        """
        seen, history = self._sample_known(connection, rows), self._history
        known = seen or (_A_FEW if history.surprised else 0.0)
        written = None if history.refused else self._directly(connection, rows, wanted, known)
        if written is None:
            written = self._stage_rows(connection, rows, wanted, seen == 1 and not history.gaps)
            history.refused = bool(written.refused)
        if seen == 0:
            history.surprised = written.inserted < len(rows)
        if seen == 1:
            history.gaps = written.inserted + len(written.refused) > 0
        return written

    def _sample_known(self, connection: Any, rows: KeyedRows) -> float:
        """Return the share of a sample of the rows whose key the table has."""
        if len(rows) < _ROWS_TO_SAMPLE:
            return 0.0
        every = pa.array(range(0, len(rows), max(1, len(rows) // _SAMPLE)), pa.int64())
        sample = rows.take(every).python_keys()
        found = self.store.dialect.read(connection, self.table, rows.keys, [], sample)
        return 1 - found.count(None) / len(found)

    def _directly(self, connection: Any, rows: KeyedRows, wanted: Wanted, known: float) -> Written | None:
        every = wanted.compare or wanted.tell
        if every and known > 0:
            return None
        inserted = self.store.dialect.direct(connection, self.table, rows, known, every)
        if inserted is None:
            return None
        return Written(inserted, list(range(len(rows))) if wanted.tell else [], {}, 0, [])

    def _stage_rows(self, connection: Any, rows: KeyedRows, wanted: Wanted, known: bool = False) -> Written:
        """Write the rows. ``known``: the table probably has the key of every row."""
        ordered = pa.concat_arrays(list(rows.in_key_order()))
        is_first = rows.first(ordered)
        first, again = ordered.filter(is_first), ordered.filter(pc.invert(is_first))
        stage = Stage(self.store, connection, self.table, rows.take(first))
        done = stage.all_known(wanted.compare) if known else None
        if done is None:
            stage.fill()
            done = stage.insert(wanted.compare, wanted.tell, wanted.all_refused)
        stage.drop()
        written = done._replace(
            new=first.take(pa.array(done.new, pa.int64())).to_pylist(),
            refused={first[row].as_py(): why for row, why in done.refused.items()},
            examples=[Conflict(first[conflict.row].as_py(), conflict.stored) for conflict in done.examples],
        )
        if len(again) and wanted.compare:
            written = _with_conflicts(written, rows, ordered, is_first)
        if len(again) and written.refused and wanted.all_refused:
            written = self._second_ones(connection, rows, wanted, written, again)
        return written

    def _second_ones(
        self, connection: Any, rows: KeyedRows, wanted: Wanted, written: Written, again: pa.Array
    ) -> Written:  # fmt: skip
        """Write the next row of each key whose first row was refused."""
        keys = {rows.key(row) for row in written.refused}
        others = sorted(row for row in again.to_pylist() if rows.key(row) in keys)
        if not others:
            return written
        more = self._stage_rows(connection, rows.take(pa.array(others, pa.int64())), wanted._replace(compare=False))
        return written._replace(
            inserted=written.inserted + more.inserted,
            new=written.new + [others[row] for row in more.new],
            refused=written.refused | {others[row]: why for row, why in more.refused.items()},
        )


def _with_conflicts(written: Written, rows: KeyedRows, ordered: pa.Array, is_first: pa.Array) -> Written:
    """Add the conflicts within the batch: rows with the key of an earlier row and other values."""
    group = pc.subtract(pc.cumulative_sum(is_first.cast(pa.int64())), 1)
    again = pc.invert(is_first)
    second, first = ordered.filter(again), ordered.filter(is_first).take(group.filter(again))
    differs = pa.array([False] * len(second))
    for column, array in zip(rows.columns, rows.arrays, strict=True):
        if not column.key:
            differs = pc.or_(differs, _differ(array.take(first), array.take(second)))
    conflicting = second.filter(differs).to_pylist()
    kept = first.filter(differs).to_pylist()
    others = [i for i, column in enumerate(rows.columns) if not column.key]
    examples = [
        Conflict(row, tuple(rows.row(stands)[i] for i in others))
        for row, stands in zip(conflicting[:_SHOWN], kept, strict=False)
    ]
    more = [*written.examples, *examples][:_SHOWN]
    return written._replace(conflicts=written.conflicts + len(conflicting), examples=more)


def _differ(values: pa.Array, others: pa.Array) -> pa.Array:
    both_null = pc.and_(pc.is_null(values), pc.is_null(others))
    return pc.invert(pc.or_(pc.fill_null(pc.equal(values, others), False), both_null))


def refusal_error(table: str, rows: KeyedRows, row: int, position: int, why: str) -> StateError:
    """Return the error for a row that the table refuses."""
    return StateError(
        f"table {table!r}, row {position} of the batch ({row_text(rows.columns, rows.row(row))}): the table refuses "
        f"it: {shorten(why)}. Nothing of the batch is written. Correct the row before the state, change the table, "
        'or set such rows aside with onBadRow="dead-letter"'
    )


def conflict_text(table: str, rows: KeyedRows, example: Conflict, position: int) -> str:
    """Describe a conflict."""
    key = row_text(rows.keys, rows.key(example.row))
    values = [value for value, column in zip(rows.row(example.row), rows.columns, strict=True) if not column.key]
    return (
        f"table {table!r}, row {position} of the batch: the key ({key}) is taken by a row with other values: "
        f"stored {row_text(rows.others, example.stored)}, new {row_text(rows.others, values)}"
    )
