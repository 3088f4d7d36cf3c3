"""The task side of spouts: what one partition of a spout emits for a batch.

A TaskEmitter serves one partition of one run. The task's process (or LocalCluster) caches it; it may die with that
process at any time. Source in Storm: TridentSpoutExecutor and the *Executor classes of trident.spout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..chunks import Chunk
from ..context import RunContext
from ..errors import DefinitionError, SpoutError
from ..operations.base import TridentCollector
from ..tuples import TransactionAttempt
from .collectors import checked
from .coordinators import partition_path
from .descriptors import SpoutNodeInfo
from .inspection import configuration, is_home, method_of, optional, partitions_of, snapshot
from .interfaces import (
    ITridentSpout,
    SpoutContext,
)
from .partitioned import IOpaquePartitionedTridentSpout, IPartitionedTridentSpout


class TaskEmitter:
    """Emits one partition of one spout.

    Call `chunks` first: it returns an iterator of columns, or None if the spout emits tuples; then call `emit`.
    """

    columnar = False

    def chunks(
        self, attempt: TransactionAttempt, payload: Any, wanted: Iterable[str] | None = None
    ) -> Iterator[Chunk] | None:
        """Returns the batch as columns, a part at a time, with at least the wanted fields. None: it comes as tuples."""
        return None

    def emit_chunk(self, payload: Any) -> Chunk | None:
        """Returns the whole batch of a spout that emitted in the driver process; None for other spouts."""
        return None

    def emit(self, attempt: TransactionAttempt, payload: Any, collector: TridentCollector) -> Any | None:
        """Emits the batch into the collector. Returns a report for `Coordination.commit`, or None.

        Raises WrongNumberOfValues, and whatever the user's emitter raises (FailedException: replay).
        """
        raise NotImplementedError

    def report_to(self, report: Callable[[BaseException], Any]) -> None:
        """Sets the receiver of errors that become events. Called once, before the first batch."""

    def success(self, txid: int) -> None:
        """Called after the batch is committed. A call may be lost."""

    def close(self) -> None: ...


def make_emitter(info: SpoutNodeInfo, index: int, conf: dict) -> TaskEmitter:
    """Returns the emitter of partition ``index``, and opens the user's emitter."""
    if is_home(info.spout):
        return HomeEmitter(info)
    if index >= partitions_of(info.spout, info.partitions):
        return HomeEmitter(info, empty=True)
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

    columnar = True

    def __init__(self, info: SpoutNodeInfo, empty: bool = False) -> None:
        self._info = info
        self._empty = empty

    def emit_chunk(self, payload: Any) -> Chunk | None:
        return Chunk.of_rows(self._info.fields, []) if self._empty else Chunk.decode(payload)

    def chunks(
        self, attempt: TransactionAttempt, payload: Any, wanted: Iterable[str] | None = None
    ) -> Iterator[Chunk] | None:
        chunk = self.emit_chunk(payload)
        return iter(() if chunk is None or chunk.length == 0 else chunk.slices())

    def emit(self, attempt: TransactionAttempt, payload: Any, collector: TridentCollector) -> Any | None:
        for chunk in self.chunks(attempt, payload) or ():
            for row in chunk.rows(self._info.fields):
                collector.emit(row)
        return None


class TridentEmitter(TaskEmitter):
    """Drives an ITridentSpout's emitter. It learns of a batch's success with the next batch at the latest."""

    def __init__(self, info: SpoutNodeInfo, index: int, conf: dict) -> None:
        context = SpoutContext(info.id, index, partitions_of(info.spout, info.partitions))
        self._info = info
        self._emitter = snapshot(info.spout).getEmitter(info.id, conf, context)
        self._pending: TransactionAttempt | None = None
        self.columnar = method_of(self._emitter, "emitChunks") is not None

    def report_to(self, report: Callable[[BaseException], Any]) -> None:
        optional(self._emitter, "reportTo")(report)

    def chunks(
        self, attempt: TransactionAttempt, payload: Any, wanted: Iterable[str] | None = None
    ) -> Iterator[Chunk] | None:
        if not self.columnar:
            return None
        self._begin(attempt)
        return self._emitter.emitChunks(attempt, payload, wanted)

    def emit(self, attempt: TransactionAttempt, payload: Any, collector: TridentCollector) -> Any | None:
        self._begin(attempt)
        self._emitter.emitBatch(attempt, payload, _checked(self._info, collector))
        return None

    def _begin(self, attempt: TransactionAttempt) -> None:
        # Batches run one after the other, so a later txid means that the pending one is committed.
        if self._pending is not None and self._pending.txid < attempt.txid:
            self.success(self._pending.txid)
        self._pending = attempt

    def success(self, txid: int) -> None:
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
        self._store = RunContext.of(conf).metadata
        self._emitter = snapshot(info.spout).getEmitter(conf, SpoutContext(info.id, index, self._tasks))
        self._seen: list[Any] = []
        self.all: list[str] = []
        self.mine: dict[str, Any] = {}

    def refresh(self, payload: Any) -> None:
        if self._seen == [payload]:
            return
        ordered = list(self._emitter.getOrderedPartitions(payload))
        mine = self._mine(ordered)
        optional(self._emitter, "refreshPartitions")(mine)
        self.all = [self._id(partition) for partition in ordered]
        self.mine = {self._id(partition): partition for partition in mine}
        self._seen = [payload]

    def _mine(self, ordered: Sequence[Any]) -> list[Any]:
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
        named = method_of(partition, "getId")
        return str(partition if named is None else named())

    def path(self, partition: str) -> str:
        return partition_path(self._info.id, partition)

    def has(self, new: str, old: str) -> bool:
        """Returns whether the user's emitter defines the method of Storm 2.7 rather than that of Storm up to 2.6."""
        interfaces = IPartitionedTridentSpout.Emitter, IOpaquePartitionedTridentSpout.Emitter
        method = method_of(type(self._emitter), new)
        own = method is not None and method not in [method_of(interface, new) for interface in interfaces]
        return own or method_of(self._emitter, old) is None

    def returned(self, metadata: Any) -> dict[str, Any]:
        """Returns metadata by partition id; users return it by partition or by id."""
        named = {}
        for partition, value in (metadata or {}).items():
            key = self._id(partition)
            if key not in self.mine:
                known = ", ".join(self.mine) or "none"
                raise SpoutError(
                    f"spout {self._info.id!r}: emitBatchNew returned metadata for partition {key!r}, "
                    f"which is not one of this task's: {known}"
                )
            named[key] = value
        return named

    def close(self) -> None:
        optional(self._emitter, "close")()


class PartitionedEmitter(_Partitions):
    """Transactional: emits again from stored metadata, and stores new metadata at once."""

    def emit(self, attempt: TransactionAttempt, payload: Any, collector: TridentCollector) -> Any | None:
        self.refresh(payload)
        out = _checked(self._info, collector)
        if not self.has("emitBatchNew", "emitPartitionBatchNew"):
            self._each_by_itself(attempt, out)
            return None
        stored = {key: self._store.get(self.path(key), attempt.txid) for key in self.mine}
        if any(metadata is not None for metadata in stored.values()):
            for key, partition in self.mine.items():
                self._again()(attempt, out, partition, stored[key])
        elif self.mine:
            self._new(attempt, out)
        return None

    def _new(self, attempt: TransactionAttempt, out: TridentCollector) -> None:
        last = {part: self._store.previous(self.path(key), attempt.txid) for key, part in self.mine.items()}
        made = self._emitter.emitBatchNew(attempt, out, list(self.mine.values()), last)
        for key, metadata in self.returned(made).items():
            self._store.put(self.path(key), attempt.txid, metadata)

    def _again(self) -> Callable[..., Any]:
        new = self.has("reEmitPartitionBatch", "emitPartitionBatch")
        return self._emitter.reEmitPartitionBatch if new else self._emitter.emitPartitionBatch

    def _each_by_itself(self, attempt: TransactionAttempt, out: TridentCollector) -> None:
        """Follows Storm up to 2.6: skips a partition without metadata if a later txid of it has some."""
        for key, partition in self.mine.items():
            path = self.path(key)
            metadata = self._store.get(path, attempt.txid)
            if metadata is not None:
                self._again()(attempt, out, partition, metadata)
                continue
            if not self._store.has_later(path, attempt.txid):
                last = self._store.previous(path, attempt.txid)
                metadata = self._emitter.emitPartitionBatchNew(attempt, out, partition, last)
            self._store.put(path, attempt.txid, metadata)


class OpaqueEmitter(_Partitions):
    """Opaque: always emits a new batch from the last committed metadata; reports its own instead of storing it."""

    def emit(self, attempt: TransactionAttempt, payload: Any, collector: TridentCollector) -> Any | None:
        self.refresh(payload)
        out = _checked(self._info, collector)
        last = {}
        for key, partition in self.mine.items():
            self._store.remove(self.path(key), attempt.txid)
            last[partition] = self._store.previous(self.path(key), attempt.txid)
        made: dict[Any, Any] = {}
        if not self.has("emitBatchNew", "emitPartitionBatch"):
            for partition, metadata in last.items():
                made[partition] = self._emitter.emitPartitionBatch(attempt, out, partition, metadata)
        elif self.mine:
            made = self._emitter.emitBatchNew(attempt, out, list(self.mine.values()), last)
        return {
            "spout": self._info.id,
            "attempt": list(attempt),
            "partitions": self.all,
            "metadata": self.returned(made),
        }


def _checked(info: SpoutNodeInfo, collector: TridentCollector) -> TridentCollector:
    return TridentCollector(checked(info.id, info.fields, collector.emit), collector.reportError)
