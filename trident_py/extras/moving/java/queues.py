"""Lists with two ends, and a queue by priority."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cmp_to_key
from typing import Any

from .errors import NoSuchElementError
from .objects import compare

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
        self._key = cmp_to_key(values if callable(values) else compare)
        self._heap: list[Any] = []
        for value in () if callable(values) else values:
            self.add(value)

    def add(self, value: Any) -> bool:
        """Sift up as Java does, so that equal values and iteration keep its order."""
        heap, at, key = self._heap, len(self._heap), self._key(value)
        heap.append(value)
        while at and key < self._key(heap[(at - 1) // 2]):
            heap[at] = heap[(at - 1) // 2]
            at = (at - 1) // 2
        heap[at] = value
        return True

    def poll(self) -> Any:
        if not self._heap:
            return None
        first, last = self._heap[0], self._heap.pop()
        if self._heap:
            self._sift_down(last)
        return first

    def _sift_down(self, value: Any) -> None:
        heap, at, key = self._heap, 0, self._key(value)
        while 2 * at + 1 < len(heap):
            child = 2 * at + 1
            if child + 1 < len(heap) and self._key(heap[child + 1]) < self._key(heap[child]):
                child += 1
            if not self._key(heap[child]) < key:
                break
            heap[at] = heap[child]
            at = child
        heap[at] = value

    def peek(self) -> Any:
        return self._heap[0] if self._heap else None

    def clear(self) -> None:
        self._heap.clear()

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._heap))

    def __contains__(self, value: object) -> bool:
        return value in self._heap
