"""The driver side of one spout: a coordinator class for each kind. Source in Storm: *Executor of trident.spout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..checkpoints.metadata_store import MetadataStore, read_kept
from ..errors import DefinitionError, FailedException
from ..model.chunks import Chunk
from ..model.context import with_context
from ..model.resources import close_all, closing_if_failed
from ..operations.base import TridentCollector
from ..tuples import TransactionAttempt
from .collectors import SpoutOutputCollector, check_tuples
from .inspection import SpoutNodeInfo, configuration, has_ended, is_home, method_of, optional, partitions_of, snapshot
from .interfaces import IBatchSpout, ICommitterTridentSpout, IRichSpout, ITridentSpout, SpoutContext
from .opaque_offsets import OpaqueOffsets, partition_path
from .partitioned import IOpaquePartitionedTridentSpout, IPartitionedTridentSpout

MAX_BATCH_SIZE = "topology.spout.max.batch.size"
Rows = list[list[Any]]
Report = Callable[[str, BaseException], Any] | None


def make_coordinator(info: SpoutNodeInfo, conf: dict, store: MetadataStore, report: Report = None) -> SpoutCoordinator:
    """Open the coordinator of a spout. Raises DefinitionError for a spout that cannot run here (SparkSpout)."""
    conf = conf | configuration(info.spout)
    if isinstance(info.spout, IBatchSpout):
        return BatchSpoutCoordinator(info, conf, report)
    if isinstance(info.spout, IRichSpout):
        return RichSpoutCoordinator(info, conf, report)
    if isinstance(info.spout, ITridentSpout):
        return TridentSpoutCoordinator(info, conf, report)
    if isinstance(info.spout, IPartitionedTridentSpout | IOpaquePartitionedTridentSpout):
        return PartitionedCoordinator(info, conf, store)
    raise DefinitionError(f"spout {info.id!r}: {info.spout!r} runs on SparkCluster only")


class SpoutCoordinator:
    """The driver side of one spout. ``home`` says whether it emits in the driver process. ``contexts``: those that its
    parts in the driver process got; they hold metrics."""

    home: bool = False
    contexts: Sequence[SpoutContext] = ()

    def restore(self, txid: int, metadata: Any) -> None:
        """Continue a run after ``txid``, whose metadata is given."""

    def ready(self, txid: int) -> bool:
        return True

    def is_pending(self) -> bool:
        """Return whether tuples are expected soon although the spout is not ready."""
        return False

    def has_ended(self, txid: int) -> bool:
        raise NotImplementedError

    def backlog(self) -> dict[str, int]:
        """Return the number of waiting tuples by partition, as last known."""
        return {}

    def initialize(self, tx: TransactionAttempt, previous: Any, current: Any) -> Any:
        """Return the description of the batch, a JSON value; None for a spout that decides as it emits."""
        return None

    def payloads(self, tx: TransactionAttempt, metadata: Any, partitions: int) -> list[Any]:
        """Return what the task of each partition gets to know: here the description of the whole batch."""
        return [metadata] * partitions

    def tuples(self, metadata: Any) -> int | None:
        """Return how many tuples the batch has at most, after `payloads`; None if nobody can tell before it emits."""
        return None

    def share(self, txid: int) -> Any:
        """Return a JSON value that every task may read during this txid; None: nothing."""
        return None

    def commit(self, tx: TransactionAttempt, reports: list) -> None:
        """Called when all states have committed; ``reports`` come from the tasks' emitters."""

    def success(self, txid: int) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class Instances:
    """The copies of a home spout, one per partition. Partitions beyond the spout's own limit stay empty."""

    def __init__(self, info: SpoutNodeInfo, report: Report) -> None:
        count = partitions_of(info.spout, info.partitions)
        self.info = info
        self.contexts = [SpoutContext(info.id, index, count) for index in range(count)]
        self._report = report

    def emit(self, tx: TransactionAttempt, emit_one: Callable[[int, TridentCollector], Any]) -> Rows:
        parts: Rows = [[] for _ in range(self.info.partitions)]
        for index, context in enumerate(self.contexts):
            context.transaction = tx
            append = check_tuples(self.info.id, self.info.fields, parts[index].append)
            emit_one(index, TridentCollector(append, self.report))
        return parts

    def report(self, error: BaseException) -> None:
        if self._report is not None:
            self._report(self.info.id, error)


class _Emitting(SpoutCoordinator):
    """Drives a spout that can emit in the driver process: its tasks get the rows."""

    info: SpoutNodeInfo
    emitted = 0

    def emit(self, tx: TransactionAttempt, metadata: Any) -> Rows:
        raise NotImplementedError

    def payloads(self, tx: TransactionAttempt, metadata: Any, partitions: int) -> list[Any]:
        parts = self.emit(tx, metadata)
        self.emitted = sum(map(len, parts))
        return [Chunk.of_rows(self.info.fields, rows).encode() for rows in parts]

    def tuples(self, metadata: Any) -> int | None:
        return self.emitted


class _HomeCoordinator(_Emitting):
    """Drives the copies of a spout in the driver process."""

    home = True

    def __init__(self, info: SpoutNodeInfo, report: Report) -> None:
        self.info = info
        self._tasks = Instances(info, report)
        self.contexts = self._tasks.contexts
        self._spouts = [snapshot(info.spout) for _ in self.contexts]

    def has_ended(self, txid: int) -> bool:
        return all(has_ended(spout, txid) for spout in self._spouts)


class BatchSpoutCoordinator(_HomeCoordinator):
    """Drives an IBatchSpout: always ready, no metadata; emits on every attempt under its txid.

    Keeps no positions: the spout starts wherever `open` puts it. Source in Storm: BatchSpoutExecutor.
    """

    def __init__(self, info: SpoutNodeInfo, conf: dict, report: Report) -> None:
        super().__init__(info, report)
        opened: list[IBatchSpout] = []
        with closing_if_failed(opened):
            for spout, context in zip(self._spouts, self._tasks.contexts, strict=True):
                spout.open(conf, context)
                opened.append(spout)

    def emit(self, tx: TransactionAttempt, metadata: Any) -> Rows:
        return self._tasks.emit(tx, lambda index, out: self._spouts[index].emitBatch(tx.txid, out))

    def success(self, txid: int) -> None:
        for spout in self._spouts:
            spout.ack(txid)

    def close(self) -> None:
        close_all(spout.close for spout in self._spouts)


class RichSpoutCoordinator(_HomeCoordinator):
    """Drives an IRichSpout: draws a batch by nextTuple; acks and fails its message ids.

    Unlike in Storm, the counter of emitted tuples starts anew with every batch (docs/differences.md), and a success
    covers the ids of earlier txids whose success never came. Nothing survives a restart. Source in Storm:
    RichSpoutBatchExecutor.
    """

    def __init__(self, info: SpoutNodeInfo, conf: dict, report: Report) -> None:
        super().__init__(info, report)
        self._conf = conf
        self._limit = int(conf.get(MAX_BATCH_SIZE) or 1000)
        self._collectors = [SpoutOutputCollector() for _ in self._spouts]
        self._pending: list[dict[int, list]] = [{} for _ in self._spouts]
        self._open: set[int] = set()

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
            for over in sorted(earlier for earlier in pending if earlier <= txid):
                for message in pending.pop(over):
                    spout.ack(message)

    def close(self) -> None:
        close_all(self._spouts[index].close for index in self._open)


class _Coordinated(SpoutCoordinator):
    """Drives a spout that has a coordinator of its own."""

    def __init__(self, spout: Any, coordinator: Any) -> None:
        self._spout = spout
        self._coordinator = coordinator

    def ready(self, txid: int) -> bool:
        return bool(self._coordinator.isReady(txid))

    def has_ended(self, txid: int) -> bool:
        return has_ended(self._coordinator, txid) or has_ended(self._spout, txid)

    def close(self) -> None:
        optional(self._coordinator, "close")()


class TridentSpoutCoordinator(_Coordinated, _Emitting):
    """Drives an ITridentSpout. Holds the emitters of spouts that emit here: ICommitterTridentSpout and the feeders."""

    def __init__(self, info: SpoutNodeInfo, conf: dict, report: Report) -> None:
        self.home = is_home(info.spout)
        self.info = info
        self._committer = isinstance(info.spout, ICommitterTridentSpout)
        self._tasks = Instances(info, report)
        spout, contexts = snapshot(info.spout), self._tasks.contexts
        reporting = with_context(conf, report=self._tasks.report)
        own = SpoutContext(info.id, 0, len(contexts))
        self.contexts = [own, *contexts]
        super().__init__(spout, spout.getCoordinator(info.id, reporting, own))
        self._emitters: list[Any] = []
        with closing_if_failed([self]):
            for context in contexts if self.home else []:
                self._emitters.append(spout.getEmitter(info.id, conf, context))
        self._active: dict[int, TransactionAttempt] = {}

    def restore(self, txid: int, metadata: Any) -> None:
        optional(self._coordinator, "restore")(txid, metadata)

    def initialize(self, tx: TransactionAttempt, previous: Any, current: Any) -> Any:
        return self._coordinator.initializeTransaction(tx.txid, previous, current)

    def emit(self, tx: TransactionAttempt, metadata: Any) -> Rows:
        rows = self._tasks.emit(tx, lambda index, out: self._emitters[index].emitBatch(tx, metadata, out))
        self._active[tx.txid] = tx
        return rows

    def payloads(self, tx: TransactionAttempt, metadata: Any, partitions: int) -> list[Any]:
        if self.home:
            return super().payloads(tx, metadata, partitions)
        deal = method_of(self._coordinator, "metadataForTasks")
        if deal is None:
            return [metadata] * partitions
        dealt = list(deal(metadata, len(self._tasks.contexts)))
        return dealt + [None] * (partitions - len(dealt))  # fewer if the spout limits its tasks

    def tuples(self, metadata: Any) -> int | None:
        return super().tuples(metadata) if self.home else optional(self._coordinator, "tuplesAtMost")(metadata)

    def share(self, txid: int) -> Any:
        return optional(self._coordinator, "sharedWithTasks")(txid)

    def is_pending(self) -> bool:
        return bool(optional(self._coordinator, "isPending")())

    def backlog(self) -> dict[str, int]:
        return optional(self._coordinator, "backlog")() or {}

    def commit(self, tx: TransactionAttempt, reports: list) -> None:
        if not self._committer:
            return
        if self._active.get(tx.txid) != tx:
            raise FailedException(f"spout {self.info.id!r}: Received commit for different transaction attempt {tx}")
        for emitter in self._emitters:
            emitter.commit(tx)

    def success(self, txid: int) -> None:
        self._coordinator.success(txid)
        tx = self._active.get(txid)
        self._active = {later: attempt for later, attempt in self._active.items() if later > txid}
        for emitter in self._emitters if tx is not None else ():
            optional(emitter, "success")(tx)

    def close(self) -> None:
        close_all([*(optional(emitter, "close") for emitter in self._emitters), super().close])


class PartitionedCoordinator(_Coordinated):
    """Drives a partitioned spout.

    Transactional: the list of partitions is fixed for each txid. Opaque: the list is read on every attempt; tasks get
    the last committed metadata with their descriptor, and what they report is written at commit. Positions live in the
    metadata store: `restore` does nothing.
    """

    def __init__(self, info: SpoutNodeInfo, conf: dict, store: MetadataStore) -> None:
        self._id = info.id
        self._store = store
        opaque = isinstance(info.spout, IOpaquePartitionedTridentSpout)
        self._kept = read_kept(conf)
        self._positions = OpaqueOffsets(info.id, store) if opaque else None
        spout = snapshot(info.spout)
        self.contexts = [SpoutContext(info.id, 0, info.partitions)]
        super().__init__(spout, spout.getCoordinator(conf, self.contexts[0]))

    def initialize(self, tx: TransactionAttempt, previous: Any, current: Any) -> Any:
        if current is not None and self._positions is None:
            return current
        return self._coordinator.getPartitionsForBatch()

    def payloads(self, tx: TransactionAttempt, metadata: Any, partitions: int) -> list[Any]:
        if self._positions is None:
            return super().payloads(tx, metadata, partitions)
        return self._positions.payloads(tx, metadata, partitions)

    def commit(self, tx: TransactionAttempt, reports: list) -> None:
        if self._positions is not None:
            self._positions.commit(tx.txid, reports)

    def success(self, txid: int) -> None:
        """Drop the metadata that no restart can need, also after the run was taken back."""
        paths = self._store.paths(partition_path(self._id, "")) if self._positions is None else [self._positions.path]
        for path in paths:
            self._store.cleanup_before(path, txid - self._kept)
