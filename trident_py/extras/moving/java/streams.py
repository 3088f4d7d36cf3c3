"""Streams of java.util, collectors and Optional."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from functools import cmp_to_key
from typing import Any

from .collections import HashMap, HashSet
from .containers import add_all, compute_if_absent, maximum, merge, minimum
from .errors import IllegalStateError, NoSuchElementError
from .objects import compare, equals, hash_code, to_text

__all__ = [
    "JStream", "Optional", "and_then", "averaging", "both", "collecting_and_then", "concat", "counting", "either",
    "generate", "grouping_by", "iterate", "joining", "mapping", "max_by", "min_by", "negate", "partitioning_by",
    "reducing", "same_value", "stream", "summing", "summing_doubles", "to_collection", "to_list", "to_map", "to_set",
]  # fmt: skip

Collector = Callable[[list[Any]], Any]


class Optional:
    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Optional) and equals(self._value, other._value)

    def __hash__(self) -> int:
        return hash_code(self._value)

    def isPresent(self) -> bool:
        return self._value is not None

    def get(self) -> Any:
        if self._value is None:
            raise NoSuchElementError("No value present")
        return self._value

    def orElse(self, other: Any) -> Any:
        return other if self._value is None else self._value

    def orElseGet(self, make: Callable[[], Any]) -> Any:
        return make() if self._value is None else self._value

    def orElseThrow(self, make: Callable[[], BaseException]) -> Any:
        if self._value is None:
            raise make()
        return self._value

    def map(self, change: Callable[[Any], Any]) -> Optional:
        return self if self._value is None else Optional(change(self._value))

    def flatMap(self, change: Callable[[Any], Optional]) -> Optional:
        return self if self._value is None else change(self._value)

    def filter(self, test: Callable[[Any], bool]) -> Optional:
        return self if self._value is not None and test(self._value) else Optional(None)

    def ifPresent(self, act: Callable[[Any], Any]) -> None:
        if self._value is not None:
            act(self._value)

    def __str__(self) -> str:
        return "Optional.empty" if self._value is None else f"Optional[{to_text(self._value)}]"


class JStream:
    """A stream of java.util: nothing is computed before its end is called."""

    def __init__(self, values: Iterable[Any]) -> None:
        self._values = values

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def map(self, change: Callable[[Any], Any]) -> JStream:
        return JStream(change(value) for value in self._values)

    def mapToDouble(self, change: Callable[[Any], float]) -> JStream:
        return JStream(float(change(value)) for value in self._values)

    def filter(self, test: Callable[[Any], bool]) -> JStream:
        return JStream(value for value in self._values if test(value))

    def flatMap(self, change: Callable[[Any], JStream]) -> JStream:
        return JStream(one for value in self._values for one in change(value))

    def peek(self, act: Callable[[Any], Any]) -> JStream:
        def values() -> Iterator[Any]:
            for value in self._values:
                act(value)
                yield value

        return JStream(values())

    def sorted(self, comparator: Callable[[Any, Any], int] = compare) -> JStream:
        def values() -> Iterator[Any]:
            yield from sorted(self._values, key=cmp_to_key(comparator))

        return JStream(values())

    def distinct(self) -> JStream:
        def values() -> Iterator[Any]:
            yield from dict.fromkeys(self._values)

        return JStream(values())

    def limit(self, count: int) -> JStream:
        return JStream(itertools.islice(self._values, max(count, 0)))

    def takeWhile(self, test: Callable[[Any], bool]) -> JStream:
        def values() -> Iterator[Any]:
            for value in self._values:
                if not test(value):
                    return
                yield value

        return JStream(values())

    def dropWhile(self, test: Callable[[Any], bool]) -> JStream:
        def values() -> Iterator[Any]:
            dropping = True
            for value in self._values:
                dropping = dropping and test(value)
                if not dropping:
                    yield value

        return JStream(values())

    def collect_into(self, make: Callable[[], Any], add: Callable[[Any, Any], Any]) -> Any:
        made = make()
        for value in self._values:
            add(made, value)
        return made

    def skip(self, count: int) -> JStream:
        return JStream(value for index, value in enumerate(self._values) if index >= count)

    def forEach(self, act: Callable[[Any], Any]) -> None:
        for value in self._values:
            act(value)

    def toList(self) -> list[Any]:
        return list(self._values)

    def collect(self, collector: Collector) -> Any:
        return collector(self.toList())

    def count(self) -> int:
        return len(self.toList())

    def sum(self) -> int:
        return sum(self._values)

    def sum_doubles(self) -> float:
        return _sum_doubles(self.toList())

    def average(self) -> Optional:
        values = self.toList()
        return Optional(_mean(values) if values else None)

    def max(self, comparator: Callable[[Any, Any], int] = compare) -> Optional:
        values = self.toList()
        return Optional(maximum(values, lambda a, b: comparator(a, b) or 1) if values else None)

    def min(self, comparator: Callable[[Any, Any], int] = compare) -> Optional:
        values = self.toList()
        return Optional(minimum(values, comparator) if values else None)

    def reduce(self, combine: Callable[[Any, Any], Any]) -> Optional:
        values = self.toList()
        return Optional(JStream(values[1:]).fold(values[0], combine) if values else None)

    def fold(self, value: Any, combine: Callable[[Any, Any], Any]) -> Any:
        for one in self._values:
            value = combine(value, one)
        return value

    def anyMatch(self, test: Callable[[Any], bool]) -> bool:
        return any(test(value) for value in self._values)

    def allMatch(self, test: Callable[[Any], bool]) -> bool:
        return all(test(value) for value in self._values)

    def findFirst(self) -> Optional:
        return Optional(next(iter(self._values), None))


def stream(values: Iterable[Any]) -> JStream:
    return JStream(values)


def iterate(value: Any, change: Callable[[Any], Any]) -> JStream:
    def values() -> Iterator[Any]:
        one = value
        while True:
            yield one
            one = change(one)

    return JStream(values())


def generate(make: Callable[[], Any]) -> JStream:
    return JStream(make() for _ in itertools.count())


def concat(first: Iterable[Any], second: Iterable[Any]) -> JStream:
    return JStream(itertools.chain(first, second))


def same_value(value: Any) -> Any:
    return value


def and_then(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: second(first(value))


def negate(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: not test(value)


def both(one: Callable[[Any], bool], other: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: one(value) and other(value)


def either(one: Callable[[Any], bool], other: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: one(value) or other(value)


def _sum_doubles(values: list[float]) -> float:
    """Add with compensation, as DoubleStream does."""
    total = compensation = simple = 0.0
    for value in values:
        simple += value
        fixed = value - compensation
        moved = total + fixed
        compensation = (moved - total) - fixed
        total = moved
    result = total - compensation
    return simple if math.isnan(result) and math.isinf(simple) else result


def _mean(values: list[Any]) -> float:
    return (_sum_doubles(values) if isinstance(values[0], float) else sum(values)) / len(values)


def to_list() -> Collector:
    return list


def to_set() -> Collector:
    return to_collection(HashSet)


def joining(separator: str = "", prefix: str = "", suffix: str = "") -> Collector:
    return lambda values: prefix + separator.join(values) + suffix


def counting() -> Collector:
    return len


def summing(key: Callable[[Any], int]) -> Collector:
    return lambda values: sum([key(value) for value in values])


def summing_doubles(key: Callable[[Any], float]) -> Collector:
    return lambda values: _sum_doubles([float(key(value)) for value in values])


def averaging(key: Callable[[Any], float]) -> Collector:
    return lambda values: _mean([key(value) for value in values]) if values else 0.0


def mapping(change: Callable[[Any], Any], collector: Collector) -> Collector:
    return lambda values: collector([change(value) for value in values])


def grouping_by(key: Callable[[Any], Any], collector: Collector = list, make: Callable[[], Any] = HashMap) -> Collector:
    def collect(values: list[Any]) -> Any:
        groups = make()
        for value in values:
            group = key(value)
            compute_if_absent(groups, group, lambda _: []).append(value)
        for group in list(groups):
            groups[group] = collector(groups[group])
        return groups

    return collect


def partitioning_by(test: Callable[[Any], bool], collector: Collector = list) -> Collector:
    def collect(values: list[Any]) -> dict[bool, Any]:
        parts: dict[bool, list[Any]] = {False: [], True: []}
        for value in values:
            parts[test(value)].append(value)
        return {part: collector(found) for part, found in parts.items()}

    return collect


def to_collection(make: Callable[[], Any]) -> Collector:
    def collect(values: list[Any]) -> Any:
        made = make()
        add_all(made, values)
        return made

    return collect


def reducing(start: Any, combine: Callable[[Any, Any], Any]) -> Collector:
    return lambda values: JStream(values).fold(start, combine)


def max_by(comparator: Callable[[Any, Any], int]) -> Collector:
    return lambda values: JStream(values).max(comparator)


def min_by(comparator: Callable[[Any, Any], int]) -> Collector:
    return lambda values: JStream(values).min(comparator)


def collecting_and_then(collector: Collector, change: Callable[[Any], Any]) -> Collector:
    return lambda values: change(collector(values))


def to_map(
    key: Callable[[Any], Any],
    value: Callable[[Any], Any],
    combine: Callable[[Any, Any], Any] | None = None,
    make: Callable[[], Any] = HashMap,
) -> Collector:
    def collect(values: list[Any]) -> Any:
        made = make()
        for one in values:
            name, new = key(one), value(one)
            if combine is not None:
                merge(made, name, new, combine)
            elif name in made:
                raise IllegalStateError(f"Duplicate key {to_text(name)}")
            else:
                made[name] = new
        return made

    return collect
