"""Adapts combiner and reducer aggregators to Aggregator, with Storm's use of zero() and init().

A fold may change what it began with: zero() and init() may return one object every time.
"""

from __future__ import annotations

from typing import Any

from ...operations.base import Aggregator, CombinerAggregator, ReducerAggregator, TridentCollector
from ...state.copies import copy_initial
from ...tuples import TridentTuple


class CombinerFold(Aggregator):
    """Folds init(tuple) of each tuple, starting from zero(). A null accumulator takes the value as it is."""

    def __init__(self, combiner: CombinerAggregator) -> None:
        self.combiner = combiner

    def init(self, batchId: Any, collector: TridentCollector) -> list:
        return [copy_initial(self.combiner.zero())]

    def aggregate(self, value: list, tuple: TridentTuple, collector: TridentCollector) -> None:
        self.fold(value, self.combiner.init(tuple))

    def fold(self, value: list, other: Any) -> None:
        value[0] = other if value[0] is None else self.combiner.combine(value[0], other)

    def complete(self, value: list, collector: TridentCollector) -> None:
        collector.emit((value[0],))


class CombinerMerge(CombinerFold):
    """Folds partial values, starting from zero() again."""

    def aggregate(self, value: list, tuple: TridentTuple, collector: TridentCollector) -> None:
        self.fold(value, tuple[0])


class ReducerFold(Aggregator):
    """Reduces tuple after tuple."""

    def __init__(self, reducer: ReducerAggregator) -> None:
        self.reducer = reducer

    def init(self, batchId: Any, collector: TridentCollector) -> list:
        return [copy_initial(self.reducer.init())]

    def aggregate(self, value: list, tuple: TridentTuple, collector: TridentCollector) -> None:
        value[0] = self.reducer.reduce(value[0], tuple)

    def complete(self, value: list, collector: TridentCollector) -> None:
        collector.emit((value[0],))


def as_aggregator(aggregator: Any, merge: bool = False) -> Aggregator:
    """Return any of the three kinds as an Aggregator. ``merge``: a combiner's input is partial values."""
    if isinstance(aggregator, CombinerAggregator):
        return CombinerMerge(aggregator) if merge else CombinerFold(aggregator)
    return ReducerFold(aggregator) if isinstance(aggregator, ReducerAggregator) else aggregator
