"""The checkpoint of a component on LocalCluster: what is begun, what is over, and who has it. Docs: checkpoints.md."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ..canonical import SET_ORDER
from ..run.deciding import DECIDED
from ..run.opening import SETTLED
from ..run.program import Program
from ..run.standing import Standing
from ..spouts.journal import JournalMetadataStore
from ..spouts.metadata import MemoryMetadataStore
from .holding import Holding
from .kinds import LOCAL, inside, require_kind
from .orders import ORDER, own_order, seeded

BATCHES = "batches"  # the last batch that is over: its txid and its metadata
BEGUN = "begun"  # the metadata of the batch that was begun last


def local_folder(checkpoints: str, topology: str, component: str) -> Path:
    return Path(checkpoints) / inside(topology, component)


def open_checkpoint(folder: Path | None, topology: str) -> LocalCheckpoint:
    """The checkpoint in a folder; without one, a checkpoint in memory. Raises LineageError for one of Spark."""
    if folder is None:
        return LocalCheckpoint(MemoryMetadataStore(), "in memory", topology)
    require_kind(folder, LOCAL)
    store = JournalMetadataStore(folder)
    checkpoint = KeptCheckpoint(store, str(folder), topology)
    try:
        checkpoint.holding.begin()
        require_kind(folder, LOCAL)  # it may have been converted just now
    except BaseException:
        checkpoint.close()
        raise
    return checkpoint


class LocalCheckpoint:
    """What one component knows of its batches. In memory: for one run alone."""

    def __init__(self, store: MemoryMetadataStore, where: str, topology: str) -> None:
        self.store = store
        self.where = where
        self._topology = topology

    def last(self) -> dict[str, Any] | None:
        """The last batch that is over: ``txid`` and ``metadata``; None if there is none."""
        found: dict[str, Any] | None = self.store.previous(BATCHES, sys.maxsize)
        return found

    def standing(self, program: Program) -> Standing:
        """The content of the checkpoint before this start."""
        record, last = self.store.get(SETTLED, 0), self.last()
        if record is None:
            return Standing.new(self.where, self._topology)
        txid = record["base"] if last is None else last["txid"]
        begun = self.store.get(BEGUN, txid + 1) is not None
        decided = self.store.get(DECIDED, txid + 1) is not None
        other = seeded(program, self.other_order(), SET_ORDER) if begun else None
        return Standing(self.where, self._topology, record, record["lineage"], txid, begun, decided, other)

    def planned(self, txid: int) -> dict | None:
        """The metadata of this batch, if it has begun and a spout has metadata of it."""
        begun = self.store.get(BEGUN, txid)
        return begun if begun is not None and any(value is not None for value in begun.values()) else None

    def take(self) -> None:
        """Called once by a driver that is about to open its states."""

    def check(self) -> None:
        """Called before each batch. Raises ZombieError if another driver has taken the checkpoint."""

    def moved(self) -> bool:
        """Whether another driver has written since this one has read the checkpoint."""
        return False

    def begun(self, txid: int, metadata: dict) -> None:
        """Called before a batch is emitted. Durable when it returns, because a restart must not change a batch that
        states may have written. If a state holds a batch without this record, another copy of the checkpoint wrote
        it."""
        if self.store.get(BEGUN, txid) != metadata:
            self.store.put(BEGUN, txid, metadata)
            self.store.cleanup_before(BEGUN, txid)

    def over(self, txid: int, metadata: dict) -> None:
        """Called after a batch. Durable with the next batch: without it, the batch would be repeated as it was."""
        self.store.note(BATCHES, txid, {"txid": txid, "metadata": metadata})
        self.store.cleanup_before(BATCHES, txid)

    # -- the order of sets ----------------------------------------------------------------------------------------

    def other_order(self) -> dict | None:
        """The record of a process with another hash seed that ended in the middle of a batch; None if there is none."""
        record: dict | None = self.store.get(ORDER, 0)
        return record if record is not None and record["order"] != SET_ORDER else None

    def keep_order(self, inside: bool) -> None:
        """Records this process's order of sets while it may be ``inside`` a batch; nothing after that."""
        order = own_order() if inside else None
        if self.store.get(ORDER, 0) != order:
            self.store.put(ORDER, 0, order)

    def close(self) -> None:
        """Called when the component ends."""


class KeptCheckpoint(LocalCheckpoint):
    """The checkpoint in a folder. A run that is submitted again under the same name goes on from it."""

    def __init__(self, store: JournalMetadataStore, where: str, topology: str) -> None:
        super().__init__(store, where, topology)
        self.holding = Holding(store, where)
        self._journal = store

    def take(self) -> None:
        """From now on an older driver writes nothing more here, so what is read after it stays as it is."""
        self.holding.take()

    def check(self) -> None:
        self.holding.check()

    def moved(self) -> bool:
        return self._journal.changed("")

    def close(self) -> None:
        self._journal.close()
