"""Rows under a deterministic key: each row is inserted once, however often a replay repeats it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from trident_py.errors import DefinitionError, StateError
from trident_py.tuples import Fields, FieldsLike, TridentTuple

from ..connection import Connection
from ..ledger import SqlFence
from .base import RowFactory, RowPartition, fields_of
from .row_checks import Checked, Reject, check_rows, transmissible
from .table_writer import ROW, TableWriter, Wanted, Written, conflict_text, refusal_error

LOG = logging.getLogger("states.sql")


class InsertIgnoreRows(RowPartition):
    """One partition of an InsertIgnoreState.

    On replay: rows that an earlier attempt inserted are ignored, by their key.
    """

    def __init__(self, factory: InsertIgnoreState, fence: SqlFence | None, partition: int, of: int) -> None:
        super().__init__(factory, fence, partition, of)
        self.inserted = self.ignored = self.conflicts = self.rejected = 0
        self._writer = TableWriter(self._transaction.store, factory.table)

    def beginCommit(self, txid: int | None) -> None:
        """Open the transaction if the columns are known, else `insert` does."""
        self.inserted = self.ignored = self.conflicts = self.rejected = 0
        self._transaction.begin(txid, lazily=self._shape is None)

    def commit(self, txid: int | None) -> Any:
        """Commit and return the receipt: the rows inserted and ignored, and ``conflicts`` and ``rejected`` if the
        factory's options ask for them."""
        mark = self._transaction.commit()
        receipt = {"partition": self.partition, "inserted": self.inserted, "ignored": self.ignored, **mark}
        if self.factory.onConflict == "report":
            receipt["conflicts"] = self.conflicts
        if self._rejects is not None:
            receipt["rejected"] = self.rejected
        return receipt

    def insert(self, tuples: Sequence[TridentTuple], tell: bool) -> Sequence[TridentTuple]:
        """Write the rows; with ``tell`` returns the new ones, in order. Raises StateError for a bad row.

        A deadlock in the batch's first call runs that call again. A deadlock in a later call fails the batch, which is
        replayed.
        """
        if len(tuples) == 0:
            return []
        fields = fields_of(tuples)
        columns = self.prepare(fields)
        keep_bad, settle = self._rejects is not None, self._transaction.settle_types

        def work() -> set[int]:
            batch = check_rows(self.factory.table, columns, fields, tuples, keep_bad, settle)
            return self._write_rows(self.note_txid(batch), tell)

        new = self._transaction.repeat(work)
        return [row for position, row in enumerate(tuples) if position in new] if new else []

    def _write_rows(self, batch: Checked, tell: bool) -> set[int]:
        """Write the rows and return the positions of the new ones."""
        before = self.inserted, self.ignored, self.conflicts, self.rejected
        try:
            with self._transaction.using() as connection:
                most = self._transaction.store.dialect.longest(connection, batch.rows.columns)
                batch = transmissible(self.factory.table, batch, most, self._rejects is not None)
                new = self._write_good(connection, batch, tell) if len(batch.rows) else set()
                if batch.rejects:
                    self._reject(connection, batch.rejects)
        except BaseException:
            self.inserted, self.ignored, self.conflicts, self.rejected = before
            raise
        return new

    def _write_good(self, connection: Connection, batch: Checked, tell: bool) -> set[int]:
        rows = batch.rows
        wanted = Wanted(self.factory.onConflict != "ignore", tell, self._rejects is not None)
        written = self._writer.write(connection, rows, wanted)
        if written.refused:
            self._report_refused(connection, batch, written)
        if written.conflicts:
            self._report_conflicts(batch, written)
        self.inserted += written.inserted
        self.ignored += len(rows) - written.inserted - len(written.refused)
        return set(map(batch.position, written.new))

    def _report_refused(self, connection: Connection, batch: Checked, written: Written) -> None:
        if self._rejects is None:
            row, why = next(iter(written.refused.items()))
            raise refusal_error(self.factory.table, batch.rows, row, batch.position(row), why)
        self._reject(connection, [Reject.of(batch.rows, row, why) for row, why in sorted(written.refused.items())])

    def _reject(self, connection: Connection, rejects: list[Reject]) -> None:
        assert self._rejects is not None
        self.rejected += self._rejects.write(connection, self._transaction.txid, rejects)

    def _report_conflicts(self, batch: Checked, written: Written) -> None:
        table = self.factory.table
        texts = [conflict_text(table, batch.rows, each, batch.position(each.row)) for each in written.examples]
        if self.factory.onConflict == "fail":
            raise StateError(
                f"{texts[0]}. Nothing of the batch is written ({written.conflicts} such rows). A key must identify one "
                'row: add a field to it, or choose onConflict="ignore" or "report"'
            )
        self.conflicts += written.conflicts
        for text in texts:
            LOG.warning("%s; it is ignored (batch %s)", text, self._transaction.txid)


@dataclass(frozen=True, repr=False)
class InsertIgnoreState(RowFactory):
    """Rows with a deterministic key in one SQL table, written by `RowUpdater`.

    ``key`` names the fields of the key, ``columns`` all fields of a row. Without ``columns``, an existing table decides
    the fields, or the tuples if the table is missing. Types come from ``columns``, from ``key`` or from the table.
    On replay: rows whose key is already stored are ignored, so every row is stored exactly once.

    A row is ignored only if its key is already stored; of equal keys in one batch, the first row wins. Any other row
    that the table refuses raises a StateError that names row, column and cause, and nothing of the batch is written.
    With ``onBadRow="dead-letter"``, such a row goes to ``<table>_rejected`` in the same transaction, and the other rows
    are written. ``onConflict`` decides about a row whose key is stored with other values: "ignore" drops it like any
    duplicate; "fail" fails the batch with a StateError; "report" drops it, counts it, and logs the first few as
    warnings of the logger ``states.sql``.

    With ``txid``, the column of that name gets the txid of the batch that has inserted the row, and `trident txid
    rewind` can take the rows back; conflicts cannot be looked for then.

    The receipt of a partition holds ``inserted`` and ``ignored`` (rows left out for their key); ``conflicts`` with
    "report"; ``rejected`` with "dead-letter".
    """

    url: str
    table: str
    key: FieldsLike
    columns: FieldsLike | None = None
    onConflict: str = "ignore"
    onBadRow: str = "fail"
    txid: str | None = None
    kind: ClassVar[str] = "insert-ignore"
    stages: ClassVar[bool] = True
    state_type = InsertIgnoreRows
    _shared = "insert-ignore"
    _reserved = (ROW.name,)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "key", Fields.of_columns(self.key))
        self._check_choice("onConflict", self.onConflict, ["ignore", "fail", "report"])
        if len(Fields.of_columns(self.key)) == 0:
            raise DefinitionError(f"table {self.table!r}: key needs at least one field")
        self._check_key()
        if self.txid is not None and self.onConflict != "ignore":
            raise DefinitionError(f"table {self.table!r}: with txid, onConflict must be 'ignore'")

    @property
    def _key(self) -> Fields:
        return Fields.of_columns(self.key)
