"""What the random topologies are made of: functions, filters, aggregators, updaters, a static table.

All of it is insensitive to the order of tuples, because Trident promises none across partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trident_py.operations import (
    Aggregator,
    CombinerAggregator,
    Filter,
    FlatMapFunction,
    Function,
    GroupedMultiReducer,
    MapFunction,
    MultiReducer,
    ReducerAggregator,
)
from trident_py.operations.builtin import Count, Sum
from trident_py.state import BaseStateUpdater, ITupleCollection, ReadOnlyMapState, ReadOnlyState, StateFactory
from trident_py.state.base import ValueUpdater

# -- one tuple after the other: plain functions of the input values -----------------------------------------------


def weight(value: Any) -> int:
    """A small number that any value has."""
    return sum(map(ord, repr(value))) % 5


# name -> (how many outputs, the results for the values): a result is a tuple of that many values
FUNCTIONS: dict[str, tuple[int, Callable[..., list[tuple]]]] = {
    "constant": (1, lambda *values: [(7,)]),
    "weights": (1, lambda *values: [(sum(map(weight, values)),)]),
    "repeat": (1, lambda *values: [(i,) for i in range(sum(map(weight, values)) % 3)]),
    "pair": (2, lambda *values: [(len(values), weight(values))]),
    "maybe": (0, lambda *values: [()] * (weight(values) % 3)),
}
FILTERS: dict[str, Callable[..., bool]] = {
    "light": lambda *values: sum(map(weight, values)) % 3 != 1,
    "all": lambda *values: True,
    "none": lambda *values: False,
}


class Fn(Function):
    def __init__(self, name: str) -> None:
        self.name = name

    def execute(self, tuple: Any, collector: Any) -> None:
        for values in FUNCTIONS[self.name][1](*tuple):
            collector.emit(values)


class Callee:
    """The same as a plain callable: one output is the value itself."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *values: Any) -> Iterator[Any]:
        width, function = FUNCTIONS[self.name]
        for result in function(*values):
            yield result[0] if width == 1 else result


class Keeps(Filter):
    def __init__(self, name: str) -> None:
        self.name = name

    def isKeep(self, tuple: Any) -> bool:
        return FILTERS[self.name](*tuple)


def turned(row: Sequence[Any]) -> tuple:
    """What map does: the values in reverse."""
    return tuple(row)[::-1]


def exploded(row: Sequence[Any]) -> list[tuple]:
    """What flatMap does: each value with its weight."""
    return [(value, weight(value)) for value in row if weight(value) != 2]


class Turn(MapFunction):
    def execute(self, tuple: Any) -> Any:
        return turned(tuple)


class Explode(FlatMapFunction):
    def execute(self, tuple: Any) -> Any:
        return exploded(tuple)


def compare(one: Any, other: Any) -> int:
    """Orders whole tuples of any values."""
    a, b = repr(tuple(one)), repr(tuple(other))
    return (a > b) - (a < b)


def place(row: Sequence[Any]) -> int:
    """The custom grouping."""
    return weight(tuple(row))


# -- aggregators --------------------------------------------------------------------------------------------------


class Biased(CombinerAggregator):
    """A sum whose zero is 100, so that it shows how often zero is folded in."""

    def init(self, tuple: Any) -> int:
        return len(tuple) + sum(map(weight, tuple))

    def combine(self, val1: int, val2: int) -> int:
        return val1 + val2

    def zero(self) -> int:
        return 100


class Largest(CombinerAggregator):
    """The largest weight; its zero is null."""

    def init(self, tuple: Any) -> int:
        return sum(map(weight, tuple))

    def combine(self, val1: int | None, val2: int | None) -> int | None:
        return max([value for value in (val1, val2) if value is not None], default=None)

    def zero(self) -> None:
        return None


class Weights(ReducerAggregator):
    """The sum of all weights, from 1000 on."""

    def init(self) -> int:
        return 1000

    def reduce(self, curr: int, tuple: Any) -> int:
        return curr + sum(map(weight, tuple)) + 1


class Sorted(Aggregator):
    """One string of all tuples."""

    def init(self, batchId: Any, collector: Any) -> list:
        return []

    def aggregate(self, value: list, tuple: Any, collector: Any) -> list:
        return [*value, repr([*tuple])]

    def complete(self, value: list, collector: Any) -> None:
        collector.emit((" ".join(sorted(value)),))


class Echo(Aggregator):
    """Emits the weight of each tuple as it comes, and the count at the end."""

    def init(self, batchId: Any, collector: Any) -> int:
        return 0

    def aggregate(self, value: int, tuple: Any, collector: Any) -> int:
        collector.emit((weight(tuple[0]) if len(tuple) else 0,))
        return value + 1

    def complete(self, value: int, collector: Any) -> None:
        collector.emit((value,))


COMBINERS: dict[str, CombinerAggregator] = {"count": Count(), "sum": Sum(), "biased": Biased(), "largest": Largest()}
REDUCERS: dict[str, ReducerAggregator] = {"weights": Weights()}
AGGREGATORS: dict[str, Aggregator] = {"sorted": Sorted(), "echo": Echo()}
ALL: dict[str, Any] = {**COMBINERS, **REDUCERS, **AGGREGATORS}


class Tally(MultiReducer):
    """How many tuples came from each stream, at the end of the batch."""

    def init(self, collector: Any) -> list[int]:
        return [0, 0, 0]

    def execute(self, state: list[int], streamIndex: int, input: Any, collector: Any) -> None:
        state[streamIndex] += 1 + len(input)

    def complete(self, state: list[int], collector: Any) -> None:
        collector.emit((str(state),))


class GroupTally(GroupedMultiReducer):
    def init(self, collector: Any, group: Any) -> list[int]:
        return [0, 0, 0]

    def execute(self, state: list[int], streamIndex: int, group: Any, input: Any, collector: Any) -> None:
        state[streamIndex] += 1 + len(input)

    def complete(self, state: list[int], group: Any, collector: Any) -> None:
        collector.emit((*group, str(state)))


# -- states -------------------------------------------------------------------------------------------------------


class Plus(ValueUpdater):
    def __init__(self, amount: int) -> None:
        self.amount = amount

    def update(self, stored: Any) -> int:
        return self.amount if stored is None else stored + self.amount


class AddAll(BaseStateUpdater):
    """Adds up the second field by the first and emits the keys with what they have now."""

    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        amounts: dict[str, list] = {}
        for key, amount in tuples:
            amounts.setdefault(repr(key), [key, 0])[1] += amount
        keys = [(key,) for key, _ in amounts.values()]
        news = state.multiUpdate(keys, [Plus(amount) for _, amount in amounts.values()])
        for key, new in zip(keys, news, strict=True):
            collector.emit((*key, new))


class Table(StateFactory):
    """A static state: the weights of a few keys."""

    keys: tuple[Any, ...] = (1, "1", True, None, "a", "b")

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        return TableState()


class TableState(ReadOnlyState, ReadOnlyMapState, ITupleCollection):
    def multiGet(self, keys: Any) -> list:
        known = {repr((key,)): weight(key) for key in Table.keys}
        return [known.get(repr(tuple(key))) for key in keys]

    def getTuples(self) -> Iterator[list]:
        return iter([[key, weight(key)] for key in Table.keys])
