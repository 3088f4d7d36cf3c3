"""Plays the coordination and the tasks of one component, batch by batch, as the clusters do."""

from __future__ import annotations

from typing import Any

from trident_py.operations import TridentCollector
from trident_py.spouts import (
    Coordination,
    Descriptor,
    MemoryMetadataStore,
    MetadataStore,
    SpoutNodeInfo,
    make_emitter,
    output_fields,
)
from trident_py.tuples import TransactionAttempt


class Player:
    """One run. A restart is a new Player with the same store and ``restored=old.logged``.

    ``logged`` is what a cluster keeps of every txid: the metadata by spout.
    """

    def __init__(
        self,
        *spouts: Any,
        partitions: int = 1,
        store: MetadataStore | None = None,
        conf: dict | None = None,
        restored: dict[int, dict] | None = None,
        committed: int = 0,
    ) -> None:
        self.store = MemoryMetadataStore() if store is None else store
        self.logged = dict(restored or {})
        self.infos = [SpoutNodeInfo(f"s{i}", spout, partitions, output_fields(spout)) for i, spout in enumerate(spouts)]
        self.reported: list[tuple[str, str]] = []
        conf = (conf or {}) | {"trident.metadata": self.store}
        self.coordination = Coordination(
            self.infos, conf, self.store, lambda spout, error: self.reported.append((spout, str(error)))
        )
        if committed:
            self.coordination.restore(committed, self.logged.get(committed))
        self.tasks = {
            (at, index): make_emitter(info, index, conf)
            for at, info in enumerate(self.infos)
            for index in range(partitions)
        }
        self.reports: list[Any] = []

    def describe(self, txid: int, attempt: int = 0) -> list[Descriptor]:
        """What the tasks of an attempt get, for each spout partition in turn."""
        metadata = self.coordination.initialize(txid, attempt, self.logged.get(txid - 1), self.logged.get(txid))
        self.logged[txid] = metadata
        return self.coordination.descriptors(txid, attempt, metadata)

    def emit(self, txid: int, attempt: int = 0) -> list[list[tuple]]:
        """One attempt up to its commit. For each spout partition in turn the rows it emitted."""
        descriptors = self.describe(txid, attempt)
        self.reports = []
        return [self._emit(d, TransactionAttempt(txid, attempt)) for d in descriptors]

    def _emit(self, descriptor: Descriptor, tx: TransactionAttempt) -> list[tuple]:
        arrived = Descriptor.decode(descriptor.encode())
        task, rows = self.tasks[arrived.spout, arrived.partition], []
        chunks = task.chunks(tx, arrived.payload)
        if chunks is None:
            collector = TridentCollector(lambda values: rows.append(tuple(values)))
            self.reports.append(task.emit(tx, arrived.payload, collector))
            return rows
        for chunk in chunks:
            rows += chunk.rows(self.infos[arrived.spout].fields)
        return rows

    def payload(self, txid: int, task: int = 0) -> Any:
        """What a task of the first spout gets to know of a batch."""
        return self.coordination.descriptors(txid, 0, self.logged[txid])[task].payload

    def commit(self, txid: int, attempt: int = 0) -> None:
        self.coordination.commit(txid, attempt, self.reports)

    def batch(self, txid: int, attempt: int = 0) -> list[list[tuple]]:
        """A whole batch: emitted, committed, success."""
        rows = self.emit(txid, attempt)
        self.commit(txid, attempt)
        self.coordination.success(txid)
        return rows

    def to_end(self, first: int = 1, limit: int = 10_000) -> list[list[list[tuple]]]:
        """Batches until all spouts are exhausted."""
        batches = []
        for txid in range(first, first + limit):
            if self.coordination.is_exhausted(txid):
                break
            assert self.coordination.ready(txid)
            batches.append(self.batch(txid))
        return batches

    def close(self) -> None:
        for task in self.tasks.values():
            task.close()
        self.coordination.close()


def flat(batches: list) -> list:
    """The rows of all partitions of a batch, or of all batches."""
    while batches and isinstance(batches[0], list):
        batches = [row for part in batches for row in part]
    return batches
