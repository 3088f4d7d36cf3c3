"""One transaction for one state partition and batch: fenced, in the files that it touches."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .ledger import Fence
from .store import Store


class Transaction:
    """Between beginCommit and commit of one partition.

    With one file the transaction begins at once, so that a zombie is refused before any user code runs. With
    several, each begins when it is first touched, always in the order of the files (no deadlocks).
    """

    def __init__(self, stores: list[Store], fence: Fence | None) -> None:
        self.stores = stores
        self.fence = fence
        self.txid: int | None = None
        self.active = False
        self._open: dict[int, Any] = {}

    def begin(self, txid: int | None, lazily: bool = False) -> None:
        """``lazily``: also a single file is only locked when first touched (its table may have to be made)."""
        if self.active:
            self.rollback()  # what a failed attempt left behind
        self.txid = txid
        self.active = True
        if len(self.stores) == 1 and not lazily:
            self.touch([0])

    def touch(self, files: list[int]) -> None:
        """Begins in these files. Raises ZombieError, FailedException if one stays locked."""
        for index in sorted(set(files) - self._open.keys()):
            store = self.stores[index]
            connection = store.take()
            try:
                store.begin(connection)
                if self.fence is not None:
                    with store.errors("read the ledger"):
                        self.fence.check(connection, self.txid)
            except BaseException:
                store.drop(connection)
                raise
            self._open[index] = connection

    @contextlib.contextmanager
    def using(self, index: int) -> Iterator[Any]:
        """The file's connection: the transaction's, or outside of one any that reads."""
        store = self.stores[index]
        if self.active:
            self.touch([index])
            with store.errors("read or write"):
                yield self._open[index]
        else:
            with store.reading() as connection, store.errors("read"):
                yield connection

    def commit(self) -> None:
        """Durable when it returns. An exception leaves open whether it is: the replay finds out."""
        for index in sorted(self._open):
            store, connection = self.stores[index], self._open[index]
            with store.errors("commit"):
                if self.fence is not None:
                    self.fence.started(connection, self.txid)
                connection.execute("COMMIT")
            del self._open[index]
            store.give(connection)
        self.active = False

    def rollback(self) -> None:
        """Nothing of the open files is written; their locks are gone when it returns."""
        for index, connection in self._open.items():
            self.stores[index].drop(connection)  # closing rolls back, whatever state it is in
        self._open.clear()
        self.active = False
