"""The parts of a stream: operations on one tuple or whole columns, repartitions, dead letters."""

from __future__ import annotations

from typing import Any, Self, overload

from ..engine.processors import LETTER, DeadLetters, Each, Keep, Peek, Project, Replace
from ..errors import DefinitionError
from ..model.partitioning import BatchGlobal, Broadcast, Custom, FieldsPartition, Global, Identity, Partitioner, Shuffle
from ..model.plan import DRPCNode, SpoutNode
from ..operations.base import Consumer, CustomStreamGrouping, Filter, FlatMapFunction, Function, MapFunction
from ..operations.columnar import Columnar
from ..operations.roles import Accepts, Chooses, Executes, Keeps, Maps
from ..tuples import Fields, FieldsLike
from .arguments import arguments, check_object
from .graph import NodeHandle
from .roles import AnyConsumer, AnyFilter, AnyFlatMap, AnyFunction, AnyGrouping, AnyMap


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


class Lettered(NodeHandle):
    """The part of a stream's handle that adds dead letters."""

    def deadLetters(self) -> Self:
        """Return the tuples of this spout that ``topology.poison`` excludes from their batches; call it on the stream
        that newStream returned.

        Fields: ``txid``, ``spout``, ``partition`` (of the spout), ``index`` (in the order of emission, from 0),
        ``tuple`` (its values as a JSON list), ``operation``, ``operationPartition``, and ``error`` (type and text). The
        first four identify a letter. Persist it into any state: it is written in the batch that excludes the tuple. On
        replay: the same letters. Raises DefinitionError for any other stream.
        """
        node = self.graph.node(self.node_id)
        if not isinstance(node, SpoutNode) or isinstance(node, DRPCNode):
            raise DefinitionError(
                "deadLetters() belongs to the stream of a spout, as newStream returns it: the tuples that are excluded "
                "are the spout's. Call it before the first operation"
            )
        return self._process(DeadLetters(node.spout_id), LETTER)


class PerTuple(NodeHandle):
    """The part of a stream's handle that works tuple by tuple."""

    @overload
    def each(self, inputFields: FieldsLike | None, function: AnyFunction, functionFields: FieldsLike) -> Self: ...
    @overload
    def each(self, function: AnyFunction, functionFields: FieldsLike) -> Self: ...
    @overload
    def each(self, inputFields: FieldsLike | None, filter: AnyFilter) -> Self: ...
    def each(self, *args: Any, **named: Any) -> Self:
        """Append the results of a function to each tuple, or filter the tuples.

        ``each([fields,] function, functionFields)`` or ``each(fields, filter)``. A function emits any number of results
        for a tuple: none drops the tuple, several repeat it. With ``functionFields=[]`` it adds no field, and the tuple
        passes once for each result. A plain callable is a Function if the call has function fields, else a Filter; it
        gets the values as arguments. Without input fields a function sees an empty tuple.
        """
        call = arguments(PerTuple.each, args, named)
        if "filter" in call:
            return self._keep("each", call["filter"], call["inputFields"])
        function = check_object("each", call["function"], Function, Filter)
        if isinstance(function, Columnar):
            return self._each_column(function, call.get("inputFields"), Fields.of(call["functionFields"]))
        if isinstance(function, Filter | MapFunction | FlatMapFunction) or not _is(function, Executes):
            raise DefinitionError(f"each with function fields takes a Function or a callable, got {function!r}")
        inputs, outputs = self.check(call.get("inputFields")), Fields.of(call["functionFields"])
        return self._process(Each(function, inputs, outputs), self.getOutputFields().concat(outputs))

    def _each_column(self, function: Columnar, fields: FieldsLike | None, wanted: Fields) -> Self:
        every = fields is None and function.names_fields
        inputs = function.reads(self.getOutputFields() if every else self.check(fields))
        outputs = function.outputs(inputs, wanted)
        return self._process(Each(function, inputs, outputs), self.getOutputFields().concat(outputs))

    @overload
    def filter(self, filter: AnyFilter) -> Self: ...
    @overload
    def filter(self, inputFields: FieldsLike | None, filter: AnyFilter) -> Self: ...
    def filter(self, *args: Any, **named: Any) -> Self:
        """Keep the tuples for which the filter is true.

        ``filter(filter)`` passes it the whole tuple, ``filter(fields, filter)`` only these fields.
        """
        call = arguments(PerTuple.filter, args, named)
        fields = call.get("inputFields")
        return self._keep("filter", call["filter"], self.getOutputFields() if fields is None else fields)

    def _keep(self, name: str, operation: Any, fields: FieldsLike | None) -> Self:
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

    def map(self, function: AnyMap, outputFields: FieldsLike | None = None) -> Self:
        """Replace each tuple by the function's return value. The field names stay unless ``outputFields`` is given."""
        return self._replace(function, outputFields, flat=False)

    def flatMap(self, function: AnyFlatMap, outputFields: FieldsLike | None = None) -> Self:
        """Replace each tuple by the tuples that the function returns."""
        return self._replace(function, outputFields, flat=True)

    def _replace(self, function: Any, outputs: FieldsLike | None, flat: bool) -> Self:
        check_object("flatMap" if flat else "map", function, MapFunction, FlatMapFunction, Function)
        if isinstance(function, Function) or not _is(function, Maps):
            raise DefinitionError(f"map and flatMap take a function or a callable, got {function!r}")
        fields = self.getOutputFields()
        if isinstance(function, Columnar):
            fields = function.reads(fields)
            outputs = function.map_fields(fields, None if outputs is None else Fields.of(outputs))
        else:
            outputs = Fields.of_names(fields) if outputs is None else Fields.of(outputs)
        return self._process(Replace(function, outputs, flat, fields), outputs)

    def peek(self, consumer: AnyConsumer) -> Self:
        """Show every tuple to the consumer. On a replay of the batch the consumer sees it again."""
        check_object("peek", consumer, Consumer)
        if not _is(consumer, Accepts):
            raise DefinitionError(f"peek takes a Consumer or a callable, got {consumer!r}")
        return self._process(Peek(consumer, self.getOutputFields()), self.getOutputFields())

    def project(self, fields: FieldsLike) -> Self:
        """Keep only these fields, in this order."""
        kept = self.check(fields)
        return self._process(Project(kept), kept)


def _is(operation: Any, role: type) -> bool:
    """Return whether the operation has the role, or is a plain callable in its place."""
    return isinstance(operation, role) or callable(operation)
