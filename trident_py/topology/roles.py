"""What may stand for each role in a fluent call: an object with the methods of Storm's interface, or a callable.

The protocols hold at run time as they do for mypy, so both take the same objects. Signatures name the aliases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from ..operations.base import Aggregator, CombinerAggregator, ReducerAggregator
from ..partitioning import Partitioner
from ..spouts import (
    IBatchSpout,
    IOpaquePartitionedTridentSpout,
    IPartitionedTridentSpout,
    IRichSpout,
    ITridentSpout,
    SparkSpout,
)
from ..state import StateFactory, StateSpec


@runtime_checkable
class Executes(Protocol):
    """As a `Function`."""

    def execute(self, tuple: Any, collector: Any, /) -> Any: ...


@runtime_checkable
class Keeps(Protocol):
    """As a `Filter`."""

    def isKeep(self, tuple: Any, /) -> Any: ...


@runtime_checkable
class Maps(Protocol):
    """As a `MapFunction` or a `FlatMapFunction`."""

    def execute(self, tuple: Any, /) -> Any: ...


@runtime_checkable
class Accepts(Protocol):
    """As a `Consumer`."""

    def accept(self, tuple: Any, /) -> Any: ...


@runtime_checkable
class Updates(Protocol):
    """As a `StateUpdater`."""

    def updateState(self, state: Any, tuples: Any, collector: Any, /) -> Any: ...


@runtime_checkable
class Queries(Protocol):
    """As a `QueryFunction`."""

    def batchRetrieve(self, state: Any, tuples: Any, /) -> Sequence[Any]: ...

    def execute(self, tuple: Any, result: Any, collector: Any, /) -> Any: ...


@runtime_checkable
class Chooses(Protocol):
    """As a CustomStreamGrouping."""

    def chooseTasks(self, taskId: Any, values: Any, /) -> Any: ...


@runtime_checkable
class Applies(Protocol):
    """As an `Assembly`."""

    def apply(self, stream: Any, /) -> Any: ...


AnyFunction = Executes | Callable[..., Iterable[Any] | None]
AnyFilter = Keeps | Callable[..., object]
AnyMap = Maps | Callable[[Any], Any]
AnyFlatMap = Maps | Callable[[Any], Iterable[Any]]
AnyConsumer = Accepts | Callable[[Any], object]
AnyGrouping = Partitioner | Chooses | Callable[..., int]
AnyAggregator = Aggregator | CombinerAggregator | ReducerAggregator
KeepingAggregator = CombinerAggregator | ReducerAggregator
AnyFactory = StateFactory | StateSpec
AnySpout = (
    IBatchSpout | ITridentSpout | IPartitionedTridentSpout | IOpaquePartitionedTridentSpout | IRichSpout | SparkSpout
)
