"""Maps and sets: a HashMap goes through its keys in Java's order, a TreeMap in that of its keys."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cmp_to_key
from typing import Any

from .errors import NoSuchElementError
from .numbers import to_int
from .objects import compare, hash_code, to_text

__all__ = [
    "ConcurrentHashMap",
    "HashMap",
    "HashSet",

    "LinkedHashMap",
    "LinkedHashSet",
    "MapEntry",
    "TreeMap",
    "TreeSet",

    "entry_set",
    "key_set",
    "values_of",
]  # fmt: skip

Comparator = Callable[[Any, Any], int]


class _ListKey(list):
    """A list as a key: it must not change, as in Java."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(map(_key, self)))


def _key(key: Any) -> Any:
    return _ListKey(key) if type(key) is list else key


class HashMap(dict):
    """A dict that goes through its keys as ``java.util.HashMap`` does: by bucket, then by the place in it.

    `prepend` is how ``merge``, ``compute`` and ``computeIfAbsent`` put a new key: before the others of its bucket.
    """

    def __init__(self, source: Mapping[Any, Any] | int | None = None) -> None:
        super().__init__()
        self._size = self._made = 0
        self._ranks: dict[Any, int] = {}
        if isinstance(source, int):
            self._size = _power_of_two(source)
        elif source is not None:
            self._size = _power_of_two(int(len(source) / 0.75 + 1.0)) if source else 0
            self.update(source)

    def _is_full(self) -> bool:
        return len(self) > self._size * 0.75

    def __contains__(self, key: object) -> bool:
        return super().__contains__(_key(key))

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(_key(key))

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(_key(key), default)

    def pop(self, key: Any, *default: Any) -> Any:
        return super().pop(_key(key), *default)

    def __setitem__(self, key: Any, value: Any) -> None:
        key = _key(key)
        if key not in self:
            self._made += 1
            self._ranks[key] = self._made
        super().__setitem__(key, value)
        self._size = self._size or 16
        if self._is_full():
            self._size *= 2

    def prepend(self, key: Any, value: Any) -> None:
        key = _key(key)
        if key not in self:
            self._size = self._size * 2 if self._size and len(self) > self._size * 0.75 else self._size or 16
            self._made += 1
            self._ranks[key] = -self._made
        super().__setitem__(key, value)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, source: Any) -> None:  # type: ignore[override]
        for key in source:
            self[key] = source[key]

    def __iter__(self) -> Iterator[Any]:
        def place(key: Any) -> tuple[int, int]:
            code = hash_code(key) & 0xFFFFFFFF
            return (code ^ (code >> 16)) & (self._size - 1), self._ranks[key]

        return iter(sorted(dict.__iter__(self), key=place))

    def keys(self) -> Any:
        return list(self)

    def values(self) -> Any:
        return [self[key] for key in self]

    def items(self) -> Any:
        return [(key, self[key]) for key in self]

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), dict(dict.items(self)), vars(self))


class ConcurrentHashMap(HashMap):
    def _is_full(self) -> bool:
        return len(self) >= self._size * 0.75

    def prepend(self, key: Any, value: Any) -> None:
        self[key] = value


def _rebuild(kind: type[HashMap], items: dict[Any, Any], attributes: dict[str, Any]) -> HashMap:
    made = kind()
    for key, value in items.items():
        dict.__setitem__(made, key, value)
    vars(made).update(attributes)
    return made


def _power_of_two(size: int) -> int:
    return 1 if size <= 1 else 1 << (size - 1).bit_length()


class _KeySet:
    """A set whose values are the keys of a map, in the map's order. `add` and `remove` tell whether they changed it."""

    def __init__(self, values: Iterable[Any] | int = ()) -> None:
        self._map = self._make(values)
        for value in () if isinstance(values, int) else values:
            self.add(value)

    def _make(self, values: Any) -> Any:
        return {}

    def add(self, value: Any) -> bool:
        new = value not in self
        self._map[_key(value)] = True
        return new

    def remove(self, value: Any) -> bool:
        return self._map.pop(_key(value), None) is not None

    def clear(self) -> None:
        self._map.clear()

    def __contains__(self, value: object) -> bool:
        return _key(value) in self._map

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._map))

    def __len__(self) -> int:
        return len(self._map)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _KeySet | set | frozenset):
            return len(self) == len(other) and all(one in other for one in self)
        return NotImplemented

    def __hash__(self) -> int:
        return to_int(sum(map(hash_code, self)))

    def __str__(self) -> str:
        return "[" + ", ".join(map(to_text, self)) + "]"

    __repr__ = __str__


class HashSet(_KeySet):
    def _make(self, values: Any) -> Any:
        if isinstance(values, int):
            return HashMap(values)
        size = len(values) if hasattr(values, "__len__") else 0
        return HashMap(max(int(size / 0.75) + 1, 16))


class LinkedHashSet(_KeySet):
    pass


class LinkedHashMap(dict):
    """A dict in the order of insertion, or of the last access; `removeEldestEntry` may be overridden."""

    def __init__(self, capacity: int = 16, load: float = 0.75, accessOrder: bool = False) -> None:
        super().__init__()
        self._accessed = accessOrder

    def removeEldestEntry(self, eldest: MapEntry) -> bool:
        return False

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._accessed:
            super().pop(key, None)
        new = key not in self
        super().__setitem__(key, value)
        eldest = next(iter(self))
        if new and self.removeEldestEntry(MapEntry(eldest, self[eldest])):
            del self[eldest]

    def get(self, key: Any, default: Any = None) -> Any:
        if self._accessed and key in self:
            super().__setitem__(key, super().pop(key))
        return super().get(key, default)


class TreeMap(dict):
    """A dict in the order of its keys. ``source``: a map, or a comparator."""

    def __init__(self, source: Mapping[Any, Any] | Comparator | None = None) -> None:
        super().__init__()
        self._comparator = source if callable(source) else compare
        for key, value in source.items() if isinstance(source, Mapping) else ():
            self[key] = value

    def _sort_key(self, key: Any) -> Any:
        return cmp_to_key(self._comparator)(key)

    def _keys(self) -> list[Any]:
        return sorted(dict.__iter__(self), key=cmp_to_key(self._comparator))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys())

    def keys(self) -> Any:
        return self._keys()

    def values(self) -> Any:
        return [self[key] for key in self]

    def items(self) -> Any:
        return [(key, self[key]) for key in self]

    def update(self, source: Any) -> None:  # type: ignore[override]
        for key in source:
            self[key] = source[key]

    def _entry(self, keys: list[Any]) -> MapEntry | None:
        return MapEntry(keys[0], self[keys[0]]) if keys else None

    def firstKey(self) -> Any:
        return self._require(self._keys())[0]

    def lastKey(self) -> Any:
        return self._require(self._keys())[-1]

    def _require(self, keys: list[Any]) -> list[Any]:
        if not keys:
            raise NoSuchElementError("null")
        return keys

    def firstEntry(self) -> MapEntry | None:
        return self._entry(self._keys())

    def lastEntry(self) -> MapEntry | None:
        return self._entry(self._keys()[::-1])

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
        found = self.floorKey(key)
        return None if found is None else MapEntry(found, self[found])

    def ceilingEntry(self, key: Any) -> MapEntry | None:
        found = self.ceilingKey(key)
        return None if found is None else MapEntry(found, self[found])

    def _part(self, keys: Iterable[Any]) -> TreeMap:
        part = TreeMap(self._comparator)
        for key in keys:
            part[key] = self[key]
        return part

    def headMap(self, key: Any, inclusive: bool = False) -> TreeMap:
        return self._part(one for one in self if self._comparator(one, key) < inclusive)

    def tailMap(self, key: Any, inclusive: bool = True) -> TreeMap:
        return self._part(one for one in self if self._comparator(one, key) > -inclusive)

    def descendingMap(self) -> dict[Any, Any]:
        return {key: self[key] for key in self._keys()[::-1]}

    def __reduce__(self) -> Any:
        own = None if self._comparator is compare else self._comparator
        return _rebuild_tree, (own, dict(dict.items(self)))


def _rebuild_tree(comparator: Comparator | None, items: dict[Any, Any]) -> TreeMap:
    made = TreeMap(comparator)
    for key, value in items.items():
        made[key] = value
    return made


class TreeSet(_KeySet):
    """``values``: what is in it, or a comparator."""

    def __init__(self, values: Any = ()) -> None:
        self._map = TreeMap(values if callable(values) else None)
        for value in () if callable(values) else values:
            self._map[value] = True

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

    def headSet(self, value: Any) -> LinkedHashSet:
        return LinkedHashSet(self._map.headMap(value))

    def tailSet(self, value: Any) -> LinkedHashSet:
        return LinkedHashSet(self._map.tailMap(value))

    def descending(self) -> list[Any]:
        return list(self)[::-1]


class MapEntry:
    """A Map.Entry. ``owner``: the map that `setValue` changes."""

    def __init__(self, key: Any, value: Any, owner: Any = None) -> None:
        self._key, self._value, self._owner = key, value, owner

    def getKey(self) -> Any:
        return self._key

    def getValue(self) -> Any:
        return self._value

    def setValue(self, value: Any) -> Any:
        old, self._value = self._value, value
        if self._owner is not None:
            self._owner[self._key] = value
        return old

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MapEntry) and (self._key, self._value) == (other._key, other._value)

    def __hash__(self) -> int:
        return hash_code(self._key) ^ hash_code(self._value)

    def __str__(self) -> str:
        return f"{to_text(self._key)}={to_text(self._value)}"

    __repr__ = __str__


class _View(_KeySet):
    """The keys or the entries of a map: what is removed here is removed there."""

    def __init__(self, owner: Any, entries: bool = False) -> None:
        self._map, self._entries = owner, entries

    def __iter__(self) -> Iterator[Any]:
        keys = list(self._map)
        return iter([MapEntry(key, self._map[key], self._map) for key in keys] if self._entries else keys)

    def remove(self, value: Any) -> bool:
        key = value.getKey() if self._entries else value
        present = key in self._map
        self._map.pop(key, None)
        return present


def key_set(map_: Any) -> _View:
    return _View(map_)


def entry_set(map_: Any) -> _View:
    return _View(map_, entries=True)


def values_of(map_: Any) -> list[Any]:
    """Return the values of a map, as they are now."""
    return list(map_.values())
