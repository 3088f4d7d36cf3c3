"""The txid rules of the maps: the table and the traces of docs/semantics.md, Storm's StateTest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from trident_py.errors import StateError, ZombieError
from trident_py.operations.base import CombinerAggregator
from trident_py.state import (
    BackingMap,
    CombinerValueUpdater,
    MapState,
    MemoryBackingMap,
    NonTransactionalMap,
    OpaqueMap,
    OpaqueValue,
    SnapshottableMap,
    TransactionalMap,
    TransactionalValue,
    ValueUpdater,
)


class Count(CombinerAggregator):
    def init(self, tuple: Any) -> int:
        return 1

    def combine(self, val1: int, val2: int) -> int:
        return val1 + val2

    def zero(self) -> int:
        return 0


class Recording(BackingMap):
    """A backing map that writes its calls down."""

    def __init__(self) -> None:
        self.inner = MemoryBackingMap()
        self.calls: list[tuple[str, list]] = []

    def multiGet(self, keys: Sequence[Any]) -> list[Any]:
        self.calls.append(("get", [list(key) for key in keys]))
        return self.inner.multiGet(keys)

    def multiPut(self, keys: Sequence[Any], vals: Sequence[Any]) -> None:
        self.calls.append(("put", [list(key) for key in keys]))
        self.inner.multiPut(keys, vals)


def add(n: int) -> ValueUpdater:
    return CombinerValueUpdater(Count(), n)


def batch(state: MapState, txid: int | None, words: str) -> dict[str, Any]:
    """One commit of a word count; the new values by word."""
    counts = {word: words.split().count(word) for word in words.split()}
    state.beginCommit(txid)
    news = state.multiUpdate([[word] for word in counts], [add(n) for n in counts.values()])
    state.commit(txid)
    return dict(zip(counts, news, strict=True))


def stored(backing: Any) -> dict[str, Any]:
    return {key[0]: value for key, value in backing.items()}


def test_transactional_keeps_what_a_replayed_batch_has_written() -> None:
    backing = MemoryBackingMap()
    state = TransactionalMap.build(backing)
    assert batch(state, 1, "a b a") == {"a": 2, "b": 1}
    assert batch(state, 1, "a c") == {"a": 2, "c": 1}
    assert stored(backing) == {"a": (1, 2), "b": (1, 1), "c": (1, 1)}
    assert batch(state, 2, "a") == {"a": 3}
    assert stored(backing)["a"] == TransactionalValue(2, 3)


def test_opaque_starts_a_replayed_batch_from_the_value_before() -> None:
    backing = MemoryBackingMap()
    state = OpaqueMap.build(backing)
    batch(state, 1, "a b a")
    assert batch(state, 1, "a c") == {"a": 1, "c": 1}
    assert stored(backing) == {
        "a": OpaqueValue(1, 1, None), "b": OpaqueValue(1, 1, None), "c": OpaqueValue(1, 1, None),
    }  # fmt: skip
    batch(state, 2, "a")
    assert stored(backing)["a"] == OpaqueValue(2, 2, 1)


def test_opaque_keeps_a_failed_attempts_value_of_a_key_that_the_replay_does_not_touch() -> None:
    """S12, Storm's own limit."""
    state = OpaqueMap.build(backing := MemoryBackingMap())
    batch(state, 1, "a b")
    batch(state, 1, "a")
    batch(state, 2, "b")
    assert stored(backing)["b"] == OpaqueValue(2, 2, 1)


def test_nontransactional_counts_a_replayed_batch_twice() -> None:
    state = NonTransactionalMap.build(backing := MemoryBackingMap())
    for txid, words in ((1, "a b a"), (1, "a c"), (2, "a")):
        batch(state, txid, words)
    assert stored(backing) == {"a": 4, "b": 1, "c": 1}


def test_the_tables_of_trident_state_man_dog_apple() -> None:
    """docs/Trident-state.md: man, man, dog as batch 3."""
    backing = MemoryBackingMap()
    backing.multiPut(
        [["man"], ["dog"], ["apple"]],
        [TransactionalValue(1, 3), TransactionalValue(3, 4), TransactionalValue(2, 10)],
    )
    batch(TransactionalMap.build(backing), 3, "man man dog")
    assert stored(backing) == {"man": (3, 5), "dog": (3, 4), "apple": (2, 10)}


@pytest.mark.parametrize(("txid", "expected"), [(3, OpaqueValue(3, 6, 4)), (2, OpaqueValue(2, 3, 1))])
def test_the_tables_of_trident_state_opaque(txid: int, expected: OpaqueValue) -> None:
    """docs/Trident-state.md: value 4, prev 1, txid 2, then a partial count of 2."""
    value = OpaqueValue(2, 4, 1)
    assert value.update(txid, value.get(txid) + 2) == expected


def test_an_older_txid_is_refused_and_nothing_is_written() -> None:
    for build in (TransactionalMap.build, OpaqueMap.build):
        state = build(backing := MemoryBackingMap())
        batch(state, 5, "a")
        before = stored(backing)
        with pytest.raises(ZombieError, match=r"batch 4 is behind.*batch 5"):
            batch(state, 4, "b a")
        assert stored(backing) == before


def test_a_second_update_in_one_commit_builds_on_the_first() -> None:
    for build in (TransactionalMap.build, OpaqueMap.build):
        state = build(backing := MemoryBackingMap())
        for _ in range(2):  # and the same again on replay for the opaque map
            state.beginCommit(1)
            state.multiUpdate([["a"]], [add(1)])
            news = state.multiUpdate([["a"]], [add(10)])
            state.commit(1)
        assert news == [11]
        assert backing.items()[0][1][:2] == (1, 11)


def test_a_callers_list_of_a_key_may_change_after_the_call() -> None:
    """Updaters that take tuple by tuple may fill one list again and again."""
    for build in (NonTransactionalMap.build, TransactionalMap.build, OpaqueMap.build):
        state = build(MemoryBackingMap())
        state.beginCommit(1)
        keys: list[list[Any]] = [[None]]
        for word in ("a", "a", "b", "a"):
            keys[0][0] = word
            state.multiUpdate(keys, [add(1)])
        assert state.multiGet([["a"], ["b"]]) == [3, 1]


def test_opaque_keeps_prev_over_several_updates_of_one_commit() -> None:
    state = OpaqueMap.build(backing := MemoryBackingMap())
    batch(state, 1, "a")
    state.beginCommit(2)
    for n in (1, 2, 3):
        state.multiUpdate([["a"]], [add(n)])
    assert state.multiGet([["a"]]) == [7]
    state.commit(2)
    assert stored(backing) == {"a": OpaqueValue(2, 7, 1)}


def test_a_key_twice_in_one_update_is_written_by_the_last() -> None:
    for build in (TransactionalMap.build, OpaqueMap.build, NonTransactionalMap.build):
        state = build(MemoryBackingMap())
        state.beginCommit(1)
        assert state.multiUpdate([["a"], ["a"]], [add(1), add(2)]) == [1, 2]
        state.commit(1)
        assert state.multiGet([["a"]]) == [2]


def test_one_multiget_and_at_most_one_multiput_per_update() -> None:
    transactional = TransactionalMap.build(backing := Recording())
    batch(transactional, 1, "a b")
    batch(transactional, 1, "b a")
    assert backing.calls == [("get", [["a"], ["b"]]), ("put", [["a"], ["b"]]), ("get", [["b"], ["a"]])]
    opaque = OpaqueMap.build(backing := Recording())
    batch(opaque, 1, "")
    assert backing.calls == [("get", []), ("put", [])]


def test_a_query_outside_a_commit_sees_the_current_value() -> None:
    state = OpaqueMap.build(MemoryBackingMap())
    batch(state, 1, "a")
    batch(state, 2, "a")
    assert state.multiGet([["a"], ["x"]]) == [2, None]
    state.beginCommit(2)
    assert state.multiGet([["a"]]) == [1]


def test_without_a_txid_every_update_applies() -> None:
    state = TransactionalMap.build(backing := MemoryBackingMap())
    batch(state, None, "a")
    batch(state, None, "a")
    assert stored(backing) == {"a": (None, 2)}
    batch(state, 3, "a")
    assert stored(backing) == {"a": (3, 3)}


def test_an_opaque_value_without_a_txid_refuses_a_batch() -> None:
    """S16: Storm dies of a NullPointerException; here the error says why."""
    state = OpaqueMap.build(MemoryBackingMap())
    batch(state, None, "a")
    assert batch(state, None, "a") == {"a": 2}
    with pytest.raises(StateError, match="without a txid"):
        batch(state, 1, "a")


def test_multiput_takes_the_running_txid() -> None:
    for build, first, second in (
        (TransactionalMap.build, (1, 5), (2, 6)), (OpaqueMap.build, (1, 5, None), (2, 6, 5)),
    ):  # fmt: skip
        state = build(backing := MemoryBackingMap())
        for txid, value, expected in ((1, 5, first), (1, 5, first), (2, 6, second)):
            state.beginCommit(txid)
            state.multiPut([["a"]], [value])
            state.commit(txid)
            assert stored(backing)["a"] == expected


def test_keys_have_javas_identity() -> None:
    """S29: 1, 1.0, True, "1" and None are five keys; a list and a tuple are one."""
    keys: list[Any] = [[1], [1.0], [True], ["1"], [None]]
    state = OpaqueMap.build(MemoryBackingMap())
    state.beginCommit(1)
    state.multiUpdate(keys, [add(n) for n in range(5)])
    assert state.multiGet([tuple(key) for key in keys]) == [0, 1, 2, 3, 4]


def test_values_may_be_falsy_or_structured() -> None:
    state = OpaqueMap.build(MemoryBackingMap())
    values: list[Any] = [0, "", False, [], {"a": [1]}]
    state.beginCommit(1)
    state.multiPut([[i] for i in range(5)], values)
    state.commit(1)
    assert state.multiGet([[i] for i in range(5)]) == values


def test_snapshottable_map_keeps_one_value() -> None:
    state = SnapshottableMap(OpaqueMap.build(backing := MemoryBackingMap()), ["g"])
    for txid in (1, 1, 2):
        state.beginCommit(txid)
        assert state.update(add(1)) == txid
        state.commit(txid)
    assert state.get() == 2
    state.beginCommit(3)
    state.set(9)
    state.commit(3)
    assert stored(backing) == {"g": OpaqueValue(3, 9, 2)}


def test_a_backing_map_that_answers_too_little_is_named() -> None:
    class Short(MemoryBackingMap):
        def multiGet(self, keys: Any) -> list[Any]:
            return []

    with pytest.raises(StateError, match="answered 0 values for 1 keys"):
        batch(OpaqueMap.build(Short()), 1, "a")
