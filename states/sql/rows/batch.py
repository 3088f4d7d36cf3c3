"""Rows of all partitions of a batch: they become visible at once, or not at all."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from trident_py.errors import DefinitionError, FailedException, StateError
from trident_py.patience import again_for
from trident_py.state import BatchParticipant, ITupleCollection, State, StateClass, StatePlace
from trident_py.tuples import Fields, FieldsLike, TridentTuple

from ...columns.values import Column
from ..ledger import Ledger, SqlFence, Trace
from ..store import ConnectionLost, parsed, shown
from ..table import Shape, existing, one_key
from ..transaction import Transaction
from .base import RowFactory, columns_of, fields_of, row_shape, rows_of, stored_rows
from .checking import checked
from .staged import SUFFIX, Staged, StagedBy

log = logging.getLogger("trident_py")
_SETTLE_SECONDS = 60.0
_ABORT_SECONDS = 1.0


class BatchRows(State, ITupleCollection):
    """One partition of a BatchState: it lays its rows down beside the table.

    On replay: the rows are laid down again, under another token; which of them are shown is the driver's to say.
    """

    def __init__(self, factory: BatchState, fence: SqlFence | None, partition: int, of: int) -> None:
        self.factory = factory
        self.partition = partition
        self.of = of
        self.count = 0
        self._fence = fence
        self._token = ""
        self._shape: Shape | None = None
        self._names: list[str] = []
        self._done: bool | None = None
        self._staged = Staged(factory.place)
        self._transaction = Transaction(factory.place.stores(), fence, partition)

    def beginCommit(self, txid: int | None) -> None:
        """Opens the transaction, once the columns are known. Raises ZombieError, FailedException if it stays locked."""
        if self._fence is None or txid is None:
            raise StateError(
                f"table {self.factory.table!r}: a batch state shows the rows of a txid when its driver says so; there "
                "is no driver or no txid here. Run the topology on a cluster, outside of DRPC streams"
            )
        self.count, self._names, self._done = 0, [], None
        self._token = f"{self.partition:06d}-{secrets.token_hex(16)}"
        self._transaction.begin(txid, lazily=self._shape is None)

    def commit(self, txid: int | None) -> Any:
        """Returns which rows are staged; the driver gets it if this task is the one that counts."""
        if self._transaction.active:
            self._transaction.commit()
        return {"partition": self.partition, "token": self._token, "count": self.count, "columns": self._names}

    def rollback(self, txid: int | None) -> None:
        self._transaction.rollback()

    def getTuples(self) -> Iterator[list[Any]]:
        """This partition's share of the visible rows, the key's columns first."""
        return rows_of(self.factory.place, self.factory._fields, self.factory._key, self.partition, self.of)

    def insert(self, tuples: Sequence[TridentTuple], tell: bool) -> Sequence[TridentTuple]:
        """Stages the rows; with ``tell`` returns them, unless the batch was shown before. Raises StateError."""
        if len(tuples) == 0:
            return []
        fields = fields_of(tuples)
        columns = self._columns(fields)
        if self._done is None:
            self._done = self._is_shown()
        if self._done:
            return []
        settle = partial(self._transaction.settled, self.factory.table)
        rows = checked(self.factory.table, columns, fields, tuples, False, settle).rows
        self._names = [column.name for column in columns]
        with self._transaction.using(0) as connection:
            self._staged.stage(connection, self._owner(), self.count, rows)
        self.count += len(tuples)
        return tuples if tell else []

    def _columns(self, fields: Fields) -> list[Column]:
        if self._shape is None:
            self._shape = self.factory.shape(fields)
            self._staged.prepare(self._shape)
        return columns_of(self.factory.table, self._shape, fields)

    def _owner(self) -> StagedBy:
        fence, txid = self._fence, self._transaction.txid
        assert fence is not None and txid is not None
        return StagedBy(*fence.own, txid, self._token, fence.generation, fence.attempt, self.partition)

    def _is_shown(self) -> bool:
        """Whether the store has this batch already; the transaction is over then."""
        assert self._fence is not None
        with self._transaction.using(0) as connection:
            shown_before = self._fence.row(connection).txid >= self._owner().txid
        if shown_before:
            self._transaction.rollback()
        return shown_before


class BatchLedger(Ledger):
    """The driver's side: shows the rows of a batch and moves the ledger in one transaction.

    What older drivers and attempts have left staged is swept with it; until then a decided batch may need it.
    """

    decides = True

    def __init__(self, factory: BatchState) -> None:
        super().__init__(factory.location, factory._stores, factory.place.stores)
        self.factory = factory
        self._staged = Staged(factory.place)

    def _written(self, found: Trace) -> int:
        """What is shown: what partitions have staged is nothing yet."""
        return 0 if found.row is None else found.row.txid

    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None:
        """Shows the stages of these receipts, once for a txid: what the ledger says is asked before anything is done.

        So it may be called again whenever its end is not known: after a lost connection it does so itself, in
        a transaction that waits until the lost one has ended. Raises FailedException (the batch is staged
        again), ZombieError, StateError if the table objects to a row.
        """
        stages = [receipt for receipt in receipts if receipt is not None and receipt["count"] > 0]
        if len({stage["partition"] for stage in stages}) < len(stages):
            raise StateError(f"table {self.factory.table!r}: batch {txid} has two receipts of one partition")
        again_for(_SETTLE_SECONDS, 0.1, partial(self._unknown, txid), partial(self._flip, txid, stages))

    def abort(self, txid: int, attempt: int) -> None:
        """Sweeps the attempt's stages if nobody holds them; if it fails, `publish` or the next driver does it."""
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
            log.info("batch %d: the staged rows of attempt %d are swept later: %s", txid, attempt, type(error).__name__)
            if connection is not None:
                store.drop(connection)
        else:
            store.give(connection)

    def _unknown(self, txid: int, error: Exception) -> bool:
        """Whether the flip may have happened, or may succeed if it is tried again: a lost line, a lost lock."""
        lock = error.__cause__ is not None and self._staged.store.dialect.is_lock(error.__cause__)
        unknown = isinstance(error, ConnectionLost) or (isinstance(error, FailedException) and lock)
        if unknown:
            log.warning("batch %d: asking the ledger whether it is shown, after: %s", txid, error)
        return unknown

    def _flip(self, txid: int, stages: list[dict]) -> None:
        store = self._staged.store
        with store.errors("show the batch"), store.writing() as connection:
            row = self.fence.row(connection, store.dialect.exclusive)
            if row.txid < txid and stages:
                tokens = {stage["token"]: stage["count"] for stage in stages}
                keys = [] if self.factory.key is None else list(Fields.of(self.factory.key))
                self._staged.show(connection, self.fence, txid, tokens, stages[0]["columns"], keys)
            self.fence.complete(connection, txid)
            if self._staged.exists():
                self._staged.sweep(connection, self.fence, "txid <= ?", txid)


@dataclass(frozen=True, repr=False)
class BatchState(RowFactory):
    """Rows in one SQL table, written by `RowUpdater`: those of a whole batch are there at once, or none is.

    Partitions stage their rows in ``<table>_staged``; when all have, the driver moves them into the table and the
    ledger on, in one transaction. ``columns`` are the fields of a row (None: those of the table, or the typed
    fields of the tuples if it is missing). With ``key`` a row takes the place of the one that has its key; of
    several in one batch the last one stands, by partition and by the order in it.
    On replay: the ledger says whether the batch is shown. If it is, what was staged again is swept; if not, exactly
    the stages of the tasks that succeeded now are shown, whatever other attempts have left.

    One thing stays impossible: the store's transaction and the mark by which Spark knows that a batch is over are
    two steps, and a crash can come between them (the two generals' problem). It is harmless, because only the
    ledger, which moves with the rows, is ever asked whether a batch is done.
    """

    url: str
    table: str
    columns: FieldsLike | None = None
    key: FieldsLike | None = None
    kind: ClassVar[str] = "batch"

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", parsed(self.url).render_as_string(hide_password=False))
        for name in ("columns", "key"):
            given = getattr(self, name)
            object.__setattr__(self, name, None if given is None else Fields.of(given))
        if self.columns is not None and (gone := [n for n in self._key if n not in Fields.of(self.columns)]):
            raise DefinitionError(f"table {self.table!r}: the key {gone} is not among {self.columns}")

    @property
    def _key(self) -> Fields:
        return Fields() if self.key is None else Fields.of(self.key)

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
            state._columns(self._fields)
        return state

    def check_place(self, place: StatePlace) -> None:
        """Raises DefinitionError for a query behind the update: the rows are shown only when the batch is over."""
        if place.queries:
            raise DefinitionError(
                f"table {self.table!r}: a query stands behind the update of state {place.state!r} in the same batch, "
                "and must see what the batch has written; a batch state shows its rows when all partitions are done. "
                "Ask in a stream of its own (newStaticState), or store into an AppendState or InsertIgnoreState"
            )

    def participant(self) -> BatchParticipant:
        """Shows the batches, on the driver, for one run."""
        return BatchLedger(self)

    def shape(self, fields: Fields) -> Shape:
        """The table's columns; made now if it is missing. ``fields`` are those of the tuples."""
        return one_key(self.place, row_shape(self.place, self._fields, self._key, fields))

    def stored(self) -> dict[tuple, Any]:
        """All rows and how often each is there; with a key: key tuple -> tuple of the other columns."""
        columns = self._fields
        if columns is None and len(self._key):
            known = existing(self.place.stores()[0], self.table) or {}
            columns = Fields(list(known))
        rows = stored_rows(self.place, columns)
        if columns is None or not len(self._key):
            return dict(rows)
        keys = [columns.fieldIndex(name) for name in self._key]
        others = [index for index in range(len(columns)) if index not in keys]
        return {tuple(row[i] for i in keys): tuple(row[i] for i in others) for row in rows}

    def __repr__(self) -> str:
        where = f"{shown(parsed(self.url))!r}, {self.table!r}"
        return f"BatchState({where}, columns={self.columns}, key={self.key})"
