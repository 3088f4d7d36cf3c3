"""Operations: the user code between spouts and states."""

from typing import TYPE_CHECKING

from ..entry_points import answer
from ..metrics import IMetricsContext
from .base import (
    Aggregator,
    Assembly,
    BaseAggregator,
    BaseFilter,
    BaseFunction,
    BaseMultiReducer,
    BaseOperation,
    CombinerAggregator,
    Consumer,
    CustomStreamGrouping,
    EachOperation,
    Filter,
    FlatMapFunction,
    Function,
    GroupedMultiReducer,
    MapFunction,
    MultiReducer,
    Operation,
    OperationAwareFlatMapFunction,
    OperationAwareMapFunction,
    ProjectionFactory,
    ReducerAggregator,
    TridentCollector,
    TridentMultiReducerContext,
    TridentOperationContext,
)
from .columnar import expr, vectorized
from .determinism import deterministic, nondeterministic
from .resources import DefaultResourceDeclarer, ITridentResource, ResourceDeclarer

__all__ = [
    "Aggregator",
    "Assembly",
    "BaseAggregator",
    "BaseFilter",
    "BaseFunction",
    "BaseMultiReducer",
    "BaseOperation",
    "CombinerAggregator",
    "Consumer",
    "CustomStreamGrouping",
    "DefaultResourceDeclarer",
    "EachOperation",
    "Filter",
    "FlatMapFunction",
    "Function",
    "GroupedMultiReducer",
    "IMetricsContext",
    "ITridentResource",
    "MapFunction",
    "MultiReducer",
    "Operation",
    "OperationAwareFlatMapFunction",
    "OperationAwareMapFunction",
    "ProjectionFactory",
    "ReducerAggregator",
    "ResourceDeclarer",
    "TridentCollector",
    "TridentMultiReducerContext",
    "TridentOperationContext",
    "deterministic",
    "expr",
    "nondeterministic",
    "vectorized",
]

if not TYPE_CHECKING:
    __getattr__ = answer(__name__)
