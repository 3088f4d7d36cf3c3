"""Every place where a topology calls the user's own code; each calls `fail`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trident_py import Fields, TridentTopology
from trident_py.model.chunks import Chunk
from trident_py.operations import (
    BaseAggregator,
    BaseFilter,
    BaseFunction,
    CombinerAggregator,
    GroupedMultiReducer,
    MultiReducer,
    ReducerAggregator,
    vectorized,
)
from trident_py.operations.builtin import Count, MaxWithComparator, Negate
from trident_py.spouts import (
    IBatchSpout,
    IOpaquePartitionedTridentSpout,
    IPartitionedTridentSpout,
    IRichSpout,
    ITridentSpout,
)
from trident_py.state import (
    BaseQueryFunction,
    BaseStateUpdater,
    MapState,
    MemoryBackingMap,
    NonTransactionalMap,
    OpaqueMap,
    State,
    StateFactory,
    TransactionalMap,
)
from trident_py.testing import FixedBatchSpout, MemoryMapState


def fail(divisor: int) -> Any:
    return 1 // divisor


class Halve(BaseFunction):
    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([fail(tuple.getLong(0))])


class Keep(BaseFilter):
    def isKeep(self, tuple: Any) -> bool:
        return bool(fail(tuple[0]))


class Add(CombinerAggregator):
    def init(self, tuple: Any) -> Any:
        return fail(tuple[0])

    def combine(self, a: Any, b: Any) -> Any:
        return a + b

    def zero(self) -> Any:
        return 0


class Reduce(ReducerAggregator):
    def init(self) -> Any:
        return 0

    def reduce(self, curr: Any, tuple: Any) -> Any:
        return fail(tuple[0])


class Gather(BaseAggregator):
    def init(self, batchId: Any, collector: Any) -> Any:
        return []

    def aggregate(self, value: Any, tuple: Any, collector: Any) -> Any:
        fail(tuple[0])

    def complete(self, value: Any, collector: Any) -> None:
        raise AssertionError("not reached")


class Update(BaseStateUpdater):
    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        for tuple in tuples:
            fail(tuple[0])


def only(kind: type, method: str, **answers: Any) -> Any:
    """An object of this kind: ``method`` calls `fail`, what else must be there gives its answer, or None."""
    wanted = {name for name in dir(kind) if getattr(getattr(kind, name), "__isabstractmethod__", False)}
    members = {name: _answering(answers.get(name)) for name in wanted | set(answers)}
    return type(kind.__name__, (kind,), {**members, method: lambda self, *values: fail(0)})()


class Grouping:
    @abstractmethod
    def chooseTasks(self, taskId: int, values: Any) -> Any: ...


def _answering(answer: Any) -> Any:
    return lambda self, *values: answer


class Factory(StateFactory):
    """Gives this state to every partition."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def makeState(self, conf: Any, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        return self.state


class Row(Sequence):
    """The values of a tuple, to be had one by one."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Any:
        return fail(0)


class Source(ITridentSpout):
    """One batch of the numbers 3 and 0, by the coordinator and the emitter that are given."""

    def __init__(self, coordinator: str = "", emitter: str = "") -> None:
        self.coordinator, self.emitter = coordinator, emitter

    def getOutputFields(self) -> Fields:
        return Fields("n")

    def getCoordinator(self, *_: Any) -> Any:
        answers = {"isExhaustedAt": False, "isReady": True, "initializeTransaction": None}
        return only(ITridentSpout.BatchCoordinator, self.coordinator, **answers)

    def getEmitter(self, *_: Any) -> Any:
        return only(ITridentSpout.Emitter, self.emitter, emitBatch=None)


class Columns(Source):
    def getEmitter(self, *_: Any) -> Any:
        return self

    def emitChunks(self, *_: Any) -> Iterator[Chunk]:
        yield Chunk({"n": [fail(0)]}, 1)


class Partitioned(IPartitionedTridentSpout):
    kinds: Any = IPartitionedTridentSpout

    def __init__(self, coordinator: str = "", emitter: str = "") -> None:
        self.coordinator, self.emitter = coordinator, emitter

    def getOutputFields(self) -> Fields:
        return Fields("n")

    def getCoordinator(self, *_: Any) -> Any:
        return only(self.kinds.Coordinator, self.coordinator, getPartitionsForBatch=["p"])

    def getEmitter(self, *_: Any) -> Any:
        return only(self.kinds.Emitter, self.emitter, getOrderedPartitions=["p"])


class Opaque(Partitioned, IOpaquePartitionedTridentSpout):
    kinds = IOpaquePartitionedTridentSpout


def numbers(topology: TridentTopology, fields: str = "n") -> Any:
    return topology.newStream("numbers", FixedBatchSpout(fields, 5, (3,), (0,)))


def reduced(t: TridentTopology, reducer: Any) -> Any:
    return t.multiReduce([["n"]], [numbers(t)], reducer, "out")


def grouped(t: TridentTopology, reducer: Any) -> Any:
    return t.multiReduce([["n"]], [numbers(t).groupBy("n")], reducer, "out")


def asked(t: TridentTopology, query: Any) -> Any:
    return numbers(t).stateQuery(t.newStaticState(MemoryMapState.Factory()), "n", query, "out")


def kept(t: TridentTopology, state: Any) -> Any:
    return numbers(t).partitionPersist(Factory(state), "n", only(BaseStateUpdater, "", updateState=None))


def counted(t: TridentTopology, state: Any, aggregator: Any) -> Any:
    return numbers(t).groupBy("n").persistentAggregate(Factory(state), "n", aggregator, "out")


class Memory(MemoryBackingMap):
    """Holds a value for every key."""

    def multiGet(self, keys: Any) -> list[Any]:
        return [1 for _ in keys]


PLACES: dict[str, Callable[[TridentTopology], Any]] = {
    "function": lambda t: numbers(t).each("n", Halve(), "half"),
    "callable": lambda t: numbers(t).each("n", lambda n: [fail(n)], "half"),
    "generator": lambda t: numbers(t).each("n", lambda n: (fail(each) for each in [n]), "half"),
    "filter": lambda t: numbers(t).filter("n", Keep()),
    "map": lambda t: numbers(t).map(lambda tuple: [fail(tuple[0])]),
    "flatMap": lambda t: numbers(t).flatMap(lambda tuple: [[fail(tuple[0])]]),
    "peek": lambda t: numbers(t).peek(lambda tuple: fail(tuple[0])),
    "combiner": lambda t: numbers(t).aggregate("n", Add(), "sum"),
    "reducer": lambda t: numbers(t).aggregate("n", Reduce(), "sum"),
    "combine": lambda t: numbers(t).aggregate("n", only(CombinerAggregator, "combine", init=1, zero=0), "sum"),
    "zero": lambda t: numbers(t).aggregate("n", only(CombinerAggregator, "zero", init=1), "sum"),
    "reducer's init": lambda t: numbers(t).aggregate("n", only(ReducerAggregator, "init"), "sum"),
    "aggregator": lambda t: numbers(t).aggregate("n", Gather(), "sum"),
    "grouped aggregator": lambda t: numbers(t).groupBy("n").aggregate("n", Gather(), "sum"),
    "aggregator's init": lambda t: numbers(t).aggregate("n", only(BaseAggregator, "init"), "sum"),
    "aggregator's complete": lambda t: numbers(t).groupBy("n").aggregate("n", only(BaseAggregator, "complete"), "sum"),
    "chained aggregators": lambda t: (
        numbers(t).chainedAgg().aggregate(Count(), "c").aggregate("n", Gather(), "sum").chainEnd()
    ),
    "comparator": lambda t: numbers(t).aggregate(["n"], MaxWithComparator("n", lambda a, b: fail(0)), ["n"]),
    "multiReducer's init": lambda t: reduced(t, only(MultiReducer, "init")),
    "multiReducer": lambda t: reduced(t, only(MultiReducer, "execute")),
    "multiReducer's complete": lambda t: reduced(t, only(MultiReducer, "complete")),
    "grouped multiReducer's init": lambda t: grouped(t, only(GroupedMultiReducer, "init")),
    "grouped multiReducer": lambda t: grouped(t, only(GroupedMultiReducer, "execute")),
    "grouped multiReducer's complete": lambda t: grouped(t, only(GroupedMultiReducer, "complete")),
    "negated callable": lambda t: numbers(t).filter("n", Negate(lambda n: fail(n))),
    "filter, a callable": lambda t: numbers(t).filter("n", lambda n: fail(n)),
    "filter without fields": lambda t: numbers(t).each([], lambda: fail(0)),
    "callable without fields": lambda t: numbers(t).each([], lambda: fail(0), "out"),
    "two fields": lambda t: numbers(t).each("n", lambda n: [n], "m").each(["m", "n"], lambda m, n: [fail(n)], "out"),
    "flatMap, a generator": lambda t: numbers(t).flatMap(lambda tuple: ([fail(each)] for each in tuple)),
    "filter of columns": lambda t: numbers(t, "n bigint").filter("n", only(BaseFilter, "isKeepBatch")),
    "function of columns": lambda t: numbers(t, "n bigint").each("n", only(BaseFunction, "executeBatch"), "out"),
    "vectorised": lambda t: numbers(t).each("n", vectorized(lambda n: fail(0)), "out"),
    "vectorised filter": lambda t: numbers(t).filter("n", vectorized(lambda n: fail(0))),
    "prepare": lambda t: numbers(t).each("n", only(BaseFunction, "prepare"), "out"),
    "an emitted row": lambda t: numbers(t).map(lambda tuple: Row(), "out").peek(print),
    "grouping": lambda t: numbers(t).partition(lambda values: fail(values[0])).peek(print).parallelismHint(2),
    "CustomStreamGrouping": lambda t: (
        numbers(t).partition(only(Grouping, "chooseTasks")).peek(print).parallelismHint(2)
    ),
    "batchRetrieve": lambda t: asked(t, only(BaseQueryFunction, "batchRetrieve")),
    "query": lambda t: asked(t, only(BaseQueryFunction, "execute", batchRetrieve=[1, 2])),
    "updater": lambda t: numbers(t).partitionPersist(MemoryMapState.Factory(), "n", Update()),
    "makeState": lambda t: numbers(t).partitionPersist(only(StateFactory, "makeState"), "n", Update()),
    "beginCommit": lambda t: kept(t, only(State, "beginCommit")),
    "commit": lambda t: kept(t, only(State, "commit")),
    "multiGet": lambda t: counted(t, OpaqueMap(only(MemoryBackingMap, "multiGet")), Count()),
    "multiPut": lambda t: counted(t, TransactionalMap(only(MemoryBackingMap, "multiPut")), Count()),
    "multiUpdate": lambda t: counted(t, only(MapState, "multiUpdate"), Count()),
    "combine with the state": lambda t: counted(t, NonTransactionalMap(Memory()), only(Count, "combine")),
    "reduce into the state": lambda t: counted(t, NonTransactionalMap(Memory()), Reduce()),
    "IBatchSpout": lambda t: t.newStream("numbers", only(IBatchSpout, "emitBatch", getOutputFields=Fields("n"))),
    "IRichSpout": lambda t: t.newStream("numbers", only(IRichSpout, "nextTuple", getOutputFields=Fields("n"))),
    "isReady": lambda t: t.newStream("numbers", Source("isReady")),
    "isExhaustedAt": lambda t: t.newStream("numbers", Source("isExhaustedAt")),
    "initializeTransaction": lambda t: t.newStream("numbers", Source("initializeTransaction")),
    "emitter": lambda t: t.newStream("numbers", Source("", "emitBatch")),
    "emitter of columns": lambda t: t.newStream("numbers", Columns()),
    "getPartitionsForBatch": lambda t: t.newStream("numbers", Partitioned("getPartitionsForBatch")),
    "getOrderedPartitions": lambda t: t.newStream("numbers", Partitioned("", "getOrderedPartitions")),
    "getPartitionsForTask": lambda t: t.newStream("numbers", Partitioned("", "getPartitionsForTask")),
    "emitBatchNew": lambda t: t.newStream("numbers", Partitioned("", "emitBatchNew")),
    "emitBatchNew, opaque": lambda t: t.newStream("numbers", Opaque("", "emitBatchNew")),
}
WITH_THE_TUPLE = {
    "negated callable",
    "function", "callable", "generator", "filter", "map", "flatMap", "peek", "combiner", "reducer", "aggregator",
    "grouped aggregator", "grouping", "chained aggregators", "filter, a callable", "two fields",
    "reduce into the state",
}  # fmt: skip


def stop(*_: Any) -> Any:
    return next(iter(()))


def stop_async(*_: Any) -> Any:
    raise StopAsyncIteration


def close(*_: Any) -> Any:
    raise GeneratorExit


def leave(*_: Any) -> Any:
    raise SystemExit("bad configuration")


def interrupt(*_: Any) -> Any:
    raise KeyboardInterrupt


class Cancelled(BaseException):
    pass


def cancel(*_: Any) -> Any:
    raise Cancelled("cancelled")


RAISING = {
    stop: "StopIteration",
    stop_async: "StopAsyncIteration",
    close: "GeneratorExit",
    leave: "SystemExit: bad configuration",
    interrupt: "KeyboardInterrupt",
    cancel: "Cancelled: cancelled",
}
