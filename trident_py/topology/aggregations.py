"""A chain of aggregators: what a stream's aggregations become."""

from __future__ import annotations

from typing import Any, Generic, Literal, Self, TypeVar, overload

from ..engine.processors.aggregate import Aggregate, Part, Single
from ..errors import DefinitionError
from ..model.partitioning import Partitioner
from ..operations.base import CombinerAggregator
from ..tuples import Fields, FieldsLike
from .arguments import arguments, check_aggregator
from .graph import NodeHandle
from .roles import AnyAggregator

StreamT = TypeVar("StreamT", bound=NodeHandle)


class ChainedAggregatorDeclarer(Generic[StreamT]):
    """Collects aggregators; chainEnd() plans them. Source in Storm: ChainedAggregatorDeclarer.

    If all aggregators are combiners, each partition aggregates first, and only the partial values travel. A single
    aggregator of another kind makes all tuples travel. With partitionAggregate, nothing travels.
    """

    def __init__(self, stream: StreamT, group: Fields | None, partitioner: Partitioner, single: Single) -> None:
        self._stream = stream
        self._group = group
        self._partitioner = partitioner
        self._single = single
        self._parts: list[Part] = []
        self._type: Literal["partition", "combine", "full"] | None = None
        self._appended = stream.getOutputFields()

    @overload
    def aggregate(self, inputFields: FieldsLike | None, agg: AnyAggregator, functionFields: FieldsLike) -> Self: ...
    @overload
    def aggregate(self, agg: AnyAggregator, functionFields: FieldsLike) -> Self: ...
    def aggregate(self, *args: Any, **named: Any) -> Self:
        """Aggregate the whole batch, or each group of it: ``aggregate([fields,] aggregator, functionFields)``.

        Without input fields the aggregator gets empty tuples.
        """
        if not self._declare("aggregate", arguments(ChainedAggregatorDeclarer.aggregate, args, named)):
            self._type = "full"
        elif self._type is None:
            self._type = "combine"
        return self

    @overload
    def partitionAggregate(
        self, inputFields: FieldsLike | None, agg: AnyAggregator, functionFields: FieldsLike
    ) -> Self: ...
    @overload
    def partitionAggregate(self, agg: AnyAggregator, functionFields: FieldsLike) -> Self: ...
    def partitionAggregate(self, *args: Any, **named: Any) -> Self:
        """Aggregate each partition: ``partitionAggregate([fields,] aggregator, functionFields)``. Nothing travels.

        Without input fields the aggregator gets empty tuples.
        """
        self._declare("partitionAggregate", arguments(ChainedAggregatorDeclarer.partitionAggregate, args, named))
        self._type = "partition"
        return self

    def _declare(self, name: str, call: dict[str, Any]) -> bool:
        """Add a part and return whether it is a combiner."""
        aggregator = check_aggregator(name, call["agg"])
        read = self._stream.check(call.get("inputFields"))
        outputs = with_output_type(aggregator, Fields.of(call["functionFields"]))
        combiner = isinstance(aggregator, CombinerAggregator)
        if combiner:
            check_input(aggregator, read, self._stream.getOutputFields())
            self._appended = self._appended.concat(outputs)
        self._parts.append(Part(aggregator, read, outputs))
        return combiner

    def chainEnd(self) -> StreamT:
        """End the chain and return the stream of the results. The group fields, if any, come first."""
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


def check_input(combiner: CombinerAggregator, inputs: Fields, fields: Fields) -> None:
    """Raise DefinitionError if the combiner reads an input field and gets none."""
    if combiner.needs_input and len(inputs) == 0:
        name = type(combiner).__name__
        raise DefinitionError(
            f"{name} reads its first input field, but no input fields are given. Name the field before the aggregator, "
            f"as in aggregate('amount', {name}(), 'result'); the stream has the fields {fields}"
        )


def with_output_type(aggregator: AnyAggregator, fields: Fields) -> Fields:
    """Return the function field, with the type that a built-in aggregator declares for its result."""
    declared = aggregator.output_type
    if declared is None or len(fields) != 1 or fields.types:
        return fields
    return Fields.of_names(fields, {fields[0]: declared})
