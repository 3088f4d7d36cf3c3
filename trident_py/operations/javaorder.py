"""Java's order of values: Comparable, and the heap order of PriorityQueue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import TridentError

Comparator = Callable[[Any, Any], int]


def compare(a: Any, b: Any) -> int:
    """Returns a negative number, 0 or a positive one, as ``a.compareTo(b)`` in Java. Both must be of one type, not
    null.

    NaN is the largest float, -0.0 is below 0.0. Raises TridentError that names both values.
    """
    if type(a) is not type(b) or a is None:
        raise TridentError(f"cannot compare {_named(a)} with {_named(b)}; values of one type are needed")
    if type(a) is float:
        return _compare_floats(a, b)
    try:
        return -1 if a < b else 1 if b < a else 0
    except TypeError:
        raise TridentError(f"cannot compare {_named(a)} with {_named(b)}; they have no order") from None


def _compare_floats(a: float, b: float) -> int:
    if a < b:
        return -1
    if a > b:
        return 1
    left, right = _rank(a), _rank(b)
    return (left > right) - (left < right)


def _rank(x: float) -> int:
    """Orders floats that < cannot tell apart: -0.0, then 0.0 and other numbers, then NaN."""
    return 2 if x != x else 0 if x == 0.0 and str(x).startswith("-") else 1


def _named(value: Any) -> str:
    return "null" if value is None else f"{value!r} ({type(value).__name__})"


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
        """Removes and returns the smallest item."""
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
