"""GroupedStream: operations by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from ..operations.base import CombinerAggregator, ReducerAggregator
from ..operations.roles import Queries
from ..partitioning import FieldsPartition
from ..state.updaters import MapCombinerAggStateUpdater, MapReducerAggStateUpdater
from ..tuples import Fields, FieldsLike
from .arguments import arguments, check_aggregator, no_general_aggregator
from .chained import ChainedAggregatorDeclarer
from .checks import keys_of
from .roles import AnyAggregator, AnyFactory, AnyFilter, AnyFunction, KeepingAggregator

if TYPE_CHECKING:
    from .stream import Stream, TridentState


class GroupedStream:
    """A stream and the fields by which it is grouped. Source in Storm: GroupedStream.

    Keys compare as in Java: 1, 1.0, True and "1" are four groups. None is a group too.
    """

    def __init__(self, stream: Stream, groupFields: Fields) -> None:
        self._stream = stream
        self._group = groupFields

    def name(self, name: str) -> GroupedStream:
        return GroupedStream(self._stream.name(name), self._group)

    def getGroupFields(self) -> Fields:
        return self._group

    def getOutputFields(self) -> Fields:
        return self._stream.getOutputFields()

    def toStream(self) -> Stream:
        """The stream as it was before groupBy."""
        return self._stream

    def getName(self) -> str | None:
        return self._stream.getName()

    def check(self, fields: FieldsLike | None) -> Fields:
        return self._stream.check(fields)

    def chainedAgg(self) -> ChainedAggregatorDeclarer[Stream]:
        """Starts a chain of aggregators over the same groups. End it with ``chainEnd()``."""
        return ChainedAggregatorDeclarer(self._stream, self._group, FieldsPartition(self._group), None)

    @overload
    def each(
        self, inputFields: FieldsLike | None, function: AnyFunction, functionFields: FieldsLike
    ) -> GroupedStream: ...
    @overload
    def each(self, function: AnyFunction, functionFields: FieldsLike) -> GroupedStream: ...
    @overload
    def each(self, inputFields: FieldsLike | None, filter: AnyFilter) -> GroupedStream: ...
    def each(self, *args: Any, **named: Any) -> GroupedStream:
        """As Stream.each; the grouping stays."""
        return GroupedStream(self._stream.each(*args, **named), self._group)

    @overload
    def aggregate(self, inputFields: FieldsLike | None, agg: AnyAggregator, functionFields: FieldsLike) -> Stream: ...
    @overload
    def aggregate(self, agg: AnyAggregator, functionFields: FieldsLike) -> Stream: ...
    def aggregate(self, *args: Any, **named: Any) -> Stream:
        """One value for each group of the batch: ``aggregate([fields,] aggregator, functionFields)``.

        An empty batch gives no values. Output fields: the group fields, then the function fields. A combiner aggregates
        in each partition first; with any other, all tuples travel. Without input fields it gets empty tuples.
        """
        return self.chainedAgg().aggregate(*args, **named).chainEnd()

    @overload
    def partitionAggregate(
        self, inputFields: FieldsLike | None, agg: AnyAggregator, functionFields: FieldsLike
    ) -> GroupedStream: ...
    @overload
    def partitionAggregate(self, agg: AnyAggregator, functionFields: FieldsLike) -> GroupedStream: ...
    def partitionAggregate(self, *args: Any, **named: Any) -> GroupedStream:
        """One value for each group of each partition: ``partitionAggregate([fields,] aggregator, functionFields)``.

        No tuple travels. Output fields: as in `aggregate`. The grouping stays; ``toStream()`` ends it.
        """
        return GroupedStream(self.chainedAgg().partitionAggregate(*args, **named).chainEnd(), self._group)

    @overload
    def persistentAggregate(
        self,
        factory: AnyFactory,
        inputFields: FieldsLike | None,
        agg: KeepingAggregator,
        functionFields: FieldsLike,
        *,
        stateName: str | None = None,
    ) -> TridentState: ...
    @overload
    def persistentAggregate(
        self, factory: AnyFactory, agg: KeepingAggregator, functionFields: FieldsLike, *, stateName: str | None = None
    ) -> TridentState: ...
    def persistentAggregate(self, *args: Any, **named: Any) -> TridentState:
        """Keeps one value for each group: ``persistentAggregate(factory, [fields,] aggregator, functionField)``.

        The value covers all batches and lives in a MapState under the group's values as key. A combiner aggregates in
        each partition first; with a reducer all tuples travel. If the state names its key fields, the group fields are
        matched to them by name, and the new values come in the order of that key. ``stateName`` distinguishes the state
        from others in its store.
        """
        call = arguments(GroupedStream.persistentAggregate, args, named)
        factory, aggregator = call["factory"], check_aggregator("persistentAggregate", call["agg"])
        values, keys, inputs = Fields.of(call["functionFields"]), keys_of(factory, self._group), call.get("inputFields")
        if isinstance(aggregator, CombinerAggregator):
            updater = MapCombinerAggStateUpdater(aggregator, keys, values)
            stream = self.aggregate(inputs, aggregator, values)
            typed = stream.getOutputFields()
            read = self._group.concat(values)
            outputs = typed.only([*keys, *typed.without(keys)])
            return stream.persist(factory, read, updater, outputs, call["stateName"])
        if not isinstance(aggregator, ReducerAggregator):
            raise no_general_aggregator(aggregator)
        read = self._stream.check(inputs)
        reducing = MapReducerAggStateUpdater(aggregator, keys, read)
        stream = self._stream.partitionBy(self._group)
        union = self._group.concat(read.without(self._group))
        return stream.persist(factory, union, reducing, keys.concat(values), call["stateName"])

    @overload
    def stateQuery(
        self, state: TridentState, inputFields: FieldsLike | None, function: Queries, functionFields: FieldsLike
    ) -> Stream: ...
    @overload
    def stateQuery(self, state: TridentState, function: Queries, functionFields: FieldsLike) -> Stream: ...
    def stateQuery(self, *args: Any, **named: Any) -> Stream:
        """As Stream.stateQuery, after a repartition by the group fields. The state must be grouped the same way."""
        return self._stream.partitionBy(self._group).stateQuery(*args, **named)
