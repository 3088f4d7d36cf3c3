"""The batches that follow another one in the same micro-batch of Spark (`trident_py.spark.following`), in a journal.

Spark's offset log knows the first batch of a micro-batch, and its commit log that the micro-batch is over. In between,
this log says which batch is over and which has begun, with their metadata: what the journal of `LocalCluster` says of
all its batches. Only where a checkpoint is in a local folder may batches follow.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import LineageError
from ..spouts.journal import JOURNAL, JournalMetadataStore, entries_of
from ..spouts.metadata import DRIVER, MemoryMetadataStore

FOLDER = "following"  # in the folder 'trident' of the checkpoint
FILE = f"trident/{FOLDER}/{JOURNAL}"
BEGUN, OVER = "begun", "over"


class Followed(NamedTuple):
    """How far a micro-batch got. ``first``: its first txid; ``txid``: the last that is over, and its ``metadata``;
    ``begun``: the metadata of the one after it, if it has begun."""

    micro_batch: int
    first: int
    txid: int
    metadata: dict
    begun: dict | None


class FollowingLog:
    """The log of a checkpoint that is in no local folder: what a copied one brought. Nothing is added to it."""

    may_follow = False

    def __init__(self, store: MemoryMetadataStore, where: str) -> None:
        self._store = store
        self._where = where

    @classmethod
    def copied(cls, text: str | None, where: str) -> FollowingLog:
        """``text``: the journal's, if there is one."""
        store = MemoryMetadataStore()
        for path, values in entries_of((text or "").encode(), where).items():
            for txid, value in values.items():
                store.put(path, txid, value)
        return cls(store, where)

    def take(self, driver: dict[str, Any]) -> None:
        """From now on an older driver writes nothing more here, so what is read after it stays as it is."""

    def begun(self, micro_batch: int, first: int, txid: int, metadata: dict) -> None:
        """Called before a following batch is emitted. Durable when it returns, with everything before it."""
        record = {"batch": micro_batch, "first": first, "txid": txid, "metadata": metadata}
        if self._store.get(BEGUN, txid) != record:
            self._store.put(BEGUN, txid, record)
            self._store.cleanup_before(BEGUN, txid)

    def over(self, micro_batch: int, first: int, txid: int, metadata: dict) -> None:
        """Called after a batch. Durable with the next `begun`: without it, the batch is repeated as it was."""
        self._store.note(OVER, txid, {"batch": micro_batch, "first": first, "txid": txid, "metadata": metadata})
        self._store.cleanup_before(OVER, txid)

    def read(self, committed: int | None) -> Followed | None:
        """What is known of the newest micro-batch that is in the log. ``committed``: the last one in Spark's commit
        log; what had begun in it is over. Raises LineageError if the log is ahead of Spark's."""
        last, done = self._store.previous(OVER, sys.maxsize), -1 if committed is None else committed
        if last is None:
            return None
        begun = self._store.get(BEGUN, last["txid"] + 1)
        if begun is not None and begun["batch"] <= done:
            last, begun = begun, None
        if last["batch"] > done + 1:
            raise LineageError(
                f"the checkpoint {self._where} was restored in parts: {FILE} tells of batch {last['batch']}, Spark's "
                f"logs end with {done}. Restore all of it from one copy"
            )
        now = None if begun is None else begun["metadata"]
        return Followed(last["batch"], last["first"], last["txid"], last["metadata"], now)

    def close(self) -> None:
        """Called when the component ends."""


class KeptFollowingLog(FollowingLog):
    """The log in a local folder. Raises ZombieError for a write after another driver's."""

    may_follow = True

    def __init__(self, checkpoint: Path) -> None:
        self._journal = JournalMetadataStore((checkpoint / FILE).parent)
        self._taken = False
        super().__init__(self._journal, str(checkpoint))

    def read(self, committed: int | None) -> Followed | None:
        if not self._taken:  # after that, what another driver writes must not count as read
            self._journal.reread("")
        return super().read(committed)

    def take(self, driver: dict[str, Any]) -> None:
        self._journal.seize(DRIVER, lambda entries: (0, {"driver": driver}))
        self._taken = True

    def close(self) -> None:
        self._journal.close()


def first_txid(micro_batch: int, base: int, followed: Followed | None) -> int:
    """The first txid of a micro-batch. ``followed``: the newest one that is in the log."""
    if followed is None:
        return base + micro_batch + 1
    if micro_batch == followed.micro_batch:
        return followed.first
    return followed.txid + micro_batch - followed.micro_batch
