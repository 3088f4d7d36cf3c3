"""The ledger: which driver may write a state, and the last batch it completed.

``trident_fence`` has one row for each (topology, state), in every file of the store. A new driver raises the
generation. Every partition reads the row under a share lock inside the transaction that writes its data, so an older
driver, batch or attempt cannot write. ``txid`` is the last batch that all partitions have committed. ``started`` and
``attempt`` name the latest attempt that the driver has let in: a task of an abandoned attempt may still run, and must
not write over its successor.

``trident_part`` has one row (a mark) for each partition of the current batch, written with the partition's data. It
tells a replay, and a task whose COMMIT got no answer, what was committed. The row of part -1 holds the number of
partitions. The rows of a batch are deleted when the whole batch is committed.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import sqlalchemy as sa

from trident_py.errors import StateError
from trident_py.model.context import RunContext
from trident_py.state import BatchParticipant, Location, Remembered

from ..columns.values import Column, recordable
from ..ledger.fence import Fence, LedgerRow, lost_commits
from ..ledger.owner import Tenure
from . import key_types, owner
from .connection import Connection, Statement
from .dialects.base import Dialect, insert_text
from .store import Store, retry_transient

_PART_KEY = [
    *(Column(name, "varchar(190)", True) for name in ("topology", "state")),
    *(Column(name, "bigint", True) for name in ("txid", "part")),
]
_PART_REST = [Column("attempt", "bigint"), Column("partitions", "bigint"), Column("token", "varchar(190)")]
LAYOUT_PART = -1
FILES = "files"  # in a receipt: the files of the store that have the partition's mark; without it, the first one
RUN = "run"  # the column that the first version of trident_fence did not have
_OWN = "WHERE topology = ? AND state = ?"
_WRITTEN = f"FROM trident_part {_OWN} AND txid = ? AND part >= 0 AND token <> ''"


def tables(options: dict[str, Any]) -> list[sa.Table]:
    """Return the definitions of the ledger's tables, for `CREATE TABLE IF NOT EXISTS`."""
    metadata = sa.MetaData()

    def own() -> list[sa.Column]:
        return [sa.Column(name, sa.String(190), primary_key=True) for name in ("topology", "state")]

    def number(name: str, key: bool = False) -> sa.Column:
        return sa.Column(name, sa.BigInteger, primary_key=key, nullable=False, autoincrement=False)

    def text(name: str, key: bool = False) -> sa.Column:
        return sa.Column(name, sa.String(190), primary_key=key, nullable=False)

    run = sa.Column(RUN, sa.String(190), nullable=False, server_default="")
    return [
        sa.Table("trident_fence", metadata, *own(), number("generation"), text("lineage"), number("txid"),
                 number("started"), number("attempt"), text("time"), run, **options),
        sa.Table("trident_part", metadata, *own(), number("txid", True), number("part", True), number("attempt"),
                 number("partitions"), text("token"), **options),
        sa.Table(owner.TABLE, metadata, text("name", True), text("topology"), text("state"), text("shared"), **options),
        sa.Table(key_types.TABLE, metadata, text("name", True), text("field", True), text("kind"), **options),
    ]  # fmt: skip


def read(connection: Connection, topology: str, state: str, lock: str = "", run: str = RUN) -> LedgerRow | None:
    return parse_fence_row(connection.execute(*asking(topology, state, lock, run)))


def asking(topology: str, state: str, lock: str = "", run: str = RUN) -> Statement:
    columns = f"generation, lineage, txid, started, attempt, {run}"
    return f"SELECT {columns} FROM trident_fence {_OWN}{lock}", (topology, state)


def has_run(engine: sa.Engine) -> bool:
    """Return whether trident_fence has the column ``run``."""
    return RUN in {column["name"] for column in sa.inspect(engine).get_columns("trident_fence")}


def parse_fence_row(answer: Any) -> LedgerRow | None:
    """Return the row in the answer to `asking`."""
    row = answer.fetchone()
    return None if row is None else LedgerRow(*row)


def noting(files: list[int]) -> dict[str, list[int]]:
    """Return what a receipt says of the files that have the partition's mark."""
    return {} if files == [0] else {FILES: files}


class Trace(NamedTuple):
    """What one database, or one file of several, records about a state."""

    row: LedgerRow | None
    written: int  # the highest txid that is complete or written by a partition
    last: int  # the same, or begun


def trace(connection: Connection, topology: str, state: str, run: str = RUN) -> Trace:
    row = read(connection, topology, state, run=run)
    text = f"SELECT max(txid), max(CASE WHEN part >= 0 AND token <> '' THEN txid END) FROM trident_part {_OWN}"
    begun, part = connection.execute(text, (topology, state)).fetchone()
    over = row or LedgerRow(0, "", 0, 0, 0)
    return Trace(row, max(over.txid, part or 0), max(over.last, begun or 0))


@dataclass(frozen=True)
class SqlFence(Fence):
    """The fence of one run: what a partition must find in the ledger before it writes."""

    noted: ClassVar[str] = "row in trident_fence"

    def row(self, connection: Connection, lock: str = "") -> LedgerRow:
        """Return the state's row; ``lock`` is the SQL that locks it until the transaction ends. Raises ZombieError if a
        newer driver has taken over, StateError if the row is gone."""
        return self.fence_row(connection.execute(*self.question(lock)))

    def question(self, lock: str = "") -> Statement:
        """Return the statement that begins every transaction that writes; its answer goes to `check`."""
        return asking(*self.own, lock)

    def fence_row(self, answer: Any) -> LedgerRow:
        return self.newest(parse_fence_row(answer))

    def check(self, answer: Any, txid: int | None) -> LedgerRow:
        """Called before the transaction writes. Raises ZombieError for an older driver, batch or attempt, and
        StateError for another lineage; nothing is written then."""
        return self.admits(self.fence_row(answer), txid)

    def marks(
        self, connection: Connection, txid: int | None, part: int, token: str, dialect: Dialect
    ) -> list[Statement]:
        """Return what the transaction executes last, right before COMMIT: it writes the partition's mark for the batch.

        If two tasks run the same partition at once, the second waits here until the first one has ended.
        """
        if txid is None:
            return []
        keys, others = ([column.name for column in columns] for columns in (_PART_KEY, _PART_REST))
        text = insert_text("trident_part", [*_PART_KEY, *_PART_REST]) + dialect.instead(connection, keys, others)
        return [(text, (*self.own, txid, part, self.attempt, 0, token))]

    def has(self, connection: Connection, txid: int, part: int, token: str) -> bool:
        """Return whether the transaction with this token has written this partition of the batch."""
        mark = connection.execute(
            f"SELECT token FROM trident_part {_OWN} AND txid = ? AND part = ?", (*self.own, txid, part)
        ).fetchone()
        return mark is not None and mark[0] == token

    def parts(self, connection: Connection, txid: int) -> dict[int, int]:
        """Return the marks of the batch: partition to its ``partitions`` column; under -1, if recorded, how many there
        are."""
        marks = connection.execute(
            f"SELECT part, partitions FROM trident_part {_OWN} AND txid = ?", (*self.own, txid)
        ).fetchall()
        return dict(marks)

    def complete(self, connection: Connection, txid: int, receipts: int, attempt: int | None = None) -> None:
        """Move the last complete txid inside this transaction. ``receipts``: how many partitions have committed, in
        this ``attempt`` if it is given.

        Raises ZombieError if a newer driver has taken over, StateError if the store has gone back, LostCommits if the
        mark of a partition is gone.
        """
        moved, _ = connection.together(self._completing(txid, receipts, attempt))
        if moved.rowcount == 0:
            self._refuse_to_complete(connection, txid, receipts)

    def complete_at_once(self, store: Store, txid: int, receipts: int, attempt: int) -> None:
        """Run `complete` in a transaction of its own; called again it changes nothing."""
        moved, *_ = store.at_once(*self._completing(txid, receipts, attempt))
        if moved.rowcount == 0:
            with store.reading() as connection:
                self._refuse_to_complete(connection, txid, receipts)

    def _refuse_to_complete(self, connection: Connection, txid: int, receipts: int) -> None:
        """Return if the batch is complete; else raises why it cannot be."""
        row = self.newest(parse_fence_row(connection.execute(*self.question())))
        if row.txid < txid:
            self.admits(row, txid)
            raise lost_commits(self.shown, txid, receipts)

    def _completing(self, txid: int, receipts: int, attempt: int | None) -> list[Statement]:
        """Return two statements. The second changes a row only if the first did: neither does if a newer driver has
        taken over, if the store lacks the batch before, or if it lacks marks of this one."""
        moved = f"EXISTS (SELECT 1 FROM trident_fence {_OWN} AND generation = ? AND txid = ?)"
        of = "" if attempt is None else f" AND attempt = {attempt}"
        marked = f"(SELECT count(*) {_WRITTEN}{of}) >= ?"
        return [
            (f"UPDATE trident_fence SET txid = ?, time = ? {_OWN} AND generation = ?"
             f" AND (txid = ? OR (txid = ? AND {marked}))",
             (txid, _now(), *self.own, self.generation, txid, txid - 1, *self.own, txid, receipts)),
            (f"DELETE FROM trident_part {_OWN} AND txid <= ? AND {moved}",
             (*self.own, txid, *self.own, self.generation, txid)),
        ]  # fmt: skip

    def belongs(self, connection: Connection, txid: int, forget: bool, dialect: Dialect) -> None:
        """Called before the first batch of a run; hands the store to this checkpoint, which has committed ``txid``.

        ``forget``: the batches of another checkpoint no longer count. Raises ZombieError, StateError.
        """
        row = self.row(connection, dialect.exclusive)
        if row.lineage == self.lineage and row.txid >= txid and row.run == self.token:
            return
        forget = forget and row.lineage != self.lineage
        over, started = (txid, 0) if forget else (max(row.txid, txid), row.started)
        connection.execute(
            f"UPDATE trident_fence SET lineage = ?, txid = ?, started = ?, time = ?, run = ? {_OWN}",
            (self.lineage, over, started, _now(), self.token, *self.own),
        )
        older = "" if forget else f" AND txid <= {over}"
        connection.execute(f"DELETE FROM trident_part {_OWN}{older}", self.own)

    def begun(self, connection: Connection, txid: int, attempt: int) -> None:
        """Let in this attempt and shut out older ones."""
        connection.execute(
            f"UPDATE trident_fence SET started = ?, attempt = ? {_OWN} AND generation = ? AND started <= ?",
            (txid, attempt, *self.own, self.generation, txid),
        )


class SqlLedger(BatchParticipant):
    """The driver's side of a state; one object for each run.

    A decided batch keeps the receipts of all its states (``keeps_receipts``): the next driver counts their marks, too.

    ``location``: the table and its store. ``stores`` returns the stores after creating missing tables and checking
    existing ones; ``places`` returns the same stores and touches nothing. ``valued`` returns the highest txid among
    the table's values.
    """

    keeps_receipts = True

    def __init__(
        self, location: Location, stores: Callable[[], Sequence[Store]], places: Callable[[], Sequence[Store]],
        valued: Callable[[], int] = lambda: 0,
    ) -> None:  # fmt: skip
        self.location = location
        self._stores = stores
        self._places = places
        self._valued = valued
        self._opened: list[Store] = []
        self._fence: SqlFence | None = None
        self._joins: tuple[int, bool] | None = None
        self._tenure: Tenure | None = None

    @property
    def fence(self) -> SqlFence:
        if self._fence is None:
            raise StateError("the ledger does not know its run: call open() first")
        return self._fence

    def remembered(self, conf: dict) -> Remembered:
        """Read the ledger in every file, and the txids of the table's values unless the ledger is this checkpoint's.
        Raises StateError if another state owns the table."""
        for store in self._places():
            owner.check(Tenure.of(self.location, conf), store)
        context = RunContext.of(conf)
        traces = [peek(store, context.topology, context.state) for store in self._places()]
        first = traces[0].row
        lineage = "" if first is None else first.lineage
        return Remembered(
            self.location.shown,
            lineage,
            written=max(map(self._last_written, traces)),
            whole=min(0 if trace.row is None else trace.row.txid for trace in traces),
            last=max(trace.last for trace in traces),
            valued=0 if lineage and lineage == context.lineage else self._valued(),
            run="" if first is None else first.run,
        )

    def _last_written(self, trace: Trace) -> int:
        return trace.written

    def open(self, conf: dict) -> int:
        """Take over: raises the generation in every file while the first file is locked, and returns it.

        Raises DefinitionError for a name too long for the ledger.
        """
        context = RunContext.of(conf)
        recordable("topology", context.topology)
        recordable("state", context.state)
        for store in self._places():
            store.ready.clear()  # an earlier run of this process may have checked another table
        stores = list(self._stores())
        with stores[0].errors("open the ledger"):
            self._fence = retry_transient(stores[0], lambda: self._take_over(stores, context))
        self._opened = stores  # making them again would look at the table in every batch
        self._joins = context.txid, context.forget
        self._tenure = Tenure.of(self.location, conf)
        return self._fence.generation

    def _take_over(self, stores: list[Store], context: RunContext) -> SqlFence:
        topology, state = context.topology, context.state
        with stores[0].writing() as first:
            rows = [read(first, topology, state, stores[0].dialect.exclusive)]
            rows += [peek(store, topology, state).row for store in stores[1:]]
            generation = max((row.generation for row in rows if row is not None), default=0) + 1
            fence = SqlFence(topology, state, generation, context.lineage, run=context.run)
            for store in stores[1:]:
                with store.writing() as other:
                    _raise(other, fence)
            _raise(first, fence)
        return fence

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        """Called on the driver before each attempt; shuts out earlier ones. (The number of partitions does not matter:
        no key belongs to a partition.)"""
        if self._fence is None:
            return
        self._belongs()
        if attempt == 0:
            return
        for store in self._opened:
            with store.errors("begin the batch in the ledger"), store.writing() as connection:
                self.fence.begun(connection, txid, attempt)

    def publish(self, txid: int, attempt: int, receipts: Sequence[Any]) -> None:
        """Move the last complete txid. Raises ZombieError if a newer driver has taken over, LostCommits if the store
        lacks what partitions have committed."""
        self._belongs()
        for index, store in enumerate(self._opened):
            with store.errors("end the batch in the ledger"):
                self.fence.complete_at_once(store, txid, self._count_marks(receipts, index), attempt)

    def _count_marks(self, receipts: Sequence[Any], index: int) -> int:
        """Return how many of these receipts stand for a mark in this file."""
        return sum(index in receipt.get(FILES, [0]) for receipt in receipts)

    def published(self, txid: int) -> bool:
        """Return whether the ledger has the batch as complete; waits for a transaction that may still complete it."""
        store = self._opened[0]
        with store.errors("ask the ledger"), store.writing() as connection:
            return self.fence.row(connection, store.dialect.exclusive).txid >= txid

    def abort(self, txid: int, attempt: int) -> None:
        """Do nothing: the replay repairs what a failed attempt has committed."""

    def _belongs(self) -> None:
        """Run once, before the first batch or the end of one that was decided; the first file comes last, since it
        decides which checkpoint owns the store."""
        if self._joins is None:
            return
        txid, forget = self._joins
        for store in reversed(self._opened):
            with store.errors("join the checkpoint in the ledger"):
                retry_transient(store, partial(self._join, store, txid, forget))
        self._joins = None

    def _join(self, store: Store, txid: int, forget: bool) -> None:
        assert self._tenure is not None
        with store.writing() as connection:
            owner.claim(self._tenure, store, connection)
            self.fence.belongs(connection, txid, forget, store.dialect)


def peek(store: Store, topology: str, state: str) -> Trace:
    """Return the trace of a state before a start, when the ledger's tables may be missing or of the first version."""
    with store.errors("ask the ledger"):
        if not sa.inspect(store.engine).has_table("trident_fence"):
            return Trace(None, 0, 0)
        run = RUN if has_run(store.engine) else "''"
        with store.reading() as connection:
            return trace(connection, topology, state, run)


def _raise(connection: Connection, fence: SqlFence) -> None:
    changed = connection.execute(
        f"UPDATE trident_fence SET generation = ?, attempt = 0, time = ? {_OWN}",
        (fence.generation, _now(), *fence.own),
    )
    if changed.rowcount == 0:
        connection.execute(
            "INSERT INTO trident_fence (topology, state, generation, lineage, txid, started, attempt, time)"
            " VALUES (?, ?, ?, '', 0, 0, 0, ?)",
            (*fence.own, fence.generation, _now()),
        )


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
