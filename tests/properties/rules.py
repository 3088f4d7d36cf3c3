"""What the reference is made of: routing, grouping and folding in plain Python, from the semantics page."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterable
from typing import Any

from .usercode import AGGREGATORS, COMBINERS, REDUCERS, weight

Row = tuple
Parts = list[list[Row]]
Rule = Callable[[Row], Iterable[int]]


def pick(row: Row, at: list[int]) -> Row:
    return tuple(row[i] for i in at)


def placed(rows: list[tuple[int, Row]], count: int) -> Parts:
    return [[row for target, row in rows if target == i] for i in range(count)]


def spread(parts: Parts, rule: Rule, count: int) -> Parts:
    return placed([(target, row) for part in parts for row in part for target in rule(row)], count)


def by_hash(at: list[int], count: int) -> Rule:
    return lambda row: [java_hash(pick(row, at)) % count]


def java_hash(value: Any) -> int:
    """Java's hashCode; of several values that of Arrays.deepHashCode, as a signed 32-bit number."""
    if isinstance(value, tuple | list):
        result = 1
        for each in value:
            result = 31 * result + java_hash(each)
    elif value is None or isinstance(value, bool):
        result = {None: 0, True: 1231, False: 1237}[value]
    elif isinstance(value, str):
        result = sum(ord(char) * 31**i for i, char in enumerate(reversed(value)))
    else:
        bits = struct.unpack(">Q", struct.pack(">d" if isinstance(value, float) else ">q", value))[0]
        result = bits ^ bits >> 32
    return (result + 2**31) % 2**32 - 2**31


def over(rows: list[Row], group: list[int] | None, aggregate: Callable[[list[Row]], list[Row]]) -> list[Row]:
    """The aggregate of all rows, or of each group with the group's values before it."""
    if group is None:
        return aggregate(rows)
    keys = {repr(pick(row, group)): pick(row, group) for row in rows}
    return [
        key + made
        for text, key in keys.items()
        for made in aggregate([row for row in rows if repr(pick(row, group)) == text])
    ]


def chain(parts: list[tuple[list[int], str]], rows: list[Row]) -> list[Row]:
    """What the aggregators of a chain emit over these rows: the cross product."""
    emitted = [emissions(name, [pick(row, at) for row in rows]) for at, name in parts]
    return [sum(chosen, ()) for chosen in itertools.product(*emitted)]


def emissions(name: str, rows: list[Row]) -> list[Row]:
    if name in COMBINERS:
        return [(fold(COMBINERS[name], list(map(COMBINERS[name].init, rows))),)]
    if name in REDUCERS:
        return [(reduced(REDUCERS[name], rows, None),)]
    if name == "echo":
        return [(weight(row[0]) if row else 0,) for row in rows] + [(len(rows),)]
    assert name in AGGREGATORS
    return [(" ".join(sorted(repr(list(row)) for row in rows)),)]


def fold(combiner: Any, values: list[Any]) -> Any:
    result = combiner.zero()
    for value in values:
        result = value if result is None else combiner.combine(result, value)
    return result


def combined(combiner: Any, stored: Any, value: Any) -> Any:
    return value if stored is None else combiner.combine(stored, value)


def reduced(reducer: Any, rows: list[Row], stored: Any) -> Any:
    value = reducer.init() if stored is None else stored
    for row in rows:
        value = reducer.reduce(value, row)
    return value


def tally(sides: list[list[Row]], fields: list[Any]) -> str:
    """What the multi reducers of the tests say: for each of three streams its tuples and their values."""
    counts = [len(side) * (1 + len(read)) for side, read in zip(sides, fields, strict=True)]
    return str([*counts, 0, 0, 0][:3])


def value_of(record: Any) -> Any:
    """The value in a record: (value,), (txid, value) or (txid, value, the value before)."""
    return None if record is None else record[0] if len(record) == 1 else record[1]
