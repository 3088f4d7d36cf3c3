"""Stream: the fluent handle of one node. Every call adds a node and returns the handle of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import DefinitionError
from ..operations.base import (
    CombinerAggregator,
    Consumer,
    Filter,
    FlatMapFunction,
    Function,
    MapFunction,
    ReducerAggregator,
)
from ..partitioning import BatchGlobal, Broadcast, Custom, FieldsPartition, Global, Identity, Partitioner, Shuffle
from ..plan import PartitionNode, ProcessorNode
from ..processors import Collect, Each, Keep, PartitionPersist, Peek, Project, Replace, StateQuery
from ..state import QueryFunction, StateUpdater
from ..state.updaters import CombinerAggStateUpdater, ReducerAggStateUpdater
from ..tuples import Fields, FieldsLike
from . import chained
from .arguments import (
    check_aggregator,
    check_fields,
    check_object,
    is_fields,
    no_general_aggregator,
    not_there_yet,
    overload,
)
from .comparisons import Comparisons
from .fitting import check_fits
from .grouped import GroupedStream
from .state import TridentState

if TYPE_CHECKING:
    from .topology import TridentTopology


class Stream(Comparisons):
    """A stream of tuples with named fields. Source in Storm: org.apache.storm.trident.Stream.

    Left-out input fields mean **no** fields, except for filter(f), map, flatMap, peek, min and max.
    """

    def __init__(self, topology: TridentTopology, node_id: int, name: str | None = None) -> None:
        self.topology = topology
        self.node_id = node_id
        self._name = name

    # -- names, fields, hints ---------------------------------------------------------------------------------

    def name(self, name: str) -> Stream:
        """This stream with a label for explain() and progress."""
        return Stream(self.topology, self.node_id, name)

    def getName(self) -> str | None:
        return self._name

    def getOutputFields(self) -> Fields:
        return self.topology.node(self.node_id).fields

    def toStream(self) -> Stream:
        return self

    def check(self, fields: FieldsLike | None) -> Fields:
        """The fields, checked against this stream's. Raises DefinitionError."""
        return check_fields(Fields.of(fields), self.getOutputFields())

    def parallelismHint(self, parallelism: int) -> Stream:
        """The number of partitions of this step and of all that is not separated from it by a repartition."""
        self.topology.hint(self.node_id, parallelism)
        return self

    def setCPULoad(self, *load: Any) -> Stream:
        """Accepted for ported lines; Spark places tasks itself."""
        return self

    def setMemoryLoad(self, *load: Any) -> Stream:
        """Accepted for ported lines; Spark places tasks itself."""
        return self

    # -- repartitions -----------------------------------------------------------------------------------------

    def partition(self, grouping: Any) -> Stream:
        """By a custom grouping: ``chooseTasks(taskId, values)``, or a callable of the tuple that gives a number."""
        if isinstance(grouping, Partitioner):
            return self._partition(grouping)
        return self._partition(Custom(grouping, self.getOutputFields()))

    def _partition(self, partitioner: Partitioner) -> Stream:
        node = self.topology.node(self.node_id)
        source = self._process(Project(node.fields), node.fields) if isinstance(node, PartitionNode) else self
        return self.topology.add(PartitionNode, node.fields, source, partitioner=partitioner)

    def partitionBy(self, fields: FieldsLike) -> Stream:
        """Equal values of these fields meet in one partition, the same for all batches."""
        return self._partition(FieldsPartition(self.check(fields)))

    def shuffle(self) -> Stream:
        """Round robin."""
        return self._partition(Shuffle())

    def localOrShuffle(self) -> Stream:
        """Round robin; Spark places tasks itself."""
        return self._partition(Shuffle(local=True))

    def global_(self) -> Stream:
        """All tuples to partition 0. Java's ``global()``."""
        return self._partition(Global())

    def batchGlobal(self) -> Stream:
        """All tuples of one batch to one partition, which differs from batch to batch."""
        return self._partition(BatchGlobal())

    def broadcast(self) -> Stream:
        """Every tuple to every partition."""
        return self._partition(Broadcast())

    def identityPartition(self) -> Stream:
        """From partition i to partition i."""
        return self._partition(Identity())

    # -- one tuple after the other ----------------------------------------------------------------------------

    def each(self, *args: Any, **given: Any) -> Stream:
        """``each(fields, function, functionFields)`` appends results, ``each(fields, filter)`` keeps or drops.

        A callable stands for a Function where function fields are given (also ``[]``), else for a Filter.
        """
        names = ("inputFields", "filter" if "filter" in given else "function", "functionFields")
        inputs, operation, outputs = overload("each", args, names, given)
        check_object("each", operation, Function, Filter)
        read = self.check(inputs)
        if outputs is None and not isinstance(operation, Function):
            return self._keep(operation, read)
        if isinstance(operation, Filter) or not (hasattr(operation, "execute") or callable(operation)):
            raise DefinitionError(f"each with function fields takes a Function or a callable, got {operation!r}")
        made = Fields.of(outputs)
        return self._process(Each(operation, read, made), self.getOutputFields().concat(made))

    def filter(self, *args: Any, **given: Any) -> Stream:
        """``filter(filter)`` sees the whole tuple, ``filter(fields, filter)`` only these fields."""
        if len(args) == 1 and not is_fields(args[0]):
            return self._keep(args[0], self.getOutputFields())
        inputs, operation = overload("filter", args, ("inputFields", "filter"), given)
        return self._keep(operation, self.getOutputFields() if inputs is None else self.check(inputs))

    def _keep(self, operation: Any, read: Fields) -> Stream:
        check_object("filter", operation, Filter)
        if not (hasattr(operation, "isKeep") or callable(operation)):
            raise DefinitionError(f"a filter is a Filter or a callable, got {operation!r}")
        return self._process(Keep(operation, read), self.getOutputFields())

    def map(self, function: Any, outputFields: FieldsLike | None = None) -> Stream:
        """Each tuple is replaced by what the function returns; names stay unless others are given."""
        return self._replace(function, outputFields, flat=False)

    def flatMap(self, function: Any, outputFields: FieldsLike | None = None) -> Stream:
        """Each tuple is replaced by those that the function returns."""
        return self._replace(function, outputFields, flat=True)

    def _replace(self, function: Any, outputs: FieldsLike | None, flat: bool) -> Stream:
        check_object("flatMap" if flat else "map", function, MapFunction, FlatMapFunction, Function)
        if not (hasattr(function, "execute") or callable(function)):
            raise DefinitionError(f"map and flatMap take a function or a callable, got {function!r}")
        fields = self.getOutputFields()
        made = Fields(fields.names) if outputs is None else Fields.of(outputs)
        return self._process(Replace(function, made, flat, fields), made)

    def peek(self, consumer: Any) -> Stream:
        """The consumer sees every tuple; also again when the batch is replayed."""
        check_object("peek", consumer, Consumer)
        if not (hasattr(consumer, "accept") or callable(consumer)):
            raise DefinitionError(f"peek takes a Consumer or a callable, got {consumer!r}")
        return self._process(Peek(consumer, self.getOutputFields()), self.getOutputFields())

    def project(self, fields: FieldsLike) -> Stream:
        """These fields only, in this order."""
        kept = self.check(fields)
        return self._process(Project(kept), kept)

    def applyAssembly(self, assembly: Any) -> Stream:
        return assembly.apply(self)

    def _collect(self, name: str) -> Stream:
        return self._process(Collect(name, self.getOutputFields()), self.getOutputFields())

    def _process(self, spec: Any, fields: Fields, **more: Any) -> Stream:
        return self.topology.add(ProcessorNode, fields, self, spec=spec, **more)

    # -- aggregations -----------------------------------------------------------------------------------------

    def groupBy(self, fields: FieldsLike) -> GroupedStream:
        """Groups by these fields; nothing moves before an operation needs it."""
        return GroupedStream(self, self.check(fields))

    def chainedAgg(self) -> chained.ChainedAggregatorDeclarer:
        """Several aggregators over the same tuples; ends with ``chainEnd()``."""
        return chained.ChainedAggregatorDeclarer(self, None, BatchGlobal(), "batch")

    def partitionAggregate(self, *args: Any, **given: Any) -> Stream:
        """Aggregates each partition of a batch: one run, also where there is no tuple."""
        return self.chainedAgg().partitionAggregate(*args, **given).chainEnd()

    def aggregate(self, *args: Any, **given: Any) -> Stream:
        """Aggregates the whole batch in one partition: exactly one run, also for an empty batch.

        A combiner aggregates in each partition first.
        """
        return self.chainedAgg().aggregate(*args, **given).chainEnd()

    def tumblingWindow(self, *args: Any, **given: Any) -> Stream:
        """Not there yet, nor are the other windows. Raises DefinitionError."""
        raise not_there_yet("a window", "aggregate by batch, or keep counts by a key that holds the window's start")

    slidingWindow = window = tumblingWindow

    # -- states -----------------------------------------------------------------------------------------------

    def stateQuery(self, state: TridentState, *args: Any, **given: Any) -> Stream:
        """``stateQuery(state, fields, query, functionFields)``: asks this partition's part of the state."""
        names = ("inputFields", "function", "functionFields")
        inputs, query, outputs = overload("stateQuery", args, names, given)
        check_object("stateQuery", query, QueryFunction)
        if not hasattr(query, "batchRetrieve"):
            raise DefinitionError(f"stateQuery takes a QueryFunction, got {query!r}")
        check_fits(state.use.factory, query)
        made = Fields.of(outputs)
        spec = StateQuery(query, self.check(inputs), made)
        return self._process(spec, self.getOutputFields().concat(made), state=state.use)

    def partitionPersist(self, factory: Any, *args: Any, stateName: str | None = None, **given: Any) -> TridentState:
        """``partitionPersist(factory, fields, updater[, functionFields])``: updates a state, partition by partition.

        Runs in the commit phase. ``stateName`` tells the state apart from others in its store.
        """
        names = ("inputFields", "updater", "functionFields")
        inputs, updater, outputs = overload("partitionPersist", args, names, given)
        return self.persist(factory, self.check(inputs), updater, Fields.of(outputs), stateName)

    def persist(self, factory: Any, inputs: Fields, updater: Any, outputs: Fields, name: str | None) -> TridentState:
        check_object("partitionPersist", updater, StateUpdater)
        if not hasattr(updater, "updateState"):
            raise DefinitionError(f"partitionPersist takes a StateUpdater, got {updater!r}")
        check_fits(factory, updater)
        use = self.topology.state_use(self.topology._next_id(), factory, name)
        spec = PartitionPersist(updater, inputs, outputs)
        return TridentState(self.topology, self._process(spec, outputs, state=use, committer=True), use)

    def persistentAggregate(self, factory: Any, *args: Any, stateName: str | None = None, **given: Any) -> TridentState:
        """``persistentAggregate(factory, fields, aggregator, functionFields)``: one value over all batches.

        The state must be Snapshottable. A combiner updates it on every batch, also an empty one; a reducer
        only with tuples.
        """
        inputs, aggregator, outputs = overload("persistentAggregate", args, chained.NAMES, given)
        aggregator = check_aggregator("persistentAggregate", aggregator)
        made = Fields.of(outputs)
        if isinstance(aggregator, CombinerAggregator):
            chain = chained.ChainedAggregatorDeclarer(self, None, Global(), "global")
            stream = chain.aggregate(inputs, aggregator, made).chainEnd()
            return stream.persist(factory, made, CombinerAggStateUpdater(aggregator), made, stateName)
        if not isinstance(aggregator, ReducerAggregator):
            raise no_general_aggregator(aggregator)
        read = self.check(inputs)
        return self.global_().persist(factory, read, ReducerAggStateUpdater(aggregator), made, stateName)
