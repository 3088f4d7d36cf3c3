"""What `make test` leaves to `make test-all`. (`make check` runs those of some folders that need no server.)

A test with several parameters (its own, its fixtures') runs so many of its cases in `make test` that each value of each
parameter comes once: each store, state and step, not each of them with each other. The other cases become ``whole``.

``whole``
    Runs in `make test-all` only. A test whose cases are all marked so names the test of `make test` that keeps its
    promise: ``@pytest.mark.whole("test_a_driver_killed_at_any_step")``.
``one_of_each``
    More than pytest knows is a parameter: each name of those that one ``parametrize`` lists together, and the fields of
    a frozen dataclass. The classes that inherit a test share its cases; one without a database has a store of its own:
    Kafka, Redis, or files. MariaDB and MySQL, which have one dialect, are two stores; a test that is not marked has a
    case on one of them.

``dear``
    The tests of a module, which cost seconds each, share their cases: each test has one at least, and each value of
    each parameter comes once in the module, not in each of its tests.

``test_tiers.py`` holds that no promise is left without a case, on any store.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from dataclasses import is_dataclass
from typing import Any
from zlib import crc32

import pytest
from databases import MYSQLS

Value = tuple[Hashable, Hashable]
"""A parameter, and which of its values: the id of an object, as values need not be hashable."""


SERVERS = ("kafka", "redis")
"""The fixtures of stores that are no databases."""
COLLECTED = pytest.StashKey[list[pytest.Item]]()
"""Where a run keeps all tests that it has collected, before `-m` and `-k` choose among them."""


def one_of_each(
    cases: list[list[Value]], liking: Callable[[int], Any] = int.__neg__, dear: Container[int] = ()
) -> set[int]:
    """The numbers of few cases in which every value comes.

    Preferred are those that are not ``dear``, whose values came seldom, then by ``liking``.
    """
    left = {value for case in cases for value in case}
    used: Counter[Value] = Counter()
    chosen: set[int] = set()
    while left:
        best = max(
            range(len(cases)),
            key=lambda n: (len(left & set(cases[n])), n not in dear, -sum(used[v] for v in cases[n]), liking(n)),
        )
        chosen.add(best)
        left -= set(cases[best])
        used.update(cases[best])
    return chosen


def of_other_parts(items: Iterable[pytest.Item], part: str) -> set[pytest.Item]:
    """The tests that are not in this part, as "2/4", of all. A file is in one part."""
    number, _, parts = part.partition("/")
    return {item for item in items if crc32(item.nodeid.partition("::")[0].encode()) % int(parts) + 1 != int(number)}


def values(item: pytest.Function) -> Iterator[Value]:
    """The values of a case."""
    more = item.get_closest_marker("one_of_each") is not None
    together = {} if more else _listed_together(item)
    for name, value in item.callspec.params.items() if hasattr(item, "callspec") else ():
        if more and is_dataclass(value) and not isinstance(value, type):
            yield from ((f"{name}.{field}", id(part)) for field, part in vars(value).items())
        else:
            names = together.get(name, (name,))
            parts = [item.callspec.params[each] for each in names]
            yield names, tuple(id(MYSQLS) if is_mysql(part) and not more else id(part) for part in parts)
    fixtures = getattr(item, "fixturenames", ())
    if more and item.cls is not None and "database" not in fixtures:
        yield ("database",), tuple(name for name in SERVERS if name in fixtures)


def is_mysql(value: Any) -> bool:
    """Whether a parameter is a server with MySQL's dialect."""
    return isinstance(value, str) and value in MYSQLS


def _listed_together(item: pytest.Function) -> dict[str, tuple[str, ...]]:
    """Names that one ``parametrize`` lists together are one parameter."""
    together: dict[str, tuple[str, ...]] = {}
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
        listed = tuple(name.strip() for name in names)
        together.update(dict.fromkeys(listed, listed))
    return together


def promise(item: pytest.Function) -> str:
    """The test that a case is of; the classes that inherit it share it. Two modules may have tests of one name."""
    return f"{item.function.__module__}.{item.function.__qualname__}"


def is_dear(item: pytest.Function) -> bool:
    """Whether the tests of its module share their cases. A test that it inherits has its own."""
    return item.get_closest_marker("dear") is not None and item.function.__module__ == item.module.__name__


def sharers(item: pytest.Function) -> Hashable:
    """Those that share cases: the tests of a dear module, the classes that inherit a test, or the cases of one test."""
    if is_dear(item):
        return item.function.__module__
    inherited = item.get_closest_marker("one_of_each") is not None and item.cls is not None
    return promise(item) if inherited else (item.parent, item.originalname)


def leave_out(items: Iterable[pytest.Item]) -> None:
    """Marks the cases that `make test` does not need. Called once, when all tests are collected.

    Of the classes that share cases, each gets some of each store. A case on Spark takes ten times as long as one on
    LocalCluster, so a test has as few of them as it can.
    """
    shown: Counter[tuple] = Counter()
    tests: dict[Any, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and not item.get_closest_marker("whole"):
            tests[sharers(item)].append(item)
    for cases in tests.values():
        made = [list(values(case)) for case in cases]
        if is_dear(cases[0]):
            made = [[*each, (("test",), promise(case))] for case, each in zip(cases, made, strict=True)]
        several = len({name for case in made for name, _ in case}) > 1 or len({case.cls for case in cases}) > 1
        if several or len(set(map(tuple, made))) < len(made):
            kin = [(case.cls, *each) for case, each in zip(cases, made, strict=True)]
            some = [crc32(f"{number}/{cases[0].originalname}".encode()) for number in range(len(cases))]
            dear = {number for number, case in enumerate(cases) if case.get_closest_marker("spark")}
            chosen = one_of_each(made, lambda n, kin=kin, some=some: (-shown[kin[n]], some[n]), dear)  # type: ignore[misc]
            shown.update(kin[number] for number in chosen)
            for number, case in enumerate(cases):
                if number not in chosen:
                    case.add_marker(pytest.mark.whole)
