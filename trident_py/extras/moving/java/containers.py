"""What Java's lists and maps can do and Python's cannot in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cmp_to_key
from typing import Any

from .collections import HashMap
from .errors import NoSuchElementError
from .objects import compare, equals
from .views import ValuesOfMap

__all__ = [
    "add",
    "add_all",
    "add_each",
    "checked",
    "compute",
    "compute_if_absent",
    "compute_if_present",
    "copy_of",
    "copy_of_range",
    "fill",
    "for_each",
    "for_each_entry",
    "frequency",
    "index_of",
    "insert",
    "item",
    "last_index_of",
    "map_of",
    "maximum",
    "merge",
    "minimum",
    "new_array",
    "put",
    "put_if_absent",
    "remove_all",
    "remove_if",
    "remove_value",
    "replace_entries",
    "replace_values",
    "retain_all",
    "set_item",
    "sort",
    "sub_list",
    "swap",
]  # fmt: skip

Comparator = Callable[[Any, Any], int]


def map_of(*keys_and_values: Any) -> HashMap:
    made = HashMap()
    for key, value in zip(keys_and_values[::2], keys_and_values[1::2], strict=True):
        made[key] = value
    return made


def put(map_: Any, key: Any, value: Any) -> Any:
    """Put a value, and return the one before."""
    old = map_.get(key)
    map_[key] = value
    return old


def put_if_absent(map_: Any, key: Any, value: Any) -> Any:
    old = map_.get(key)
    if old is None:
        map_[key] = value
    return old


def _place(map_: Any, key: Any, value: Any) -> Any:
    """Put a value that was computed; None removes the key."""
    if value is None:
        map_.pop(key, None)
    elif isinstance(map_, HashMap):
        map_.prepend(key, value)
    else:
        map_[key] = value
    return value


def compute_if_absent(map_: Any, key: Any, make: Callable[[Any], Any]) -> Any:
    return _place(map_, key, make(key)) if map_.get(key) is None else map_[key]


def compute_if_present(map_: Any, key: Any, change: Callable[[Any, Any], Any]) -> Any:
    return None if map_.get(key) is None else compute(map_, key, change)


def compute(map_: Any, key: Any, change: Callable[[Any, Any], Any]) -> Any:
    return _place(map_, key, change(key, map_.get(key)))


def merge(map_: Any, key: Any, value: Any, combine: Callable[[Any, Any], Any]) -> Any:
    old = map_.get(key)
    return _place(map_, key, value if old is None else combine(old, value))


def replace_entries(map_: Any, change: Callable[[Any, Any], Any]) -> None:
    for key in list(map_):
        map_[key] = change(key, map_[key])


def for_each(values: Iterable[Any], act: Callable[[Any], Any]) -> None:
    for value in values:
        act(value)


def for_each_entry(map_: Any, act: Callable[[Any, Any], Any]) -> None:
    for key in list(map_):
        act(key, map_[key])


def item(values: Any, index: int) -> Any:
    """Return an item of an array or a list. Raises IndexError for a negative index too."""
    if index < 0:
        raise IndexError(f"Index {index} out of bounds for length {len(values)}")
    return values[index]


def checked(index: int) -> int:
    """Return the index. Raises IndexError if it is negative."""
    if index < 0:
        raise IndexError(f"Index {index} out of bounds")
    return index


def add(values: list[Any], value: Any) -> bool:
    values.append(value)
    return True


def insert(values: list[Any], index: int, value: Any) -> None:
    if not 0 <= index <= len(values):
        raise IndexError(f"Index: {index}, Size: {len(values)}")
    values.insert(index, value)


def set_item(values: list[Any], index: int, value: Any) -> Any:
    old, values[index] = item(values, index), value
    return old


def add_all(values: Any, more: Iterable[Any]) -> bool:
    if isinstance(values, list):
        found = list(more)
        values.extend(found)
        return bool(found)
    return sum([values.add(one) for one in list(more)]) > 0


def add_each(values: Any, *more: Any) -> bool:
    return add_all(values, more)


def remove_value(values: list[Any], value: Any) -> bool:
    at = index_of(values, value)
    if at >= 0:
        del values[at]
    return at >= 0


def remove_if(values: Any, test: Callable[[Any], bool]) -> bool:
    if isinstance(values, ValuesOfMap):
        return values.remove_where(test)
    gone = [value for value in values if test(value)]
    if isinstance(values, list):
        values[:] = [value for value in values if not test(value)]
    else:
        for value in gone:
            values.remove(value)
    return bool(gone)


def remove_all(values: Any, others: Any) -> bool:
    return remove_if(values, lambda value: value in others)


def retain_all(values: Any, others: Any) -> bool:
    return remove_if(values, lambda value: value not in others)


def replace_values(values: list[Any], change: Callable[[Any], Any]) -> None:
    values[:] = [change(value) for value in values]


def index_of(values: Any, value: Any) -> int:
    return next((index for index, one in enumerate(values) if equals(one, value)), -1)


def last_index_of(values: Any, value: Any) -> int:
    return next((index for index in range(len(values) - 1, -1, -1) if equals(values[index], value)), -1)


class SubList(list[Any]):
    """A part of a list: what is set or cleared in it is so in the list. Nothing else of it can change."""

    def __init__(self, values: list[Any], start: int, end: int) -> None:
        super().__init__(values[start:end])
        self._values, self._start = values, start

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, value)
        self._values[self._start + index] = value

    def clear(self) -> None:
        del self._values[self._start : self._start + len(self)]
        super().clear()

    def _refuse(self, *arguments: Any, **more: Any) -> Any:
        raise NotImplementedError("a part of a list changes by set and clear alone; copy it first")

    append = extend = insert = pop = remove = sort = reverse = _refuse


def sub_list(values: Any, start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(values):
        raise IndexError(f"fromIndex: {start}, toIndex: {end}, size: {len(values)}")
    return SubList(values, start, end)


def sort(values: list[Any], comparator: Comparator | None = None) -> None:
    values.sort(key=cmp_to_key(comparator or compare))


def maximum(values: Iterable[Any], comparator: Comparator = compare) -> Any:
    return _best(values, lambda a, b: comparator(a, b) > 0)


def minimum(values: Iterable[Any], comparator: Comparator = compare) -> Any:
    return _best(values, lambda a, b: comparator(a, b) < 0)


def _best(values: Iterable[Any], better: Callable[[Any, Any], bool]) -> Any:
    found = list(values)
    if not found:
        raise NoSuchElementError("no such element")
    best = found[0]
    for value in found[1:]:
        best = value if better(value, best) else best
    return best


def swap(values: list[Any], i: int, j: int) -> None:
    values[i], values[j] = values[j], values[i]


def frequency(values: Iterable[Any], value: Any) -> int:
    return sum(equals(one, value) for one in values)


def fill(values: list[Any], value: Any) -> None:
    values[:] = [value] * len(values)


def new_array(value: Any, size: int, *sizes: int) -> list[Any]:
    """Make an array, or one of arrays, that is filled with a value."""
    return [new_array(value, *sizes) for _ in range(size)] if sizes else [value] * size


def copy_of(values: list[Any], size: int, blank: Any = None) -> list[Any]:
    return copy_of_range(values, 0, size, blank)


def copy_of_range(values: list[Any], start: int, end: int, blank: Any = None) -> list[Any]:
    """Return a part of an array, filled up with what the items of such an array are at first."""
    part = values[start:end]
    return part + [blank] * (end - start - len(part))
