"""Keys that are equal are one group, one row and one side of a join, in however many partitions."""

from __future__ import annotations

import datetime as dt
import enum
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from trident_py import TopologyError, TridentError, TridentTopology, TridentTuple
from trident_py.model.canonical import identity
from trident_py.operations.builtin import Count, Equals, Sum
from trident_py.testing import LoggingBackingMap, collect, stored

from .support import Batches, both, both_always, run, through


class Word(enum.StrEnum):
    A = "a"


def shuffled(*values: Any) -> set:
    """A set whose elements were put in in this order."""
    return set(values)


SIX = dt.datetime(2026, 1, 1, 6, tzinfo=dt.UTC)
# each list is one key, told in several ways
ALIKE: list[list[Any]] = [
    [Decimal("1.0"), Decimal("1.00"), Decimal("1"), Decimal("1E+0")],
    [SIX, SIX.astimezone(dt.timezone(dt.timedelta(hours=1))), SIX.astimezone(ZoneInfo("UTC")), pd.Timestamp(SIX)],
    [shuffled("a", "b", "ab"), shuffled("ab", "b", "a"), frozenset(["b", "ab", "a"])],
    [{"a": 1, "b": 2}, {"b": 2, "a": 1}],
    ["a", Word.A, np.str_("a")],
    [1, np.int64(1), np.int8(1)],
    [0.5, np.float32(0.5), np.float64(0.5)],
    [b"x", bytearray(b"x")],
    [(Decimal("1.0"), ["x"]), [Decimal("1"), ("x",)]],
    [None, pd.NaT, pd.NA],
    [SIX.replace(tzinfo=None), SIX.replace(tzinfo=None, fold=1)],
]
EVERY = [(value,) for row in zip(*[alike * 4 for alike in ALIKE], strict=False) for value in row]


@pytest.mark.parametrize("kind", ["transactional", "opaque"])
@both_always
def test_equal_keys_from_four_partitions_are_counted_in_one_row(cluster: Any, kind: str) -> None:
    factory = LoggingBackingMap.Factory(kind)
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("k", [EVERY, EVERY[::-1]])).parallelismHint(4)
    counts = stream.groupBy("k").persistentAggregate(factory, [], Count(), "n").parallelismHint(4)
    collect(counts.newValuesStream(), "counts")
    running = run(cluster, topology)
    wanted: dict = {}
    for (value,) in EVERY * 2:
        wanted[identity(value)] = wanted.get(identity(value), 0) + 1
    [rows] = [running.collected("counts")[2]]
    assert {identity(key): n for key, n in rows} == wanted and len(rows) == len(wanted)
    if getattr(factory, "calls", None):
        assert {identity(key): value for (key,), value in stored(factory).items()}.keys() == wanted.keys()


@pytest.mark.parametrize("hint", [1, 4])
@both
def test_equal_values_meet_in_a_join_in_any_number_of_partitions(cluster: Any, hint: int) -> None:
    topology = TridentTopology()
    left = topology.newStream("l", Batches(["k", "x"], [[(alike[0], i) for i, alike in enumerate(ALIKE)]]))
    right = topology.newStream("r", Batches(["k", "y"], [[(alike[-1], i) for i, alike in enumerate(ALIKE)]]))
    sides = [side.parallelismHint(hint) for side in (left, right)]
    joined = topology.join(sides[0], "k", sides[1], "k", ["k", "x", "y"]).parallelismHint(hint)
    collect(joined.project(["x", "y"]), "out")
    rows = run(cluster, topology).collected("out")[1]
    assert sorted(map(tuple, rows)) == [(i, i) for i in range(len(ALIKE))]


@both
def test_an_array_as_a_key_is_refused_by_name(cluster: Any) -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("k", [[(np.array([1, 2]),)]]))
    collect(stream.groupBy("k").aggregate(Count(), "n"), "out")
    running = cluster.submitTopology("array-key", None, topology.build())
    with pytest.raises(TopologyError, match=r"a numpy.ndarray cannot be a key.*tuple\(array.tolist\(\)\)"):
        running.awaitTermination(120)


def test_equals_still_compares_what_is_no_key(cluster: Any) -> None:
    rows = [(range(3), range(3), 1), (range(3), range(4), 2), (Word.A, "a", 3), (range(3), [0, 1, 2], 4)]
    found = through(cluster, ["a", "b", "n"], [rows], lambda stream: stream.filter(["a", "b"], Equals()).project("n"))
    assert found == {1: ["(1,)", "(3,)"]}


@both
def test_a_sum_of_decimals_is_exact(cluster: Any) -> None:
    rows = [(Decimal("1e-20"),), (Decimal(10**20),), (Decimal("-0.5"),), (1,)]
    found = through(cluster, "v", [rows], lambda stream: stream.aggregate("v", Sum(), "s"), partitions=2)
    assert found == {1: ["(Decimal('100000000000000000000.50000000000000000001'),)"]}


def test_a_sum_that_no_number_of_digits_holds_is_refused() -> None:
    with pytest.raises(TridentError, match=r"Sum: .*'1E\+999999'.*no more than .* digits"):
        Sum().combine(Decimal("1E+999999"), Decimal(1))


def test_numpy_numbers_are_summed_as_the_numbers_they_are() -> None:
    total = Sum().zero()
    for value in (np.int64(2**63 - 1), np.int8(127), np.int8(127), np.uint8(255)):
        total = Sum().combine(total, Sum().init(TridentTuple.of("v", [value])))
    assert total == 2**63 - 1 + 509 and type(total) is int
