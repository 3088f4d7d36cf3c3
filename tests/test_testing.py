"""The test helpers themselves, on LocalCluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from trident_py import (
    Config,
    DefinitionError,
    FailedException,
    LocalCluster,
    TopologyError,
    TridentError,
    TridentTopology,
)
from trident_py.errors import StateError
from trident_py.operations import Function, TridentCollector
from trident_py.operations.builtin import Count, FilterNull
from trident_py.state import BaseStateUpdater, OpaqueValue, TransactionalValue
from trident_py.state.keys import ExactKey
from trident_py.testing import (
    CountAsAggregator,
    Crashing,
    FixedBatchSpout,
    LoggingBackingMap,
    LRUMemoryMapState,
    MemoryMapState,
    Split,
    StringLength,
    TrueFilter,
    TuplifyArgs,
    collect,
    failing,
    stored,
)
from trident_py.tuples import TridentTuple

WORDS = (("a",), ("b",), ("a",), ("c",))


def run(build: Callable[[TridentTopology], Any]) -> Any:
    topology = TridentTopology()
    build(topology)
    with LocalCluster() as cluster:
        running = cluster.submitTopology("t", Config(), topology.build())
        assert running.awaitTermination(30)
    return running


def count_into(factory: Any, spout: Any = None, function: Any = None) -> Any:
    """Counts WORDS by word in two batches."""

    def build(topology: TridentTopology) -> None:
        stream = topology.newStream("words", spout or FixedBatchSpout("word", 2, *WORDS))
        if function is not None:
            stream = stream.each("word", function, "more")
        collect(stream, "in")
        new = stream.groupBy("word").persistentAggregate(factory, Count(), "n").newValuesStream()
        collect(new, "new")

    return run(build)


def emitted(function: Function, *values: Any) -> list[tuple]:
    rows: list[Any] = []
    function.execute(
        TridentTuple.of([f"f{i}" for i in range(len(values))], values), TridentCollector(rows.append)
    )
    return [tuple(row) for row in rows]


def test_collect_gives_the_rows_of_each_txid_and_returns_the_stream() -> None:
    running = run(
        lambda t: collect(
            collect(t.newStream("s", FixedBatchSpout("word", 2, *WORDS)), "x").filter(TrueFilter()), "y"
        )
    )
    assert running.collected("x") == {1: [("a",), ("b",)], 2: [("a",), ("c",)]} == running.collected("y")
    assert running.collected("unknown") == {}


def test_collect_keeps_the_last_attempt_only() -> None:
    running = count_into(Crashing(MemoryMapState.Factory(), at="commit", when={(2, 0), (2, 1)}))
    assert running.attempts == {1: 0, 2: 2}
    assert sorted(running.collected("new")[2]) == [("a", 2), ("c", 1)]
    assert running.collected("in")[2] == [("a",), ("c",)]


@pytest.mark.parametrize(
    "kind, a, c",
    [
        ("nontransactional", 2, 1),
        ("transactional", TransactionalValue(2, 2), TransactionalValue(2, 1)),
        ("opaque", OpaqueValue(2, 2, 1), OpaqueValue(2, 1, None)),
    ],
)
def test_stored_shows_values_as_their_kind_keeps_them(kind: str, a: Any, c: Any) -> None:
    factory = LoggingBackingMap.Factory(kind)
    count_into(factory)
    found = stored(factory)
    assert found[("a",)] == a and found[("c",)] == c and set(found) == {("a",), ("b",), ("c",)}
    assert type(found[("a",)]) is type(a)


@pytest.mark.parametrize("factory", [MemoryMapState.Factory(), LRUMemoryMapState.Factory(10)])
def test_stored_looks_into_memory_states(factory: Any) -> None:
    count_into(factory)
    assert stored(factory)[("a",)] == OpaqueValue(2, 2, 1)


def test_stored_keeps_keys_of_different_types_apart() -> None:
    factory, memory = LoggingBackingMap.Factory("nontransactional"), MemoryMapState.Factory()
    count_into(factory, FixedBatchSpout("word", 9, (1,), (1.0,), (1,), (True,)))
    count_into(memory, FixedBatchSpout("word", 9, (1,), (1.0,), (1,), (True,)))
    assert (stored(factory)[(1,)], stored(factory)[(1.0,)], stored(factory)[(True,)]) == (2, 1, 1)
    assert [stored(memory)[key].curr for key in [(1,), (1.0,), (True,)]] == [2, 1, 1]
    assert ExactKey((1,)) != (1.0,) and ExactKey((1,)) == (1,) and hash(ExactKey((1,))) == hash((1,))


def test_a_global_value_stands_under_the_global_key() -> None:
    factory = LoggingBackingMap.Factory("opaque")
    run(
        lambda t: t.newStream("s", FixedBatchSpout("word", 2, *WORDS)).persistentAggregate(
            factory, Count(), "n"
        )
    )
    assert stored(factory) == {("$GLOBAL$",): OpaqueValue(2, 4, 2)}


def test_stored_says_what_it_cannot_look_into() -> None:
    with pytest.raises(TridentError, match="object cannot be inspected"):
        stored(object())


def test_calls_are_logged_in_the_format_of_the_oracle() -> None:
    factory = LoggingBackingMap.Factory("transactional")
    count_into(factory)
    assert factory.calls == [
        ["beginCommit", 1],
        ["multiGet", [["a"], ["b"]]],
        ["multiPut", [["a"], ["b"]], [{"txid": 1, "val": 1}, {"txid": 1, "val": 1}]],
        ["commit", 1],
        ["beginCommit", 2],
        ["multiGet", [["a"], ["c"]]],
        ["multiPut", [["a"], ["c"]], [{"txid": 2, "val": 2}, {"txid": 2, "val": 1}]],
        ["commit", 2],
    ]


def test_a_logging_map_has_three_kinds() -> None:
    with pytest.raises(DefinitionError, match="no kind 'exact'"):
        LoggingBackingMap.Factory("exact")


@pytest.mark.parametrize(
    "at, last",
    [
        ("beginCommit", "beginCommit"),
        ("update", "beginCommit"),
        ("put", "multiPut"),
        ("commit", "multiPut"),
        ("afterCommit", "commit"),
    ],
)
def test_crashing_fails_at_the_named_point_and_the_batch_is_replayed(at: str, last: str) -> None:
    factory = LoggingBackingMap.Factory("opaque")
    running = count_into(Crashing(factory, at=at, when={(2, 0)}))
    assert running.attempts == {1: 0, 2: 1}
    calls = [call[0] for call in factory.calls]
    begun = [i for i, call in enumerate(factory.calls) if call == ["beginCommit", 2]]
    assert len(begun) == 2 and calls[begun[1] - 1] == last
    assert stored(factory)[("a",)] == OpaqueValue(2, 2, 1)


def test_crashing_takes_a_callable_and_one_partition() -> None:
    factory = LoggingBackingMap.Factory("opaque")
    asked = []

    def when(txid: int, attempt: int) -> bool:
        asked.append((txid, attempt))
        return txid == 1 and attempt < 2

    assert count_into(Crashing(factory, at="commit", when=when)).attempts == {1: 2, 2: 0}
    assert asked == [(1, 0), (1, 1), (1, 2), (2, 0)]
    other = MemoryMapState.Factory()
    assert count_into(Crashing(other, at="commit", when={(1, 0)}, partition=7)).attempts == {1: 0, 2: 0}


def test_crashing_with_error_ends_the_run() -> None:
    with pytest.raises(TopologyError) as caught:
        count_into(Crashing(MemoryMapState.Factory(), at="put", when={(2, 0)}, how="error"))
    assert caught.value.txid == 2 and isinstance(caught.value.__cause__, RuntimeError)


def test_crashing_with_kill_ends_the_process_that_holds_the_state() -> None:
    code = (
        "from tests.test_testing import count_into, MemoryMapState, Crashing\n"
        "count_into(Crashing(MemoryMapState.Factory(), at='put', when={(2, 0)}, how='kill'))"
    )
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def test_crashing_refuses_points_and_ways_it_does_not_know() -> None:
    with pytest.raises(DefinitionError, match="beginCommit, update, put, commit, afterCommit"):
        Crashing(MemoryMapState.Factory(), at="begin", when=set())
    with pytest.raises(DefinitionError, match="fail, error, kill"):
        Crashing(MemoryMapState.Factory(), at="put", when=set(), how="maybe")


def test_crashing_is_the_factory_in_everything_else() -> None:
    inner = MemoryMapState.Factory()
    wrapped = Crashing(inner, at="put", when=set())
    assert (wrapped.kind, wrapped.stateName) == (inner.kind, inner.stateName)
    assert stored(wrapped) == {}


class Echo(Function):
    def execute(self, tuple: TridentTuple, collector: TridentCollector) -> None:
        collector.emit((tuple[0],))


@pytest.mark.parametrize("function", [Echo(), lambda word: [word]])
def test_a_failing_function_replays_the_batch(function: Any) -> None:
    factory = LoggingBackingMap.Factory("nontransactional")
    running = count_into(factory, function=failing(function, {(1, 0), (1, 1), (2, 0)}))
    assert running.attempts == {1: 2, 2: 1}
    assert stored(factory) == {("a",): 2, ("b",): 1, ("c",): 1}


def test_failing_wraps_filters_maps_consumers_and_aggregators() -> None:
    def build(t: TridentTopology) -> None:
        stream = t.newStream("s", FixedBatchSpout("word", 4, *WORDS)).filter(failing(FilterNull(), {(1, 0)}))
        stream = stream.map(failing(lambda values: values, {(1, 1)})).flatMap(
            failing(lambda values: [values], {(1, 2)})
        )
        stream = stream.peek(failing(lambda values: None, {(1, 3)}))
        collect(stream.aggregate("word", failing(CountAsAggregator(), {(1, 4)}), "n"), "n")

    running = run(build)
    assert running.attempts == {1: 5} and running.collected("n") == {1: [(4,)]}


def test_a_failing_spout_replays_the_batch() -> None:
    factory = LoggingBackingMap.Factory("opaque")
    running = count_into(factory, failing(FixedBatchSpout("word", 2, *WORDS), {(1, 0), (2, 0), (2, 1)}))
    assert running.attempts == {1: 1, 2: 2}
    assert stored(factory)[("a",)] == OpaqueValue(2, 2, 1)


def test_failing_with_error_ends_the_run_and_names_what_it_cannot_wrap() -> None:
    with pytest.raises(TopologyError, match="asked by the test: Echo in txid 1"):
        count_into(MemoryMapState.Factory(), function=failing(Echo(), {(1, 0)}, how="error"))
    with pytest.raises(DefinitionError, match="failing wraps"):
        failing(3, set())


def test_without_its_attempt_nothing_fails() -> None:
    wrapped = failing(lambda value: [value], {(1, 0)})
    assert wrapped(1) == [1]
    wrapped.failure.check((1, 1), "here")
    with pytest.raises(FailedException):
        wrapped.failure.check((1, 0), "here")


def test_split_skips_empty_words_also_in_arrow() -> None:
    texts = ["a b", " a  b ", "", "ab", "  "]
    assert [emitted(Split(), text) for text in texts] == [
        [("a",), ("b",)],
        [("a",), ("b",)],
        [],
        [("ab",)],
        [],
    ]
    found = Split().executeBatch(pa.array(texts))
    assert found is not None
    assert (found[0][0].to_pylist(), found[1]().tolist()) == (["a", "b", "a", "b", "ab"], [0, 0, 1, 1, 3])
    assert Split().executeBatch(pa.array(["a", None])) is None
    assert Split().executeBatch(pa.array([1])) is None


def test_split_of_a_typed_and_of_an_untyped_field_agree() -> None:
    texts = [("a b",), (" b  a",), ("",)]

    def words(field: str) -> Any:
        running = run(
            lambda t: collect(
                t.newStream("s", FixedBatchSpout(field, 9, *texts)).each("s", Split(), "w"), "out"
            )
        )
        return running.collected("out")

    assert (
        words("s string") == words("s") == {1: [("a b", "a"), ("a b", "b"), (" b  a", "b"), (" b  a", "a")]}
    )


@pytest.mark.parametrize("function", [Split(), StringLength(), TuplifyArgs()])
def test_functions_of_texts_name_a_value_that_is_none(function: Function) -> None:
    with pytest.raises(TridentError, match=f"{type(function).__name__}: .* None; a string is needed"):
        emitted(function, None)


def test_string_length_and_tuplify_args() -> None:
    assert emitted(StringLength(), "abc") == [(3,)]
    assert emitted(TuplifyArgs(), '[["a", 1], ["b", null]]') == [("a", 1), ("b", None)]


def test_count_as_aggregator_counts_an_empty_batch_too() -> None:
    spout = FixedBatchSpout("word", 2, *WORDS)
    running = run(
        lambda t: collect(
            t.newStream("s", spout).filter(lambda w: w == "c").aggregate("word", CountAsAggregator(), "n"),
            "n",
        )
    )
    assert running.collected("n") == {1: [(0,)], 2: [(1,)]}


def test_a_key_that_two_partitions_hold_hides_no_row() -> None:
    factory, topology = MemoryMapState.Factory(), TridentTopology()

    class Put(BaseStateUpdater):
        def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
            state.multiPut([("k",)], [len(tuples)])

    stream = topology.newStream("s", FixedBatchSpout("n", 3, (1,), (2,), (3,))).shuffle()
    stream.partitionPersist(factory, "n", Put()).parallelismHint(2)
    with LocalCluster() as cluster:
        assert cluster.submitTopology("t", {}, topology.build()).awaitTermination(30)
    with pytest.raises(StateError, match=r"key \('k',\) is in partitions 0 and 1 of the state"):
        stored(factory)
