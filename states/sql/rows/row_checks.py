"""Turns tuples into checked columns. What a column cannot hold is an error or a dead letter before any write."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from trident_py.errors import StateError, omit_addresses, show
from trident_py.tuples import Fields

from ...columns.arrow import KeyedRows, encode_column, gather_columns, refusals
from ...columns.values import Column, RefusedValue, refusal
from ..connection import Connection
from ..dialects.bulk import too_long
from ..ledger import SqlFence
from ..store import Store, retry_transient
from ..table import create, data_table

SUFFIX = "_rejected"
_REASON = 500
_KEYS = ("topology varchar(190)", "state varchar(190)", "txid bigint", "digest varchar(64)")
_OTHERS = ("count bigint", "reason string", "row string", "time varchar(40)")


class Reject(NamedTuple):
    """A refused row (field to value) and the reason."""

    row: dict[str, Any]
    reason: str

    @classmethod
    def of(cls, rows: KeyedRows, row: int, reason: str) -> Reject:
        return cls(dict(zip((column.name for column in rows.columns), rows.row(row), strict=True)), reason)


class Rejects:
    """The rejected rows of one state, in ``<table>_rejected``; a partition writes them with its data.

    On replay: a row rejected under the same txid replaces its earlier entry and is not doubled. The key is (topology,
    state, txid, digest of the row); ``count`` is how often the row occurred in the partition that wrote it last. A
    batch without a txid is written as batch 0.
    """

    def __init__(self, table: str, fence: SqlFence | None, store: Store) -> None:
        self.table = letters_of(table)
        self._own = ("", table) if fence is None else fence.own
        self._store = store

    def prepare(self) -> None:
        """Create the table if it is missing. Called outside a transaction, since MySQL commits at CREATE TABLE."""
        if self.table not in self._store.ready:
            with self._store.errors(f"make table {self.table!r}"):
                retry_transient(self._store, self._make)
            self._store.ready[self.table] = True

    def write(self, connection: Connection, txid: int | None, rejects: Iterable[Reject]) -> int:
        """Write the rejects in the transaction that writes the batch; return how many there were."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        most = self._store.dialect.longest(connection)
        entries: dict[str, list[Any]] = {}
        for reject in rejects:
            text = _json(reject.row)
            digest = hashlib.sha256(text.encode()).hexdigest()
            if most is not None and 2 * len(text) > most:  # too long for a statement: shorten each value
                text = _json({name: _cut(value) for name, value in reject.row.items()})
            entries.setdefault(digest, [0, shorten(reject.reason), text, now])[0] += 1
        if entries:
            rows = [(*self._own, txid or 0, digest, *values) for digest, values in sorted(entries.items())]
            self._store.dialect.write(connection, self.table, _columns(_KEYS, True), _columns(_OTHERS), rows)
        return sum(values[0] for values in entries.values())

    def _make(self) -> None:
        store, columns = self._store, [*_columns(_KEYS, True), *_columns(_OTHERS)]
        with store.writing() as connection:
            create(store, connection, data_table(store, connection, self.table, columns, True))


def letters_of(table: str) -> str:
    """Return the name of the table of a table's rejected rows."""
    return f"{table}{SUFFIX}"


def shorten(text: str, length: int = _REASON) -> str:
    """Return the start and the end of a text longer than ``length``."""
    return text if len(text) <= length else f"{text[: length - 63]} ... {text[-58:]}"


def _columns(declared: Sequence[str], key: bool = False) -> list[Column]:
    return [Column(name, ddl, key) for name, ddl in map(str.split, declared)]


def _json(row: dict[str, Any]) -> str:
    """Return the row as JSON text, for reading and for `json.loads`; a value without a JSON form becomes a text."""
    return "{" + ", ".join(f"{json.dumps(name)}: {_write_value(value)}" for name, value in row.items()) + "}"


def _write_value(value: Any) -> str:
    try:
        return json.dumps(value, default=_show, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(show(value))


def _cut(value: Any) -> Any:
    text = value if isinstance(value, str) else _json({"": value})
    return value if len(text) <= _REASON else f"{shorten(text)} ({len(text)} characters)"


def _show(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return value.isoformat() if isinstance(value, datetime.date) else omit_addresses(str(value))


class Checked(NamedTuple):
    """The good rows as columns, their positions in the batch (None if all rows are good), and the rejects."""

    rows: KeyedRows
    positions: pa.Array | None
    rejects: list[Reject]

    def position(self, row: int) -> int:
        return row if self.positions is None else int(self.positions[row].as_py())


def check_rows(
    table: str, columns: Sequence[Column], fields: Fields, tuples: Sequence[Any], keep_bad: bool,
    settle: Callable[[str, Sequence[Column], Sequence[Any]], Sequence[Column]],
) -> Checked:  # fmt: skip
    """Check the rows. Raises StateError for the first bad row; with ``keep_bad``, bad rows become rejects.

    ``settle`` returns the columns with the kinds noted in the table, see `Transaction.settle_types`.
    """
    values = gather_columns(tuples, fields, [column.name for column in columns])
    if values is None:
        raise StateError(f"table {table!r}: a tuple lacks values for {fields}")
    arrays, settled = [], settle(table, columns, values)
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
