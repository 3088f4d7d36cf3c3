"""Windows in one SQL table: the tuples of a batch enter in one transaction with the mark of its txid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from trident_py.errors import StateError
from trident_py.state import BatchParticipant, Location, Needs, StateFactory
from trident_py.tuples import Fields
from trident_py.windowing import Block, Head, MakesWindows, WindowConfig, WindowFactory, WindowState

from ..findings import Finding
from .dialects.base import Dialect, check_taken
from .inspect import check
from .ledger import Ledger, SqlFence
from .store import Store, needs_of_store, parsed, shown
from .table import CheckedTable, Shape, TablePlace, location_of, prepare, shape_of
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
        object.__setattr__(self, "url", parsed(self.url).render_as_string(hide_password=False))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({shown(parsed(self.url))!r}, {self.table!r})"

    @property
    def place(self) -> TablePlace:
        return TablePlace(self.url, self.table)

    def windowState(self, config: WindowConfig, name: str) -> StateFactory:
        return SqlWindow(config, name, self)

    def check(self) -> Sequence[Finding]:
        """Looks at the table and writes nothing."""
        return check(self.place, _KEYS, _OTHERS, [], False, {})


@dataclass(frozen=True)
class SqlWindow(WindowFactory):
    """The state of one window in a SQL table.

    On replay: the rows of the batch are replaced, in the transaction of its mark; the ledger refuses an older driver,
    attempt or batch.
    """

    store: SqlWindowsStoreFactory

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

    @property
    def state_type(self) -> type[WindowState]:
        return WindowState

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> WindowState:
        return self.window(conf, SqlWindowBacking(self, SqlFence.of(conf), partitionIndex))

    def participant(self) -> BatchParticipant:
        """The state's driver side for one run."""
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
        self.transaction = Transaction(factory.store.place.stores(), fence, partition)
        self.transaction.table = CheckedTable(factory.store.place, self.shape)
        self._known: list[Head] = []
        self._heads: list[Head] = []

    @property
    def dialect(self) -> Dialect:
        return self.transaction.stores[0].dialect

    def begin(self, txid: int | None) -> None:
        """Waits for another task of this partition, such as a copy that Spark has started: it reads the heads behind
        the other's commit, and so replaces all that the other has written."""
        self.transaction.begin(txid)
        last = self._known[-1].txid if self._known else None
        newest = self._locked(last)
        if last is None:
            self._heads = newest
        elif newest == [head for head in self._known if head.txid >= last]:
            self._heads = self._known
        else:
            self._heads = self._locked(None)
        self._known = []

    def _locked(self, since: int | None) -> list[Head]:
        """Locks the partition's row of no txid, which holds nothing; then reads the heads from a batch on."""
        key = (self.partition, NO_TXID, 0)
        lock = f'SELECT "tuples" FROM "{self.table}" WHERE "part" = ? AND "txid" = ? AND "block" = ?'
        text = f'SELECT {_HEAD} FROM "{self.table}" WHERE "part" = ? AND "txid" >= ? ORDER BY "txid", "block"'
        heads = text, (self.partition, NO_TXID + 1 if since is None else since)
        with self.transaction.using(0) as connection:
            row, found = connection.together([(f"{lock}{self.dialect.exclusive}", key), heads])
            if row.fetchone() is None:
                marker = _marker(self.partition, 0)
                self.dialect.write(connection, self.table, self.shape.keys, self.shape.others, [marker])
                found = connection.execute(*heads)  # another task may have written both meanwhile
            return [Head(*each) for each in found.fetchall()]

    def heads(self) -> list[Head]:
        return self._heads

    def latest(self, txid: int) -> int | None:
        text = f'SELECT max("newest") FROM "{self.table}" WHERE "part" >= 0 AND "txid" < ? AND "tuples" > 0'
        with self.transaction.using(0) as connection:
            row = connection.execute(text, [txid]).fetchone()
        return None if row is None else row[0]

    def data(self, heads: Sequence[Head]) -> list[bytes]:
        data, asked = self.shape.others[-1:], [(self.partition, head.txid, head.block) for head in heads]
        with self.transaction.using(0) as connection:
            rows = self.dialect.read(connection, self.table, self.shape.keys, data, asked)
        decode = self.dialect.decoder(data[0]) or bytes
        found = [None if row is None else decode(row[0]) for row in rows]
        for head, block in zip(heads, found, strict=True):
            if block is None:
                raise StateError(
                    f"table {self.table!r}: block {head.block} of batch {head.txid} in partition {self.partition} is "
                    "gone, and its tuples with it: rows were deleted. Restore the table"
                )
        return found  # type: ignore[return-value]

    def write(self, blocks: Sequence[Block], dropped: Sequence[Head]) -> None:
        gone = [(self.partition, head.txid, head.block) for head in dropped]
        rows = [(self.partition, *block.head, block.data) for block in blocks]
        with self.transaction.using(0) as connection:
            if gone:
                text = f'DELETE FROM "{self.table}" WHERE "part" = ? AND "txid" = ? AND "block" = ?'
                check_taken(self.table, len(gone), connection.executemany(text, gone).rowcount)
            for row in rows:  # one by one: a block may be as large as a statement
                self.dialect.insert(connection, self.table, self.shape.columns, [row])
        lost = set(dropped)
        self._heads = [*(head for head in self._heads if head not in lost), *(block.head for block in blocks)]

    def commit(self) -> None:
        self.transaction.commit()
        self._known = self._heads

    def rollback(self) -> None:
        self.transaction.rollback()

    def close(self) -> None:
        """Its connections are the process's."""


def _marker(part: int, number: int) -> tuple:
    """A row of no txid, which holds no tuples."""
    return part, NO_TXID, 0, 0, number, 0, 0, 0, "", b""


class WindowLedger(Ledger):
    """The driver's side of a window; keeps the number of partitions, since each partition has windows of its own."""

    def __init__(self, factory: SqlWindow) -> None:
        place = factory.store.place
        super().__init__(factory.location, lambda: _prepared(factory), place.stores)
        self.factory = factory
        self.table = factory.store.table
        self._checked = False

    def prepare(self, txid: int, attempt: int, numPartitions: int) -> None:
        super().prepare(txid, attempt, numPartitions)
        if not self._checked:
            store = self._stores()[0]
            with store.errors("look up the partitions of the window"), store.writing() as connection:
                self.fence.row(connection, store.dialect.exclusive)
                self._check(store, connection, numPartitions)
            self._checked = True

    def _check(self, store: Store, connection: Any, partitions: int) -> None:
        """Raises StateError if the table has the windows of another number of partitions."""
        row = connection.execute(f'SELECT "tuples" FROM "{self.table}" WHERE "part" = ?', [LAYOUT]).fetchone()
        if row is None:
            store.dialect.insert(connection, self.table, self.factory.shape.columns, [_marker(LAYOUT, partitions)])
        elif row[0] != partitions:
            raise StateError(
                f"table {self.table!r} has the windows of {row[0]} partitions, but this topology has {partitions}. "
                f"Each partition has windows of its own, so its tuples cannot be divided again: set "
                f"parallelismHint({row[0]}) before the window, or begin with a table of another name, which gives up "
                "the tuples in open windows"
            )


def _prepared(factory: SqlWindow) -> list[Store]:
    factory.shape  # noqa: B018  creates the table
    return factory.store.place.stores()


