"""Rows of whole batches: staged in ``<table>_staged``, and visible all at once, or not at all."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.types import NullType

from trident_py.errors import DefinitionError, FailedException, StateError
from trident_py.model.retry import again_for
from trident_py.state import BatchParticipant, StatePlace
from trident_py.tuples import Fields, FieldsLike, TridentTuple

from ...columns.arrow import KeyedRows
from ...columns.values import Column
from ...ledger.fence import LedgerRow
from ...ledger.store import Trace, Transition
from ..connection import Connection
from ..dialects.base import check_taken, marks, names
from ..ledger import Beside, SqlFence, SqlLedger
from ..store import ConnectionLost, Store, retry_transient
from ..table import Shape, TablePlace, create, data_table, one_key, read_columns
from ..transaction import naming
from ..undo import Never, Undo
from .base import RowFactory, RowPartition, fields_of
from .row_checks import check_rows

SUFFIX = "_staged"
_OWN = [
    Column("trident_topology", "varchar(190)", True), Column("trident_state", "varchar(190)", True),
    Column("trident_txid", "bigint", True), Column("trident_token", "varchar(40)", True),
    Column("trident_row", "bigint", True), Column("trident_generation", "bigint"),
    Column("trident_attempt", "bigint"), Column("trident_partition", "bigint"),
]  # fmt: skip
RANK = "trident_rank"
_MINE = "WHERE trident_topology = ? AND trident_state = ?"


class StagedBy(NamedTuple):
    """The task that staged the rows, in the order of the columns."""

    topology: str
    state: str
    txid: int
    token: str
    generation: int
    attempt: int
    partition: int


class StagingTable:
    """``<table>_staged`` of one table. All methods but `prepare` and `exists` run in the caller's transaction."""

    def __init__(self, place: TablePlace) -> None:
        self.table = place.table
        self.name = f"{place.table}{SUFFIX}"
        self.store: Store = place.store()

    def prepare(self, shape: Shape) -> None:
        """Create the table if it is missing, with the data table's types. Raises StateError if columns are missing."""
        if (self.name, shape) in self.store.ready:
            return
        with self.store.errors(f"make table {self.name!r}"):
            retry_transient(self.store, lambda: self._make(shape))
        stored = read_columns(self.store, self.name) or {}
        if missing := [column.name for column in [*_OWN, *shape.columns] if column.name not in stored]:
            raise StateError(
                f"table {self.name!r} in {self.store.shown} lacks the columns {missing}: table {self.table!r} has "
                "changed since it was created, or another program created it. Drop it while the topology is stopped: "
                "it holds no committed rows"
            )
        self.store.ready[self.name, shape] = True

    def exists(self) -> bool:
        """Return whether the table exists: whether any partition has ever staged."""
        if self.name not in self.store.ready:
            if read_columns(self.store, self.name) is None:
                return False
            self.store.ready[self.name] = True
        return True

    def stage(self, connection: Connection, owner: StagedBy, first: int, rows: KeyedRows) -> None:
        """Stage rows of one task; ``first`` is the number of its first row."""
        arrays = [pa.repeat(pa.scalar(value, _type(value)), len(rows)) for value in owner]
        arrays.insert(4, pa.array(range(first, first + len(rows)), pa.int64()))
        self.store.dialect.fill(connection, self.name, [*_OWN, *rows.columns], [*arrays, *rows.arrays])

    def show(
        self, connection: Connection, fence: SqlFence, txid: int, stages: dict[str, int], columns: Sequence[str],
        keys: Sequence[str],
    ) -> None:  # fmt: skip
        """Move the rows of these stages (token to count) into the table.

        Raises StateError if a stage is incomplete or the table refuses a row.
        """
        which = f"{_MINE} AND trident_txid = ? AND trident_token IN ({marks(len(stages))})"
        parameters = (*fence.own, txid, *stages)
        text = f"SELECT trident_token, count(*) FROM \"{self.name}\" {which} GROUP BY trident_token"
        counts = dict(connection.execute(text, parameters).fetchall())
        if counts != stages:
            raise StateError(
                f"table {self.name!r}: batch {txid} has {sum(counts.values())} staged rows, but its tasks staged "
                f"{sum(stages.values())}: a replica that lagged has taken over, or the table was changed. Nothing of "
                "the batch is shown. Start the topology again: the batch is replayed"
            )
        shown = connection.execute(self._insert(connection, which, columns, keys), parameters).rowcount
        sent = sum(stages.values())
        if keys and shown < sent:  # one row of each key is sent; if all columns are the key, one that is there stays
            sent, there = connection.execute(self._counts(which, keys), parameters).fetchone()
            shown = there if len(keys) == len(columns) else shown
        with naming(fence, txid):
            check_taken(self.table, sent, shown)

    def sweep(self, connection: Connection, fence: SqlFence, which: str, *values: int) -> None:
        """Delete staged rows of this state. ``which``: an SQL condition that begins with a column name."""
        connection.execute(f'DELETE FROM "{self.name}" {_MINE} AND trident_{which}', (*fence.own, *values))

    def _insert(self, connection: Connection, which: str, columns: Sequence[str], keys: Sequence[str]) -> str:
        into, wanted = f'INSERT INTO "{self.table}" ({names(columns)})', names(columns)
        if not keys:
            return f'{into} SELECT {wanted} FROM "{self.name}" {which} ORDER BY trident_token, trident_row'
        last = f"PARTITION BY {names(keys)} ORDER BY trident_partition DESC, trident_row DESC"
        ranked = f'SELECT {wanted}, row_number() OVER ({last}) AS {RANK} FROM "{self.name}" {which}'
        others = [name for name in columns if name not in keys]
        chosen = f"SELECT {wanted} FROM ({ranked}) AS q WHERE {RANK} = 1 ORDER BY {names(keys)}"
        return f"{into} {chosen}{self.store.dialect.instead(connection, keys, others, 'q')}"

    def _counts(self, which: str, keys: Sequence[str]) -> str:
        """Return how many different keys the stages have, and how many of these the table has."""
        same = " AND ".join(f't."{name}" = q."{name}"' for name in keys)
        there = f'EXISTS (SELECT 1 FROM "{self.table}" AS t WHERE {same})'
        staged = f'SELECT DISTINCT {names(keys)} FROM "{self.name}" {which}'
        return f"SELECT count(*), sum(CASE WHEN {there} THEN 1 ELSE 0 END) FROM ({staged}) AS q"

    def _make(self, shape: Shape) -> None:
        columns = sa.inspect(self.store.engine).get_columns(self.table)
        types = {column["name"]: column["type"] for column in columns if not isinstance(column["type"], NullType)}
        with self.store.writing() as connection:
            table = data_table(self.store, connection, self.name, _OWN, True)
            for column in shape.columns:
                kind = types.get(column.name) or self.store.dialect.storage(Column(column.name, column.ddl))
                table.append_column(sa.Column(column.name, kind, nullable=True))
            create(self.store, connection, table)


def _type(value: Any) -> pa.DataType:
    return pa.large_string() if isinstance(value, str) else pa.int64()


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
        """Open the transaction if the columns are known, else `insert` does. Raises StateError without a driver."""
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
        settle = self._transaction.settle_types
        rows = self.note_txid(check_rows(self.factory.table, columns, fields, tuples, False, settle)).rows
        self._names = [column.name for column in rows.columns]
        with self._transaction.using() as connection:
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
        with self._transaction.using() as connection:
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
        super().__init__(factory.location, factory._prepare_ledger, factory.place.store, undo=factory._undo)
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

    def _count_marks(self, transition: Transition) -> tuple[int, int | None]:
        return 0, None  # the stages are counted when they are shown

    def _beside(self, transition: Transition) -> Beside | None:
        if transition.receipts is None:
            return super()._beside(transition)
        return partial(self._show, transition.receipts)

    def _undo_beside(self, undo: Undo | None, txid: int, connection: Connection, *rows: LedgerRow | None) -> None:
        super()._undo_beside(undo, txid, connection, *rows)
        if self._staged.exists():
            self._staged.sweep(connection, self.fence, "txid > ?", txid)

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
    With ``txid``, the column of that name gets the batch's txid, and `trident txid rewind` can take the rows back.
    On replay: the ledger tells whether the batch is shown. If it is, the rows staged again are swept; if not, exactly
    the stages of the tasks that succeeded now are shown, whatever other attempts have left.

    The store's transaction and Spark's commit file are two steps, and a crash can come between them (the two generals'
    problem). This is harmless: only the ledger, which moves with the rows, tells whether a batch is complete.
    """

    url: str
    table: str
    columns: FieldsLike | None = None
    key: FieldsLike | None = None
    txid: str | None = None
    kind: ClassVar[str] = "batch"
    state_type = BatchRows
    _beside = (SUFFIX,)
    _reserved = (RANK, *(column.name for column in _OWN))

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "key", None if self.key is None else Fields.of_columns(self.key))
        self._check_key()
        if self.txid is not None and self.key is not None:
            raise DefinitionError(
                f"table {self.table!r}: with a key, a row replaces another one, which no rewind brings back; give key "
                "or txid"
            )

    @property
    def _key(self) -> Fields:
        return Fields() if self.key is None else Fields.of_columns(self.key)

    @property
    def _undo(self) -> Undo:
        return Never("a row has replaced the one of its key") if len(self._key) else super()._undo

    @property
    def _shared(self) -> str:
        return "" if len(self._key) else "batch"

    def check_place(self, place: StatePlace) -> None:
        if place.queries:
            raise DefinitionError(
                f"table {self.table!r}: a query follows the update of state {place.state!r} in the same batch, and "
                "must see the rows of the batch; but a BatchState shows its rows when all partitions are done. Query "
                "it in a separate stream (newStaticState), or store into an AppendState or InsertIgnoreState"
            )

    def participant(self) -> BatchParticipant:
        return BatchLedger(self)

    def shape(self, fields: Fields) -> Shape:
        return one_key(self.place, super().shape(fields))
