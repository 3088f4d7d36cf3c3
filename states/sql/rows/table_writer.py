"""Writes checked rows into one table: directly where that is safe, else through a temporary table."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from trident_py.errors import StateError

from ...columns.keyed import KeyedRows
from ...columns.values import row_text
from ..store import Store
from .rejects import shorten
from .staging import Conflict, Stage, Written

_SHOWN = 3
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
        ordered = pa.concat_arrays(list(rows.ordered()))
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


def refused_row(table: str, rows: KeyedRows, row: int, position: int, why: str) -> StateError:
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
