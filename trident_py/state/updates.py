"""Value updaters: compute the new value from the stored one, for one key or for a whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, overload

import pyarrow as pa

from ..model.chunks import Column, to_list
from ..operations.base import CombinerAggregator, ReducerAggregator
from .base import ValueUpdater
from .copies import copy_initial, copy_value, copy_values


class CombinerValueUpdater(ValueUpdater):
    """Combines the stored value with a partial result; without a stored value it returns the partial result."""

    __slots__ = ("agg", "arg")

    def __init__(self, agg: CombinerAggregator, arg: Any) -> None:
        self.agg = agg
        self.arg = arg

    def getAgg(self) -> CombinerAggregator:
        return self.agg

    def getArg(self) -> Any:
        """Return the partial result of the batch."""
        return self.arg

    def update(self, stored: Any) -> Any:
        arg = copy_value(self.arg)  # an update may be repeated
        return arg if stored is None else self.agg.combine(stored, arg)


class ReducerValueUpdater(ValueUpdater):
    """Folds tuples into the stored value; without one, into the reducer's `init`."""

    __slots__ = ("agg", "tuples")

    def __init__(self, agg: ReducerAggregator, tuples: Sequence[Any]) -> None:
        self.agg = agg
        self.tuples = tuples

    def update(self, stored: Any) -> Any:
        value = copy_initial(self.agg.init()) if stored is None else stored
        for tuple_ in self.tuples:
            value = self.agg.reduce(value, tuple_)
        return value


class ReplaceUpdater(ValueUpdater):
    """Replaces the stored value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def update(self, stored: Any) -> Any:
        return self.value


class ValueUpdaters(Sequence[ValueUpdater]):
    """The updaters of one multiUpdate, which can also be applied at once, without an object per key."""

    def apply(self, stored: Sequence[Any]) -> list[Any]:
        return [updater.update(value) for updater, value in zip(self, stored, strict=True)]

    def at(self, index: int) -> ValueUpdater:
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> ValueUpdater: ...
    @overload
    def __getitem__(self, index: slice) -> list[ValueUpdater]: ...
    def __getitem__(self, index: int | slice) -> ValueUpdater | list[ValueUpdater]:
        if isinstance(index, slice):
            return [self.at(i) for i in range(*index.indices(len(self)))]
        return self.at(index)


class Combines(ValueUpdaters):
    """A CombinerValueUpdater for each partial result.

    ``wanted``: whether the new values are read; if not, multiUpdate may return an empty list.
    """

    def __init__(self, agg: CombinerAggregator, args: Sequence[Any] | Column, wanted: bool = True) -> None:
        self.agg = agg
        self.column = args
        self.wanted = wanted

    @cached_property
    def args(self) -> Sequence[Any]:
        return to_list(self.column) if isinstance(self.column, pa.Array | pa.ChunkedArray) else self.column

    def __len__(self) -> int:
        return len(self.column)

    def at(self, index: int) -> ValueUpdater:
        return CombinerValueUpdater(self.agg, self.args[index])

    def apply(self, stored: Sequence[Any]) -> list[Any]:
        combine = self.agg.combine
        return [
            arg if old is None else combine(old, arg) for old, arg in zip(stored, copy_values(self.args), strict=True)
        ]


class Replaces(ValueUpdaters):
    """A ReplaceUpdater for each value."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def at(self, index: int) -> ValueUpdater:
        return ReplaceUpdater(self.values[index])

    def apply(self, stored: Sequence[Any]) -> list[Any]:
        return list(self.values)


def apply(updaters: Sequence[ValueUpdater], stored: Sequence[Any]) -> list[Any]:
    """Return the new values, in order. Updates each key once. An updater gets a copy, which it may change."""
    stored = copy_values(stored)
    if isinstance(updaters, ValueUpdaters):
        return updaters.apply(stored)
    return [updater.update(value) for updater, value in zip(updaters, stored, strict=True)]


class Combination(NamedTuple):
    """A multiUpdate that a database can do itself: `CombinerAggregator.sql` and the partial results."""

    sql: str
    amounts: Any
    wanted: bool


def combination_of(updaters: Sequence[ValueUpdater]) -> Combination | None:
    """Return the multiUpdate as one combination if all updaters combine with the same SQL; else None."""
    if isinstance(updaters, Combines):
        sql = sql_of(updaters.agg)
        return None if sql is None else Combination(sql, updaters.column, updaters.wanted)
    if not all(type(updater) is CombinerValueUpdater for updater in updaters):
        return None
    named = {sql_of(updater.agg) for updater in updaters}  # type: ignore[attr-defined]
    sql = named.pop() if len(named) == 1 else None
    return None if sql is None else Combination(sql, [u.arg for u in updaters], True)  # type: ignore[attr-defined]


def sql_of(agg: CombinerAggregator) -> str | None:
    """Return the combiner's SQL; None if a subclass overrides `combine` without naming its own SQL."""
    for place in (agg, *type(agg).__mro__):
        attributes = getattr(place, "__dict__", {})  # an object with slots has none
        if "sql" in attributes or "combine" in attributes:
            return attributes.get("sql")
    return None
