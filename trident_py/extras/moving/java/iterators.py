"""Iterators of Java: `hasNext`, `next` and `remove`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .errors import NoSuchElementError
from .views import ValuesOfMap

__all__ = ["JavaIterator", "each_of"]


class JavaIterator:
    """An Iterator over a list, a set or a view of a map. `remove` removes the last value from it."""

    def __init__(self, source: Any) -> None:
        self._source, self._values, self._at = source, list(source), 0
        self._keys = source.keys() if isinstance(source, ValuesOfMap) else []

    def hasNext(self) -> bool:
        return self._at < len(self._values)

    def next(self) -> Any:
        if not self.hasNext():
            raise NoSuchElementError("no such element")
        self._at += 1
        return self._values[self._at - 1]

    def set(self, value: Any) -> None:
        self._source[self._at - 1] = self._values[self._at - 1] = value

    def remove(self) -> None:
        value = self._values[self._at - 1]
        if isinstance(self._source, list):
            del self._source[self._at - 1]
            del self._values[self._at - 1]
            self._at -= 1
        elif isinstance(self._source, ValuesOfMap):
            self._source.remove_key(self._keys[self._at - 1])
        else:
            self._source.remove(value)

    def __iter__(self) -> Iterator[Any]:
        return each_of(self)


def each_of(iterator: Any) -> Iterator[Any]:
    """Go through an Iterator of Java: one with `hasNext` and `next`."""
    while iterator.hasNext():
        yield iterator.next()
