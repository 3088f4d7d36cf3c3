"""Sorted maps and sets: a comparator alone tells keys apart, and parts of a map are views of it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import cmp_to_key
from typing import Any

from .collections import KeySet, MapEntry, OrderedMap, as_key
from .errors import NoSuchElementError
from .objects import compare, reverse_of

__all__ = ["TreeMap", "TreeSet"]

Comparator = Callable[[Any, Any], int]
_OPEN: Any = object()
"""The bound of a part that has none."""


class _Sorted(OrderedMap):
    """What a TreeMap and its parts have in common."""

    _comparator: Comparator

    def _keys(self) -> list[Any]:
        raise NotImplementedError

    def _sort_key(self, key: Any) -> Any:
        return cmp_to_key(self._comparator)(key)

    def _find(self, key: Any) -> int | None:
        """Return the place of the key that the comparator finds equal."""
        keys = self._keys()
        at = bisect_left(keys, self._sort_key(key), key=self._sort_key)
        return at if at < len(keys) and self._comparator(keys[at], key) == 0 else None

    def __contains__(self, key: object) -> bool:
        return self._find(key) is not None

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._keys()))

    def __len__(self) -> int:
        return len(self._keys())

    def __getitem__(self, key: Any) -> Any:
        raise NotImplementedError

    def __delitem__(self, key: Any) -> None:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return len(self) == len(other) and all(key in other and other[key] == self[key] for key in self)

    __hash__ = None  # type: ignore[assignment]

    def get(self, key: Any, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def pop(self, key: Any, *default: Any) -> Any:
        if default and key not in self:
            return default[0]
        value = self[key]
        del self[key]
        return value

    def clear(self) -> None:
        for key in self:
            del self[key]

    def _entry(self, key: Any) -> MapEntry | None:
        return None if key is None else MapEntry(key, self[key])

    def _end(self, at: int) -> Any:
        keys = self._keys()
        if not keys:
            raise NoSuchElementError("null")
        return keys[at]

    def firstKey(self) -> Any:
        return self._end(0)

    def lastKey(self) -> Any:
        return self._end(-1)

    def firstEntry(self) -> MapEntry | None:
        return self._entry(self._end(0)) if len(self) else None

    def lastEntry(self) -> MapEntry | None:
        return self._entry(self._end(-1)) if len(self) else None

    def pollFirstEntry(self) -> MapEntry | None:
        entry = self.firstEntry()
        if entry is not None:
            del self[entry.getKey()]
        return entry

    def _near(self, key: Any, below: bool, same: bool) -> Any:
        keys, wanted = self._keys(), self._sort_key(key)
        cut = bisect_right if below is same else bisect_left
        at = cut(keys, wanted, key=self._sort_key)
        return (keys[at - 1] if at else None) if below else (keys[at] if at < len(keys) else None)

    def floorKey(self, key: Any) -> Any:
        return self._near(key, below=True, same=True)

    def lowerKey(self, key: Any) -> Any:
        return self._near(key, below=True, same=False)

    def ceilingKey(self, key: Any) -> Any:
        return self._near(key, below=False, same=True)

    def higherKey(self, key: Any) -> Any:
        return self._near(key, below=False, same=False)

    def floorEntry(self, key: Any) -> MapEntry | None:
        return self._entry(self.floorKey(key))

    def ceilingEntry(self, key: Any) -> MapEntry | None:
        return self._entry(self.ceilingKey(key))

    def headMap(self, key: Any, inclusive: bool = False) -> PartOfMap:
        return PartOfMap(self, high=key, inclusive=inclusive)

    def tailMap(self, key: Any, inclusive: bool = True) -> PartOfMap:
        return PartOfMap(self, low=key, inclusive=inclusive)

    def descendingMap(self) -> PartOfMap:
        return PartOfMap(self, reverse=True)

    def copy(self) -> TreeMap:
        """Return a map of its own with the same comparator."""
        made = TreeMap(self._comparator)
        made.update(self)
        return made

    def __reduce__(self) -> Any:
        return _rebuild, (None if self._comparator is compare else self._comparator, self.items())


def _rebuild(comparator: Comparator | None, items: list[tuple[Any, Any]]) -> TreeMap:
    made = TreeMap(comparator)
    for key, value in items:
        made[key] = value
    return made


class TreeMap(_Sorted, dict):  # type: ignore[misc]
    """A dict in the order of its keys. ``source``: a map, or a comparator."""

    def __init__(self, source: Mapping[Any, Any] | Comparator | None = None) -> None:
        super().__init__()
        self._order: list[Any] = []
        self._held: list[Any] = []
        self._comparator = source if callable(source) else compare
        self.update(source if isinstance(source, Mapping) else {})

    def _keys(self) -> list[Any]:
        return self._order

    def __getitem__(self, key: Any) -> Any:
        at = self._find(key)
        if at is None:
            raise KeyError(key)
        return self._held[at]

    def __setitem__(self, key: Any, value: Any) -> None:
        at = self._find(key)
        if at is None:
            self._comparator(key, key)  # as in Java, an empty map refuses null too
            at = bisect_left(self._order, self._sort_key(key), key=self._sort_key)
            self._order.insert(at, key)
            self._held.insert(at, value)
        self._held[at] = value
        dict.__setitem__(self, as_key(self._order[at]), value)

    def __delitem__(self, key: Any) -> None:
        at = self._find(key)
        if at is None:
            raise KeyError(key)
        del self._held[at]
        dict.pop(self, as_key(self._order.pop(at)), None)


class PartOfMap(_Sorted, MutableMapping):  # type: ignore[misc]
    """The keys of a sorted map up to a bound, from one on, or backwards. What changes here changes in the map."""

    def __init__(
        self, owner: Any, low: Any = _OPEN, high: Any = _OPEN, inclusive: bool = False, reverse: bool = False
    ) -> None:
        self._owner, self._low, self._high, self._inclusive, self._reverse = owner, low, high, inclusive, reverse
        self._comparator = reverse_of(owner._comparator) if reverse else owner._comparator

    def _holds(self, key: Any) -> bool:
        if self._low is not _OPEN:
            return self._comparator(key, self._low) > -self._inclusive
        return self._high is _OPEN or self._comparator(key, self._high) < self._inclusive

    def _keys(self) -> list[Any]:
        keys = self._owner._keys()
        return [key for key in (keys[::-1] if self._reverse else keys) if self._holds(key)]

    def __getitem__(self, key: Any) -> Any:
        if key not in self:
            raise KeyError(key)
        return self._owner[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        if not self._holds(key):
            raise ValueError("key out of range")
        self._owner[key] = value

    def __delitem__(self, key: Any) -> None:
        if key not in self:
            raise KeyError(key)
        del self._owner[key]


class TreeSet(KeySet):
    """``values``: what is in it, or a comparator."""

    def __init__(self, values: Any = ()) -> None:
        self._map: Any = TreeMap(values if callable(values) else None)
        for value in () if callable(values) else values:
            self.add(value)

    def _over(self, keys: Any) -> TreeSet:
        made = TreeSet()
        made._map = keys
        return made

    def first(self) -> Any:
        return self._map.firstKey()

    def last(self) -> Any:
        return self._map.lastKey()

    def pollFirst(self) -> Any:
        entry = self._map.pollFirstEntry()
        return None if entry is None else entry.getKey()

    def pollLast(self) -> Any:
        entry = self._map.lastEntry()
        if entry is None:
            return None
        del self._map[entry.getKey()]
        return entry.getKey()

    def ceiling(self, value: Any) -> Any:
        return self._map.ceilingKey(value)

    def floor(self, value: Any) -> Any:
        return self._map.floorKey(value)

    def higher(self, value: Any) -> Any:
        return self._map.higherKey(value)

    def lower(self, value: Any) -> Any:
        return self._map.lowerKey(value)

    def headSet(self, value: Any, inclusive: bool = False) -> TreeSet:
        return self._over(self._map.headMap(value, inclusive))

    def tailSet(self, value: Any, inclusive: bool = True) -> TreeSet:
        return self._over(self._map.tailMap(value, inclusive))

    def descending(self) -> TreeSet:
        return self._over(self._map.descendingMap())

    def copy(self) -> TreeSet:
        """Return a set of its own with the same comparator."""
        return self._over(self._map.copy())
