"""What `make test` leaves to `make test-all`: two marks, on a test or on a case of it.

``whole``
    Runs in `make test-all` only. A test whose cases are all marked so names the test of `make test` that keeps its
    promise: ``@pytest.mark.whole("test_a_driver_killed_at_any_step")``.
``one_of_each``
    `make test` runs so many of the cases that each value of each parameter comes once: each store, state and step,
    not each of them with each other. A frozen dataclass counts by its fields. The other cases become ``whole``.

``test_tiers.py`` holds that no promise is left without a case, on any store.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass

import pytest

Value = tuple[str, int]
"""The name of a parameter, and which value: the id of an object, as values need not be hashable."""


def one_of_each(cases: list[list[Value]]) -> set[int]:
    """The numbers of few cases in which every value comes; those that came seldom are preferred."""
    left = {value for case in cases for value in case}
    used: Counter[Value] = Counter()
    chosen: set[int] = set()
    while left:
        best = max(range(len(cases)), key=lambda n: (len(left & set(cases[n])), -sum(used[v] for v in cases[n]), -n))
        chosen.add(best)
        left -= set(cases[best])
        used.update(cases[best])
    return chosen


def values(params: Mapping[str, object]) -> Iterator[Value]:
    """The values of a case."""
    for name, value in params.items():
        if is_dataclass(value) and not isinstance(value, type):
            yield from values({f"{name}.{field}": each for field, each in vars(value).items()})
        else:
            yield name, id(value)


def leave_out(items: Iterable[pytest.Item]) -> None:
    """Marks the cases that ``one_of_each`` does not need. Called once, when all tests are collected."""
    tests: dict[object, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("one_of_each"):
            tests[item.parent, item.originalname].append(item)
    for cases in tests.values():
        chosen = one_of_each([list(values(case.callspec.params)) for case in cases])
        for number, case in enumerate(cases):
            if number not in chosen:
                case.add_marker(pytest.mark.whole)
