"""Counts and sums in Arrow kernels, typed or untyped, store and emit what the general way does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from semantics.support import Batches, bag, bags, run

from trident_py import LocalCluster, TridentTopology
from trident_py.operations import CombinerAggregator
from trident_py.operations.builtin import Count, Sum
from trident_py.testing import LoggingBackingMap, collect, stored

from .engine import records

KEYS: dict[str, Any] = {
    "string": st.sampled_from(["a", "b", "", "é", "1", None]),
    "bigint": st.sampled_from([0, 1, -1, 2**40, None]),
    "": st.sampled_from(["a", "1", 1, 1.0, True, None, ["a"], "\ud800"]),
}
NUMBERS: dict[str, Any] = {
    "bigint": st.sampled_from([0, 1, -7, 2**61, -(2**62), 2**63 - 1]),
    "big": st.sampled_from([1, 2**62, 2**63 - 1, 2**70]),
    "float": st.sampled_from([1, 2, 0.5, -1.25, 0.0]),
}


class PlainCount(CombinerAggregator):
    """Count without a kernel."""

    def init(self, tuple: Any) -> int:
        return 1

    def combine(self, val1: int, val2: int) -> int:
        return val1 + val2

    def zero(self) -> int:
        return 0


class PlainSum(PlainCount):
    """Sum without a kernel."""

    def init(self, tuple: Any) -> Any:
        return tuple[0]


@st.composite
def streams(draw: Any) -> list[tuple[list[str], int, list[tuple]]]:
    """Fields, partitions and rows of streams that are merged: each gives chunks of its own kind."""
    numbers = draw(st.sampled_from(["bigint", "big", "float"]))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        key, typed = draw(st.sampled_from(list(KEYS))), draw(st.booleans())
        number = draw(st.sampled_from([numbers, "bigint"])) if numbers == "big" else numbers
        fields = [f"k {key}" if typed and key else "k", f"v {number}" if typed and number == "bigint" else "v"]
        rows = draw(st.lists(st.tuples(KEYS[key], NUMBERS[number]), max_size=12))
        found.append((fields, draw(st.integers(1, 2)), rows))
    return found


@pytest.fixture(scope="module")
def local() -> Iterator[Any]:
    with LocalCluster() as cluster:
        yield cluster


def naive(given: list[tuple[list[str], int, list[tuple]]]) -> tuple[dict[str, int], dict[str, Any]]:
    """Counts and sums by the repr of the key."""
    counts: dict[str, int] = {}
    sums: dict[str, Any] = {}
    for _, _, rows in given:
        for key, value in rows:
            text = repr((key,))
            counts[text] = counts.get(text, 0) + 1
            sums[text] = sums.get(text, 0) + value
    return counts, sums


@settings(derandomize=True, suppress_health_check=list(HealthCheck))
@given(given=streams(), partitions=st.integers(1, 3))
def test_kernels_store_what_the_general_way_stores(given: Any, partitions: int, local: Any) -> None:
    topology, states = TridentTopology(), []
    merged = topology.merge(
        *[
            topology.newStream(f"s{i}", Batches(f, [rows, rows])).parallelismHint(n)
            for i, (f, n, rows) in enumerate(given)
        ]
    )
    for count, total in ((Count(), Sum()), (PlainCount(), PlainSum())):
        kinds = [LoggingBackingMap.Factory("transactional") for _ in range(2)]
        merged.groupBy("k").persistentAggregate(kinds[0], count, "n").parallelismHint(partitions)
        merged.groupBy("k").persistentAggregate(kinds[1], "v", total, "t").parallelismHint(partitions)
        chain = merged.groupBy("k").chainedAgg().aggregate(count, "n").aggregate("v", total, "t").aggregate(count, "m")
        collect(chain.chainEnd().parallelismHint(partitions), f"out{len(states)}")
        whole = merged.chainedAgg().aggregate(count, "n").aggregate("v", total, "t").chainEnd()
        collect(whole, f"whole{len(states)}")
        states.append(kinds)
    running = run(local, topology)
    counts, sums = naive(given)
    for kinds in states:
        assert records(stored(kinds[0])) == {key: (2, 2 * n) for key, n in counts.items()}
        assert shown(kinds[1]) == {key: repr((2, n + n)) for key, n in sums.items()}
    assert bags(running.collected("out0")) == bags(running.collected("out1"))
    of_all = (sum(counts.values()), sum(sums.values()))
    assert bags(running.collected("whole0")) == bags(running.collected("whole1"))
    assert bags(running.collected("whole1")) == {1: bag([of_all]), 2: bag([of_all])}
    rows = [(*eval(key), counts[key], sums[key], counts[key]) for key in counts]
    assert bags(running.collected("out1")) == ({1: bag(rows), 2: bag(rows)} if rows else {})


def shown(factory: Any) -> dict[str, str]:
    return {key: repr(value) for key, value in records(stored(factory)).items()}


@pytest.mark.parametrize("grouped", [False, True])
def test_a_subclass_of_sum_sums_what_it_says(grouped: bool, local: Any) -> None:
    class Doubled(Sum):
        def init(self, tuple: Any) -> Any:
            return 2 * super().init(tuple)

    topology = TridentTopology()
    stream = topology.newStream("s", Batches(["k bigint", "v bigint"], [[(1, 2), (1, 3)]]))
    given = stream.groupBy("k") if grouped else stream
    collect(given.aggregate("v", Doubled(), "t").project("t"), "out")
    assert bags(run(local, topology).collected("out")) == {1: bag([(10,)])}
