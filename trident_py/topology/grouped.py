"""GroupedStream: what can be done by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from ..operations.base import CombinerAggregator, ReducerAggregator
from ..operations.roles import Queries
from ..partitioning import FieldsPartition
from ..state.updaters import MapCombinerAggStateUpdater, MapReducerAggStateUpdater
from ..tuples import Fields, FieldsLike
from .arguments import arguments, check_aggregator, no_general_aggregator
from .chained import ChainedAggregatorDeclarer
from .fitting import keys_of
from .roles import AnyAggregator, AnyFactory, AnyFilter, AnyFunction, KeepingAggregator

if TYPE_CHECKING:
    from .stream import Stream, TridentState


class GroupedStream:
    """A stream and the fields by which it is grouped. Source in Storm: GroupedStream.

    Groups are equal as in Java: 1, 1.0, True and "1" are four groups, None is one.
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
        """Several aggregators over the same groups; ends with ``chainEnd()``."""
        return ChainedAggregatorDeclarer(self._stream, self._group, FieldsPartition(self._group), None)

    @overload
    def each(
        self, inputFields: FieldsLike | None, function: AnyFunction, functionFields: FieldsLike
    ) -> GroupedStream: ...
    @overload
    def each(self, function: AnyFunction, functionFields: FieldsLike) -> GroupedStream: ...
    @overload
    def each(self, inputFields: FieldsLike | None, filter: AnyFilter) -> GroupedStream: ...
    def each(self, *args: Any, **given: Any) -> GroupedStream:
        """As Stream.each; the grouping stays."""
        return GroupedStream(self._stream.each(*args, **given), self._group)

    @overload
    def aggregate(self, inputFields: FieldsLike | None, agg: AnyAggregator, functionFields: FieldsLike) -> Stream: ...
    @overload
    def aggregate(self, agg: AnyAggregator, functionFields: FieldsLike) -> Stream: ...
    def aggregate(self, *args: Any, **given: Any) -> Stream:
        """One value for each group of the batch: ``aggregate([fields,] aggregator, functionFields)``.

        Nothing for an empty batch. Output fields: those of the group, then the function fields. A combiner aggregates
        in each partition first; with another aggregator all tuples travel. Left-out input fields mean no fields.
        """
        return self.chainedAgg().aggregate(*args, **given).chainEnd()

    @overload
    def partitionAggregate(
        self, inputFields: FieldsLike | None, agg: AnyAggregator, functionFields: FieldsLike
    ) -> GroupedStream: ...
    @overload
    def partitionAggregate(self, agg: AnyAggregator, functionFields: FieldsLike) -> GroupedStream: ...
    def partitionAggregate(self, *args: Any, **given: Any) -> GroupedStream:
        """For each group of each partition: ``partitionAggregate([fields,] aggregator, functionFields)``.

        Nothing travels. Output fields as those of `aggregate`. The grouping stays; ``toStream()`` ends it.
        """
        made = self.chainedAgg().partitionAggregate(*args, **given).chainEnd()
        return GroupedStream(made, self._group)

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
    def persistentAggregate(self, *args: Any, **given: Any) -> TridentState:
        """``persistentAggregate(factory, [fields,] aggregator, functionField)``: one value for each group.

        Over all batches, in a MapState; the key is the group's values. A combiner aggregates in each partition first;
        with a reducer all tuples travel. A state whose key has names gets each field of the group under its own name,
        and the new values come in the order of that key. ``stateName`` tells the state apart from others in its store.
        """
        call = arguments(GroupedStream.persistentAggregate, args, given)
        factory, aggregator = call["factory"], check_aggregator("persistentAggregate", call["agg"])
        made, keys, inputs = Fields.of(call["functionFields"]), keys_of(factory, self._group), call.get("inputFields")
        if isinstance(aggregator, CombinerAggregator):
            updater = MapCombinerAggStateUpdater(aggregator, keys, made)
            stream = self.aggregate(inputs, aggregator, made)
            typed = stream.getOutputFields()
            read = self._group.concat(made)
            outputs = typed.only([*keys, *typed.without(keys)])
            return stream.persist(factory, read, updater, outputs, call["stateName"])
        if not isinstance(aggregator, ReducerAggregator):
            raise no_general_aggregator(aggregator)
        read = self._stream.check(inputs)
        reducing = MapReducerAggStateUpdater(aggregator, keys, read)
        stream = self._stream.partitionBy(self._group)
        union = self._group.concat(read.without(self._group))
        return stream.persist(factory, union, reducing, keys.concat(made), call["stateName"])

    @overload
    def stateQuery(
        self, state: TridentState, inputFields: FieldsLike | None, function: Queries, functionFields: FieldsLike
    ) -> Stream: ...
    @overload
    def stateQuery(self, state: TridentState, function: Queries, functionFields: FieldsLike) -> Stream: ...
    def stateQuery(self, *args: Any, **given: Any) -> Stream:
        """As Stream.stateQuery, after a repartition by the group fields: right for a state that is grouped alike."""
        return self._stream.partitionBy(self._group).stateQuery(*args, **given)
