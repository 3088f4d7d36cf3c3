"""The batches that follow another one in the same micro-batch of Spark (`trident_py.spark.following`), in a log.

Spark's offset log knows the first batch of a micro-batch, and its commit log that the micro-batch is over. In between,
this log says which batch is over and which has begun, with their metadata: what the journal of `LocalCluster` says of
all its batches. In a local folder it is such a journal; in HDFS and S3 it is a small file for each batch that follows.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, NamedTuple

from ..spouts.journal import JOURNAL, JournalMetadataStore, entries_of
from ..spouts.metadata import DRIVER, MemoryMetadataStore
from ..spouts.versions import VersionedMetadataStore

FOLDER = "following"  # in the folder 'trident' of the checkpoint
FILE = f"trident/{FOLDER}/{JOURNAL}"
FOLLOWED = "followed"  # the path of the log in HDFS and S3, in the checkpoint's store
BEGUN, OVER = "begun", "over"


class Followed(NamedTuple):
    """How far a micro-batch got. ``first``: its first txid; ``txid``: the last that is over, and its ``metadata``;
    ``begun``: the metadata of the one after it, if it has begun. That is the first itself, if a replay gave it other
    metadata than Spark's offset log has."""

    micro_batch: int
    first: int
    txid: int
    metadata: dict
    begun: dict | None

    def tells_of(self, micro_batch: int) -> bool:
        """Whether this says how far the next micro-batch to be committed has got. Else Spark's offset log does."""
        return self.micro_batch == micro_batch or self.begun is not None


class FollowingLog(ABC):
    """The log of one component's checkpoint. Called by its driver. What is written after another driver's `take` raises
    ZombieError."""

    @abstractmethod
    def take(self, driver: dict[str, Any]) -> None:
        """From now on an older driver writes nothing more here, so what is read after it stays as it is."""

    @abstractmethod
    def begun(self, now: Followed) -> None:
        """Called before a batch is emitted that Spark does not log: ``now.begun``. Durable when it returns, with all
        before it."""

    @abstractmethod
    def over(self, now: Followed) -> None:
        """Called after a batch. Durable with the next `begun` or `ended`: without it, the batch is repeated as it was.
        """

    @abstractmethod
    def ended(self, now: Followed) -> None:
        """Called before Spark commits a micro-batch of which this log knows more than Spark's."""

    def read(self, committed: int | None, logged: int | None) -> Followed | None:
        """How far the newest micro-batch got that is in the log, as one that Spark's logs have.

        ``committed``: the last micro-batch in Spark's commit log; what had begun in it is over. ``logged``: the txid of
        the next one in Spark's offset log, None if it is not there. Spark does not sync these logs, so after a power
        loss they may end earlier than this one. Then the next micro-batch begins behind this log's end.
        """
        last, done = self._newest(), -1 if committed is None else committed
        if last is None:
            return None
        if last.micro_batch > done:
            is_over = logged is not None and logged <= last.txid
            return last._replace(micro_batch=done + 1 if is_over else done)
        if last.begun is not None:
            return last._replace(txid=last.txid + 1, metadata=last.begun, begun=None)
        return last

    @abstractmethod
    def close(self) -> None:
        """Called when the component ends."""

    @abstractmethod
    def _newest(self) -> Followed | None:
        """The last record."""


class JournalFollowingLog(FollowingLog):
    """The log in a local folder: one line more for each batch that follows, and one for its end."""

    def __init__(self, checkpoint: Path) -> None:
        self._journal = JournalMetadataStore((checkpoint / FILE).parent)
        self._taken = False

    def take(self, driver: dict[str, Any]) -> None:
        self._journal.seize(DRIVER, lambda entries: (0, {"driver": driver}))
        self._taken = True

    def begun(self, now: Followed) -> None:
        txid = now.txid + 1
        record = _record(now, txid, now.begun)
        if self._journal.get(BEGUN, txid) != record:
            self.over(now)  # of the micro-batch before, if this is the first batch of its own
            self._journal.put(BEGUN, txid, record)
            self._journal.cleanup_before(BEGUN, txid)

    def over(self, now: Followed) -> None:
        record = _record(now, now.txid, now.metadata)
        if self._journal.get(OVER, now.txid) != record:
            self._journal.note(OVER, now.txid, record)
            self._journal.cleanup_before(OVER, now.txid)

    def ended(self, now: Followed) -> None:
        """Nothing: `over` has written it, and what a power loss takes of it is over when Spark has committed."""

    def close(self) -> None:
        self._journal.close()

    def _newest(self) -> Followed | None:
        if not self._taken:  # after that, what another driver writes must not count as read
            self._journal.reread("")
        return _of_journal(self._journal)


class VersionedFollowingLog(FollowingLog):
    """The log in HDFS or S3, in the checkpoint's ``store``: one file for each batch that follows, and one for the end
    of a micro-batch that had such. The end of a batch is in the file of the next.

    ``copied``: the text of the journal, if the checkpoint was copied from a local folder.
    """

    def __init__(self, store: VersionedMetadataStore, where: str, copied: str | None = None) -> None:
        self._store = store
        self._where = where
        self._copied = copied
        self._taken = False

    def take(self, driver: dict[str, Any]) -> None:
        def taken(entries: dict[int, Any]) -> tuple[int, Any]:
            txid = max(entries, default=0)
            return txid, {**entries.get(txid, {}), "driver": driver}

        self._store.seize(FOLLOWED, taken)
        self._taken = True

    def begun(self, now: Followed) -> None:
        self._put(now)

    def over(self, now: Followed) -> None:
        """Nothing: the next file has it."""

    def ended(self, now: Followed) -> None:
        """Without it, a driver that has taken the checkpoint in the meantime would not know of the last batch, which
        Spark might commit after that."""
        self._put(now)

    def close(self) -> None:
        """Nothing: the store is the checkpoint's."""

    def _put(self, now: Followed) -> None:
        if self._newest() != now:
            self._store.put(FOLLOWED, now.txid, now._asdict())
            self._store.cleanup_before(FOLLOWED, now.txid)

    def _newest(self) -> Followed | None:
        if not self._taken:
            self._store.reread(FOLLOWED)
        record = self._store.previous(FOLLOWED, sys.maxsize) or {}
        if "first" in record:
            return Followed(*(record[name] for name in Followed._fields))
        return copied_journal(self._copied, self._where)


def copied_journal(text: str | None, where: str) -> Followed | None:
    """What a copied journal says last; None without one. Raises SpoutError if it is damaged."""
    store = MemoryMetadataStore()
    for path, values in entries_of((text or "").encode(), f"{where}/{FILE}").items():
        for txid, value in values.items():
            store.put(path, txid, value)
    return _of_journal(store)


def _record(now: Followed, txid: int, metadata: dict | None) -> dict[str, Any]:
    """What a journal has of a batch that has begun or is over."""
    return {"batch": now.micro_batch, "first": now.first, "txid": txid, "metadata": metadata}


def _of_journal(store: MemoryMetadataStore) -> Followed | None:
    last = store.previous(OVER, sys.maxsize)
    if last is None:
        return None
    begun = store.get(BEGUN, last["txid"] + 1)
    return Followed(last["batch"], last["first"], last["txid"], last["metadata"], begun and begun["metadata"])


def first_txid(micro_batch: int, base: int, followed: Followed | None) -> int:
    """The first txid of a micro-batch. ``followed``: the newest one that is in the log."""
    if followed is None:
        return base + micro_batch + 1
    if micro_batch == followed.micro_batch:
        return followed.first
    return followed.txid + micro_batch - followed.micro_batch
