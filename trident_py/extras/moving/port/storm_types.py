"""Storm's classes: which of ours stands for each, and what its methods return."""

from __future__ import annotations

from ....topology.aggregations import ChainedAggregatorDeclarer
from .expressions import storm_class
from .java_types import OBJECT, Type
from .library import parse

STREAMS = ("TridentTopology", "Stream", "GroupedStream", "TridentState", "ChainedAggregatorDeclarer")

_PYTHON = {
    "ITuple": "TridentTuple",
    "ILocalDRPC": "LocalDRPC", "ILocalCluster": "LocalCluster", "TopologyContext": "SpoutContext",
    "LocalTopology": "RunningTopology", "WorkerTopologyContext": "SpoutContext", "BaseRichSpout": "IRichSpout",
    "ChainedFullAggregatorDeclarer": "ChainedAggregatorDeclarer", "IAggregatableStream": "Stream",
    "ChainedPartitionAggregatorDeclarer": "ChainedAggregatorDeclarer",
}  # fmt: skip
_BY_METHOD = {
    "getString": "String", "getStringByField": "String", "getInteger": "Integer", "getIntegerByField": "Integer",
    "getLong": "Long", "getLongByField": "Long", "getDouble": "Double", "getDoubleByField": "Double",
    "getFloat": "Float", "getFloatByField": "Float", "getBoolean": "Boolean", "getBooleanByField": "Boolean",
    "getShort": "Short", "getShortByField": "Short", "getByte": "Byte", "getByteByField": "Byte",
    "getBinary": "byte[]", "getBinaryByField": "byte[]", "size": "int", "fieldIndex": "int", "contains": "boolean",
    "groupBy": "GroupedStream", "persistentAggregate": "TridentState", "partitionPersist": "TridentState",
    "newStaticState": "TridentState", "chainedAgg": "ChainedAggregatorDeclarer", "chainEnd": "Stream",
    "newStream": "Stream", "newDRPCStream": "Stream", "newValuesStream": "Stream", "merge": "Stream", "join": "Stream",
    "multiReduce": "Stream", "getOutputFields": "Fields", "getFields": "Fields", "toList": "List<String>",
    "getValues": "List<Object>", "select": "List<Object>", "build": "StormTopology", "execute": "Object",
    "multiGet": "List<Object>", "multiUpdate": "List<Object>", "getTransactionId": "Long", "getAttemptId": "int",
    "getPartitionIndex": "int", "numPartitions": "int", "getThisTaskIndex": "int", "getThisTaskId": "int",
    "registerCounter": "Counter", "registerMeter": "Meter", "registerHistogram": "Histogram", "getName": "String",
    "registerTimer": "Timer", "registerMetric": "Object", "isEmpty": "boolean", "getCurrTxid": "Long",
    "getTxid": "Long",
    "submitTopology": "RunningTopology", "getMessage": "String", "getId": "Object", "getCount": "long", "inc": "void",
}  # fmt: skip
_BY_CLASS = {
    ("Fields", "get"): "String", ("ValueUpdater", "update"): "Object", ("TridentTuple", "get"): "Object",
    ("TridentTuple", "iterator"): "Iterator<Object>", ("TransactionAttempt", "getId"): "Object",
    ("LocalDRPC", "execute"): "String", ("DRPCClient", "execute"): "String", ("ILocalDRPC", "execute"): "String",
}  # fmt: skip


def python_name_of(name: str) -> str:
    return _PYTHON.get(name, name)


def python_class(name: str) -> type | None:
    """Return the class here that stands for one of Storm's."""
    if name == "ChainedAggregatorDeclarer" or _PYTHON.get(name) == "ChainedAggregatorDeclarer":
        return ChainedAggregatorDeclarer
    return storm_class(_PYTHON.get(name, name))


def returns_of(kind: str, method: str) -> Type:
    """Return the type of what a method of Storm's returns. Most methods of a stream return a stream."""
    written = _BY_CLASS.get((kind, method)) or _BY_METHOD.get(method)
    if kind in ("ChainedAggregatorDeclarer", "TridentState") and method in (
        "aggregate",
        "partitionAggregate",
        "parallelismHint",
    ):
        return Type(kind)
    if kind == "GroupedStream" and method in ("parallelismHint", "name"):
        return Type(kind)
    if written is not None:
        return parse(written)
    if method.startswith("with"):
        return Type(kind)
    return Type("Stream") if kind in ("Stream", "GroupedStream", "TridentTopology") else OBJECT
