"""CachedMap, MicroBatchIBackingMap, the serializers, memory states, updaters and persist."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pytest

from trident_py.errors import DefinitionError, FailedException, StateError
from trident_py.operations.base import CombinerAggregator, ReducerAggregator, TridentCollector
from trident_py.state import (
    SILENT,
    CachedMap,
    CombinerAggStateUpdater,
    CombinerValueUpdater,
    JSONNonTransactionalSerializer,
    JSONOpaqueSerializer,
    JSONTransactionalSerializer,
    LRUMemoryMapState,
    MapCombinerAggStateUpdater,
    MapReducerAggStateUpdater,
    MemoryBackingMap,
    MemoryMapState,
    MicroBatchIBackingMap,
    OpaqueMap,
    OpaqueValue,
    ReadOnlyState,
    ReducerAggStateUpdater,
    State,
    StateUpdater,
    TransactionalMap,
    TransactionalValue,
    persist,
)
from trident_py.tuples import TridentTuple


class Sum(CombinerAggregator):
    def init(self, tuple: Any) -> int:
        return tuple[0]

    def combine(self, val1: int, val2: int) -> int:
        return val1 + val2

    def zero(self) -> int:
        return 0


class Concat(ReducerAggregator):
    def init(self) -> str:
        return ">"

    def reduce(self, curr: str, tuple: Any) -> str:
        return curr + "".join(map(str, tuple))


class Flaky(MemoryBackingMap):
    """Fails the next put when told to."""

    broken = False
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def multiGet(self, keys: Sequence[Any]) -> list[Any]:
        self.asked.append(len(keys))
        return super().multiGet(keys)

    def multiPut(self, keys: Sequence[Any], vals: Sequence[Any]) -> None:
        if self.broken:
            self.broken = False
            raise FailedException("the store went away")
        super().multiPut(keys, vals)


def tuples(fields: str, *rows: Sequence[Any]) -> list[TridentTuple]:
    return [TridentTuple.of(fields.split(), row) for row in rows]


def collector() -> tuple[TridentCollector, list]:
    rows: list = []
    return TridentCollector(rows.append), rows


@pytest.mark.parametrize("build", [TransactionalMap.build, OpaqueMap.build])
def test_a_cache_is_not_ahead_of_the_store_after_a_failed_write(build: Any) -> None:
    """S17, repaired: in Storm the replay of a transactional map is skipped though the store never got it."""
    store = Flaky()
    state = build(CachedMap(store, 10))
    add = CombinerValueUpdater(Sum(), 1)
    for txid, broken in ((1, False), (2, True), (2, False)):
        store.broken = broken
        state.beginCommit(txid)
        try:
            state.multiUpdate([["a"]], [add])
            state.commit(txid)
        except FailedException:
            assert broken
    assert store.items()[0][1][:2] == (2, 2)


def test_a_cache_keeps_misses_and_the_most_recently_used() -> None:
    store = Flaky()
    cache = CachedMap(store, 2)
    cache.multiGet([["a"], ["b"]])
    cache.multiGet([["a"]])
    cache.multiGet([["c"]])  # b goes
    cache.multiGet([["a"], ["b"]])
    assert store.asked == [2, 0, 1, 1]
    with pytest.raises(DefinitionError, match="at least 1"):
        CachedMap(store, 0)


def test_micro_batches_split_long_calls() -> None:
    store = Flaky()
    split = MicroBatchIBackingMap(store, maxMultiGetBatchSize=2, maxMultiPutBatchSize=3)
    split.multiPut([[i] for i in range(5)], list(range(5)))
    assert split.multiGet([[i] for i in range(5)]) == [0, 1, 2, 3, 4]
    assert store.asked == [2, 2, 1]
    for sizes in ((0, -1), (-2, 0)):
        with pytest.raises(DefinitionError, match=r"a chunk of -. keys is none"):
            MicroBatchIBackingMap(store, *sizes)


@pytest.mark.parametrize(
    ("serializer", "value", "data"),
    [
        (JSONNonTransactionalSerializer(), 5, b"5"),
        (JSONTransactionalSerializer(), TransactionalValue(3, 5), b"[3,5]"),
        (JSONOpaqueSerializer(), OpaqueValue(3, 6, 4), b"[3,6,4]"),
        (JSONOpaqueSerializer(), OpaqueValue(1, 2, None), b"[1,2,null]"),
        (JSONTransactionalSerializer(), TransactionalValue(1, 'a/b"\\\n'), b'[1,"a\\/b\\"\\\\\\n"]'),
        (JSONNonTransactionalSerializer(), "\x01\x7f\u2028é", '"\\u0001\\u007F\\u2028é"'.encode()),
        (JSONNonTransactionalSerializer(), [1.0, 1e10, 1e-5, 0.001, 5e-324], b"[1.0,1.0E10,1.0E-5,0.001,4.9E-324]"),
        (JSONNonTransactionalSerializer(), [True, None], b"[true,null]"),
        (JSONNonTransactionalSerializer(), {"a": [1, {"b": 2.5}]}, b'{"a":[1,{"b":2.5}]}'),
        (JSONNonTransactionalSerializer(), 2**70, b"1180591620717411303424"),
    ],
)  # fmt: skip
def test_values_have_storms_bytes_both_ways(serializer: Any, value: Any, data: bytes) -> None:
    assert serializer.serialize(value) == data
    assert serializer.deserialize(data) == value


def test_other_bytes_are_refused_with_what_was_expected() -> None:
    assert JSONNonTransactionalSerializer().serialize(float("nan")) == b"NaN"
    with pytest.raises(StateError, match="no txid"):
        JSONTransactionalSerializer().deserialize(b"[null,5]")
    with pytest.raises(StateError, match=r"not \[currTxid,curr,prev\]"):
        JSONOpaqueSerializer().deserialize(b"[1,2]")
    with pytest.raises(StateError, match="not JSON"):
        JSONOpaqueSerializer().deserialize(b"\xff")


def test_two_memory_factories_share_nothing_and_a_copy_shares_all() -> None:
    one, two = MemoryMapState.Factory(), MemoryMapState.Factory()
    copy = pickle.loads(pickle.dumps(one))
    assert copy == one != two
    state = one.makeState({}, None, 0, 2)
    state.beginCommit(1)
    state.multiPut([["a"]], [1])
    state.commit(1)
    assert copy.makeState({}, None, 0, 2).multiGet([["a"]]) == [1]
    assert copy.makeState({}, None, 1, 2).multiGet([["a"]]) == [None]
    assert two.makeState({}, None, 0, 2).multiGet([["a"]]) == [None]
    assert copy.stored() == {("a",): OpaqueValue(1, 1, None)}
    assert one.stateName != two.stateName


def test_the_global_value_of_a_memory_state() -> None:
    factory = MemoryMapState.Factory()
    state = factory.makeState({}, None, 0, 1)
    for txid in (1, 2):
        state.beginCommit(txid)
        state.update(CombinerValueUpdater(Sum(), 5))
        state.commit(txid)
    assert state.get() == 10
    assert list(state.getTuples()) == [["$MEMORY-MAP-STATE-GLOBAL$", 10]]
    assert factory.stored() == {("$GLOBAL$",): OpaqueValue(2, 10, 5)}


def test_a_removed_key_is_null_until_the_next_txid_begins() -> None:
    factory = MemoryMapState.Factory()
    state = factory.makeState({}, None, 0, 1)
    state.beginCommit(1)
    state.multiPut([["a"]], [7])
    state.commit(1)
    for _ in range(2):  # the replay still sees what was before
        state.beginCommit(2)
        assert state.multiGet([["a"]]) == [7]
        state.multiRemove([["a"]])
        state.commit(2)
        assert factory.stored() == {("a",): OpaqueValue(2, None, 7)}
    state.beginCommit(3)
    assert factory.stored() == {}


def test_an_lru_memory_state_keeps_the_last_keys() -> None:
    state = LRUMemoryMapState.Factory(2).makeState({}, None, 0, 1)
    state.beginCommit(1)
    state.multiPut([["a"], ["b"]], [1, 2])
    state.multiGet([["a"]])
    state.multiPut([["c"]], [3])
    state.commit(1)
    assert sorted(state.getTuples()) == [["a", 1], ["c", 3]]
    with pytest.raises(DefinitionError, match="maxSize"):
        LRUMemoryMapState.Factory(0)


def test_the_global_combiner_takes_one_tuple_and_emits_the_new_value() -> None:
    state = MemoryMapState.Factory().makeState({}, None, 0, 1)
    out, rows = collector()
    persist(state, 1, CombinerAggStateUpdater(Sum()), tuples("n", [3]), out)
    persist(state, 2, CombinerAggStateUpdater(Sum()), tuples("n", [4]), out)
    assert rows == [(3,), (7,)]
    with pytest.raises(StateError, match="single tuple"):
        persist(state, 3, CombinerAggStateUpdater(Sum()), tuples("n", [4], [5]), out)


def test_the_global_reducer_folds_all_tuples() -> None:
    state = MemoryMapState.Factory().makeState({}, None, 0, 1)
    out, rows = collector()
    for txid in (1, 1, 2):
        persist(state, txid, ReducerAggStateUpdater(Concat()), tuples("n", ["a"], ["b"]), out)
    assert rows == [(">ab",), (">ab",), (">abab",)]


def test_the_grouped_combiner_emits_group_and_new_value_in_order() -> None:
    state = MemoryMapState.Factory().makeState({}, None, 0, 1)
    out, rows = collector()
    updater = MapCombinerAggStateUpdater(Sum(), ["b", "a"], "n")
    for txid in (1, 2):
        persist(state, txid, updater, tuples("n a b", [1, "x", 1], [2, "y", 1.0]), out)
    assert rows == [(1, "x", 1), (1.0, "y", 2), (1, "x", 2), (1.0, "y", 4)]
    with pytest.raises(DefinitionError, match="single field"):
        MapCombinerAggStateUpdater(Sum(), "a", ["n", "m"])


def test_the_grouped_reducer_groups_by_javas_identity() -> None:
    state = MemoryMapState.Factory().makeState({}, None, 0, 1)
    out, rows = collector()
    updater = MapReducerAggStateUpdater(Concat(), "k", ["v"])
    persist(state, 1, updater, tuples("k v", [1, "a"], [True, "b"], [1.0, "c"], [1, "d"]), out)
    assert sorted(rows, key=repr) == [(1, ">ad"), (1.0, ">c"), (True, ">b")]


class Logged(State):
    def __init__(self, fail: str = "") -> None:
        self.calls: list = []
        self.fail = fail

    def __getattribute__(self, name: str) -> Any:
        if name in ("beginCommit", "commit", "rollback"):
            def call(txid: int | None) -> str:
                self.calls.append((name, txid))
                if name == self.fail:
                    raise FailedException(name)
                return f"receipt {txid}"
            return call
        return super().__getattribute__(name)


class Log(StateUpdater):
    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        state.calls.append(("update", list(tuples)))


def test_persist_calls_the_three_in_order_and_returns_the_receipt() -> None:
    state = Logged()
    assert persist(state, 4, Log(), ["t"], SILENT) == "receipt 4"
    assert state.calls == [("beginCommit", 4), ("update", ["t"]), ("commit", 4)]


def test_persist_calls_nothing_for_no_tuples() -> None:
    """S6."""
    state = Logged()
    assert persist(state, 4, Log(), [], SILENT) is None
    assert state.calls == []


@pytest.mark.parametrize("fail", ["beginCommit", "commit"])
def test_persist_rolls_back_and_passes_the_exception_on(fail: str) -> None:
    state = Logged(fail)
    with pytest.raises(FailedException, match=fail):
        persist(state, 4, Log(), ["t"], SILENT)
    assert state.calls[-1] == ("rollback", 4)


def test_a_read_only_state_says_so() -> None:
    with pytest.raises(StateError, match="read-only and does not support updates"):
        ReadOnlyState().beginCommit(1)
