"""The interfaces of spouts over partitioned sources: transactional and opaque.

Coordinators run in the driver process, emitters in the tasks; each task has every numTasks-th partition.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from ..operations.base import TridentCollector
from ..tuples import TransactionAttempt
from .interfaces import OPAQUE, TRANSACTIONAL, ITridentDataSource, SpoutContext


class ISpoutPartition:
    """A part of a partitioned source; the id names its metadata and must not change. Must be hashable."""

    @abstractmethod
    def getId(self) -> str:
        raise NotImplementedError


class _Coordinator:
    """What the source consists of now; in the driver process."""

    @abstractmethod
    def getPartitionsForBatch(self) -> Any:
        """The partitions as a JSON value; `getOrderedPartitions` makes objects of it."""
        raise NotImplementedError

    def isReady(self, txid: int) -> bool:
        return True

    def close(self) -> None: ...


class _PartitionEmitter:
    """Emits the partitions of one task.

    Instead of the two batch methods a class may have those of Storm up to 2.6, one call per partition:
    ``emitPartitionBatchNew(tx, collector, partition, lastMeta) -> meta`` and
    ``emitPartitionBatch(tx, collector, partition, meta)``.
    """

    @abstractmethod
    def getOrderedPartitions(self, allPartitionInfo: Any) -> Sequence[Any]:
        """The partitions in an order that is the same in every task."""
        raise NotImplementedError

    def getPartitionsForTask(self, taskId: int, numTasks: int, sortedPartitions: Sequence[Any]) -> list[Any]:
        """Those of one task; as it stands every numTasks-th, from taskId on."""
        return list(sortedPartitions[taskId::numTasks])

    def refreshPartitions(self, partitionResponsibilities: Sequence[Any]) -> None:
        """The partitions of this task have changed; called before the first batch too."""

    def close(self) -> None: ...


class IPartitionedTridentSpout(ITridentDataSource):
    """A transactional spout over a partitioned source whose positions can be read again.

    The list of partitions is frozen for each txid. Metadata is stored as soon as it is emitted; a txid that
    any of the task's partitions has metadata for is emitted again from it.
    """

    kind = TRANSACTIONAL

    class Coordinator(_Coordinator):
        pass

    class Emitter(_PartitionEmitter):
        def emitBatchNew(
            self,
            tx: TransactionAttempt,
            collector: TridentCollector,
            partitions: Sequence[Any],
            lastPartitionMeta: dict[Any, Any],
        ) -> dict[Any, Any]:
            """A batch that was never emitted. lastPartitionMeta: for each partition the metadata of the
            closest earlier txid, or None. Returns each partition's metadata, a JSON value."""
            raise NotImplementedError

        def reEmitPartitionBatch(
            self, tx: TransactionAttempt, collector: TridentCollector, partition: Any, partitionMeta: Any
        ) -> None:
            """Exactly the tuples that this metadata stands for (None: the partition had none)."""
            raise NotImplementedError

    @abstractmethod
    def getCoordinator(self, conf: dict, context: SpoutContext) -> Any:
        raise NotImplementedError

    @abstractmethod
    def getEmitter(self, conf: dict, context: SpoutContext) -> Any:
        raise NotImplementedError


class IOpaquePartitionedTridentSpout(ITridentDataSource):
    """A spout whose batches may differ on replay, but each tuple succeeds in one batch only.

    The partitions are asked for again on replay. Metadata counts once the batch is committed.
    """

    kind = OPAQUE

    class Coordinator(_Coordinator):
        pass

    class Emitter(_PartitionEmitter):
        def emitBatchNew(
            self,
            tx: TransactionAttempt,
            collector: TridentCollector,
            partitions: Sequence[Any],
            lastPartitionMeta: dict[Any, Any],
        ) -> dict[Any, Any]:
            """Called on every attempt. lastPartitionMeta: for each partition the last committed metadata, or
            None. Returns each partition's metadata, a JSON value, written when the batch commits."""
            raise NotImplementedError

    @abstractmethod
    def getCoordinator(self, conf: dict, context: SpoutContext) -> Any:
        raise NotImplementedError

    @abstractmethod
    def getEmitter(self, conf: dict, context: SpoutContext) -> Any:
        raise NotImplementedError
