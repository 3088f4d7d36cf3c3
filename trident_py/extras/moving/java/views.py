"""Views of maps: their keys, their values and their entries. What is removed from them is removed from the map."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .collections import KeySet, MapEntry
from .objects import equals, to_text

__all__ = ["entry_set", "key_set", "values_of"]


class _Keys(KeySet):
    def __init__(self, owner: Any) -> None:
        self._map = owner

    def add(self, value: Any) -> bool:
        raise NotImplementedError("a view of a map takes no new key")

    def remove(self, value: Any) -> bool:
        present = value in self._map
        self._map.pop(value, None)
        return present


class _Entries(_Keys):
    def __iter__(self) -> Iterator[Any]:
        return iter([MapEntry(key, self._map[key], self._map) for key in list(self._map)])

    def __contains__(self, value: object) -> bool:
        return isinstance(value, MapEntry) and any(value == one for one in self)

    def remove(self, value: Any) -> bool:
        return super().remove(value.getKey()) if value in self else False


class ValuesOfMap:
    """The values of a map, as they are when they are looked at."""

    def __init__(self, owner: Any) -> None:
        self._map = owner

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._map.values()))

    def __len__(self) -> int:
        return len(self._map)

    def __contains__(self, value: object) -> bool:
        return any(equals(one, value) for one in self)

    def clear(self) -> None:
        self._map.clear()

    def keys(self) -> list[Any]:
        """Return the key of each value, in their order."""
        return list(self._map)

    def remove_key(self, key: Any) -> None:
        self._map.pop(key, None)

    def remove_where(self, test: Callable[[Any], bool]) -> bool:
        gone = [key for key, value in zip(self.keys(), self, strict=True) if test(value)]
        for key in gone:
            self._map.pop(key)
        return bool(gone)

    def __str__(self) -> str:
        return "[" + ", ".join(map(to_text, self)) + "]"

    __repr__ = __str__

    def __reduce__(self) -> Any:
        return list, (list(self),)


def key_set(map_: Any) -> KeySet:
    return _Keys(map_)


def entry_set(map_: Any) -> KeySet:
    return _Entries(map_)


def values_of(map_: Any) -> ValuesOfMap:
    return ValuesOfMap(map_)
