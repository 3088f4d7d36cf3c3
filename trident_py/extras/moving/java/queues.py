"""Lists with two ends, and a queue by priority."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ....operations.ordering import JavaHeap
from .errors import NoSuchElementError
from .objects import compare, to_text

__all__ = ["LinkedList", "PriorityQueue"]


class LinkedList(list):
    """A LinkedList, an ArrayDeque or a Stack."""

    def __init__(self, values: Iterable[Any] | int = ()) -> None:
        super().__init__(() if isinstance(values, int) else values)

    def poll(self) -> Any:
        return self.pop(0) if self else None

    def pollLast(self) -> Any:
        return self.pop() if self else None

    def peek(self) -> Any:
        return self[0] if self else None

    def peekLast(self) -> Any:
        return self[-1] if self else None

    def _require(self) -> LinkedList:
        if not self:
            raise NoSuchElementError("no such element")
        return self

    def removeFirst(self) -> Any:
        return self._require().pop(0)

    def removeLast(self) -> Any:
        return self._require().pop()

    def getFirst(self) -> Any:
        return self._require()[0]

    def getLast(self) -> Any:
        return self._require()[-1]


class PriorityQueue:
    """The least value comes first. ``values``: what is in it, or a comparator."""

    def __init__(self, values: Iterable[Any] | Callable[[Any, Any], int] = ()) -> None:
        self._heap = JavaHeap(values if callable(values) else compare)
        for value in () if callable(values) else values:
            self.add(value)

    def add(self, value: Any) -> bool:
        self._heap.add(value)
        return True

    def poll(self) -> Any:
        return self._heap.remove() if self._heap.items else None

    def peek(self) -> Any:
        return self._heap.items[0] if self._heap.items else None

    def clear(self) -> None:
        self._heap.items.clear()

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._heap.items))

    def __contains__(self, value: object) -> bool:
        return value in self._heap.items

    def __str__(self) -> str:
        return to_text(self._heap.items)
