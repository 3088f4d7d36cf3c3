"""GroupedStream: what can be done by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..operations.base import CombinerAggregator, ReducerAggregator
from ..partitioning import FieldsPartition
from ..state.updaters import MapCombinerAggStateUpdater, MapReducerAggStateUpdater
from ..tuples import Fields
from . import chained
from .arguments import check_aggregator, no_general_aggregator, overload
from .fitting import keys_of
from .state import TridentState

if TYPE_CHECKING:
    from .stream import Stream


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

    def check(self, fields: Any) -> Fields:
        return self._stream.check(fields)

    def chainedAgg(self) -> chained.ChainedAggregatorDeclarer:
        """Several aggregators over the same groups; ends with ``chainEnd()``."""
        return chained.ChainedAggregatorDeclarer(self._stream, self._group, FieldsPartition(self._group), None)

    def each(self, *args: Any, **given: Any) -> GroupedStream:
        """As Stream.each; the grouping stays."""
        return GroupedStream(self._stream.each(*args, **given), self._group)

    def aggregate(self, *args: Any, **given: Any) -> Stream:
        """One value for each group of the batch, nothing for an empty batch. Fields: group, then function fields."""
        return self.chainedAgg().aggregate(*args, **given).chainEnd()

    def partitionAggregate(self, *args: Any, **given: Any) -> GroupedStream:
        """For each group of each partition, without a repartition. The grouping stays; ``toStream()`` ends it."""
        made = self.chainedAgg().partitionAggregate(*args, **given).chainEnd()
        return GroupedStream(made, self._group)

    def persistentAggregate(self, factory: Any, *args: Any, stateName: str | None = None, **given: Any) -> TridentState:
        """One value for each group over all batches, in a MapState under the group's values.

        A combiner aggregates in each partition first; with a reducer all tuples travel. A state whose key has names
        gets each field of the group under its own name, and the new values come in the order of that key.
        """
        inputs, aggregator, outputs = overload("persistentAggregate", args, chained.NAMES, given)
        aggregator = check_aggregator("persistentAggregate", aggregator)
        made, keys = Fields.of(outputs), keys_of(factory, self._group)
        if isinstance(aggregator, CombinerAggregator):
            updater = MapCombinerAggStateUpdater(aggregator, keys, made)
            stream = self.aggregate(inputs, aggregator, made)
            typed = stream.getOutputFields()
            read = self._group.concat(made)
            return stream.persist(factory, read, updater, typed.only([*keys, *typed.without(keys)]), stateName)
        if not isinstance(aggregator, ReducerAggregator):
            raise no_general_aggregator(aggregator)
        read = self._stream.check(inputs)
        reducing = MapReducerAggStateUpdater(aggregator, keys, read)
        stream = self._stream.partitionBy(self._group)
        union = self._group.concat(read.without(self._group))
        return stream.persist(factory, union, reducing, keys.concat(made), stateName)

    def stateQuery(self, state: TridentState, *args: Any, **given: Any) -> Stream:
        """Repartitions by the group fields and asks the state: right for a state grouped alike."""
        return self._stream.partitionBy(self._group).stateQuery(state, *args, **given)
