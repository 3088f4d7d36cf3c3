"""Maps and sets: a HashMap goes through its keys in Java's order, a LinkedHashMap in that of insertion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .numbers import to_int
from .objects import hash_code, to_text

__all__ = [
    "ConcurrentHashMap", "HashMap", "HashSet", "LinkedHashMap", "LinkedHashSet", "MapEntry",
]  # fmt: skip


class _ListKey(list):
    """A list as a key: it must not change, as in Java."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(map(as_key, self)))


def as_key(key: Any) -> Any:
    return _ListKey(key) if type(key) is list else key


class OrderedMap:
    """What follows from the order in which a map goes through its keys; keys, values and entries as they are now."""

    def setdefault(self: Any, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self: Any, source: Any) -> None:
        for key in source:
            self[key] = source[key]

    def keys(self: Any) -> Any:
        return list(self)

    def values(self: Any) -> Any:
        return [self[key] for key in self]

    def items(self: Any) -> Any:
        return [(key, self[key]) for key in self]


class HashMap(OrderedMap, dict):  # type: ignore[misc]
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
        return super().__contains__(as_key(key))

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(as_key(key))

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(as_key(key), default)

    def pop(self, key: Any, *default: Any) -> Any:
        return super().pop(as_key(key), *default)

    def __setitem__(self, key: Any, value: Any) -> None:
        key = as_key(key)
        if key not in self:
            self._made += 1
            self._ranks[key] = self._made
        super().__setitem__(key, value)
        self._size = self._size or 16
        if self._is_full():
            self._size *= 2

    def prepend(self, key: Any, value: Any) -> None:
        key = as_key(key)
        if key not in self:
            self._size = self._size * 2 if self._size and len(self) > self._size * 0.75 else self._size or 16
            self._made += 1
            self._ranks[key] = -self._made
        super().__setitem__(key, value)

    def __iter__(self) -> Iterator[Any]:
        def place(key: Any) -> tuple[int, int]:
            code = hash_code(key) & 0xFFFFFFFF
            return (code ^ (code >> 16)) & (self._size - 1), self._ranks[key]

        return iter(sorted(dict.__iter__(self), key=place))

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


class KeySet:
    """A set whose values are the keys of a map, in the map's order. `add` and `remove` tell whether they changed it."""

    def __init__(self, values: Iterable[Any] | int = ()) -> None:
        self._map = self._make(values)
        for value in () if isinstance(values, int) else values:
            self.add(value)

    def _make(self, values: Any) -> Any:
        return {}

    def add(self, value: Any) -> bool:
        new = value not in self
        self._map[as_key(value)] = True
        return new

    def remove(self, value: Any) -> bool:
        return self._map.pop(as_key(value), None) is not None

    def clear(self) -> None:
        self._map.clear()

    def __contains__(self, value: object) -> bool:
        return as_key(value) in self._map

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._map))

    def __len__(self) -> int:
        return len(self._map)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, KeySet | set | frozenset):
            return len(self) == len(other) and all(one in self for one in other)
        return NotImplemented

    def __hash__(self) -> int:
        return to_int(sum(map(hash_code, self)))

    def __str__(self) -> str:
        return "[" + ", ".join(map(to_text, self)) + "]"

    __repr__ = __str__


class HashSet(KeySet):
    def _make(self, values: Any) -> Any:
        if isinstance(values, int):
            return HashMap(values)
        size = len(values) if hasattr(values, "__len__") else 0
        return HashMap(max(int(size / 0.75) + 1, 16))


class LinkedHashSet(KeySet):
    pass


class MapEntry:
    """A Map.Entry. ``owner``: the map whose value it shows, and which `setValue` changes."""

    def __init__(self, key: Any, value: Any, owner: Any = None) -> None:
        self._key, self._value, self._owner = key, value, owner

    def getKey(self) -> Any:
        return self._key

    def getValue(self) -> Any:
        if self._owner is not None and self._key in self._owner:
            self._value = self._owner[self._key]
        return self._value

    def setValue(self, value: Any) -> Any:
        old, self._value = self.getValue(), value
        if self._owner is not None:
            self._owner[self._key] = value
        return old

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MapEntry) and (self._key, self.getValue()) == (other._key, other.getValue())

    def __hash__(self) -> int:
        return hash_code(self._key) ^ hash_code(self.getValue())

    def __str__(self) -> str:
        return f"{to_text(self._key)}={to_text(self.getValue())}"

    __repr__ = __str__

    def __reduce__(self) -> Any:
        return MapEntry, (self._key, self.getValue())


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
