"""What a stream of a topology file may say: one model for each call of the builder, with the builder's own names.

The names of a model's fields are the parameters of the builder's method. One differs: ``state`` stands for
``factory`` and ``windowStoreFactory``, because a file names states. tests/topology_files holds both lists together.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from ...documents.models import Count, Keys, to_list


def _arguments(value: Any) -> Any:
    if not isinstance(value, list | dict):
        raise ValueError("expected a list of arguments, or a mapping from their names to their values")
    return value


_ARGUMENTS = {"anyOf": [{"type": "array", "items": {"x-kind": "argument"}},
                        {"type": "object", "additionalProperties": {"x-kind": "argument"}}]}  # fmt: skip
Arguments = Annotated[Any, AfterValidator(_arguments), WithJsonSchema(_ARGUMENTS)]


class IncludedKeys(Keys):
    """What a file may bring that another one includes. A states file is such a file."""

    configuration: dict[str, Any] = Field({}, description="Keys of the topology's conf, and Spark's (spark.*)")
    components: dict[str, Any] = Field({}, description="Objects by name, for ref:")
    states: Any = Field(None, description="The states by name, as in a states file; or the path of a states file")
    streams: dict[str, Any] = Field({}, description="The streams by name")


class TopologyKeys(IncludedKeys):
    """The topology file."""

    name: str = Field(description="Name of the topology, and of its folder in the checkpoint")
    storage: str | None = Field(None, description="Folder or URI of the checkpoint; default: as without a file")
    includes: list[str] = Field([], description="Files with further configuration, components, states and streams")
    topologySource: Any = Field(None, description="A builder in Python instead of streams")


class ObjectKeys(Keys):
    """An object that the file makes."""

    className: str = Field(description="module:Class, module:function, or the name of a built-in")
    constructorArgs: Arguments = Field([], description="Arguments by position, or by name")
    configMethods: list[Any] = Field([], description="Methods that are called on the object: name and args")


class MethodKeys(Keys):
    """A method that is called on a new object."""

    name: str = Field(description="Name of the method")
    args: Arguments = Field([], description="Arguments by position, or by name")


class SourceKeys(Keys):
    """A builder in Python."""

    className: str = Field(description="module:function that returns the topology, or module:Class")
    methodName: str | None = Field(None, description="Method of the class; it gets the conf; default: getTopology")
    constructorArgs: Arguments = Field([], description="Arguments of the function or the class")


class WindowKeys(Keys):
    """A window as data."""

    windowLength: Any = Field(description="A number of tuples, or a time, such as {seconds: 10}")
    slideLength: Any = Field(None, description="Distance between windows; default: windowLength, a tumbling window")
    timestampField: str | None = Field(None, description="Field with the time of a tuple, for windows in event time")
    lag: Any = Field(None, description="How late a tuple may be, such as {seconds: 5}")


class Kind(Enum):
    """What a value stands for. The builder of the topology makes it; pydantic leaves it as it is."""

    OBJECT = "object"
    STATE = "state"
    STREAM = "stream"
    STREAMS = "streams"
    LENGTH = "length"
    WINDOW = "window"
    JOIN_TYPE = "joinType"
    JOIN_MODE = "joinMode"


def _of(kind: Kind) -> Any:
    return WithJsonSchema({"x-kind": kind.value})


_NAME = {"type": "string", "examples": ["word", "count bigint"]}
Names = Annotated[
    list[str],
    BeforeValidator(to_list),
    WithJsonSchema({"anyOf": [_NAME, {"type": "array", "items": _NAME}]}),
]
Made = Annotated[Any, Kind.OBJECT, _of(Kind.OBJECT)]
Stored = Annotated[Any, Kind.STATE, _of(Kind.STATE)]
Branch = Annotated[Any, Kind.STREAM, _of(Kind.STREAM)]
Branches = Annotated[Any, Kind.STREAMS, _of(Kind.STREAMS)]
Length = Annotated[Any, Kind.LENGTH, _of(Kind.LENGTH)]
Windows = Annotated[Any, Kind.WINDOW, _of(Kind.WINDOW)]
Side = Literal["INNER", "OUTER"]
Sides = Annotated[
    list[Side],
    Kind.JOIN_TYPE,
    BeforeValidator(to_list),
    WithJsonSchema({"anyOf": [{"enum": ["INNER", "OUTER"]}, {"type": "array", "items": {"enum": ["INNER", "OUTER"]}}]}),
]
Mode = Annotated[Literal["COMPACT", "PRESERVE"], Kind.JOIN_MODE]


class Call(Keys):
    """The arguments of one call. ``alone``: the argument that a value which is no mapping stands for."""

    alone: ClassVar[str | None] = None

    def __init_subclass__(cls, alone: str | None = None) -> None:
        super().__init_subclass__()
        cls.alone = alone


class Bare(Call):
    """A call without arguments."""


class LabelCall(Call, alone="name"):
    name: str = Field(description="A label for explain and progress")


class HintCall(Call, alone="parallelism"):
    parallelism: Count = Field(description="Number of partitions of this step, back to the last repartition")


class FieldsCall(Call, alone="fields"):
    fields: Names = Field(description="Fields of the stream")


class PartitionCall(Call, alone="grouping"):
    grouping: Made = Field(description="A CustomStreamGrouping, or a callable: tuple -> number")


class EachCall(Call):
    inputFields: Names | None = Field(None, description="Fields that the operation reads; default: none")
    function: Made = Field(None, description="A Function, or a callable; with functionFields")
    functionFields: Names | None = Field(None, description="Fields that the function adds; [] adds none")
    filter: Made = Field(None, description="A Filter, or a callable; instead of a function, with inputFields")


class FilterCall(Call, alone="filter"):
    filter: Made = Field(description="A Filter, or a callable")
    inputFields: Names | None = Field(None, description="Fields that the filter reads; default: all")


class MapCall(Call, alone="function"):
    function: Made = Field(description="A function: tuple -> values; for flatMap, a list of them")
    outputFields: Names | None = Field(None, description="Names of the new fields; default: as before")


class PeekCall(Call, alone="consumer"):
    consumer: Made = Field(description="A Consumer, or a callable")


class AssemblyCall(Call, alone="assembly"):
    assembly: Made = Field(description="An object whose method apply takes a stream and returns one")


class AggregateCall(Call):
    inputFields: Names | None = Field(None, description="Fields that the aggregator reads; default: none")
    agg: Made = Field(description="An Aggregator, CombinerAggregator or ReducerAggregator")
    functionFields: Names = Field(description="Fields of the result")


class BestByCall(Call, alone="inputFieldName"):
    inputFieldName: str = Field(description="The field that is compared")
    comparator: Made = Field(None, description="A comparator: (a, b) -> int; default: by value")


class BestCall(Call, alone="comparator"):
    comparator: Made = Field(description="A comparator of whole tuples: (a, b) -> int")


class QueryCall(Call):
    state: Stored = Field(description="The state that is asked: its name in states:")
    inputFields: Names | None = Field(None, description="Fields of the key")
    function: Made = Field(description="A QueryFunction, such as MapGet")
    functionFields: Names = Field(description="Fields that the answer adds")


class PersistCall(Call):
    state: Stored = Field(description="The state that is updated: its name in states:, or its settings")
    inputFields: Names | None = Field(None, description="Fields that the updater gets")
    updater: Made = Field(None, description="A StateUpdater; default: the state's own")
    functionFields: Names | None = Field(None, description="Fields of the new values")
    stateName: str | None = Field(None, description="Distinguishes the state from others in its store")


class KeepCall(Call):
    state: Stored = Field(description="The state that is updated: its name in states:, or its settings")
    inputFields: Names | None = Field(None, description="Fields that the aggregator reads; default: none")
    agg: Made = Field(description="A CombinerAggregator or a ReducerAggregator")
    functionFields: Names = Field(description="Field of the value")
    stateName: str | None = Field(None, description="Distinguishes the state from others in its store")


class WindowCall(Call):
    windowConfig: Windows = Field(description="windowLength, slideLength, timestampField, lag; or a WindowConfig")
    state: Stored = Field(None, description="The store of the window, such as type: window; default: memory")
    inputFields: Names | None = Field(None, description="Fields that the aggregator reads")
    aggregator: Made = Field(description="An Aggregator, CombinerAggregator or ReducerAggregator")
    functionFields: Names = Field(description="Fields of the result")
    windowFields: Names | None = Field(None, description="Two more fields: start and end of the window")
    stateName: str | None = Field(None, description="Distinguishes the window from others")


class TumblingCall(Call):
    windowLength: Length = Field(description="A number of tuples, or a time, such as {seconds: 10}")
    state: Stored = Field(description="The store of the window, such as type: window")
    inputFields: Names | None = Field(None, description="Fields that the aggregator reads")
    aggregator: Made = Field(description="An Aggregator, CombinerAggregator or ReducerAggregator")
    functionFields: Names = Field(description="Fields of the result")
    windowFields: Names | None = Field(None, description="Two more fields: start and end of the window")
    stateName: str | None = Field(None, description="Distinguishes the window from others")


class SlidingCall(TumblingCall):
    slideLength: Length = Field(description="The distance between windows, in the unit of windowLength")


class NewStreamCall(Call):
    txId: str | None = Field(None, description="Name of the spout in the checkpoint; default: the stream's name")
    spout: Made = Field(description="A spout")


class FunctionCall(Call, alone="function"):
    function: str = Field(description="Name of the DRPC function; the last statement of the stream is its answer")


class StreamCall(Call, alone="stream"):
    stream: Branch = Field(description="Another stream of the file, which branches here")


class MergeCall(Call, alone="streams"):
    streams: Branches = Field(description="Streams of the file")
    outputFields: Names | None = Field(None, description="Names of the fields; default: those of the first stream")


class JoinCall(Call):
    streams: Branches = Field(description="Streams of the file")
    joinFields: list[Names] = Field(description="For each stream, the fields that must be equal, by position")
    outFields: Names = Field(description="Fields of the result: the key, then the other fields of each stream")
    type: Sides = Field(default_factory=list, description="INNER or OUTER, for all streams or for each; default: INNER")
    mode: Mode = Field("COMPACT", description="PRESERVE keeps all fields of each stream")


class ReduceCall(Call):
    inputFields: list[Names] | None = Field(None, description="For each stream, the fields that the reducer reads")
    streams: Branches = Field(description="Streams of the file")
    function: Made = Field(description="A MultiReducer, or for grouped streams a GroupedMultiReducer")
    outputFields: Names = Field(description="Fields of the result")


SOURCES: dict[str, type[Call]] = {
    "newStream": NewStreamCall,
    "newDRPCStream": FunctionCall,
    "stream": StreamCall,
    "merge": MergeCall,
    "join": JoinCall,
    "multiReduce": ReduceCall,
}
"""How a stream begins."""
OPERATIONS: dict[str, type[Call]] = {
    "name": LabelCall,
    "parallelismHint": HintCall,
    "each": EachCall,
    "filter": FilterCall,
    "map": MapCall,
    "flatMap": MapCall,
    "peek": PeekCall,
    "project": FieldsCall,
    "applyAssembly": AssemblyCall,
    "shuffle": Bare,
    "localOrShuffle": Bare,
    "global": Bare,
    "batchGlobal": Bare,
    "broadcast": Bare,
    "identityPartition": Bare,
    "partition": PartitionCall,
    "partitionBy": FieldsCall,
    "groupBy": FieldsCall,
    "toStream": Bare,
    "aggregate": AggregateCall,
    "partitionAggregate": AggregateCall,
    "chainedAgg": Bare,
    "chainEnd": Bare,
    "minBy": BestByCall,
    "maxBy": BestByCall,
    "min": BestCall,
    "max": BestCall,
    "window": WindowCall,
    "tumblingWindow": TumblingCall,
    "slidingWindow": SlidingCall,
    "lateTuples": Bare,
    "deadLetters": Bare,
    "persistentAggregate": KeepCall,
    "partitionPersist": PersistCall,
    "newValuesStream": Bare,
    "stateQuery": QueryCall,
}
"""What follows. ``global`` is the builder's ``global_``, as in Java."""
