"""The interfaces of spouts over partitioned sources: transactional and opaque."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from ..operations.base import TridentCollector
from ..tuples import TransactionAttempt
from .interfaces import OPAQUE, TRANSACTIONAL, ITridentDataSource, SpoutContext


class ISpoutPartition:
    """A part of a partitioned source. Must be hashable; its id names its metadata and must not change."""

    @abstractmethod
    def getId(self) -> str:
        raise NotImplementedError


class _PartitionedSpout(ITridentDataSource):
    """What both interfaces share."""

    class Coordinator:
        """Lists the partitions of the source. Runs in the driver process."""

        @abstractmethod
        def getPartitionsForBatch(self) -> Any:
            """Return the partitions as a JSON value; `getOrderedPartitions` turns it into objects."""
            raise NotImplementedError

        def isReady(self, txid: int) -> bool:
            return True

        def close(self) -> None: ...

    class Emitter:
        """Emits the partitions of one task.

        Instead of the batch methods a class may define those of Storm up to 2.6, called once per partition.
        Transactional: ``emitPartitionBatchNew(tx, collector, partition, lastMeta) -> meta`` and
        ``emitPartitionBatch(tx, collector, partition, meta)``. Opaque:
        ``emitPartitionBatch(tx, collector, partition, lastMeta) -> meta``.
        """

        @abstractmethod
        def getOrderedPartitions(self, allPartitionInfo: Any) -> Sequence[Any]:
            """Return the partitions in an order that is the same in every task."""
            raise NotImplementedError

        def emitBatchNew(
            self, tx: TransactionAttempt, collector: TridentCollector, partitions: Sequence[Any],
            lastPartitionMeta: dict[Any, Any],
        ) -> dict[Any, Any]:  # fmt: skip
            """Emit a new batch of these partitions. Returns each partition's metadata, a JSON value.

            ``lastPartitionMeta`` has each partition's metadata of the closest earlier txid, or None. Opaque: called on
            every attempt; it gets the last committed metadata, and what it returns is written when the batch commits.
            """
            raise NotImplementedError

        def getPartitionsForTask(self, taskId: int, numTasks: int, sortedPartitions: Sequence[Any]) -> list[Any]:
            """Return the partitions of one task; by default every numTasks-th, from taskId on."""
            return list(sortedPartitions[taskId::numTasks])

        def refreshPartitions(self, partitionResponsibilities: Sequence[Any]) -> None:
            """Called when the partitions of this task have changed, and before its first batch."""

        def close(self) -> None: ...

    @abstractmethod
    def getCoordinator(self, conf: dict, context: SpoutContext) -> Any:
        raise NotImplementedError

    @abstractmethod
    def getEmitter(self, conf: dict, context: SpoutContext) -> Any:
        raise NotImplementedError


class IPartitionedTridentSpout(_PartitionedSpout):
    """A transactional spout over a partitioned source whose positions can be read again.

    The list of partitions is fixed for each txid. The emitter's metadata is stored as soon as the batch is emitted; if
    any partition of a task has metadata of a txid, the task emits that txid again from it, without the partitions that
    have none.
    """

    kind = TRANSACTIONAL

    class Coordinator(_PartitionedSpout.Coordinator): ...

    class Emitter(_PartitionedSpout.Emitter):
        def reEmitPartitionBatch(
            self, tx: TransactionAttempt, collector: TridentCollector, partition: Any, partitionMeta: Any
        ) -> None:
            """Emit exactly the tuples that the metadata describes. Never called without metadata."""
            raise NotImplementedError


class IOpaquePartitionedTridentSpout(_PartitionedSpout):
    """A spout whose batches may differ on replay, but each tuple succeeds in one batch only.

    The list of partitions is read again on replay. Metadata counts only when the batch is committed.
    """

    kind = OPAQUE

    class Coordinator(_PartitionedSpout.Coordinator): ...

    class Emitter(_PartitionedSpout.Emitter): ...
