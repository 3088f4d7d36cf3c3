"""Aggregations: one aggregator, or several in a chain, planned in one or two stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ..errors import DefinitionError
from ..operations.base import CombinerAggregator
from ..partitioning import Partitioner
from ..processors.aggregate import Aggregate, Part, Single
from ..tuples import Fields
from .arguments import check_aggregator, overload

if TYPE_CHECKING:
    from .stream import Stream

NAMES = ("inputFields", "agg", "functionFields")


class ChainedAggregatorDeclarer:
    """Collects aggregators; chainEnd() plans them. Source in Storm: ChainedAggregatorDeclarer.

    Only combiners: they aggregate in each partition, then the partial values travel and are combined. One
    aggregator of another kind: all tuples travel. partitionAggregate: nothing travels.
    """

    def __init__(self, stream: Stream, group: Fields | None, partitioner: Partitioner, single: Single) -> None:
        self._stream = stream
        self._group = group
        self._partitioner = partitioner
        self._single = single
        self._parts: list[Part] = []
        self._type: Literal["partition", "combine", "full"] | None = None
        self._appended = stream.getOutputFields()

    def aggregate(self, *args: Any, **given: Any) -> ChainedAggregatorDeclarer:
        """Over the whole batch, or each group of it: ``aggregate([fields,] aggregator, functionFields)``."""
        aggregator = self._declare("aggregate", args, given)
        if not isinstance(aggregator, CombinerAggregator):
            self._type = "full"
        elif self._type is None:
            self._type = "combine"
        return self

    def partitionAggregate(self, *args: Any, **given: Any) -> ChainedAggregatorDeclarer:
        """Over each partition."""
        self._declare("partitionAggregate", args, given)
        self._type = "partition"
        return self

    def _declare(self, call: str, args: tuple, given: dict[str, Any]) -> Any:
        inputs, aggregator, outputs = overload(call, args, NAMES, given)
        aggregator = check_aggregator(call, aggregator)
        read = self._stream.check(inputs)
        made = with_output_type(aggregator, Fields.of(outputs))
        if isinstance(aggregator, CombinerAggregator):
            self._appended = self._appended.concat(made)
        self._parts.append(Part(aggregator, read, made))
        return aggregator

    def chainEnd(self) -> Stream:
        """The stream of the results; with groups their fields come first."""
        fields = self._output_fields()
        parts, stream = tuple(self._parts), self._stream
        inits = sum(isinstance(part.aggregator, CombinerAggregator) for part in parts)
        if self._type == "partition":
            return stream._process(Aggregate(parts, self._group, inits=inits), fields)
        if self._type == "combine":
            partial = stream._process(Aggregate(parts, self._group, "partial", inits=inits), fields)
            return partial._partition(self._partitioner)._process(
                Aggregate(parts, self._group, "merge", self._single), fields
            )
        moved = stream._partition(self._partitioner)
        return moved._process(Aggregate(parts, self._group, "full", self._single), fields)

    def _output_fields(self) -> Fields:
        names = [name for part in self._parts for name in part.outputs]
        if len(set(names)) < len(names):
            raise DefinitionError(f"Output fields for chained aggregators must be distinct: [{', '.join(names)}]")
        fields = self._group if self._group is not None else Fields()
        for part in self._parts:
            fields = fields.concat(part.outputs)
        return fields


def with_output_type(aggregator: Any, fields: Fields) -> Fields:
    """The function field with the type that a built-in declares for its result."""
    declared = getattr(aggregator, "output_type", None)
    if declared is None or len(fields) != 1 or fields.types:
        return fields
    return Fields([f"{fields[0]} {declared}"])
