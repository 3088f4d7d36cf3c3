"""The task side of spouts: what one partition of a spout emits for a batch.

A TaskEmitter serves one partition of one run. The task's process (or LocalCluster) caches it; it may die with that
process at any time. Source in Storm: TridentSpoutExecutor and the *Executor classes of trident.spout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..errors import DefinitionError, SpoutError
from ..model.chunks import Chunk
from ..model.context import RunContext
from ..operations.base import TridentCollector
from ..tuples import TransactionAttempt
from .collectors import check_tuples
from .inspection import SpoutNodeInfo, configuration, is_home, method_of, optional, partitions_of, snapshot
from .interfaces import ITridentSpout, SpoutContext
from .opaque_offsets import last_metadata, partition_path
from .partitioned import IOpaquePartitionedTridentSpout, IPartitionedTridentSpout

Wanted = Iterable[str] | None


class TaskEmitter:
    """Emits one partition of one spout.

    Call `chunks` first: it returns an iterator of columns, or None if the spout emits tuples; then call `emit`.
    ``contexts``: those that the user's emitter got; they hold metrics.
    """

    contexts: Sequence[SpoutContext] = ()

    def chunks(self, attempt: TransactionAttempt, payload: Any, wanted: Wanted = None) -> Iterator[Chunk] | None:
        """Return the batch as columns, a part at a time, with at least the wanted fields. None: it comes as tuples."""
        return None

    def emit(self, attempt: TransactionAttempt, payload: Any, collector: TridentCollector) -> Any | None:
        """Emit the batch into the collector. Returns a report for `Coordination.commit`, or None.

        Raises WrongNumberOfValues, and whatever the user's emitter raises (FailedException: replay).
        """
        raise NotImplementedError

    def report_to(self, report: Callable[[BaseException], Any]) -> None:
        """Set the receiver of errors that become events. Called once, before the first batch."""

    def close(self) -> None: ...


def make_emitter(info: SpoutNodeInfo, index: int, conf: dict) -> TaskEmitter:
    """Return the emitter of partition ``index``, and open the user's emitter."""
    if is_home(info.spout):
        return HomeEmitter()
    if index >= partitions_of(info.spout, info.partitions):
        return HomeEmitter(empty=True)
    conf = conf | configuration(info.spout)
    if isinstance(info.spout, ITridentSpout):
        return TridentEmitter(info, index, conf)
    if isinstance(info.spout, IPartitionedTridentSpout):
        return PartitionedEmitter(info, index, conf)
    if isinstance(info.spout, IOpaquePartitionedTridentSpout):
        return OpaqueEmitter(info, index, conf)
    raise DefinitionError(f"spout {info.id!r}: {info.spout!r} runs on SparkCluster only")


class HomeEmitter(TaskEmitter):
    """Decodes the rows that a spout emitted in the driver process."""

    def __init__(self, empty: bool = False) -> None:
        self._empty = empty

    def chunks(self, attempt: TransactionAttempt, payload: Any, wanted: Wanted = None) -> Iterator[Chunk]:
        chunk = None if self._empty else Chunk.decode(payload)
        return iter(() if chunk is None or chunk.length == 0 else chunk.slices())


class TridentEmitter(TaskEmitter):
    """Drives an ITridentSpout's emitter. It learns of a batch's success with the next batch at the latest."""

    def __init__(self, info: SpoutNodeInfo, index: int, conf: dict) -> None:
        self.contexts = [SpoutContext(info.id, index, partitions_of(info.spout, info.partitions))]
        self._info = info
        self._emitter = snapshot(info.spout).getEmitter(info.id, conf, self.contexts[0])
        self._emit_chunks = method_of(self._emitter, "emitChunks")
        self._pending: TransactionAttempt | None = None

    def report_to(self, report: Callable[[BaseException], Any]) -> None:
        optional(self._emitter, "reportTo")(report)

    def chunks(self, attempt: TransactionAttempt, payload: Any, wanted: Wanted = None) -> Iterator[Chunk] | None:
        if self._emit_chunks is None:
            return None
        self._begin(attempt)
        chunks: Iterator[Chunk] = self._emit_chunks(attempt, payload, wanted)
        return chunks

    def emit(self, attempt: TransactionAttempt, payload: Any, collector: TridentCollector) -> Any | None:
        self._begin(attempt)
        self._emitter.emitBatch(attempt, payload, _check(self._info, collector))
        return None

    def _begin(self, attempt: TransactionAttempt) -> None:
        # Batches run one after the other, so a later txid means that the pending one is committed.
        self.success(attempt.txid - 1)
        self._pending = attempt

    def success(self, txid: int) -> None:
        """Called when this txid is committed."""
        pending = self._pending
        if pending is not None and pending.txid <= txid:
            self._pending = None
            optional(self._emitter, "success")(pending)

    def close(self) -> None:
        optional(self._emitter, "close")()


class _Partitions(TaskEmitter):
    """The partitions of one task, kept up to date with the coordinator's metadata."""

    def __init__(self, info: SpoutNodeInfo, index: int, conf: dict) -> None:
        self._info = info
        self._index = index
        self._tasks = partitions_of(info.spout, info.partitions)
        self.contexts = [SpoutContext(info.id, index, self._tasks)]
        self._emitter = snapshot(info.spout).getEmitter(conf, self.contexts[0])
        self._payloads: list[Any] = []
        self.assigned: dict[str, Any] = {}

    def refresh(self, payload: Any) -> None:
        if self._payloads == [payload]:
            return
        ordered = list(self._emitter.getOrderedPartitions(payload))
        assigned = self._assign(ordered)
        optional(self._emitter, "refreshPartitions")(assigned)
        self.assigned = {self._id(partition): partition for partition in assigned}
        self._payloads = [payload]

    def _assign(self, ordered: Sequence[Any]) -> list[Any]:
        choose = method_of(self._emitter, "getPartitionsForTask")
        if choose is None:
            return list(ordered[self._index :: self._tasks])
        return list(choose(self._index, self._tasks, ordered))

    def _id(self, partition: Any) -> str:
        try:
            hash(partition)
        except TypeError:
            raise SpoutError(
                f"spout {self._info.id!r}: partition {partition!r} is not hashable; "
                "make its class a frozen dataclass, or define __hash__ and __eq__"
            ) from None
        get_id = method_of(partition, "getId")
        return str(partition if get_id is None else get_id())

    def path(self, partition: str) -> str:
        return partition_path(self._info.id, partition)

    def has(self, new: str, old: str) -> bool:
        """Return whether the user's emitter defines the method of Storm 2.7 rather than that of Storm up to 2.6."""
        method = method_of(type(self._emitter), new)
        inherited = method is method_of(IPartitionedTridentSpout.Emitter, new)  # it has the opaque emitter's too
        return (method is not None and not inherited) or method_of(self._emitter, old) is None

    def by_id(self, metadata: Any) -> dict[str, Any]:
        """Return metadata by partition id; users return it by partition or by id."""
        values = {}
        for partition, value in (metadata or {}).items():
            key = self._id(partition)
            if key not in self.assigned:
                raise SpoutError(
                    f"spout {self._info.id!r}: emitBatchNew returned metadata for partition {key!r}; "
                    f"the partitions of this task are: {', '.join(self.assigned) or 'none'}"
                )
            values[key] = value
        return values

    def close(self) -> None:
        optional(self._emitter, "close")()


class PartitionedEmitter(_Partitions):
    """Transactional: emits again from stored metadata, and stores new metadata at once, before any state commits.

    In a batch that is emitted again, a partition without metadata emits nothing: it had no tuples, or the driver was
    killed before its metadata was stored, so no state has any of them. It continues with the next batch.
    """

    def __init__(self, info: SpoutNodeInfo, index: int, conf: dict) -> None:
        super().__init__(info, index, conf)
        self._store = RunContext.of(conf).metadata

    def emit(self, attempt: TransactionAttempt, payload: Any, collector: TridentCollector) -> Any | None:
        self.refresh(payload)
        out = _check(self._info, collector)
        if not self.has("emitBatchNew", "emitPartitionBatchNew"):
            self._emit_separately(attempt, out)
            return None
        stored = {key: self._store.get(self.path(key), attempt.txid) for key in self.assigned}
        if any(metadata is not None for metadata in stored.values()):
            for key in [key for key, metadata in stored.items() if metadata is not None]:
                self._again()(attempt, out, self.assigned[key], stored[key])
        elif self.assigned:
            last = {part: self._store.previous(self.path(key), attempt.txid) for key, part in self.assigned.items()}
            new = self.by_id(self._emitter.emitBatchNew(attempt, out, list(self.assigned.values()), last))
            if new:
                self._store.record(attempt, {self.path(key): metadata for key, metadata in new.items()})
        return None

    def _again(self) -> Callable[..., Any]:
        new = self.has("reEmitPartitionBatch", "emitPartitionBatch")
        return self._emitter.reEmitPartitionBatch if new else self._emitter.emitPartitionBatch

    def _emit_separately(self, attempt: TransactionAttempt, out: TridentCollector) -> None:
        """Follow Storm up to 2.6: skips a partition without metadata if a later txid of it has some."""
        for key, partition in self.assigned.items():
            path = self.path(key)
            metadata = self._store.get(path, attempt.txid)
            if metadata is not None:
                self._again()(attempt, out, partition, metadata)
                continue
            if not self._store.has_later(path, attempt.txid):
                last = self._store.previous(path, attempt.txid)
                metadata = self._emitter.emitPartitionBatchNew(attempt, out, partition, last)
            self._store.record(attempt, {path: metadata})


class OpaqueEmitter(_Partitions):
    """Opaque: always emits a new batch from the last committed metadata; reports its own instead of storing it."""

    def emit(self, attempt: TransactionAttempt, payload: Any, collector: TridentCollector) -> Any | None:
        self.refresh(payload["partitions"])
        out = _check(self._info, collector)
        last = {part: last_metadata(self._info.id, payload, key) for key, part in self.assigned.items()}
        new: dict[Any, Any] = {}
        if not self.has("emitBatchNew", "emitPartitionBatch"):
            for partition, metadata in last.items():
                new[partition] = self._emitter.emitPartitionBatch(attempt, out, partition, metadata)
        elif self.assigned:
            new = self._emitter.emitBatchNew(attempt, out, list(self.assigned.values()), last)
        return {
            "spout": self._info.id,
            "task": self._index,
            "partitions": list(self.assigned),
            "metadata": self.by_id(new),
        }


def _check(info: SpoutNodeInfo, collector: TridentCollector) -> TridentCollector:
    return TridentCollector(check_tuples(info.id, info.fields, collector.emit), collector.reportError)
