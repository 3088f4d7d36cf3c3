"""FixedBatchSpout: the spout of tests and examples."""

from __future__ import annotations

from typing import Any

from ..errors import DefinitionError
from ..spouts.interfaces import TRANSACTIONAL, IBatchSpout
from ..tuples import Fields, FieldsLike


class FixedBatchSpout(IBatchSpout):
    """Emits the given tuples, at most maxBatchSize per batch, then ends; with ``setCycle(True)`` it starts again.

    Batch n depends only on txid n, so replays are identical, also after a restart. A batch never wraps (5 tuples by 3:
    3, 2, 3, 2, ...). One partition. ``FixedBatchSpout("word", 2, ("a",), ("b",))``.
    Source in Storm: org.apache.storm.trident.testing.FixedBatchSpout.
    """

    kind = TRANSACTIONAL
    emits_any_batch = True

    def __init__(self, fields: FieldsLike, maxBatchSize: int, *tuples: Any) -> None:
        if isinstance(maxBatchSize, bool) or not isinstance(maxBatchSize, int) or maxBatchSize < 1:
            raise DefinitionError(f"FixedBatchSpout: maxBatchSize must be at least 1, got {maxBatchSize!r}")
        for values in tuples:
            if not isinstance(values, list | tuple):
                raise DefinitionError(f"FixedBatchSpout: {values!r} is not a tuple of values; write Values({values!r})")
        self._fields = Fields.of(fields)
        self._size = maxBatchSize
        self._tuples = tuple(tuples)
        self._cycle = False
        self._last = 0

    def setCycle(self, cycle: bool) -> FixedBatchSpout:
        """Set whether to start again at the end. Call it before ``newStream``, which takes a snapshot."""
        self._cycle = cycle
        return self

    def __repr__(self) -> str:
        cycle = ", cycle" if self._cycle else ""
        return f"FixedBatchSpout({self._fields}, {self._size}, {len(self._tuples)} tuples{cycle})"

    def batch(self, txid: int) -> list[Any]:
        """Return the tuples of one batch."""
        at = txid - 1
        if self._cycle and self._tuples:
            at %= self._batches()
        return list(self._tuples[at * self._size : (at + 1) * self._size])

    def _batches(self) -> int:
        return -(-len(self._tuples) // self._size)

    def emitBatch(self, batchId: int, collector: Any) -> None:
        self._last = max(self._last, batchId)
        for values in self.batch(batchId):
            collector.emit(values)

    def isExhausted(self) -> bool:
        return self.isExhaustedAt(self._last + 1)

    def isExhaustedAt(self, txid: int) -> bool:
        return not self._cycle and txid > self._batches()

    def getComponentConfiguration(self) -> dict[str, Any]:
        return {"topology.max.task.parallelism": 1}

    def getOutputFields(self) -> Fields:
        return self._fields
