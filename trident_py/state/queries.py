"""Storm's three built-in queries. Source in Storm: MapGet, SnapshotGet, TupleCollectionGet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import StateError
from ..operations.base import TridentCollector
from ..tuples import TridentTuple
from .base import QueryFunction


class MapGet(QueryFunction):
    """For map states: the value under the key made of the input fields, None for an absent key."""

    calls = ("multiGet",)

    def batchRetrieve(self, state: Any, tuples: Sequence[TridentTuple]) -> Sequence[Any]:
        return _method(state, "multiGet", self)([tuple(key) for key in tuples])

    def execute(self, tuple: TridentTuple, result: Any, collector: TridentCollector) -> None:
        collector.emit((result,))


class SnapshotGet(QueryFunction):
    """The one value of a state, read once per batch and given to every tuple."""

    calls = ("get",)

    def batchRetrieve(self, state: Any, tuples: Sequence[TridentTuple]) -> Sequence[Any]:
        return [_method(state, "get", self)()] * len(tuples)

    def execute(self, tuple: TridentTuple, result: Any, collector: TridentCollector) -> None:
        collector.emit((result,))


class TupleCollectionGet(QueryFunction):
    """Every row of this partition of the state, for every tuple. Broadcast the tuples to see all rows."""

    calls = ("getTuples",)

    def batchRetrieve(self, state: Any, tuples: Sequence[TridentTuple]) -> Sequence[Any]:
        rows = list(_method(state, "getTuples", self)())
        return [rows] * len(tuples)

    def execute(self, tuple: TridentTuple, result: Any, collector: TridentCollector) -> None:
        for values in result:
            collector.emit(values)


def _method(state: Any, name: str, query: QueryFunction) -> Any:
    method = getattr(state, name, None)  # the user's state may be of any class that has the method
    if method is None:
        raise StateError(
            f"{type(query).__name__} needs a state with {name}(); {type(state).__name__} has none"
        )
    return method
