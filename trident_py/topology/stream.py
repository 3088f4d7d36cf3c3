"""Stream, GroupedStream and TridentState: the fluent handles. Each call adds a node and returns a handle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from ..engine.processors import Collect, PartitionPersist, StateQuery
from ..errors import DefinitionError
from ..model.partitioning import BatchGlobal, FieldsPartition, Global
from ..model.plan import StateUse
from ..operations.base import CombinerAggregator, ReducerAggregator
from ..operations.builtin import Max, MaxWithComparator, Min, MinWithComparator
from ..operations.ordering import AnyComparator as Comparator
from ..operations.roles import Applies, Queries, Updates
from ..state import QueryFunction, StateUpdater
from ..state.updaters import (
    CombinerAggStateUpdater,
    MapCombinerAggStateUpdater,
    MapReducerAggStateUpdater,
    ReducerAggStateUpdater,
)
from ..tuples import Fields, FieldsLike
from .aggregations import ChainedAggregatorDeclarer
from .arguments import arguments, check_aggregator, check_object, no_general_aggregator
from .checks import check_fits, keys_of, own_updater
from .graph import Graph, Handle
from .per_tuple import Lettered, PerTuple, Repartitions
from .roles import AnyAggregator, AnyFactory, AnyFilter, AnyFunction, KeepingAggregator
from .windows import Windowed


class Stream(Repartitions, PerTuple, Windowed, Lettered):
    """A stream of tuples with named fields. Source in Storm: org.apache.storm.trident.Stream.

    Input fields that you leave out mean **no** fields. Exceptions: filter(f), map, flatMap, peek, min, max and
    partitionPersist without an updater use all fields. The signatures are Storm's overloads. Raises DefinitionError
    if no overload fits a call, or if the stream lacks a named field.
    """

    def toStream(self) -> Stream:
        return self

    def applyAssembly(self, assembly: Applies | Callable[[Stream], Stream]) -> Stream:
        """Return ``assembly.apply(self)``, or what a callable of a stream returns. Raises DefinitionError for another
        object."""
        if isinstance(assembly, type) or not (isinstance(assembly, Applies) or callable(assembly)):
            raise DefinitionError(f"applyAssembly takes an Assembly, or a callable of a stream; got {assembly!r}")
        return assembly.apply(self) if isinstance(assembly, Applies) else assembly(self)

    def _collect(self, name: str) -> Stream:
        return self._process(Collect(name, self.getOutputFields()), self.getOutputFields())

    def groupBy(self, fields: FieldsLike) -> GroupedStream:
        """Group by these fields. Tuples move only when an operation on the groups needs it."""
        return GroupedStream(self, self.check(fields))

    def chainedAgg(self) -> ChainedAggregatorDeclarer[Stream]:
        """Start a chain of aggregators over the same tuples. End it with ``chainEnd()``."""
        return ChainedAggregatorDeclarer(self, None, BatchGlobal(), "batch")

    @overload
    def partitionAggregate(
        self, inputFields: FieldsLike | None, agg: AnyAggregator, functionFields: FieldsLike
    ) -> Stream: ...
    @overload
    def partitionAggregate(self, agg: AnyAggregator, functionFields: FieldsLike) -> Stream: ...
    def partitionAggregate(self, *args: Any, **named: Any) -> Stream:
        """Aggregate each partition of a batch: ``partitionAggregate([fields,] aggregator, functionFields)``.

        The aggregator runs once for each partition, even an empty one. Output fields: the function fields alone.
        """
        return self.chainedAgg().partitionAggregate(*args, **named).chainEnd()

    @overload
    def aggregate(self, inputFields: FieldsLike | None, agg: AnyAggregator, functionFields: FieldsLike) -> Stream: ...
    @overload
    def aggregate(self, agg: AnyAggregator, functionFields: FieldsLike) -> Stream: ...
    def aggregate(self, *args: Any, **named: Any) -> Stream:
        """Aggregate the whole batch in one partition: ``aggregate([fields,] aggregator, functionFields)``.

        The result is computed exactly once for each batch, even an empty one. A combiner aggregates in each partition
        first. Output fields: the function fields alone.
        """
        return self.chainedAgg().aggregate(*args, **named).chainEnd()

    def minBy(self, inputFieldName: str, comparator: Comparator | None = None) -> Stream:
        """Return the smallest tuple of each **partition** by one field, ignoring None. Of equal tuples the last one
        counts.

        For the whole batch, follow it with ``global_()`` and a second minBy. A comparator is ``(a, b) -> int``.
        """
        best = Min(inputFieldName) if comparator is None else MinWithComparator(inputFieldName, comparator)
        return self._best(best, inputFieldName)

    def maxBy(self, inputFieldName: str, comparator: Comparator | None = None) -> Stream:
        """Return the largest tuple of each **partition** by one field, ignoring None. Of equal tuples the last one
        counts.

        For the whole batch, follow it with ``global_()`` and a second maxBy. A comparator is ``(a, b) -> int``.
        """
        best = Max(inputFieldName) if comparator is None else MaxWithComparator(inputFieldName, comparator)
        return self._best(best, inputFieldName)

    def min(self, comparator: Comparator) -> Stream:
        """Take the minimum as minBy does; the comparator compares whole tuples."""
        return self._best(MinWithComparator(comparator))

    def max(self, comparator: Comparator) -> Stream:
        """Take the maximum as maxBy does; the comparator compares whole tuples."""
        return self._best(MaxWithComparator(comparator))

    def _best(self, aggregator: Any, field: str | None = None) -> Stream:
        self.check(field)
        fields = self.getOutputFields()
        return self.partitionAggregate(fields, aggregator, fields)

    @overload
    def stateQuery(
        self, state: TridentState, inputFields: FieldsLike | None, function: Queries, functionFields: FieldsLike
    ) -> Stream: ...
    @overload
    def stateQuery(self, state: TridentState, function: Queries, functionFields: FieldsLike) -> Stream: ...
    def stateQuery(self, *args: Any, **named: Any) -> Stream:
        """Query this partition's part of a state: ``stateQuery(state, [fields,] query, functionFields)``.

        It does not repartition: partition the stream as the state is. Output fields: the stream's, then the function
        fields. Raises DefinitionError if the query calls a method that the state lacks.
        """
        call = arguments(Stream.stateQuery, args, named)
        state, query = call["state"], check_object("stateQuery", call["function"], QueryFunction)
        if not isinstance(state, TridentState):
            raise DefinitionError(f"stateQuery takes a TridentState, as newStaticState returns one, got {state!r}")
        if not isinstance(query, Queries):
            raise DefinitionError(f"stateQuery takes a QueryFunction, got {query!r}")
        self.graph.check_own([state])
        inputs, outputs = self.check(call.get("inputFields")), Fields.of(call["functionFields"])
        check_fits(state.use, query, inputs, self)
        spec = StateQuery(query, inputs, outputs)
        return self._process(spec, self.getOutputFields().concat(outputs), state=state.use)

    @overload
    def partitionPersist(
        self,
        factory: AnyFactory,
        inputFields: FieldsLike | None,
        updater: Updates,
        functionFields: FieldsLike | None = None,
        *,
        stateName: str | None = None,
    ) -> TridentState: ...
    @overload
    def partitionPersist(
        self,
        factory: AnyFactory,
        updater: Updates,
        functionFields: FieldsLike | None = None,
        *,
        stateName: str | None = None,
    ) -> TridentState: ...
    @overload
    def partitionPersist(
        self,
        factory: AnyFactory,
        inputFields: FieldsLike | None = None,
        *,
        functionFields: FieldsLike | None = None,
        stateName: str | None = None,
    ) -> TridentState: ...
    def partitionPersist(self, *args: Any, **named: Any) -> TridentState:
        """Update a state, partition by partition: ``partitionPersist(factory, [fields,] updater[, functionFields])``.

        ``partitionPersist(factory[, fields])`` uses the factory's own updater, which gets the whole tuple unless you
        name fields; raises DefinitionError if the factory has none. (With an updater, no fields means no fields.)
        ``functionFields`` are the fields of the new values. ``stateName`` distinguishes the state from others in its
        store. Runs in the commit phase. On replay it runs again under the same txid.
        """
        call = arguments(Stream.partitionPersist, args, named)
        factory, fields = call["factory"], call.get("inputFields")
        updater = call["updater"] if "updater" in call else own_updater(factory)
        whole = "updater" not in call and fields is None
        read = self.getOutputFields() if whole else self.check(fields)
        return self.persist(factory, read, updater, Fields.of(call["functionFields"]), call["stateName"])

    def persist(self, factory: Any, inputs: Fields, updater: Any, outputs: Fields, name: str | None) -> TridentState:
        check_object("partitionPersist", updater, StateUpdater)
        if not isinstance(updater, Updates):
            raise DefinitionError(f"partitionPersist takes a StateUpdater, got {updater!r}")
        use = self.graph.state_use(factory, name)
        check_fits(use, updater, inputs, self)
        spec = PartitionPersist(updater, inputs, outputs)
        return TridentState(self.graph, self._process(spec, outputs, state=use, committer=True), use)

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
        """Keep one value over all batches: ``persistentAggregate(factory, [fields,] aggregator, functionFields)``.

        The state must be Snapshottable. A combiner updates it in every batch, even an empty one; a reducer only in
        batches with tuples. ``stateName`` distinguishes the state from others in its store.
        """
        call = arguments(Stream.persistentAggregate, args, named)
        aggregator = check_aggregator("persistentAggregate", call["agg"])
        factory, inputs, outputs = call["factory"], call.get("inputFields"), Fields.of(call["functionFields"])
        if isinstance(aggregator, CombinerAggregator):
            chain = ChainedAggregatorDeclarer(self, None, Global(), "global")
            stream = chain.aggregate(inputs, aggregator, outputs).chainEnd()
            return stream.persist(factory, outputs, CombinerAggStateUpdater(aggregator), outputs, call["stateName"])
        if not isinstance(aggregator, ReducerAggregator):
            raise no_general_aggregator(aggregator)
        read = self.check(inputs)
        return self.global_().persist(factory, read, ReducerAggStateUpdater(aggregator), outputs, call["stateName"])


class TridentState(Handle):
    """The handle of a state, returned by partitionPersist, persistentAggregate and newStaticState."""

    kind = "state"

    def __init__(self, graph: Graph, stream: Stream | None, use: StateUse) -> None:
        super().__init__(graph)
        self.stream = stream
        self.use = use

    def newValuesStream(self) -> Stream:
        """Return the stream of the tuples that the updater emits in the commit phase. Every call returns the same
        stream."""
        if self.stream is None:
            raise DefinitionError("a static state has no new values; nothing in this topology updates it")
        return self.stream

    def parallelismHint(self, parallelism: int) -> TridentState:
        """Set the number of the state's partitions."""
        if self.stream is not None:
            self.stream.parallelismHint(parallelism)
        return self


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
        """Return the stream as it was before groupBy."""
        return self._stream

    def getName(self) -> str | None:
        return self._stream.getName()

    def check(self, fields: FieldsLike | None) -> Fields:
        return self._stream.check(fields)

    def chainedAgg(self) -> ChainedAggregatorDeclarer[Stream]:
        """Start a chain of aggregators over the same groups. End it with ``chainEnd()``."""
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
        """Apply Stream.each; the grouping stays."""
        return GroupedStream(self._stream.each(*args, **named), self._group)

    @overload
    def aggregate(self, inputFields: FieldsLike | None, agg: AnyAggregator, functionFields: FieldsLike) -> Stream: ...
    @overload
    def aggregate(self, agg: AnyAggregator, functionFields: FieldsLike) -> Stream: ...
    def aggregate(self, *args: Any, **named: Any) -> Stream:
        """Return one value for each group of the batch: ``aggregate([fields,] aggregator, functionFields)``.

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
        """Return one value for each group of each partition: ``partitionAggregate([fields,] aggregator,
        functionFields)``.

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
        """Keep one value for each group: ``persistentAggregate(factory, [fields,] aggregator, functionField)``.

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
        """Query as Stream.stateQuery, after a repartition by the group fields. The state must be grouped the same
        way."""
        return self._stream.partitionBy(self._group).stateQuery(*args, **named)
