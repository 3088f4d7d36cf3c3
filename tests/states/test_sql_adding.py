"""Count and Sum inside the database do exactly what the maps do over memory."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from states.sql import SqlMapState
from trident_py.errors import StateError, TridentError, ZombieError
from trident_py.operations.builtin import Count, Sum
from trident_py.state import (
    CombinerValueUpdater,
    MemoryBackingMap,
    NonTransactionalMap,
    OpaqueMap,
    TransactionalMap,
)

KINDS: dict[str, Any] = {
    "nonTransactional": NonTransactionalMap, "transactional": TransactionalMap, "opaque": OpaqueMap,
}  # fmt: skip


def step(state: Any, txid: int | None, calls: list[list[tuple[str, Any]]], undo: Any = None) -> list[Any]:
    """One commit; the answers, or the kind of error (after which nothing is written)."""
    before = None if undo is None else dict(undo.items())
    state.beginCommit(txid)
    try:
        done = [
            state.multiUpdate([(key,) for key, _ in each], [CombinerValueUpdater(Sum(), n) for _, n in each])
            for each in calls
        ]
        state.commit(txid)
    except TridentError as error:
        getattr(state, "rollback", state.commit)(txid)
        if before is not None:
            undo.multiPut(list(before), list(before.values()))
            undo.multiRemove([key for key, _ in undo.items() if key not in before])
        return [type(error)]
    return done


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_random_batches_end_like_the_map_over_memory(tmp_path: Path, kind: str, seed: int) -> None:
    draw = random.Random(seed)
    factory = getattr(SqlMapState, kind)(f"sqlite:///{tmp_path}/s.db", "t", "k string", "n bigint")
    backing = MemoryBackingMap()
    ours, plain = factory.makeState({}, None, 0, 1), KINDS[kind].build(backing)
    txid = 1
    for _ in range(40):
        txid += draw.choice([0, 0, 1, 1, 2, -1])
        now = None if draw.random() < 0.05 else max(txid, 1)
        calls = [
            [(f"k{draw.randrange(30)}", draw.randrange(9)) for _ in range(draw.choice([1, 5, 150]))]
            for _ in range(draw.choice([1, 1, 2]))
        ]
        if draw.random() < 0.7:
            calls = [list(dict(call).items()) for call in calls]  # no key twice: the database adds
        assert step(ours, now, calls) == step(plain, now, calls, backing)
        assert factory.stored() == dict(backing.items())


@pytest.mark.parametrize("kind", ["transactional", "opaque"])
def test_an_older_txid_is_refused_and_nothing_written(tmp_path: Path, kind: str) -> None:
    factory = getattr(SqlMapState, kind)(f"sqlite:///{tmp_path}/s.db", "t", "k string", "n bigint")
    state = factory.makeState({}, None, 0, 1)
    step(state, 5, [[("a", 1)]])
    before = factory.stored()
    assert step(state, 4, [[("b", 1), ("a", 1)]]) == [ZombieError]
    assert factory.stored() == before


def test_a_sum_that_does_not_fit_is_refused_and_nothing_written(tmp_path: Path) -> None:
    factory = SqlMapState.opaque(f"sqlite:///{tmp_path}/s.db", "t", "k string", "n bigint")
    state = factory.makeState({}, None, 0, 1)
    step(state, 1, [[("a", 2**63 - 1)]])
    before = factory.stored()
    assert step(state, 2, [[("b", 1), ("a", 1)]]) == [StateError]
    assert factory.stored() == before


def test_only_counts_and_sums_of_the_columns_own_type_are_added_there(tmp_path: Path) -> None:
    class Biggest(Sum):
        def combine(self, val1: Any, val2: Any) -> Any:
            return max(val1, val2)

    factory = SqlMapState.transactional(f"sqlite:///{tmp_path}/s.db", "t", "k string", "x double")
    state = factory.makeState({}, None, 0, 1)
    for txid, (agg, n, expected) in enumerate(
        [(Sum(), 1.5, 1.5), (Sum(), 2, 3.5), (Biggest(), 3.0, 3.5), (Count(), 0.25, 3.75)], 1
    ):
        state.beginCommit(txid)
        assert state.multiUpdate([("a",)], [CombinerValueUpdater(agg, n)]) == [expected]
        state.commit(txid)
