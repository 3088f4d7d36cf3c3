"""Spouts whose instances live in the driver process: IBatchSpout and IRichSpout.

Source in Storm: BatchSpoutExecutor, RichSpoutBatchExecutor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..operations.base import TridentCollector
from ..tuples import TransactionAttempt
from .collectors import SpoutOutputCollector, checked
from .descriptors import SpoutNodeInfo
from .inspection import ended, partitions_of, snapshot
from .interfaces import SpoutContext

MAX_BATCH_SIZE = "topology.spout.max.batch.size"
Rows = list[list[Any]]


class Instances:
    """The copies of a home spout, one per partition. Partitions beyond the spout's own limit stay empty."""

    def __init__(self, info: SpoutNodeInfo, report: Callable[..., Any] | None) -> None:
        count = partitions_of(info.spout, info.partitions)
        self.info = info
        self.contexts = [SpoutContext(info.id, index, count) for index in range(count)]
        self._report = report

    def emit(self, tx: TransactionAttempt, emit_one: Callable[[int, TridentCollector], Any]) -> Rows:
        parts: Rows = [[] for _ in range(self.info.partitions)]
        for index, context in enumerate(self.contexts):
            context.transaction = tx
            append = checked(self.info.id, self.info.fields, parts[index].append)
            emit_one(index, TridentCollector(append, self._reported))
        return parts

    def _reported(self, error: BaseException) -> None:
        if self._report is not None:
            self._report(self.info.id, error)


class SpoutCoordinator:
    """The driver side of one spout. ``home`` says whether it emits in the driver process."""

    home: bool = False

    def restore(self, txid: int, metadata: Any) -> None:
        """Continues a run after ``txid``, whose metadata is given."""

    def ready(self, txid: int) -> bool:
        return True

    def pending(self) -> bool:
        """Returns whether tuples are expected soon although the spout is not ready."""
        return False

    def ended(self, txid: int) -> bool:
        raise NotImplementedError

    def backlog(self) -> dict[str, int]:
        """Returns the number of waiting tuples by partition, as last known."""
        return {}

    def initialize(self, tx: TransactionAttempt, previous: Any, current: Any) -> Any:
        """Returns the description of the batch, a JSON value; None for a spout that decides as it emits."""
        return None

    def emit(self, tx: TransactionAttempt, metadata: Any) -> Rows:
        raise NotImplementedError

    def commit(self, tx: TransactionAttempt, reports: list) -> None:
        """Called when all states have committed; ``reports`` come from the tasks' emitters."""

    def success(self, txid: int) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class BatchSpoutCoordinator(SpoutCoordinator):
    """Drives an IBatchSpout: always ready, no metadata; emits on every attempt under its txid.

    Keeps no positions: the spout starts wherever `open` puts it. Source in Storm: BatchSpoutExecutor.
    """

    home = True

    def __init__(self, info: SpoutNodeInfo, conf: dict, report: Callable[..., Any] | None) -> None:
        self._tasks = Instances(info, report)
        self._spouts = [snapshot(info.spout) for _ in self._tasks.contexts]
        for spout, context in zip(self._spouts, self._tasks.contexts, strict=True):
            spout.open(conf, context)

    def ended(self, txid: int) -> bool:
        return all(ended(spout, txid) for spout in self._spouts)

    def emit(self, tx: TransactionAttempt, metadata: Any) -> Rows:
        return self._tasks.emit(tx, lambda index, out: self._spouts[index].emitBatch(tx.txid, out))

    def success(self, txid: int) -> None:
        for spout in self._spouts:
            spout.ack(txid)

    def close(self) -> None:
        for spout in self._spouts:
            spout.close()


class RichSpoutCoordinator(SpoutCoordinator):
    """Drives an IRichSpout: draws a batch by nextTuple; acks and fails its message ids.

    Unlike in Storm, the counter of emitted tuples starts anew with every batch (docs/differences.md), and a success
    covers the ids of earlier txids whose success never came. Nothing survives a restart. Source in Storm:
    RichSpoutBatchExecutor.
    """

    home = True

    def __init__(self, info: SpoutNodeInfo, conf: dict, report: Callable[..., Any] | None) -> None:
        self._tasks = Instances(info, report)
        self._conf = conf
        self._limit = int(conf.get(MAX_BATCH_SIZE, 1000))
        self._spouts = [snapshot(info.spout) for _ in self._tasks.contexts]
        self._collectors = [SpoutOutputCollector() for _ in self._spouts]
        self._pending: list[dict[int, list]] = [{} for _ in self._spouts]
        self._open: set[int] = set()

    def ended(self, txid: int) -> bool:
        return all(ended(spout, txid) for spout in self._spouts)

    def emit(self, tx: TransactionAttempt, metadata: Any) -> Rows:
        return self._tasks.emit(tx, lambda index, out: self._draw(index, tx.txid, out))

    def _draw(self, index: int, txid: int, out: TridentCollector) -> None:
        spout, collector, pending = self._spouts[index], self._collectors[index], self._pending[index]
        for message in pending.pop(txid, ()):
            spout.fail(message)
        collector.start(out)
        if index not in self._open:
            spout.open(self._conf, self._tasks.contexts[index], collector)
            self._open.add(index)
        try:
            for calls in range(self._limit):
                spout.nextTuple()
                if collector.emitted < calls:
                    break
        finally:
            pending[txid] = collector.ids

    def success(self, txid: int) -> None:
        for spout, pending in zip(self._spouts, self._pending, strict=True):
            for done in sorted(known for known in pending if known <= txid):
                for message in pending.pop(done):
                    spout.ack(message)

    def close(self) -> None:
        for index in self._open:
            self._spouts[index].close()
