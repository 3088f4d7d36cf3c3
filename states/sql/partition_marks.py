"""Recognizes a replay where rows have no key: which partitions have written their part of the batch.

A partition number stands for the same rows only if the number of partitions and the way
(`trident_py.engine.program`) are the same. So before the first write the driver records both under the txid,
with an open mark for each partition; a lost mark thus differs from one never written. A batch begun under another
spread is not written again: its replay only counts rows. The batch was whole if the count equals that of the written
parts, or if every part is written (the part of a partition without rows stays open). Otherwise the replay cannot tell
which rows are stored, and the run ends with an error that says what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from trident_py.errors import StateError
from trident_py.model.context import RunContext
from trident_py.state import Location, Remembered

from ..ledger.fence import LedgerRow
from ..ledger.partition_layout import Layout, check_whole
from ..ledger.store import Transition
from .connection import Connection, Statement
from .dialects.base import Dialect
from .ledger import LAYOUT_PART, Beside, SqlFence, SqlLedger, Undo, parse_ledger_row
from .store import Store, reading_only

_OPEN = ""
_PART = "WHERE topology = ? AND state = ? AND txid = ? AND part = ?"


@dataclass(frozen=True)
class PartitionClaim(SqlFence):
    """A fence whose partitions claim their part before they write it; the part's mark keeps the count of its rows.

    ``way``: the way of the tuples in this run.
    """

    way: str = ""
    tally: list[int] = field(default_factory=lambda: [0], compare=False, repr=False)

    def claim(self, connection: Connection, txid: int, part: int, dialect: Dialect) -> bool:
        """Return whether the partition must write its part of the batch; waits until another task that writes it has
        ended.

        Raises StateError if the mark is gone.
        """
        text = f"SELECT token FROM trident_part {_PART}{dialect.exclusive}"
        mark = connection.execute(text, (*self.own, txid, part)).fetchone()
        if mark is None:
            self._refuse(txid)
        return bool(mark[0] == _OPEN)

    def marks(
        self, connection: Connection, txid: int | None, part: int, token: str, dialect: Dialect
    ) -> list[Statement]:
        if self.tally[0] == 0:
            return []
        text = f"UPDATE trident_part SET token = ?, partitions = ? {_PART}"
        return [(text, (token, self.tally[0], *self.own, txid, part))]

    def spread(self, connection: Connection, txid: int) -> Layout | None:
        """Return the spread under which the batch was begun; None if it was not begun."""
        text = f"SELECT partitions, token FROM trident_part {_PART}"
        row = connection.execute(text, (*self.own, txid, LAYOUT_PART)).fetchone()
        return None if row is None else Layout(*row)

    def record(self, connection: Connection, txid: int, spread: Layout) -> None:
        """Record the spread of an unwritten batch, with an open mark for each partition."""
        connection.execute("DELETE FROM trident_part WHERE topology = ? AND state = ? AND txid = ?", (*self.own, txid))
        self._insert(connection, txid, [(LAYOUT_PART, *spread), *((part, 0, _OPEN) for part in range(spread[0]))])

    def read_counts(self, connection: Connection, txid: int) -> list[int]:
        """Return the row counts of the partitions that have written the batch."""
        text = "SELECT partitions FROM trident_part WHERE topology = ? AND state = ? AND txid = ? AND part >= 0"
        rows = connection.execute(f"{text} AND token <> ?", (*self.own, txid, _OPEN)).fetchall()
        return [row[0] for row in rows]

    def check_marks(self, connection: Connection, row: LedgerRow) -> None:
        """Raise StateError if the batch begun last is incomplete and lacks marks."""
        if row.started <= row.txid:
            return
        parts, spread = self._parts(connection, row.started), self.spread(connection, row.started)
        if spread is None or len(parts) - 1 < spread.partitions:
            self._refuse(row.started)

    def _parts(self, connection: Connection, txid: int) -> list[int]:
        """Return the partitions that have a mark for the batch, and -1 if its spread is recorded."""
        text = "SELECT part FROM trident_part WHERE topology = ? AND state = ? AND txid = ?"
        return [row[0] for row in connection.execute(text, (*self.own, txid)).fetchall()]

    def _refuse(self, txid: int) -> NoReturn:
        raise StateError(
            f"{self.shown}: the ledger says that batch {txid} was begun, but marks of its partitions are gone from "
            "trident_part: rows were deleted there, or only a part of the database was restored. It is unknown which "
            "rows of the batch the table has, so none is written. Restore the whole database. Or delete the rows of "
            f"batch {txid} from the table and its marks from trident_part, set started = txid in the state's row of "
            "trident_fence, and start again: the batch is then written from the beginning"
        )

    def _insert(self, connection: Connection, txid: int, rows: list[tuple[int, int, str]]) -> None:
        text = (
            "INSERT INTO trident_part (topology, state, txid, part, attempt, partitions, token)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)"
        )
        connection.executemany(text, [(*self.own, txid, part, self.attempt, *more) for part, *more in rows])


class UnfencedClaim(PartitionClaim):
    """A claim without a driver (a unit test's makeState); recognizes a replay with the same partitions."""

    def claim(self, connection: Connection, txid: int, part: int, dialect: Dialect) -> bool:
        if part in self._parts(connection, txid):
            return super().claim(connection, txid, part, dialect)
        self._insert(connection, txid, [(part, 0, _OPEN)])
        return True

    def fence_row(self, answer: Any) -> LedgerRow:
        return parse_ledger_row(answer) or LedgerRow()

    def follows(self, row: Any, txid: int) -> Any:
        """Do nothing: nobody completes batches without a driver."""
        return row


def claim_of(conf: dict, table: str) -> PartitionClaim:
    """Return the claim of a run; an `UnfencedClaim` one if no cluster runs the state."""
    claim = PartitionClaim.of(conf)
    if isinstance(claim, PartitionClaim):
        return replace(claim, way=Layout.of(0, conf).way)
    context = RunContext.of(conf)
    return UnfencedClaim(context.topology, context.state or table, 0, "")


class AppendLedger(SqlLedger):
    """The driver's side of a state that recognizes a replay by partition number."""

    records_each_attempt = True

    def __init__(
        self, location: Location, prepare_tables: Callable[[], object], opened: Callable[[], Store],
        undo: Undo | None = None,
    ) -> None:  # fmt: skip
        super().__init__(location, prepare_tables, opened, undo=undo)
        self._now = self._then = Layout(0)
        self._begins = 0
        self._counted = False  # the batch was written under another spread
        self._written: list[int] = []

    def _fence_of(self, conf: dict) -> PartitionClaim:
        return claim_of(conf, "")

    def remembered(self, conf: dict) -> Remembered:
        """Ask as `Ledger.remembered` does. Raises StateError also if marks of the current batch are gone."""
        context = RunContext.of(conf)
        with reading_only(context.reads_only):
            remembered, ledger = super().remembered(conf), self._store_of(context, ready=False)
            row = ledger.trace().row if remembered.last > 0 else None
            if row is not None:
                claim = PartitionClaim(context.topology, context.state, row.generation, row.lineage)
                with ledger.store.errors("ask the ledger"), ledger.store.reading() as connection:
                    claim.check_marks(connection, row)
        return remembered

    @property
    def fence(self) -> PartitionClaim:
        claim = super().fence
        assert isinstance(claim, PartitionClaim)
        return claim

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        """Shut out older attempts and record the spread, unless partitions have written under another one."""
        self._now = self._then = Layout(numPartitions, self.fence.way)
        self._begins, self._counted = txid, False
        super().prepare(txid, attempt, numPartitions)

    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None:
        """Move the last complete txid. Raises StateError for a batch half written under another spread."""
        if txid != self._begins:
            self._counted = self._has_all(txid, receipts)
        elif self._counted:
            check_whole(self.location.shown, txid, self._then, self._now, self._written, receipts)
        super().publish(txid, attempt, receipts)

    def _has_all(self, txid: int, receipts: Sequence[Any]) -> bool:
        """Return whether the partitions that have written a batch, which an earlier driver has decided, hold as many
        rows as its receipts. That driver may have counted only what was written under another spread."""
        store = self._opened()
        with store.errors("ask the ledger"), store.reading() as connection:
            written = self.fence.read_counts(connection, txid)
        return sum(written) == sum(receipt["rows"] for receipt in receipts)

    def _begin(self, row: LedgerRow | None, txid: int, attempt: int) -> LedgerRow:
        """Leave a batch that is complete or behind as it is: the tasks find out themselves."""
        row = self.fence.follows(row, txid)
        return row if row.txid >= txid or row.last > txid else super()._begin(row, txid, attempt)

    def _count_marks(self, transition: Transition) -> tuple[int, int | None]:
        """Count a mark for each partition that has written rows, in whatever attempt, if it has done so in this
        spread."""
        written = sum(receipt["rows"] > 0 for receipt in transition.receipts or ())
        return 0 if self._counted else written, None

    def _beside(self, transition: Transition) -> Beside | None:
        return self._record if transition.begins else super()._beside(transition)

    def _record(self, connection: Connection, old: LedgerRow | None, new: LedgerRow) -> None:
        """Record the spread in the transaction that begins the batch. A batch that partitions have written under
        another spread keeps that one."""
        claim, txid = self.fence, new.started
        if old is not None and old.started == txid:
            claim.check_marks(connection, old)
        then, self._written = claim.spread(connection, txid), claim.read_counts(connection, txid)
        if then is not None and then != self._now and self._written:
            self._then, self._counted = then, True
        elif then != self._now:
            claim.record(connection, txid, self._now)
