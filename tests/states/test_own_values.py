"""No map shares an object with an updater or a reader: whoever changes what it was given changes nothing stored."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from contracts.in_place import SHARED, UPDATERS, Joining, Listing, run_batches

from states.sql import SqlMapState
from trident_py import LocalCluster, TridentTopology
from trident_py.errors import StateError
from trident_py.state import (
    BackingMap,
    CachedBatchReadsMap,
    CachedMap,
    MemoryBackingMap,
    NonTransactionalMap,
    OpaqueMap,
    OpaqueValue,
    TransactionalMap,
    TransactionalValue,
)
from trident_py.state.copies import copy_value
from trident_py.testing import FixedBatchSpout, MemoryMapState

KINDS = {NonTransactionalMap: "non-transactional", TransactionalMap: "transactional", OpaqueMap: "opaque"}
VALUES: dict[Any, Callable[[Any], Any]] = {
    NonTransactionalMap: lambda value: value,
    TransactionalMap: lambda value: TransactionalValue(*value),
    OpaqueMap: lambda value: OpaqueValue(*value),
}


class Texts(BackingMap):
    """A durable store: it keeps texts."""

    def __init__(self, map_: Any) -> None:
        self.value = VALUES[map_]
        self.texts: dict[tuple, str] = {}

    def multiGet(self, keys: Sequence[Any]) -> list[Any]:
        texts = [self.texts.get(tuple(key)) for key in keys]
        return [None if text is None else self.value(json.loads(text)) for text in texts]

    def multiPut(self, keys: Sequence[Any], vals: Sequence[Any]) -> None:
        self.texts.update((tuple(key), json.dumps(value)) for key, value in zip(keys, vals, strict=True))


def over(map_: Any, layer: Callable[[Any], BackingMap]) -> Callable[[Path], Any]:
    return lambda folder: map_.build(layer(map_))


def sql(kind: str) -> Callable[[Path], Any]:
    def open_(folder: Path) -> Any:
        factory = getattr(SqlMapState, kind)(f"sqlite:///{folder}/own.db", "t", "k string", "v json")
        return factory.makeState({}, None, 0, 1)

    return open_


LAYERS: dict[str, Callable[[Any], BackingMap]] = {
    "memory": lambda map_: MemoryBackingMap(),
    "texts": Texts,
    "a cache over texts": lambda map_: CachedMap(Texts(map_), 100),
    "a cache that evicts": lambda map_: CachedMap(Texts(map_), 2),
}
MAPS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    **{
        f"{map_.__name__} over {name}": (KINDS[map_], over(map_, layer))
        for map_ in VALUES
        for name, layer in LAYERS.items()
    },
    "MemoryMapState": ("opaque", lambda folder: MemoryMapState.Factory().makeState({}, None, 0, 1)),
    "SqlMapState.opaque": ("opaque", sql("opaque")),
    "SqlMapState.transactional": ("transactional", sql("transactional")),
    "SqlMapState.nonTransactional": ("non-transactional", sql("nonTransactional")),
}


@pytest.fixture(autouse=True)
def _nobody_changes_the_first_value() -> Iterator[None]:
    yield
    assert SHARED == []


@pytest.mark.parametrize("updaters", UPDATERS)
@pytest.mark.parametrize("name", MAPS)
def test_whoever_changes_a_value_in_place_changes_nothing_stored(name: str, updaters: Any, tmp_path: Path) -> None:
    """Those of servers have it in their contract (`MapContract`)."""
    kind, make = MAPS[name]
    for seed in range(6):
        (folder := tmp_path / str(seed)).mkdir()
        run_batches(make(folder), kind, updaters, random.Random(seed))


@pytest.mark.parametrize("updaters", UPDATERS)
@pytest.mark.parametrize("map_", VALUES)
def test_an_update_that_is_repeated_has_the_partial_results_that_it_was_given(map_: Any, updaters: Any) -> None:
    state, again = map_.build(MemoryBackingMap()), updaters({"a": [1]})
    for txid in range(1, 4):
        state.beginCommit(txid)
        (new,) = state.multiUpdate([["a"]], again)
        assert new == [1] * txid
        new.append("a consumer of the new values")
        state.commit(txid)


@pytest.mark.parametrize("map_", VALUES)
def test_what_was_put_is_no_longer_the_callers(map_: Any) -> None:
    state, value = map_.build(MemoryBackingMap()), [1]
    state.beginCommit(1)
    state.multiPut([["a"]], [value])
    value.append(2)
    assert state.multiGet([["a"]]) == [[1]]
    state.commit(1)
    assert state.multiGet([["a"], ["a"]]) == [[1], [1]]
    first, second = state.multiGet([["a"], ["a"]])
    assert first is not second


def test_the_layers_for_maps_of_your_own_share_nothing() -> None:
    value = [1]
    for layer, read in ((CachedMap(MemoryBackingMap(), 9), lambda found: found), (
        CachedBatchReadsMap(Texts(NonTransactionalMap)), lambda found: found.val)
    ):  # fmt: skip
        layer.multiPut([["a"]], [value])
        value.append(2)
        read(layer.multiGet([["a"]])[0]).append(3)
        assert read(layer.multiGet([["a"]])[0])[1:] == []
        value = [1]


def test_the_rows_of_a_memory_state_are_copies() -> None:
    factory = MemoryMapState.Factory()
    state = factory.makeState({}, None, 0, 1)
    state.beginCommit(1)
    state.multiPut([["a"]], [[1]])
    state.commit(1)
    next(state.getTuples())[1].append("a reader")
    factory.stored()["a",].curr.append("a test")
    assert factory.stored() == {("a",): OpaqueValue(1, [1])}


@pytest.mark.parametrize("aggregator", [Listing(), Joining()])
def test_groups_may_begin_with_one_object(aggregator: Any) -> None:
    topology, seen = TridentTopology(), MemoryMapState.Factory()
    stream = topology.newStream("s", FixedBatchSpout(["k", "n"], 4, ["a", 1], ["b", 2], ["a", 3]))
    one = stream.groupBy("k").aggregate("n", aggregator, "all")
    one.groupBy("k").persistentAggregate(seen, "all", Listing(), "lists")
    with LocalCluster() as cluster:
        cluster.submitTopology("t", {}, topology.build()).awaitTermination(30)
    assert {key[0]: value.curr for key, value in seen.stored().items()} == {"a": [[1, 3]], "b": [[2]]}


def test_a_copy_shares_nothing_that_can_change() -> None:
    for value in (1, "x", b"x", None, (1, "x"), TransactionalValue(1, 2), OpaqueValue(2, 1, None)):
        assert copy_value(value) is value
    for value in ([1], {1: 2}, {1}, [[1]], {1: [2]}, bytearray(b"x"), ([1],), OpaqueValue(2, [1], [1])):
        copy = copy_value(value)
        assert copy == value and type(copy) is type(value) and copy is not value
    assert copy_value(([1],))[0] is not copy_value(([1],))[0]


def test_a_value_that_cannot_be_copied_is_refused_in_words() -> None:
    state = NonTransactionalMap.build(MemoryBackingMap())
    with pytest.raises(StateError, match="keeps a copy of each value, and one of type generator cannot be copied"):
        state.multiPut([["a"]], [(n for n in [])])
    assert state.multiGet([["a"]]) == [None]
