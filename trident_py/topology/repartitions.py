"""The repartitions of a stream: where its tuples go."""

from __future__ import annotations

from typing import Self

from ..errors import DefinitionError
from ..model.partitioning import BatchGlobal, Broadcast, Custom, FieldsPartition, Global, Identity, Partitioner, Shuffle
from ..operations.base import CustomStreamGrouping
from ..operations.roles import Chooses
from ..tuples import FieldsLike
from .arguments import check_object
from .graph import NodeHandle
from .roles import AnyGrouping


class Repartitions(NodeHandle):
    """The part of a stream's handle that repartitions it."""

    def partition(self, grouping: AnyGrouping) -> Self:
        """Repartition by a custom grouping: ``chooseTasks(taskId, values)``, or a callable: tuple -> number.

        With a callable, the partition is the number modulo the partition count.
        """
        check_object("partition", grouping, CustomStreamGrouping)
        if isinstance(grouping, Partitioner):
            return self._partition(grouping)
        if not (isinstance(grouping, Chooses) or callable(grouping)):
            raise DefinitionError(f"partition takes a CustomStreamGrouping or a callable, got {grouping!r}")
        return self._partition(Custom(grouping, self.getOutputFields()))

    def partitionBy(self, fields: FieldsLike) -> Self:
        """Send tuples with equal values of these fields to one partition, the same in every batch."""
        return self._partition(FieldsPartition(self.check(fields)))

    def shuffle(self) -> Self:
        """Distribute the tuples round robin."""
        return self._partition(Shuffle())

    def localOrShuffle(self) -> Self:
        """Shuffle round robin: Spark places tasks itself."""
        return self._partition(Shuffle(local=True))

    def global_(self) -> Self:
        """Send all tuples to partition 0. Java's ``global()``."""
        return self._partition(Global())

    def batchGlobal(self) -> Self:
        """Send all tuples of a batch to one partition, a different one from batch to batch."""
        return self._partition(BatchGlobal())

    def broadcast(self) -> Self:
        """Send every tuple to every partition."""
        return self._partition(Broadcast())

    def identityPartition(self) -> Self:
        """Send the tuples of partition i to partition i."""
        return self._partition(Identity())
