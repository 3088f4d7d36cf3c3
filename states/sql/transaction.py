"""The fenced transaction of one state partition and batch."""

from __future__ import annotations

import contextlib
import random
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from trident_py.errors import FailedException, StateError
from trident_py.model.retry import again_for

from ..columns.values import Column
from .connection import Connection, Statement
from .dialects.base import Untaken
from .key_types import settle_types
from .ledger import UNMARKED, SqlFence
from .store import ConnectionLost, Store
from .table import CheckedTable

T = TypeVar("T")
_TRIES = 6
_SETTLE_SECONDS = 30.0


class Transaction:
    """A partition's transaction from beginCommit to commit. It begins at once, so a zombie is refused before any user
    code runs."""

    def __init__(self, store: Store, fence: SqlFence | None, partition: int = 0) -> None:
        self.store = store
        self.fence = fence
        self.partition = partition
        self.txid: int | None = None
        self.complete = 0  # the last complete batch, as the ledger had it when this one began
        self.active = False
        self.table: CheckedTable | None = None
        self._token = ""
        self._zones: dict[str, bool] = {}
        self._connection: Connection | None = None
        self._worked = False
        self._failed: BaseException | None = None
        if fence is not None:
            store.start_run(fence.run)

    def begin(self, txid: int | None, lazily: bool = False) -> None:
        """Begin. ``lazily``: with its first use, since its table may have to be created."""
        if self.active:
            self.rollback()  # a failed attempt left it open
        self.txid = txid
        self.active = True
        self._worked = False
        self._failed = None
        self._token = secrets.token_hex(8)
        if not lazily:
            self._connection = self._begin()

    def _begin(self) -> Connection:
        """Return a connection in a transaction that holds the fence, and in which the table is as it was checked.
        Raises ZombieError, FailedException if the store stays locked."""
        store = self.store
        for _ in range(_TRIES):
            fence = [] if self.fence is None else [self.fence.question(store.dialect.shared)]
            columns = [] if self.table is None else self.table.question(store)
            connection, answers = store.open_transaction(*fence, *columns, doing="begin the transaction")
            try:
                if self.fence is not None:
                    self.complete = self.fence.check(answers[0], self.txid).txid
                if self.table is None or not columns or self.table.is_as_checked(store, answers[-1]):
                    return connection
            except BaseException:
                store.drop(connection)
                raise
            store.drop(connection)  # before the next look at the table, which must not wait for this transaction
            self.table.check(store)
        raise FailedException("the columns of the table are altered again and again")

    def settle_types(
        self, table: str, columns: Sequence[Column], batch: Sequence[Any] | None = None
    ) -> list[Column]:
        """Return the columns with the kinds noted in the table (`key_types`). Asks only for what is open: a kind once
        noted stays, unless the transaction that notes it is rolled back."""
        settled = [replace(c, zoned=self._zones.get(c.name)) if c.folds else c for c in columns]
        if any(column.folds and column.zoned is None for column in settled):
            with self.using() as connection:
                settled = settle_types(self.store, connection, table, columns, batch)
            self._zones |= {column.name: column.zoned for column in settled if column.zoned is not None}
        return settled

    @contextlib.contextmanager
    def using(self) -> Iterator[Connection]:
        """The transaction's own connection, or outside a transaction one for reading. After an error the transaction is
        over, whoever catches it: a server may have rolled back what was written, and would commit what follows."""
        if self.active:
            self._check_failed()
            try:
                connection = self._connection = self._connection or self._begin()
                with self.store.errors("read or write"), naming(self.fence, self.txid):
                    yield connection
            except BaseException as error:
                self._failed = error
                raise
        else:
            with self.store.reading() as connection, self.store.errors("read"):
                yield connection

    def repeat(self, work: Callable[[], T], restart: Callable[[], None] = lambda: None) -> T:
        """Run the work. After a lost deadlock, repeats a transaction's first work in a new one, after ``restart``.

        Later work builds on the first, which cannot be repeated here: its deadlock fails the batch, which is replayed.
        """
        tries = _TRIES if self.active and not self._worked else 1
        self._worked = True
        for tried in range(1, tries):  # not `again_for`: a fixed count, random pauses, a new transaction
            try:
                return work()
            except FailedException as error:
                if not self.active or not self._is_deadlock(error):
                    raise
                txid = self.txid
                self.rollback()
                time.sleep(random.uniform(0.5, 1.5) * 0.01 * 2**tried)  # noqa: S311  a pause
                self.begin(txid, lazily=True)
                self._worked = True
                restart()
        return work()

    def commit(self, *last: Statement) -> dict[str, list]:
        """Commit durably, after the ``last`` statements; return what the receipt says of the mark. Raises
        FailedException if the outcome is unknown; the replay finds out. Raises the error of an earlier call, also if
        that was caught."""
        self._check_failed()
        connection = self._connection
        if connection is not None:
            answered = self._try_commit(connection, last)
            self._connection = None
            if answered:
                self.store.give(connection)
            else:
                self.store.drop(connection)
        self.active = False
        return UNMARKED if connection is None else {}

    def _try_commit(self, connection: Connection, last: Sequence[Statement]) -> bool:
        """Send the partition's mark and COMMIT; False if no answer came but the ledger proves the commit. Raises
        without an answer or proof."""
        try:
            with self.store.errors("commit"):
                fence, own = self.fence, (self.txid, self.partition, self._token)
                marks = [] if fence is None else fence.marks(connection, *own, self.store.dialect)
                connection.together([*last, *marks, ("COMMIT", ())])
        except ConnectionLost:
            if not self._check_commit():
                raise
            return False
        return True

    def rollback(self) -> None:
        """Discard all writes; their locks are released when it returns."""
        if self._connection is not None:
            self.store.drop(self._connection)  # closing rolls back in any state
        self._connection = None
        self._zones.clear()
        self._failed = None
        self.active = False

    def _check_failed(self) -> None:
        if self._failed is not None:
            raise self._failed

    def _is_deadlock(self, error: FailedException) -> bool:
        cause = error.__cause__
        return cause is not None and self.store.dialect.is_lock(cause)

    def _check_commit(self) -> bool:
        """Resolve a COMMIT without an answer: read the ledger once the server has ended that transaction."""
        if self.fence is None or self.txid is None:
            return False
        refused = FailedException, StateError
        try:
            ask = partial(self._read_mark, self.fence, self.txid)
            return again_for(_SETTLE_SECONDS, 0.1, lambda error: isinstance(error, refused), ask)
        except refused:
            return False

    def _read_mark(self, fence: SqlFence, txid: int) -> bool:
        # The fence row is unlocked once the old transaction has ended.
        with self.store.errors("ask the ledger"), self.store.writing() as connection:
            fence.row(connection, self.store.dialect.exclusive)
            return fence.has(connection, txid, self.partition, self._token)


@contextlib.contextmanager
def naming(fence: SqlFence | None, txid: int | None) -> Iterator[None]:
    """Names the state and the batch if the server took fewer rows than were sent."""
    try:
        yield
    except Untaken as error:
        if fence is None:
            raise
        raise Untaken(f"{fence.shown}, batch {txid}: {error}") from None
