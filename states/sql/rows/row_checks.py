"""Turns tuples into checked columns. What a column cannot hold is an error or a dead letter before any write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from trident_py.errors import StateError
from trident_py.tuples import Fields

from ...columns.arrow import encode_column, gather_columns, refusals
from ...columns.keyed import KeyedRows
from ...columns.values import Column, RefusedValue, refusal
from ..dialects.bulk import too_long
from .rejects import Reject


class Checked(NamedTuple):
    """The good rows as columns, their positions in the batch (None if all rows are good), and the rejects."""

    rows: KeyedRows
    positions: pa.Array | None
    rejects: list[Reject]

    def position(self, row: int) -> int:
        return row if self.positions is None else int(self.positions[row].as_py())


def check_rows(
    table: str, columns: Sequence[Column], fields: Fields, tuples: Sequence[Any], keep_bad: bool,
    settle: Callable[[Sequence[Column], Sequence[Any]], Sequence[Column]] = lambda columns, values: columns,
) -> Checked:  # fmt: skip
    """Check the rows. Raises StateError for the first bad row; with ``keep_bad``, bad rows become rejects.

    ``settle`` returns the columns with the kinds noted in the table, see `key_types.settle_types`.
    """
    values = gather_columns(tuples, fields, [column.name for column in columns])
    if values is None:
        raise StateError(f"table {table!r}: a tuple lacks values for {fields}")
    arrays, settled = [], settle(columns, values)
    for column, column_values in zip(settled, values, strict=True):
        try:
            arrays.append(encode_column(column, column_values))
        except RefusedValue as why:
            if keep_bad:
                return _without_bad(columns, settled, values)
            row = _row(values, why.index)
            raise refusal(table, columns, column, row, plain(column_values[why.index]), why) from None
    return Checked(KeyedRows(columns, arrays), None, [])


def transmissible(table: str, batch: Checked, most: int | None, keep_bad: bool) -> Checked:
    """Return the batch without rows longer than ``most`` bytes, which the server refuses.

    With ``keep_bad`` such rows become rejects; otherwise raises StateError for the first one.
    """
    if most is None or len(batch.rows) == 0:
        return batch
    long = too_long(batch.rows.columns, batch.rows.arrays, most)
    if not long:
        return batch
    limit = f"the server takes at most {most} (max_allowed_packet)"
    reasons = {row: f"the row has {size} bytes, {limit}" for row, size in long.items()}
    if not keep_bad:
        row, why = next(iter(reasons.items()))
        raise StateError(
            f"table {table!r}, row {batch.position(row)} of the batch: {why}. Nothing of the batch is written. Raise "
            'the limit, allow LOAD DATA LOCAL (local_infile), or set such rows aside with onBadRow="dead-letter"'
        )
    rejects = [Reject.of(batch.rows, row, why) for row, why in reasons.items()]
    good = [row for row in range(len(batch.rows)) if row not in reasons]
    positions = pa.array([batch.position(row) for row in good], pa.int64())
    return Checked(batch.rows.take(pa.array(good, pa.int64())), positions, [*batch.rejects, *rejects])


def plain(value: Any) -> Any:
    """Return the value as a Python object; as its number if Python has no object for it (a date after 9999)."""
    if not isinstance(value, pa.Scalar):
        return value
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        return value.value


def _without_bad(columns: Sequence[Column], settled: Sequence[Column], values: Sequence[Any]) -> Checked:
    reasons: dict[int, str] = {}
    for column, column_values in zip(settled, values, strict=True):
        for index, why in refusals(column, column_values).items():
            reasons.setdefault(index, f"column {column.name!r} ({column.ddl}): {why}")
    good = [index for index in range(len(values[0])) if index not in reasons]
    positions = pa.array(good, pa.int64())
    arrays = [encode_column(c, _take(v, good, positions)) for c, v in zip(columns, values, strict=True)]
    names = [column.name for column in columns]
    bad = sorted(reasons.items())
    rejects = [Reject(dict(zip(names, _row(values, index), strict=True)), why) for index, why in bad]
    return Checked(KeyedRows(columns, arrays), positions, rejects)


def _take(values: Any, good: list[int], positions: pa.Array) -> Any:
    return [values[index] for index in good] if isinstance(values, list) else values.take(positions)


def _row(values: Sequence[Any], index: int) -> list[Any]:
    return [plain(column_values[index]) for column_values in values]
