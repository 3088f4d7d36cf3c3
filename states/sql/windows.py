"""Windows in one SQL table: the tuples of a batch enter in one transaction with the mark of its txid.

The rows of txid 0 hold no tuples. That of part -1 is the layout: the number of partitions, and the window's definition.
Each partition has one, its seal: every batch writes there its txid and a digest of the blocks that are left. So rows
that were removed, or a table that was restored alone, differ from their seal, or the seal from the ledger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from trident_py.errors import StateError
from trident_py.state import BatchParticipant, Location, Needs, StateFactory
from trident_py.tuples import Fields
from trident_py.windowing import Block, Head, MakesWindows, WindowConfig, WindowFactory, WindowState
from trident_py.windowing.store import require_same

from ..diagnostics import Finding
from ..ledger.store import Transition
from .connection import Connection
from .dialects.base import Dialect, check_taken
from .inspect import check
from .ledger import SqlFence, SqlLedger, owners_of
from .store import Store, needs_of_store, parse_url, redact_url
from .table import CheckedTable, Shape, TablePlace, location_of, prepare, read_columns, shape_of
from .transaction import Transaction

_KEYS = Fields("part bigint", "txid bigint", "block bigint")
_OTHERS = Fields(
    "first_tuple bigint", "tuples bigint", "time bigint", "oldest bigint", "newest bigint", "token varchar(16)",
    "data binary",
)  # fmt: skip
_HEAD = '"txid", "block", "first_tuple", "tuples", "time", "oldest", "newest", "token"'
LAYOUT = -1
NO_TXID = 0


@dataclass(frozen=True, repr=False)
class SqlWindowsStoreFactory(MakesWindows):
    """The store of one window in one SQL table, on SQLite, MySQL, MariaDB or PostgreSQL.

    A missing table is created. Each batch adds a row with its tuples, as one block of columns, for each partition.
    On replay: the tuples of a batch enter once, and the windows that it completes come again with the same content.
    """

    url: str
    table: str
    kind: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", parse_url(self.url).render_as_string(hide_password=False))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({redact_url(parse_url(self.url))!r}, {self.table!r})"

    @property
    def place(self) -> TablePlace:
        return TablePlace(self.url, self.table)

    def windowState(self, config: WindowConfig, name: str) -> StateFactory:
        return SqlWindow(config, name, self)

    def check(self) -> Sequence[Finding]:
        return check(self.place, _KEYS, _OTHERS, [], False, {})


@dataclass(frozen=True)
class SqlWindow(WindowFactory):
    """The state of one window in a SQL table.

    On replay: the rows of the batch are replaced, in the transaction of its mark; the ledger refuses an older driver,
    attempt or batch.
    """

    store: SqlWindowsStoreFactory
    state_type = WindowState

    @property
    def location(self) -> Location:
        return location_of(self.store.place)

    @property
    def needs(self) -> Needs:
        return needs_of_store(self.store.url)

    @property
    def shape(self) -> Shape:
        """The columns of the table; creates it if it is missing."""
        return prepare(self.store.place, shape_of(self.store.place, _KEYS, _OTHERS))

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> WindowState:
        return self.window(conf, SqlWindowBacking(self, SqlFence.of(conf), partitionIndex))

    def participant(self) -> BatchParticipant:
        return WindowLedger(self)


class SqlWindowBacking:
    """One partition of a window in a SQL table.

    The heads of the last batch are kept, and compared with the newest rows of the table: if these are as this process
    wrote them, no other process has served the partition meanwhile.
    """

    def __init__(self, factory: SqlWindow, fence: SqlFence | None, partition: int) -> None:
        self.table = factory.store.table
        self.shape = factory.shape
        self.partition = partition
        self.transaction = Transaction(factory.store.place.store(), fence, partition)
        self.transaction.table = CheckedTable(factory.store.place, self.shape)
        self._known: list[Head] = []
        self._heads: list[Head] = []
        self._update = f'UPDATE "{self.table}" SET "time" = ?, "token" = ? WHERE "part" = ? AND "txid" = ?'

    @property
    def dialect(self) -> Dialect:
        return self.transaction.store.dialect

    def begin(self, txid: int | None) -> None:
        """Wait for another task of this partition, such as a copy that Spark has started: it reads the heads behind the
        other's commit, and so replaces all that the other has written."""
        self.transaction.begin(txid)
        last = self._known[-1].txid if self._known else None
        newest = self._lock_heads(last)
        if last is None:
            self._heads = newest
        elif newest == [head for head in self._known if head.txid >= last]:
            self._heads = self._known
        else:
            self._heads = self._lock_heads(None)
        self._known = []

    def _lock_heads(self, since: int | None) -> list[Head]:
        """Lock the partition's seal; then reads the heads from a batch on. Raises StateError if they differ."""
        seal = f'SELECT "time", "token" FROM "{self.table}" WHERE "part" = ? AND "txid" = ?{self.dialect.exclusive}'
        text = f'SELECT {_HEAD} FROM "{self.table}" WHERE "part" = ? AND "txid" >= ? ORDER BY "txid", "block"'
        least = NO_TXID + 1 if since is None else since
        with self.transaction.using() as connection:
            sealed, found = connection.together([(seal, (self.partition, NO_TXID)), (text, (self.partition, least))])
            row, heads = sealed.fetchone(), [Head(*each) for each in found.fetchall()]
        tokens = None if since is not None else [head.token for head in heads]
        if row is None and self.transaction.fence is None:
            return heads  # without a driver nobody has sealed them
        if row is None or not Marker(self.partition, 0, *row).fits(tokens, self.transaction.complete):
            raise _removal_error(self.table, self.partition, self.transaction.complete)
        return heads

    def heads(self) -> list[Head]:
        return self._heads

    def latest(self, txid: int) -> int | None:
        text = f'SELECT max("newest") FROM "{self.table}" WHERE "part" >= 0 AND "txid" < ? AND "tuples" > 0'
        with self.transaction.using() as connection:
            row = connection.execute(text, [txid]).fetchone()
        return None if row is None else row[0]

    def data(self, heads: Sequence[Head]) -> list[bytes]:
        data, asked = self.shape.others[-1:], [(self.partition, head.txid, head.block) for head in heads]
        with self.transaction.using() as connection:
            rows = self.dialect.read(connection, self.table, self.shape.keys, data, asked)
        decode = self.dialect.decoder(data[0]) or bytes
        found = [None if row is None else decode(row[0]) for row in rows]
        if None in found:
            raise _removal_error(self.table, self.partition, self.transaction.complete)
        return found  # type: ignore[return-value]

    def write(self, blocks: Sequence[Block], dropped: Sequence[Head]) -> None:
        gone = [(self.partition, head.txid, head.block) for head in dropped]
        rows = [(self.partition, *block.head, block.data) for block in blocks]
        with self.transaction.using() as connection:
            if gone:
                text = f'DELETE FROM "{self.table}" WHERE "part" = ? AND "txid" = ? AND "block" = ?'
                check_taken(self.table, len(gone), connection.executemany(text, gone).rowcount)
            for row in rows:  # one by one: a block may be as large as a statement
                self.dialect.insert(connection, self.table, self.shape.columns, [row])
        lost = set(dropped)
        self._heads = [*(head for head in self._heads if head not in lost), *(block.head for block in blocks)]

    def commit(self) -> None:
        seal = self.transaction.txid, _digest(head.token for head in self._heads), self.partition, NO_TXID
        self.transaction.commit((self._update, seal))
        self._known = self._heads

    def rollback(self) -> None:
        self.transaction.rollback()

    def close(self) -> None:
        """Do nothing: its connections are the process's."""


class Marker(NamedTuple):
    """A row of no txid: the layout, whose ``tuples`` are the partitions and ``data`` the window's definition; or a
    partition's seal, whose ``time`` is the last batch and ``token`` the digest of its heads, "" before the first."""

    part: int
    tuples: int = 0
    time: int = 0
    token: str = ""
    data: bytes = b""

    @property
    def row(self) -> tuple:
        return self.part, NO_TXID, 0, 0, self.tuples, self.time, 0, 0, self.token, self.data

    def fits(self, tokens: Sequence[str] | None, complete: int) -> bool:
        """Return whether the partition has the rows that it was sealed with, if these ``tokens`` are those of all its
        heads, and all batches that are ``complete``. One that was never sealed fits: it is new, or of an older
        version."""
        return not self.token or (self.time >= complete and (tokens is None or self.token == _digest(tokens)))


def _digest(tokens: Iterable[str]) -> str:
    return hashlib.sha256("".join(tokens).encode()).hexdigest()[:16]


def _removal_error(table: str, part: int, txid: int) -> StateError:
    return StateError(
        f"table {table!r} does not have the rows that batch {txid} left in partition {part} of the window: rows were "
        "deleted, or the table was restored without its ledger, or the other way round. Restore both as they were "
        "after one batch, or begin with a table of another name, which gives up the tuples in open windows"
    )


class WindowLedger(SqlLedger):
    """The driver's side of a window; keeps the number of partitions, since each partition has windows of its own."""

    stays = "the tuples of windows that are over are gone"

    def __init__(self, factory: SqlWindow) -> None:
        place = factory.store.place
        super().__init__(factory.location, lambda: factory.shape, place.store, self._highest)  # creates the table
        self.factory = factory
        self.table = factory.store.table
        self._checked = False

    def _highest(self) -> int:
        """Return the highest txid in the table. Touches nothing."""
        store = self.factory.store.place.store()
        if read_columns(store, self.table) is None:
            return 0
        text = f'SELECT max(CASE WHEN "txid" = ? THEN "time" ELSE "txid" END) FROM "{self.table}"'
        with store.errors("look up the batches of the window"), store.reading() as connection:
            return connection.execute(text, [NO_TXID]).fetchone()[0] or 0

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        if not self._checked:
            self._prepare_tables()
            store = self._opened()
            with store.errors("look up the partitions of the window"), store.writing() as connection:
                complete = self.fence.row(connection, store.dialect.exclusive).txid
                self._check(store, connection, range(numPartitions), complete, txid)
            self._checked = True
        super().prepare(txid, attempt, numPartitions)

    def _count_marks(self, transition: Transition) -> tuple[int, int | None]:
        return len(transition.receipts or ()), transition.attempt  # each partition has a transaction in every batch

    def _check(self, store: Store, connection: Connection, parts: range, complete: int, txid: int) -> None:
        """Raise StateError if the table has other windows than the topology, or not all of their rows."""
        seals = self._markers(store, connection)
        layout, shown = seals.pop(LAYOUT, None), self.factory.config.shown
        if layout is None:
            owners = owners_of(store, connection, self.location).values()
            if seals or (complete and self._tenure is not None and self._tenure.own in owners):
                raise _removal_error(self.table, 0, complete)
        elif layout.data:
            require_same(f"table {self.table!r}", layout.data.decode(), shown)
        self._compare(layout, len(parts))
        if layout is None or not layout.data:  # a new table, or one of an older version
            new = [Marker(part) for part in parts if part not in seals]
            rows = [marker.row for marker in (Marker(LAYOUT, len(parts), data=shown.encode()), *new)]
            store.dialect.write(connection, self.table, self.factory.shape.keys, self.factory.shape.others, rows)
        else:
            self._check_seals(connection, [seals.get(part) for part in parts], complete, txid)

    def _check_seals(
        self, connection: Connection, seals: Sequence[Marker | None], complete: int, txid: int
    ) -> None:
        text = f'SELECT "part", "token" FROM "{self.table}" WHERE "txid" > ? ORDER BY "part", "txid", "block"'
        tokens: dict[int, list[str]] = {}
        for part, token in connection.execute(text, [NO_TXID]).fetchall():
            tokens.setdefault(part, []).append(token)
        for part, seal in enumerate(seals):
            if seal is None or not seal.fits(tokens.get(part, []), complete) or seal.time > txid:
                raise _removal_error(self.table, part, complete)
        if self._joins is not None:  # the ledger goes on from there, without batches in between
            text = f'UPDATE "{self.table}" SET "time" = ? WHERE "part" >= 0 AND "txid" = ? AND "time" < ?'
            connection.execute(text, (self._joins[0], NO_TXID, self._joins[0]))

    def _markers(self, store: Store, connection: Connection) -> dict[int, Marker]:
        text = f'SELECT "part", "tuples", "time", "token", "data" FROM "{self.table}" WHERE "txid" = ?'
        decode = store.dialect.decoder(self.factory.shape.others[-1]) or bytes
        rows = connection.execute(text, [NO_TXID]).fetchall()
        return {row[0]: Marker(*row)._replace(data=decode(row[-1])) for row in rows}

    def _compare(self, layout: Marker | None, partitions: int) -> None:
        if layout is not None and layout.tuples != partitions:
            raise StateError(
                f"table {self.table!r} has the windows of {layout.tuples} partitions, but this topology has "
                f"{partitions}. Each partition has windows of its own, so its tuples cannot be divided again: set "
                f"parallelismHint({layout.tuples}) before the window, or begin with a table of another name, which "
                "gives up the tuples in open windows"
            )


