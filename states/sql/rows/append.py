"""Rows without a key: appended once for each batch, however often the batch is replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from trident_py.errors import FailedException, StateError
from trident_py.state import BatchParticipant
from trident_py.tuples import FieldsLike, TridentTuple

from ...columns.arrow import KeyedRows
from ...ledger.partition_layout import Layout
from ..connection import Connection
from ..dialects.base import check_taken, names
from ..partition_marks import AppendLedger, PartitionClaim, UnfencedClaim, claim_of
from .base import RowFactory, RowPartition, fields_of
from .row_checks import Checked, Reject, check_rows, transmissible
from .table_writer import ROW, Stage, refusal_error


class AppendRows(RowPartition):
    """One partition of an AppendState.

    On replay: a partition that has written its part of the batch writes nothing. If the replay has another number of
    partitions or another way, a batch already begun is only counted; see `states.sql.partition_marks`.
    """

    def __init__(self, factory: AppendState, fence: PartitionClaim, partition: int, of: int) -> None:
        super().__init__(factory, fence, partition, of)
        self.rows = self.rejected = self.inserted = 0
        self._fence = fence
        self._writes: bool | None = None

    def beginCommit(self, txid: int | None) -> None:
        """Open the transaction if the columns are known, else `insert` does."""
        self.rows = self.rejected = self.inserted = 0
        self._writes = None
        self._transaction.begin(txid, lazily=self._shape is None)

    def commit(self, txid: int | None) -> Any:
        """Commit and return the receipt: how many rows came, and how many this attempt inserted and rejected."""
        if self._transaction.active:
            self._fence.tally[0] = self.rows
            self._transaction.commit()
        return {
            "partition": self.partition, "rows": self.rows, "inserted": self.inserted, "rejected": self.rejected,
        }  # fmt: skip

    def insert(self, tuples: Sequence[TridentTuple], tell: bool) -> Sequence[TridentTuple]:
        """Write the rows; with ``tell`` returns those that this attempt wrote. Raises StateError for a bad row."""
        if len(tuples) == 0:
            return []
        fields = fields_of(tuples)
        columns = self.prepare(fields)
        self.rows += len(tuples)
        if self._writes is None:
            self._writes = self._claim_part()
        if not self._writes:
            return []
        keep_bad, settle = self._rejects is not None, self._transaction.settle_types
        batch = self.note_txid(check_rows(self.factory.table, columns, fields, tuples, keep_bad, settle))
        with self._transaction.using() as connection:
            most = self._transaction.store.dialect.longest(connection, batch.rows.columns)
            batch = transmissible(self.factory.table, batch, most, keep_bad)
            refused = self._write_rows(connection, batch)
        return [row for index, row in enumerate(tuples) if index not in refused] if tell else []

    def _write_rows(self, connection: Connection, batch: Checked) -> set[int]:
        """Write the rows and return the positions of the refused ones."""
        refused = self._write(connection, batch.rows) if len(batch.rows) else {}
        positions = {batch.position(row) for row in refused}
        if self._rejects is not None:
            late = [Reject.of(batch.rows, row, why) for row, why in sorted(refused.items())]
            self.rejected += self._rejects.write(connection, self._transaction.txid, [*batch.rejects, *late])
        elif refused:
            row, why = min(refused.items())
            raise refusal_error(self.factory.table, batch.rows, row, batch.position(row), why)
        self.inserted += len(batch.rows) - len(refused)
        if batch.positions is None:
            return positions
        good = set(batch.positions.to_pylist()) - positions
        return set(range(len(batch.rows) + len(batch.rejects))) - good

    def _claim_part(self) -> bool:
        """Return whether this transaction writes the partition's part of the batch; if not, it is rolled back."""
        txid = self._transaction.txid
        if txid is None:
            return True
        with self._transaction.using() as connection:
            dialect = self._transaction.store.dialect
            writes = self._is_open(connection, txid) and self._fence.claim(connection, txid, self.partition, dialect)
        if not writes:
            self._transaction.rollback()
        return writes

    def _is_open(self, connection: Connection, txid: int) -> bool:
        if self._fence.row(connection).txid >= txid:
            return False
        begun = self._fence.spread(connection, txid)
        if begun is None and not isinstance(self._fence, UnfencedClaim):
            raise FailedException(
                f"table {self.factory.table!r}: the ledger has no record of batch {txid}: a replica that lagged has "
                "taken over, or the driver has not called prepare() for it. The batch is replayed"
            )
        return begun in (None, Layout(self.of, self._fence.way))

    def _write(self, connection: Connection, rows: KeyedRows) -> dict[int, str]:
        """Write in bulk; if the table refuses a row, again through a temporary table, which names the refused rows."""
        store, table = self._transaction.store, self.factory.table
        dialect = store.dialect
        connection.execute("SAVEPOINT trident_append")
        try:
            dialect.fill(connection, table, rows.columns, rows.arrays)
        except Exception as error:
            if not isinstance(error, StateError) and not dialect.refuses(error):
                raise
            connection.execute("ROLLBACK TO SAVEPOINT trident_append")
        else:
            connection.execute("RELEASE SAVEPOINT trident_append")
            return {}
        return _Strictly(store, connection, table, rows).append(all_refused=self._rejects is not None)


class _Strictly(Stage):
    """Rows without a key through a temporary table: one statement, unless the table refuses a row."""

    def append(self, all_refused: bool) -> dict[int, str]:
        """Insert the accepted rows and return the refused ones: all of them with ``all_refused``, else the first."""
        self.fill()
        refused: dict[int, str] = {}
        inserted = self._insert(0, len(self.rows) - 1, refused, all_refused)
        if all_refused or not refused:
            check_taken(self.table, len(self.rows), inserted + len(refused))
        self.drop()
        return refused

    def _text(self) -> str:
        columns = names(self.rows.columns)
        chosen = f"SELECT {columns} FROM {self._stage} WHERE {ROW.name} BETWEEN ? AND ? ORDER BY {ROW.name}"
        return f'INSERT INTO "{self.table}" ({columns}) {chosen}'

    def _is_there(self, row: int) -> bool:
        return False


@dataclass(frozen=True, repr=False)
class AppendState(RowFactory):
    """Rows without a key in one SQL table, written by `RowUpdater`; equal rows are all kept.

    ``columns`` are the fields of a row. Without it, an existing table decides the fields, or the typed fields of the
    tuples if the table is missing. An existing table may have more columns, such as an auto-increment column. With
    ``txid``, the column of that name gets the batch's txid, and `trident txid rewind` can take the rows back.
    ``onBadRow="dead-letter"`` stores rows that the table refuses in ``<table>_rejected``.
    On replay: a partition that has written its part writes nothing, because its rows and their mark in the ledger are
    one transaction of the store. Exact for sources that repeat a batch unchanged.
    """

    url: str
    table: str
    columns: FieldsLike | None = None
    onBadRow: str = "fail"
    txid: str | None = None
    kind: ClassVar[str] = "append"
    stages: ClassVar[bool] = True
    state_type = AppendRows
    _shared = "append"

    def _fence_of(self, conf: dict) -> PartitionClaim:
        return claim_of(conf, self.table)

    def participant(self) -> BatchParticipant:
        return AppendLedger(self.location, self._prepare_ledger, self.place.store, self._undo)
