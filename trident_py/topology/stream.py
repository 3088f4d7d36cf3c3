"""Stream and TridentState: the fluent handles of a node and of a state. Each call adds a node and returns a handle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from ..errors import DefinitionError
from ..operations.base import (
    CombinerAggregator,
    Consumer,
    CustomStreamGrouping,
    Filter,
    FlatMapFunction,
    Function,
    MapFunction,
    ReducerAggregator,
)
from ..operations.builtin import Max, MaxWithComparator, Min, MinWithComparator
from ..operations.columnar import Columnar
from ..operations.ordering import AnyComparator as Comparator
from ..operations.roles import Accepts, Applies, Chooses, Executes, Keeps, Maps, Queries, Updates
from ..partitioning import BatchGlobal, Broadcast, Custom, FieldsPartition, Global, Identity, Partitioner, Shuffle
from ..plan import StateUse
from ..processors import Collect, Each, Keep, PartitionPersist, Peek, Project, Replace, StateQuery
from ..state import QueryFunction, StateUpdater
from ..state.updaters import CombinerAggStateUpdater, ReducerAggStateUpdater
from ..tuples import Fields, FieldsLike
from .arguments import arguments, check_aggregator, check_object, no_general_aggregator
from .chained import ChainedAggregatorDeclarer
from .checks import check_fits, own_updater
from .graph import Graph, Handle
from .grouped import GroupedStream
from .letters import Lettered
from .roles import (
    AnyAggregator,
    AnyConsumer,
    AnyFactory,
    AnyFilter,
    AnyFlatMap,
    AnyFunction,
    AnyGrouping,
    AnyMap,
    KeepingAggregator,
)
from .windows import Windowed


class Stream(Windowed, Lettered):
    """A stream of tuples with named fields. Source in Storm: org.apache.storm.trident.Stream.

    Input fields that you leave out mean **no** fields. Exceptions: filter(f), map, flatMap, peek, min, max and
    partitionPersist without an updater use all fields. The signatures are Storm's overloads. Raises DefinitionError
    if no overload fits a call, or if the stream lacks a named field.
    """

    def toStream(self) -> Stream:
        return self

    # -- repartitions -----------------------------------------------------------------------------------------

    def partition(self, grouping: AnyGrouping) -> Stream:
        """Repartitions by a custom grouping: ``chooseTasks(taskId, values)``, or a callable: tuple -> number.

        With a callable, the partition is the number modulo the partition count.
        """
        check_object("partition", grouping, CustomStreamGrouping)
        if isinstance(grouping, Partitioner):
            return self._partition(grouping)
        if not (isinstance(grouping, Chooses) or callable(grouping)):
            raise DefinitionError(f"partition takes a CustomStreamGrouping or a callable, got {grouping!r}")
        return self._partition(Custom(grouping, self.getOutputFields()))

    def partitionBy(self, fields: FieldsLike) -> Stream:
        """Sends tuples with equal values of these fields to one partition, the same in every batch."""
        return self._partition(FieldsPartition(self.check(fields)))

    def shuffle(self) -> Stream:
        """Distributes the tuples round robin."""
        return self._partition(Shuffle())

    def localOrShuffle(self) -> Stream:
        """As shuffle, round robin: Spark places tasks itself."""
        return self._partition(Shuffle(local=True))

    def global_(self) -> Stream:
        """Sends all tuples to partition 0. Java's ``global()``."""
        return self._partition(Global())

    def batchGlobal(self) -> Stream:
        """Sends all tuples of a batch to one partition, a different one from batch to batch."""
        return self._partition(BatchGlobal())

    def broadcast(self) -> Stream:
        """Sends every tuple to every partition."""
        return self._partition(Broadcast())

    def identityPartition(self) -> Stream:
        """Sends the tuples of partition i to partition i."""
        return self._partition(Identity())

    # -- tuple by tuple ---------------------------------------------------------------------------------------

    @overload
    def each(self, inputFields: FieldsLike | None, function: AnyFunction, functionFields: FieldsLike) -> Stream: ...
    @overload
    def each(self, function: AnyFunction, functionFields: FieldsLike) -> Stream: ...
    @overload
    def each(self, inputFields: FieldsLike | None, filter: AnyFilter) -> Stream: ...
    def each(self, *args: Any, **named: Any) -> Stream:
        """Appends the results of a function to each tuple, or filters the tuples.

        ``each([fields,] function, functionFields)`` or ``each(fields, filter)``. A function emits any number of results
        for a tuple: none drops the tuple, several repeat it. With ``functionFields=[]`` it adds no field, and the tuple
        passes once for each result. A plain callable is a Function if the call has function fields, else a Filter; it
        gets the values as arguments. Without input fields a function sees an empty tuple.
        """
        call = arguments(Stream.each, args, named)
        if "filter" in call:
            return self._keep("each", call["filter"], call["inputFields"])
        function = check_object("each", call["function"], Function, Filter)
        if isinstance(function, Columnar):
            return self._each_column(function, call.get("inputFields"), Fields.of(call["functionFields"]))
        if isinstance(function, Filter | MapFunction | FlatMapFunction) or not _is(function, Executes):
            raise DefinitionError(f"each with function fields takes a Function or a callable, got {function!r}")
        inputs, outputs = self.check(call.get("inputFields")), Fields.of(call["functionFields"])
        return self._process(Each(function, inputs, outputs), self.getOutputFields().concat(outputs))

    def _each_column(self, function: Columnar, fields: FieldsLike | None, wanted: Fields) -> Stream:
        every = fields is None and function.names_fields
        inputs = function.reads(self.getOutputFields() if every else self.check(fields))
        outputs = function.outputs(inputs, wanted)
        return self._process(Each(function, inputs, outputs), self.getOutputFields().concat(outputs))

    @overload
    def filter(self, filter: AnyFilter) -> Stream: ...
    @overload
    def filter(self, inputFields: FieldsLike | None, filter: AnyFilter) -> Stream: ...
    def filter(self, *args: Any, **named: Any) -> Stream:
        """Keeps the tuples for which the filter is true.

        ``filter(filter)`` passes it the whole tuple, ``filter(fields, filter)`` only these fields.
        """
        call = arguments(Stream.filter, args, named)
        fields = call.get("inputFields")
        return self._keep("filter", call["filter"], self.getOutputFields() if fields is None else fields)

    def _keep(self, name: str, operation: Any, fields: FieldsLike | None) -> Stream:
        check_object(name, operation, Filter)
        if isinstance(operation, Function):
            raise DefinitionError(f"{name} got the Function {operation!r} without function fields; give [] for none")
        if not _is(operation, Keeps):
            raise DefinitionError(f"a filter is a Filter or a callable, got {operation!r}")
        inputs = self.check(fields)
        if isinstance(operation, Columnar):
            inputs = operation.reads(inputs)
            operation.check_filter(inputs)
        return self._process(Keep(operation, inputs), self.getOutputFields())

    def map(self, function: AnyMap, outputFields: FieldsLike | None = None) -> Stream:
        """Replaces each tuple by the function's return value. The field names stay unless ``outputFields`` is given."""
        return self._replace(function, outputFields, flat=False)

    def flatMap(self, function: AnyFlatMap, outputFields: FieldsLike | None = None) -> Stream:
        """Replaces each tuple by the tuples that the function returns."""
        return self._replace(function, outputFields, flat=True)

    def _replace(self, function: Any, outputs: FieldsLike | None, flat: bool) -> Stream:
        check_object("flatMap" if flat else "map", function, MapFunction, FlatMapFunction, Function)
        if isinstance(function, Function) or not _is(function, Maps):
            raise DefinitionError(f"map and flatMap take a function or a callable, got {function!r}")
        fields = self.getOutputFields()
        if isinstance(function, Columnar):
            fields = function.reads(fields)
            outputs = function.mapped(fields, None if outputs is None else Fields.of(outputs))
        else:
            outputs = Fields.named(fields) if outputs is None else Fields.of(outputs)
        return self._process(Replace(function, outputs, flat, fields), outputs)

    def peek(self, consumer: AnyConsumer) -> Stream:
        """Shows every tuple to the consumer. On a replay of the batch the consumer sees it again."""
        check_object("peek", consumer, Consumer)
        if not _is(consumer, Accepts):
            raise DefinitionError(f"peek takes a Consumer or a callable, got {consumer!r}")
        return self._process(Peek(consumer, self.getOutputFields()), self.getOutputFields())

    def project(self, fields: FieldsLike) -> Stream:
        """Keeps only these fields, in this order."""
        kept = self.check(fields)
        return self._process(Project(kept), kept)

    def applyAssembly(self, assembly: Applies | Callable[[Stream], Stream]) -> Stream:
        """Returns ``assembly.apply(self)``, or what a callable of a stream returns. Raises DefinitionError for another
        object."""
        if isinstance(assembly, type) or not (isinstance(assembly, Applies) or callable(assembly)):
            raise DefinitionError(f"applyAssembly takes an Assembly, or a callable of a stream; got {assembly!r}")
        return assembly.apply(self) if isinstance(assembly, Applies) else assembly(self)

    def _collect(self, name: str) -> Stream:
        return self._process(Collect(name, self.getOutputFields()), self.getOutputFields())

    # -- aggregations -----------------------------------------------------------------------------------------

    def groupBy(self, fields: FieldsLike) -> GroupedStream:
        """Groups by these fields. Tuples move only when an operation on the groups needs it."""
        return GroupedStream(self, self.check(fields))

    def chainedAgg(self) -> ChainedAggregatorDeclarer[Stream]:
        """Starts a chain of aggregators over the same tuples. End it with ``chainEnd()``."""
        return ChainedAggregatorDeclarer(self, None, BatchGlobal(), "batch")

    @overload
    def partitionAggregate(
        self, inputFields: FieldsLike | None, agg: AnyAggregator, functionFields: FieldsLike
    ) -> Stream: ...
    @overload
    def partitionAggregate(self, agg: AnyAggregator, functionFields: FieldsLike) -> Stream: ...
    def partitionAggregate(self, *args: Any, **named: Any) -> Stream:
        """Aggregates each partition of a batch: ``partitionAggregate([fields,] aggregator, functionFields)``.

        The aggregator runs once for each partition, even an empty one. Output fields: the function fields alone.
        """
        return self.chainedAgg().partitionAggregate(*args, **named).chainEnd()

    @overload
    def aggregate(self, inputFields: FieldsLike | None, agg: AnyAggregator, functionFields: FieldsLike) -> Stream: ...
    @overload
    def aggregate(self, agg: AnyAggregator, functionFields: FieldsLike) -> Stream: ...
    def aggregate(self, *args: Any, **named: Any) -> Stream:
        """Aggregates the whole batch in one partition: ``aggregate([fields,] aggregator, functionFields)``.

        The result is computed exactly once for each batch, even an empty one. A combiner aggregates in each partition
        first. Output fields: the function fields alone.
        """
        return self.chainedAgg().aggregate(*args, **named).chainEnd()

    def minBy(self, inputFieldName: str, comparator: Comparator | None = None) -> Stream:
        """The smallest tuple of each **partition** by one field, ignoring None. Of equal tuples the last one counts.

        For the whole batch, follow it with ``global_()`` and a second minBy. A comparator is ``(a, b) -> int``.
        """
        best = Min(inputFieldName) if comparator is None else MinWithComparator(inputFieldName, comparator)
        return self._best(best, inputFieldName)

    def maxBy(self, inputFieldName: str, comparator: Comparator | None = None) -> Stream:
        """The largest tuple of each **partition** by one field, ignoring None. Of equal tuples the last one counts.

        For the whole batch, follow it with ``global_()`` and a second maxBy. A comparator is ``(a, b) -> int``.
        """
        best = Max(inputFieldName) if comparator is None else MaxWithComparator(inputFieldName, comparator)
        return self._best(best, inputFieldName)

    def min(self, comparator: Comparator) -> Stream:
        """As minBy, but the comparator compares whole tuples."""
        return self._best(MinWithComparator(comparator))

    def max(self, comparator: Comparator) -> Stream:
        """As maxBy, but the comparator compares whole tuples."""
        return self._best(MaxWithComparator(comparator))

    def _best(self, aggregator: Any, field: str | None = None) -> Stream:
        self.check(field)
        fields = self.getOutputFields()
        return self.partitionAggregate(fields, aggregator, fields)

    # -- states -----------------------------------------------------------------------------------------------

    @overload
    def stateQuery(
        self, state: TridentState, inputFields: FieldsLike | None, function: Queries, functionFields: FieldsLike
    ) -> Stream: ...
    @overload
    def stateQuery(self, state: TridentState, function: Queries, functionFields: FieldsLike) -> Stream: ...
    def stateQuery(self, *args: Any, **named: Any) -> Stream:
        """Queries this partition's part of a state: ``stateQuery(state, [fields,] query, functionFields)``.

        It does not repartition: partition the stream as the state is. Output fields: the stream's, then the function
        fields. Raises DefinitionError if the query calls a method that the state lacks.
        """
        call = arguments(Stream.stateQuery, args, named)
        state, query = call["state"], check_object("stateQuery", call["function"], QueryFunction)
        if not isinstance(state, TridentState):
            raise DefinitionError(f"stateQuery takes a TridentState, as newStaticState returns one, got {state!r}")
        if not isinstance(query, Queries):
            raise DefinitionError(f"stateQuery takes a QueryFunction, got {query!r}")
        check_fits(state.use.factory, query)
        self.graph.check_own([state])
        outputs = Fields.of(call["functionFields"])
        spec = StateQuery(query, self.check(call.get("inputFields")), outputs)
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
        """Updates a state, partition by partition: ``partitionPersist(factory, [fields,] updater[, functionFields])``.

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
        check_fits(factory, updater)
        use = self.graph.state_use(factory, name)
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
        """Keeps one value over all batches: ``persistentAggregate(factory, [fields,] aggregator, functionFields)``.

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
        """The stream of the tuples that the updater emits in the commit phase. Every call returns the same stream."""
        if self.stream is None:
            raise DefinitionError("a static state has no new values; nothing in this topology updates it")
        return self.stream

    def parallelismHint(self, parallelism: int) -> TridentState:
        """Sets the number of the state's partitions."""
        if self.stream is not None:
            self.stream.parallelismHint(parallelism)
        return self


def _is(operation: Any, role: type) -> bool:
    """Whether the operation has the role, or is a plain callable in its place."""
    return isinstance(operation, role) or callable(operation)
