"""A join of typed streams, by index, gives what the join of untyped ones gives, row by row: in the same order."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from trident_py import Fields, JoinOutFieldsMode, JoinType, LocalCluster, TridentTopology
from trident_py.engine.processors.join import JoinProcessor
from trident_py.testing import FixedBatchSpout, collect

INNER, OUTER = JoinType.INNER, JoinType.OUTER
KEYS: dict[str, list[Any]] = {"bigint": [1, 2, 3, None, 2**60], "string": ["a", "", "ä", None], "boolean": [True, None]}
DOUBLES: list[Any] = [0.0, -0.0, None, 0.5]


def rows(seed: int, keys: list[Any], width: int, count: int) -> list[tuple]:
    choose = random.Random(seed)
    return [(*(choose.choice(keys) for _ in range(width)), choose.choice([None, n])) for n in range(count)]


def joined(cluster: LocalCluster, sides: list[list[tuple]], kind: str, types: Any, mode: JoinOutFieldsMode) -> Any:
    """Batches of 5 tuples of each side, joined by all fields but the last; ``kind`` "": untyped."""
    topology, streams, keys = TridentTopology(), [], []
    for n, side in enumerate(sides):
        names = [f"k{n}{i}" for i in range(len(side[0]) - 1)]
        typed = [*(f"{name} {kind}".strip() for name in names), f"v{n} bigint" if kind else f"v{n}"]
        spout = FixedBatchSpout(Fields(*typed), 5, *side)
        streams.append(topology.newStream(f"s{n}", spout))
        keys.append(names)
    whole = mode is JoinOutFieldsMode.PRESERVE
    made = sum(len(side[0]) for side in sides) if whole else len(keys[0]) + len(sides)
    both = topology.join(streams, keys, [f"o{i}" for i in range(made)], types, mode)
    collect(both, "joined")
    running = cluster.submitTopology("join", {}, topology.build())
    running.awaitTermination()
    return running.collected("joined")


@pytest.mark.parametrize("mode", list(JoinOutFieldsMode))
@pytest.mark.parametrize("types", [INNER, OUTER, [INNER, OUTER], [OUTER, INNER]], ids=str)
def test_typed_keys_join_as_untyped_ones(types: Any, mode: JoinOutFieldsMode) -> None:
    with LocalCluster() as cluster:
        for kind, width in itertools.product(KEYS, (1, 2)):
            sides = [rows(n, KEYS[kind], width, 14) for n in range(2)]
            assert joined(cluster, sides, kind, types, mode) == joined(cluster, sides, "", types, mode), (kind, width)


def test_three_streams_join_as_untyped_ones() -> None:
    sides = [rows(n, [1, 2, None], 1, 9) for n in range(3)]
    with LocalCluster() as cluster:
        for types in ([INNER, OUTER, OUTER], INNER, OUTER):
            modes = list(JoinOutFieldsMode)
            typed, untyped = ([joined(cluster, sides, kind, types, mode) for mode in modes] for kind in ("bigint", ""))
            assert typed == untyped


def test_zero_and_minus_zero_are_two_keys_of_a_typed_join() -> None:
    sides = [rows(n, DOUBLES, 1, 12) for n in range(2)]
    with LocalCluster() as cluster:
        typed, untyped = (
            joined(cluster, sides, kind, INNER, JoinOutFieldsMode.COMPACT) for kind in ("double", "")
        )
    assert repr(typed) == repr(untyped)


def test_a_side_of_another_type_is_joined_row_by_row_from_then_on() -> None:
    topology = TridentTopology()
    left = topology.newStream("l", FixedBatchSpout(Fields("k int", "v bigint"), 2, (1, 10), (2, 20)))
    right = topology.newStream("r", FixedBatchSpout(Fields("k bigint", "w bigint"), 2, (2, 200), (1, 100)))
    collect(topology.join([left, right], [["k"], ["k"]], ["k", "v", "w"]), "joined")
    with LocalCluster() as cluster:
        running = cluster.submitTopology("mixed", {}, topology.build())
        running.awaitTermination()
        assert running.collected("joined") == {1: [(1, 10, 100), (2, 20, 200)]}


def test_typed_keys_are_joined_by_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other tests would pass as well if all went row by row."""
    went: list[str] = []
    monkeypatch.setattr(JoinProcessor, "_go_by_row", lambda self: went.append("by row"))
    sides = [[(1, 10), (2, 20)], [(2, 30)]]
    with LocalCluster() as cluster:
        found = joined(cluster, sides, "bigint", INNER, JoinOutFieldsMode.COMPACT)
    assert (found, went) == ({1: [(2, 20, 30)]}, [])
