"""The ledger in SQL: `trident_fence` and `trident_part`, which docs/states.md and docs/protocol.md describe."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any, ClassVar

import sqlalchemy as sa

from trident_py.model.context import RunContext
from trident_py.state import Location, Remembered

from ..columns.values import Column, recordable
from ..ledger.fence import FIELDS, NO_ATTEMPT, Fence, LedgerRow
from ..ledger.format import check_format
from ..ledger.owner import Owner
from ..ledger.protocol import Ledger
from ..ledger.store import LedgerStore, Trace, Transition, utc_now
from . import key_types
from .connection import Connection, Statement
from .dialects.base import Dialect, insert_text
from .store import Store, reading_only, retry_transient

_PART_KEY = [
    *(Column(name, "varchar(190)", True) for name in ("topology", "state")),
    *(Column(name, "bigint", True) for name in ("txid", "part")),
]
_PART_REST = [Column("attempt", "bigint"), Column("partitions", "bigint"), Column("token", "varchar(190)")]
LAYOUT_PART = -1
LAYOUT = "trident_layout"  # notes which tables were created
UNMARKED: dict[str, list] = {"files": []}  # in the receipt of a partition that has committed nothing, so has no mark
RUN = "run"  # the column that the first version of trident_fence did not have
OWNERS = "trident_owner"  # notes which state owns each table, further tables included
_OWN = "WHERE topology = ? AND state = ?"
_FIELDS = ", ".join(FIELDS)
_SAME = f"{_OWN} AND {_FIELDS.replace(',', ' = ? AND')} = ?"
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
        sa.Table(OWNERS, metadata, text("name", True), text("topology"), text("state"), text("shared"), **options),
        sa.Table(key_types.TABLE, metadata, text("name", True), text("field", True), text("kind"), **options),
        sa.Table(LAYOUT, metadata, text("name", True), sa.Column("files", sa.Integer, nullable=False), text("routing"),
                 **options),
    ]  # fmt: skip


def select_row(topology: str, state: str, lock: str = "", run: str = RUN) -> Statement:
    return f"SELECT {_FIELDS.removesuffix(RUN)}{run} FROM trident_fence {_OWN}{lock}", (topology, state)


def has_run(engine: sa.Engine) -> bool:
    """Return whether trident_fence has the column ``run``."""
    return RUN in _columns(engine)


def _columns(engine: sa.Engine) -> set[str]:
    return {column["name"] for column in sa.inspect(engine).get_columns("trident_fence")}


def parse_ledger_row(answer: Any) -> LedgerRow | None:
    """Return the row in the answer to `select_row`."""
    row = answer.fetchone()
    return None if row is None else LedgerRow(*row)


Beside = Callable[[Connection, LedgerRow | None, LedgerRow], None]
"""What a transaction does between the change of the row, of which it gets the old one and the new one, and its end."""


@dataclass(frozen=True)
class SqlFence(Fence):
    """The fence of one run: what a partition must find in the ledger before it writes."""

    gone: ClassVar[str] = "its row in trident_fence is gone or older than this driver; the store was replaced"

    def row(self, connection: Connection, lock: str = "") -> LedgerRow:
        """Return the state's row; ``lock`` is the SQL that locks it until the transaction ends. Raises ZombieError if a
        newer driver has taken over, StateError if the row is gone."""
        return self.fence_row(connection.execute(*self.question(lock)))

    def question(self, lock: str = "") -> Statement:
        """Return the statement that begins every transaction that writes; its answer goes to `check`."""
        return select_row(*self.own, lock)

    def fence_row(self, answer: Any) -> LedgerRow:
        return self.newest(parse_ledger_row(answer))

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


class SqlLedgerStore(LedgerStore[LedgerRow]):
    """The ledger of one state in one database.

    ``needed`` returns how many marks a transition asks for, and of which attempt (None: of any). ``beside`` returns
    what a transition writes in the same transaction; None if it is nothing: then it is one request to a server.
    """

    def __init__(
        self, store: Store, location: Location, own: tuple[str, str], needed: Callable[[Transition], tuple[int, Any]],
        beside: Callable[[Transition], Beside | None] = lambda transition: None,
    ) -> None:  # fmt: skip
        self.store = store
        self._location = location
        self._own = own
        self._needed = needed
        self._beside = beside

    def read(self) -> LedgerRow | None:
        with self.store.errors("ask the ledger"), self.store.reading() as connection:
            return parse_ledger_row(connection.execute(*select_row(*self._own)))

    def change(self, old: LedgerRow | None, new: LedgerRow, transition: Transition) -> bool:
        statements = [self._change_row(old, new, transition), *self._sweep_marks(new, transition)]
        beside = self._beside(transition)
        if beside is None:
            return bool(self.store.at_once(*statements, doing=transition.doing)[0].rowcount)
        with self.store.errors(transition.doing), self.store.writing() as connection:
            if connection.execute(*statements[0]).rowcount == 0:
                return False
            beside(connection, old, new)
            connection.together(statements[1:])
        return True

    def _change_row(self, old: LedgerRow | None, new: LedgerRow, transition: Transition) -> Statement:
        """Return the statement that changes one row, if the row is as it was read and the marks are there."""
        if old is None:
            there = f"EXISTS (SELECT 1 FROM trident_fence {_OWN})"
            text = f"INSERT INTO trident_fence (topology, state, {_FIELDS}, time)"
            return f"{text} SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE NOT {there}", (
                *self._own, *astuple(new), utc_now(), *self._own,
            )  # fmt: skip
        marks, attempt = self._needed(transition)
        of = "" if attempt is None else f" AND attempt = {attempt}"
        marked = f" AND (SELECT count(*) {_WRITTEN}{of}) >= {marks}" if marks else ""
        values = _FIELDS.replace(",", " = ?,")
        return f"UPDATE trident_fence SET {values} = ?, time = ? {_SAME}{marked}", (
            *astuple(new), utc_now(), *self._own, *astuple(old), *((*self._own, new.txid) if marks else ()),
        )  # fmt: skip

    def _sweep_marks(self, new: LedgerRow, transition: Transition) -> list[Statement]:
        """Return the statements that delete the marks of complete batches, and take those of earlier attempts out of
        the count. If the row was not changed, neither changes a mark."""
        older = "" if transition.forgets else f" AND txid <= {new.txid}"
        moved = f"EXISTS (SELECT 1 FROM trident_fence {_SAME})"
        which = (*self._own, *self._own, *astuple(new))
        given_up = f"UPDATE trident_part SET attempt = {NO_ATTEMPT} {_OWN} AND txid = {new.started} AND {moved}"
        return [
            (f"DELETE FROM trident_part {_OWN}{older} AND {moved}", which),
            *([(given_up, which)] if transition.begins else []),
        ]  # fmt: skip

    def trace(self) -> Trace:
        """Return the trace before a start, when the ledger's tables may be missing or of the first version."""
        with self.store.errors("ask the ledger"):
            if not sa.inspect(self.store.engine).has_table("trident_fence"):
                return Trace()
            run = RUN if has_run(self.store.engine) else "''"
            later = "format" in _columns(self.store.engine)
            with self.store.reading() as connection:
                if later:
                    (found,) = connection.execute("SELECT max(format) FROM trident_fence").fetchone()
                    check_format(self._location.shown, found)
                row = parse_ledger_row(connection.execute(*select_row(*self._own, run=run)))
                text = "SELECT max(txid), max(CASE WHEN part >= 0 AND token <> '' THEN txid END) FROM trident_part"
                begun, part = connection.execute(f"{text} {_OWN}", self._own).fetchone()
        over = row or LedgerRow()
        return Trace(row, max(over.txid, part or 0), max(over.last, begun or 0))

    def owners(self) -> Mapping[str, Owner | None]:
        with self.store.errors("look up the owner of the table"):
            if not sa.inspect(self.store.engine).has_table(OWNERS):
                return {}
            with self.store.reading() as connection:
                return owners_of(self.store, connection, self._location)

    def claim(self, name: str, old: Owner | None, new: Owner) -> bool:
        """Claim; raise the database driver's duplicate key error if another driver does so at this moment."""
        with self.store.errors("join the checkpoint in the ledger"), self.store.writing() as connection:
            if _owner(connection, name, self.store.dialect.exclusive) != old:
                return False
            connection.execute(f"DELETE FROM {OWNERS} WHERE name = ?", (name,))
            if old is not None and old[:2] != new[:2]:
                connection.execute(f"UPDATE trident_fence SET generation = generation + 1 {_OWN}", old[:2])
            text = f"INSERT INTO {OWNERS} (name, topology, state, shared) VALUES (?, ?, ?, ?)"
            connection.execute(text, (name, *new))
        return True


class Undo(ABC):
    """What a kind of table needs to go back. `states.sql.undo` has the kinds."""

    @abstractmethod
    def why_not(self, store: Store, txid: int) -> str | None:
        """Return why the table cannot go back to this batch; None if it can. Reads only."""

    def is_there(self, store: Store) -> bool:
        """Return whether the store has a table to undo. A state that no row has reached has none."""
        return False

    def last(self, store: Store) -> int:
        """Return the highest batch that rows tell; 0 if none does."""
        return 0

    def undo(self, connection: Connection, own: tuple[str, str], txid: int) -> None:
        """Undo what the batches after this one have written. Does nothing if it was done. ``own``: topology and
        state."""
        raise NotImplementedError


class SqlLedger(Ledger[LedgerRow]):
    """The driver's side of a state; one object for each run. No key belongs to a partition, so only further attempts of
    a batch are recorded.

    A decided batch keeps the receipts of all its states (``keeps_receipts``): the next driver counts their marks, too.

    ``location``: the table and its store. ``prepare_tables`` creates missing tables and checks existing ones;
    ``opened`` returns the store and touches nothing.
    """

    row_type = LedgerRow

    def __init__(
        self, location: Location, prepare_tables: Callable[[], object], opened: Callable[[], Store],
        valued: Callable[[], int] | None = None, undo: Undo | None = None,
    ) -> None:  # fmt: skip
        super().__init__(location, self._find_last_told if valued is None else valued)
        self._undo = undo
        self._prepare_tables = prepare_tables
        self._opened = opened

    def _fence_of(self, conf: dict) -> SqlFence | None:
        return SqlFence.of(conf)

    @property
    def fence(self) -> SqlFence:
        fence = super().fence
        assert isinstance(fence, SqlFence)
        return fence

    def _store_of(self, context: RunContext, ready: bool) -> SqlLedgerStore:
        if ready:
            self._prepare_tables()
        own = context.topology, context.state
        return SqlLedgerStore(self._opened(), self.location, own, self._count_marks, self._beside_change)

    def remembered(self, conf: dict) -> Remembered:
        with reading_only(RunContext.of(conf).reads_only):
            return super().remembered(conf)

    def find_owner(self, conf: dict) -> tuple[str, str] | None:
        with reading_only(RunContext.of(conf).reads_only):
            return super().find_owner(conf)

    def measure_size(self) -> int | None:
        store = self._opened()
        with store.errors("ask for the size of the table"), store.reading() as connection:
            names = [store.dialect.fold_on_server(connection, name) for name in self.location.names]
            sizes = [store.dialect.measure_table(connection, name) for name in names]
        told = [size for size in sizes if size is not None]
        return sum(told) if told else None

    def open(self, conf: dict) -> int:
        """Take over. Raises DefinitionError for a name too long for the ledger."""
        context, store = RunContext.of(conf), self._opened()
        recordable("topology", context.topology)
        recordable("state", context.state)
        store.ready.clear()  # an earlier run of this process may have checked another table
        return retry_transient(store, partial(super().open, conf))

    def _join(self) -> None:
        if self._joins is not None:
            retry_transient(self._opened(), super()._join)

    def _count_marks(self, transition: Transition) -> tuple[int, int | None]:
        """Return how many marks must be there, and of which attempt."""
        return sum(not UNMARKED.items() <= receipt.items() for receipt in transition.receipts or ()), transition.attempt

    def can_rewind(self, conf: dict, txid: int) -> str | None:
        if self._undo is None:
            return super().can_rewind(conf, txid)
        with reading_only():
            return self._undo.why_not(self._opened(), txid)

    def _find_last_told(self) -> int:
        """Return the highest batch that rows tell, which no new checkpoint may give to other rows."""
        return 0 if self._undo is None else self._undo.last(self._opened())

    def _beside_change(self, transition: Transition) -> Beside | None:
        """Return what is written in the transaction that changes the ledger."""
        if transition.back is None:
            return self._beside(transition)
        undo = self._undo if self._undo is not None and self._undo.is_there(self._opened()) else None
        return partial(self._undo_beside, undo, transition.back)

    def _beside(self, transition: Transition) -> Beside | None:
        """Return what is written beside a step of a batch."""
        return None

    def _undo_beside(self, undo: Undo | None, txid: int, connection: Connection, *rows: LedgerRow | None) -> None:
        if undo is not None:
            undo.undo(connection, self.fence.own, txid)


def owners_of(store: Store, connection: Connection, location: Location) -> dict[str, Owner | None]:
    """Return the owner of each table, in one fixed order, since their rows are locked in it."""
    names = sorted(store.dialect.fold_on_server(connection, name) for name in location.names)
    return {name: _owner(connection, name) for name in names}


def _owner(connection: Connection, name: str, lock: str = "") -> Owner | None:
    text = f"SELECT topology, state, shared FROM {OWNERS} WHERE name = ?{lock}"
    row = connection.execute(text, (name,)).fetchone()
    return None if row is None else Owner(*row)
