"""Type aliases for the signatures of fluent calls: an object with the methods of Storm's interface, or a callable."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..model.partitioning import Partitioner
from ..operations.base import Aggregator, CombinerAggregator, ReducerAggregator
from ..operations.roles import Accepts, Chooses, Executes, Keeps, Maps
from ..spouts import (
    IBatchSpout,
    IOpaquePartitionedTridentSpout,
    IPartitionedTridentSpout,
    IRichSpout,
    ITridentSpout,
    SparkSpout,
)
from ..state import StateFactory, StateSpec

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
