"""Rows of whole batches: the rows of all partitions become visible at once, or not at all."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from trident_py.errors import DefinitionError, FailedException, StateError
from trident_py.model.retry import again_for
from trident_py.state import BatchParticipant, StateClass, StatePlace
from trident_py.tuples import Fields, FieldsLike, TridentTuple

from ...ledger.fence import LedgerRow
from ...ledger.store import Trace, Transition
from ..connection import Connection
from ..ledger import Beside, SqlFence, SqlLedger
from ..store import ConnectionLost
from ..table import Shape, one_key
from .base import RowFactory, RowPartition, count_rows, fields_of
from .row_checks import check_rows
from .staging_table import SUFFIX, StagedBy, StagingTable

log = logging.getLogger("trident_py")
_SETTLE_SECONDS = 60.0
_ABORT_SECONDS = 1.0


class BatchRows(RowPartition):
    """One partition of a BatchState: it stages its rows beside the table.

    On replay: the rows are staged again under another token; the driver decides which stages are shown.
    """

    def __init__(self, factory: BatchState, fence: SqlFence | None, partition: int, of: int) -> None:
        super().__init__(factory, fence, partition, of)
        self.count = 0
        self._fence = fence
        self._token = ""
        self._names: list[str] = []
        self._done: bool | None = None
        self._staged = StagingTable(factory.place)

    def beginCommit(self, txid: int | None) -> None:
        """Open the transaction if the columns are known, else `insert` does. Raises ZombieError for an older driver,
        attempt or batch, FailedException if the store stays locked, StateError without a driver or a txid."""
        if self._fence is None or txid is None:
            raise StateError(
                f"table {self.factory.table!r}: a BatchState shows the rows of a txid when its driver decides to, but "
                "there is no driver or no txid here. Run the topology on a cluster, outside of DRPC streams"
            )
        self.count, self._names, self._done = 0, [], None
        self._token = f"{self.partition:06d}-{secrets.token_hex(16)}"
        self._transaction.begin(txid, lazily=self._shape is None)

    def commit(self, txid: int | None) -> Any:
        """Commit and return the receipt, which names the stage; the driver gets it only if this task counts."""
        if self._transaction.active:
            self._transaction.commit()
        return {"partition": self.partition, "token": self._token, "count": self.count, "columns": self._names}

    def insert(self, tuples: Sequence[TridentTuple], tell: bool) -> Sequence[TridentTuple]:
        """Stage the rows; with ``tell`` returns them, unless the batch is already shown. Raises StateError."""
        if len(tuples) == 0:
            return []
        fields = fields_of(tuples)
        columns = self.prepare(fields)
        if self._done is None:
            self._done = self._is_shown()
        if self._done:
            return []
        settle = partial(self._transaction.settle_types, self.factory.table)
        rows = check_rows(self.factory.table, columns, fields, tuples, False, settle).rows
        self._names = [column.name for column in columns]
        with self._transaction.using(0) as connection:
            self._staged.stage(connection, self._owner(), self.count, rows)
        self.count += len(tuples)
        return tuples if tell else []

    def _prepare_beside(self, shape: Shape) -> None:
        self._staged.prepare(shape)

    def _owner(self) -> StagedBy:
        fence, txid = self._fence, self._transaction.txid
        assert fence is not None and txid is not None
        return StagedBy(*fence.own, txid, self._token, fence.generation, fence.attempt, self.partition)

    def _is_shown(self) -> bool:
        """Return whether the store already shows this batch; if so, the transaction is rolled back."""
        assert self._fence is not None
        with self._transaction.using(0) as connection:
            shown_before = self._fence.row(connection).txid >= self._owner().txid
        if shown_before:
            self._transaction.rollback()
        return shown_before


class BatchLedger(SqlLedger):
    """The driver's side: shows the rows of a batch and moves the ledger in one transaction.

    The same transaction sweeps the stages of older drivers and attempts. Not earlier: a decided batch may need them.
    """

    decides = True
    ending = "show the batch"

    def __init__(self, factory: BatchState) -> None:
        super().__init__(factory.location, factory._stores, factory.place.stores)
        self.factory = factory
        self._staged = StagingTable(factory.place)

    def _last_written(self, trace: Trace) -> int:
        """Return the last batch shown; staged rows do not count as written."""
        return 0 if trace.row is None else trace.row.txid

    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None:
        """Show the stages of these receipts, once for a txid: it reads the ledger first.

        So it may be called again whenever its outcome is unknown. After a lost connection it repeats itself, in a
        transaction that waits until the lost one has ended. Raises FailedException (the batch is staged again),
        ZombieError for an older driver, StateError if the table refuses a row.
        """
        stages = [receipt for receipt in receipts if receipt is not None and receipt["count"] > 0]
        if len({stage["partition"] for stage in stages}) < len(stages):
            raise StateError(f"table {self.factory.table!r}: batch {txid} has two receipts from one partition")
        flip = partial(super().publish, txid, attempt, stages)
        again_for(_SETTLE_SECONDS, 0.1, partial(self._unknown, txid), flip)

    def abort(self, txid: int, attempt: int) -> None:
        """Sweep the attempt's stages unless another transaction locks them; if that fails, a later `publish` does."""
        store = self._staged.store
        connection = None
        try:
            if self._fence is None or not self._staged.exists():
                return
            connection = store.take()
            store.dialect.begin(connection, _ABORT_SECONDS)
            which = "txid = ? AND trident_generation = ? AND trident_attempt <= ?"
            self._staged.sweep(connection, self.fence, which, txid, self.fence.generation, attempt)
            connection.execute("COMMIT")
        except Exception as error:
            reason = type(error).__name__
            log.info("batch %d: the staged rows of attempt %d will be deleted later: %s", txid, attempt, reason)
            if connection is not None:
                store.drop(connection)
        else:
            store.give(connection)

    def _unknown(self, txid: int, error: Exception) -> bool:
        """Return whether the flip may have happened or may succeed if repeated: after a lost connection or a lost
        lock."""
        lock = error.__cause__ is not None and self._staged.store.dialect.is_lock(error.__cause__)
        unknown = isinstance(error, ConnectionLost) or (isinstance(error, FailedException) and lock)
        if unknown:
            log.warning("batch %d: checking in the ledger whether its rows are visible, after: %s", txid, error)
        return unknown

    def _needed(self, index: int, transition: Transition) -> tuple[int, int | None]:
        return 0, None  # the stages are counted when they are shown

    def _beside(self, transition: Transition) -> Beside | None:
        return None if transition.receipts is None else partial(self._show, transition.receipts)

    def _show(
        self, stages: Sequence[dict], connection: Connection, old: LedgerRow | None, new: LedgerRow
    ) -> None:
        if stages:
            tokens = {stage["token"]: stage["count"] for stage in stages}
            keys = [] if self.factory.key is None else list(Fields.of_columns(self.factory.key))
            self._staged.show(connection, self.fence, new.txid, tokens, stages[0]["columns"], keys)
        if self._staged.exists():
            self._staged.sweep(connection, self.fence, "txid <= ?", new.txid)


@dataclass(frozen=True, repr=False)
class BatchState(RowFactory):
    """Rows in one SQL table, written by `RowUpdater`: all rows of a batch become visible at once, or none does.

    Partitions stage their rows in ``<table>_staged``. When all have staged, the driver moves the rows into the table
    and advances the ledger, in one transaction. ``columns`` are the fields of a row. Without it, an existing table
    decides the fields, or the typed fields of the tuples if the table is missing. With ``key``, a row replaces the
    stored row of its key; of several rows of a key in one batch the last wins, by partition and by order within it.
    On replay: the ledger tells whether the batch is shown. If it is, the rows staged again are swept; if not, exactly
    the stages of the tasks that succeeded now are shown, whatever other attempts have left.

    The store's transaction and Spark's commit file are two steps, and a crash can come between them (the two generals'
    problem). This is harmless: only the ledger, which moves with the rows, tells whether a batch is complete.
    """

    url: str
    table: str
    columns: FieldsLike | None = None
    key: FieldsLike | None = None
    kind: ClassVar[str] = "batch"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "key", None if self.key is None else Fields.of_columns(self.key))
        self._check_key()

    @property
    def _key(self) -> Fields:
        return Fields() if self.key is None else Fields.of_columns(self.key)

    @property
    def _beside(self) -> tuple[str, ...]:
        return (SUFFIX,)

    @property
    def _shared(self) -> str:
        return "" if len(self._key) else "batch"

    @property
    def state_type(self) -> StateClass:
        return BatchRows

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> BatchRows:
        state = BatchRows(self, SqlFence.of(conf), partitionIndex, numPartitions)
        if self._fields is not None:
            state.prepare(self._fields)
        return state

    def check_place(self, place: StatePlace) -> None:
        """Raise DefinitionError for a query behind the update: the rows are shown only when the batch is over."""
        if place.queries:
            raise DefinitionError(
                f"table {self.table!r}: a query follows the update of state {place.state!r} in the same batch, and "
                "must see the rows of the batch; but a BatchState shows its rows when all partitions are done. Query "
                "it in a separate stream (newStaticState), or store into an AppendState or InsertIgnoreState"
            )

    def participant(self) -> BatchParticipant:
        """Return the state's driver side for one run; it shows the batches."""
        return BatchLedger(self)

    def shape(self, fields: Fields) -> Shape:
        return one_key(self.place, super().shape(fields))

    def stored(self) -> dict[tuple, Any]:
        """Return all rows and how often each is stored; with a key: key tuple -> tuple of the other columns."""
        rows, width = count_rows(self.place, self._fields, self._key), len(self._key)
        return {row[:width]: row[width:] for row in rows} if width else dict(rows)
