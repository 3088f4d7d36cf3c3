"""Java's order of values, and the built-ins that order tuples by it: Min, Max and FirstN.

Users import the built-ins from `builtin`. Source in Storm: ComparisonAggregator, Min, Max, FirstN.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from ..errors import DefinitionError, TridentError
from ..tuples import TridentTuple
from .base import Aggregator, Assembly, TridentCollector, name_of
from .columnar import Columnar
from .roles import Compares

Comparator = Callable[[Any, Any], int]
AnyComparator = Comparator | Compares


def compare(a: Any, b: Any) -> int:
    """Return a negative number, 0 or a positive one, as ``a.compareTo(b)`` in Java. Both must be of one type, not
    null.

    NaN is the largest float, -0.0 is below 0.0. Raises TridentError that names both values.
    """
    if type(a) is not type(b) or a is None:
        raise TridentError(f"cannot compare {_name_fields(a)} with {_name_fields(b)}; both must have the same type")
    if type(a) is float:
        return compare_doubles(a, b)
    try:
        return -1 if a < b else 1 if b < a else 0
    except TypeError:
        raise TridentError(
            f"cannot compare {_name_fields(a)} with {_name_fields(b)}; these values have no order"
        ) from None


def compare_doubles(a: float, b: float) -> int:
    """Compare as Java's ``Double.compare``: NaN is the greatest, -0.0 is less than 0.0."""
    if a < b:
        return -1
    if a > b:
        return 1
    rank, other = _rank(a), _rank(b)
    return (rank > other) - (rank < other)


def _rank(x: float) -> int:
    """Order floats that < cannot tell apart: -0.0, then 0.0 and other numbers, then NaN."""
    return 2 if x != x else 0 if x == 0.0 and str(x).startswith("-") else 1


def _name_fields(value: Any) -> str:
    return "null" if value is None else f"{value!r} ({type(value).__name__})"


def comparator_of(given: Any) -> Comparator:
    """Return the comparator as a callable. Raises DefinitionError for what is neither that nor an object with
    `compare`."""
    if isinstance(given, Compares):
        return given.compare
    if not callable(given) or isinstance(given, Columnar):
        raise DefinitionError(f"a comparator must be a callable (a, b) -> int, or have compare(a, b); got {given!r}")
    compares: Comparator = given
    return compares


class JavaHeap:
    """java.util.PriorityQueue: equal values come out in the same order as in Java."""

    def __init__(self, comparator: Comparator) -> None:
        self.comparator = comparator
        self.items: list[Any] = []

    def __len__(self) -> int:
        return len(self.items)

    def add(self, item: Any) -> None:
        items, at = self.items, len(self.items)
        items.append(item)
        while at > 0:
            parent = (at - 1) >> 1
            if self.comparator(item, items[parent]) >= 0:
                break
            items[at] = items[parent]
            at = parent
        items[at] = item

    def remove(self) -> Any:
        """Remove and return the smallest item."""
        items = self.items
        first, last = items[0], items.pop()
        if items:
            self._sift_down(last)
        return first

    def _sift_down(self, item: Any) -> None:
        items, at, size = self.items, 0, len(self.items)
        while 2 * at + 1 < size:
            child = 2 * at + 1
            if child + 1 < size and self.comparator(items[child], items[child + 1]) > 0:
                child += 1
            if self.comparator(item, items[child]) <= 0:
                break
            items[at] = items[child]
            at = child
        items[at] = item


class ComparisonAggregator(Aggregator):
    """Keeps the winning tuple of a partition: override `compare`. Skips tuples with a null value.

    Without a field it compares whole tuples. A partition without a winner emits nothing (Storm emits null, and the next
    reader throws).
    """

    def __init__(self, inputFieldName: str | None = None) -> None:
        self.inputFieldName = inputFieldName

    @abstractmethod
    def compare(self, value1: Any, value2: Any) -> Any:
        """Return the winner, one of the two objects: value1 won so far, value2 is the candidate."""
        raise NotImplementedError

    def init(self, batchId: Any, collector: TridentCollector) -> TridentTuple | None:
        return None

    def aggregate(self, value: TridentTuple | None, tuple: TridentTuple, collector: TridentCollector) -> Any:
        candidate = self.value(tuple)
        if candidate is None:
            return value
        if value is None or self.compare(self.value(value), candidate) is candidate:
            return tuple
        return value

    def complete(self, value: TridentTuple | None, collector: TridentCollector) -> None:
        if value is not None:
            collector.emit(value)

    def value(self, tuple: TridentTuple) -> Any:
        return tuple if self.inputFieldName is None else tuple.getValueByField(self.inputFieldName)


class MinWithComparator(ComparisonAggregator):
    """The smallest tuple by a comparator: ``(comparator)`` of tuples or ``(field, comparator)`` of values.

    A comparator is a callable ``(a, b) -> int``, or an object with `compare`. Of equal tuples the later one counts.
    """

    def __init__(self, inputFieldName: Any = None, comparator: AnyComparator | None = None) -> None:
        field, given = (inputFieldName, comparator) if comparator is not None else (None, inputFieldName)
        super().__init__(field)
        self.comparator = comparator_of(given)

    def compare(self, value1: Any, value2: Any) -> Any:
        order = self.comparator(value1, value2)
        try:
            return value2 if self._wins(order) else value1
        except TypeError:
            raise TridentError(
                f"comparator {name_of(self.comparator)} returned {order!r}; return a number: below 0, 0 or above 0"
            ) from None

    def _wins(self, order: Any) -> bool:
        """Return whether the candidate wins that is so compared with the winner so far."""
        return bool(order >= 0)


class MaxWithComparator(MinWithComparator):
    """The largest tuple by a comparator: ``(comparator)`` of tuples or ``(field, comparator)`` of values."""

    def _wins(self, order: Any) -> bool:
        return bool(order <= 0)


class Min(MinWithComparator):
    """The tuple with the smallest value of a field; values of different types are an error, as in Storm."""

    def __init__(self, inputFieldName: str) -> None:
        super().__init__(inputFieldName, compare)


class Max(MaxWithComparator):
    """The tuple with the largest value of a field; values of different types are an error, as in Storm."""

    def __init__(self, inputFieldName: str) -> None:
        super().__init__(inputFieldName, compare)


class FirstNAgg(Aggregator):
    """Emits the first n tuples as they come."""

    def __init__(self, n: int) -> None:
        self.n = n

    def init(self, batchId: Any, collector: TridentCollector) -> int:
        return 0

    def aggregate(self, value: int, tuple: TridentTuple, collector: TridentCollector) -> int:
        if value < self.n:
            collector.emit(tuple)
        return value + 1

    def complete(self, value: int, collector: TridentCollector) -> None:
        """Do nothing: `aggregate` has emitted the tuples."""


class FirstNSortedAgg(Aggregator):
    """Emits the n smallest (with reverse: largest) tuples by a field when the batch ends.

    Raises TridentError at run time if n is below 1, for two values that cannot be compared, and for null among several.
    """

    def __init__(self, n: int, sortField: str, reverse: bool = False) -> None:
        self.n = n
        self.sortField = sortField
        self.reverse = reverse

    def init(self, batchId: Any, collector: TridentCollector) -> JavaHeap:
        if self.n < 1:
            raise TridentError(f"FirstN sorted by {self.sortField!r}: n must be 1 or more, got {self.n}")
        return JavaHeap(self.order)

    def aggregate(self, value: JavaHeap, tuple: TridentTuple, collector: TridentCollector) -> None:
        value.add(tuple)

    def complete(self, value: JavaHeap, collector: TridentCollector) -> None:
        for _ in range(min(self.n, len(value))):
            collector.emit(value.remove())

    def order(self, a: TridentTuple, b: TridentTuple) -> int:
        order = compare(a.getValueByField(self.sortField), b.getValueByField(self.sortField))
        return -order if self.reverse else order


class FirstN(Assembly):
    """The first n tuples of a batch; with a sort field the n smallest by it, or the n largest with reverse.

    Runs in each partition, then over all of them. Keeps the fields. An empty batch emits nothing.
    """

    FirstNAgg = FirstNAgg
    FirstNSortedAgg = FirstNSortedAgg

    def __init__(self, n: int, sortField: str | None = None, reverse: bool = False) -> None:
        self.aggregator = FirstNAgg(n) if sortField is None else FirstNSortedAgg(n, sortField, reverse)

    def apply(self, stream: Any) -> Any:
        fields = stream.getOutputFields()
        partial = stream.partitionAggregate(fields, self.aggregator, fields)
        return partial.global_().partitionAggregate(fields, self.aggregator, fields)
