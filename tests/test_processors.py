"""Processors on chunks: what they emit, what they refuse, and what they never compute."""

from __future__ import annotations

import enum
import gc
import http
import weakref
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trident_py import Fields, TransactionAttempt, TridentError
from trident_py.engine.processors import Aggregate, Each, Keep, Merge, NodeContext, Part, Processor, Replace, StateQuery
from trident_py.engine.processors.aggregate import KernelProcessor, kernels_for
from trident_py.engine.processors.base import no_collection
from trident_py.model.canonical import identity
from trident_py.model.chunks import Chunk, to_list
from trident_py.operations import CombinerAggregator, Filter, Function, TridentOperationContext
from trident_py.operations.builtin import Count, MapGet, Sum
from trident_py.state import MemoryBackingMap, NonTransactionalMap
from trident_py.testing import Split


def made(spec: Any, inputs: Any, outputs: Any, wanted: Any = None, state: Any = None) -> tuple[Processor, list[Chunk]]:
    """The processor of a spec, started, and the list of what it emits."""
    fields = Fields.of(outputs)
    context = NodeContext(
        {},
        TridentOperationContext(0, 1),
        tuple(Fields.of(each) for each in (inputs if isinstance(inputs, tuple) else (inputs,))),
        fields,
        frozenset(fields if wanted is None else wanted),
        True,
        lambda: state,
        lambda kind, value: None,
    )
    processor, emitted = spec.make(context), []
    processor.emit = emitted.append
    processor.start(TransactionAttempt(1, 0))
    return processor, emitted


def rows(emitted: list[Chunk], fields: Any) -> list[tuple]:
    return [row for chunk in emitted for row in chunk.rows(Fields.of(fields))]


def chunk(fields: Any, *values: Any) -> Chunk:
    return Chunk.of_rows(Fields.of(fields), [value if isinstance(value, tuple) else (value,) for value in values])


# -- each and filter ----------------------------------------------------------------------------------------------


def test_each_carries_only_columns_that_somebody_reads() -> None:
    processor, emitted = made(Each(Split(), Fields("s"), Fields("w")), ["s", "x"], ["s", "x", "w"], wanted=["w", "x"])
    processor.execute(0, chunk(["s", "x"], ("a b", 1), ("", 2)))
    assert list(emitted[0].columns) == ["x", "w"] and rows(emitted, ["w", "x"]) == [("a", 1), ("b", 1)]


@pytest.mark.parametrize("fields", ["s", "s string"])
@pytest.mark.parametrize("carried", [[], ["s"]])
def test_split_gives_the_same_in_columns_and_row_by_row(fields: str, carried: list[str]) -> None:
    processor, emitted = made(
        Each(Split(), Fields("s"), Fields("w string")), fields, [fields, "w string"], ["w", *carried]
    )
    processor.execute(0, chunk(fields, "a  b", "", " c"))
    assert rows(emitted, ["w", *carried]) == [
        (w, *([s] if carried else [])) for w, s in (("a", "a  b"), ("b", "a  b"), ("c", " c"))
    ]


def test_nothing_emitted_sends_nothing_on() -> None:
    processor, emitted = made(Each(lambda s: [], Fields("s"), Fields("w")), "s", ["s", "w"])
    processor.execute(0, chunk("s", "a"))
    assert emitted == []


class Bare(Function):
    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit("word")


def test_a_bare_value_emitted_in_place_of_a_tuples_values_is_told() -> None:
    processor, _ = made(Each(Bare(), Fields("s"), Fields("w")), "s", ["s", "w"])
    with pytest.raises(TridentError, match="each Bare emitted 'word'; emit the values of one tuple"):
        processor.execute(0, chunk("s", "a"))


@pytest.mark.parametrize("result", ["text", b"bytes", {"a": 1}, 5])
def test_a_callable_returns_an_iterable_of_results(result: Any) -> None:
    processor, _ = made(Each(lambda s: result, Fields("s"), Fields("w")), "s", ["s", "w"])
    with pytest.raises(TridentError, match="returns an iterable"):
        processor.execute(0, chunk("s", "a"))


def test_a_callable_with_one_output_field_gives_values_tuples_included() -> None:
    processor, emitted = made(Each(lambda s: [(1, 2), None], Fields("s"), Fields("w")), "s", "w")
    processor.execute(0, chunk("s", "a"))
    assert rows(emitted, "w") == [((1, 2),), (None,)]


def test_a_callable_with_several_output_fields_gives_sequences_of_that_length() -> None:
    processor, emitted = made(
        Each(lambda s: ((i, [i]) for i in range(2)), Fields("s"), Fields("a", "b")), "s", ["a", "b"]
    )
    processor.execute(0, chunk("s", "x"))
    assert rows(emitted, ["a", "b"]) == [(0, [0]), (1, [1])]
    processor, _ = made(Each(lambda s: [(1,)], Fields("s"), Fields("a", "b")), "s", ["a", "b"])
    with pytest.raises(TridentError, match="each result has 2 values"):
        processor.execute(0, chunk("s", "x"))


class InColumns(Filter):
    """Knows Arrow columns, and breaks if it is asked row by row."""

    def isKeepBatch(self, column: pa.Array) -> pa.Array:
        return pc.greater(column, 1)


def test_a_filter_that_knows_columns_gets_them_and_typed_columns_stay_arrow() -> None:
    processor, emitted = made(Keep(InColumns(), Fields("n")), "n bigint", "n bigint")
    processor.execute(0, chunk("n bigint", 1, 2, 3))
    assert rows(emitted, "n") == [(2,), (3,)] and isinstance(emitted[0].columns["n"], pa.Array)


@pytest.mark.parametrize("flat", [False, True])
def test_map_and_flat_map_refuse_bare_values(flat: bool) -> None:
    processor, _ = made(Replace(lambda t: "ab", Fields("s"), flat, Fields("s")), "s", "s")
    with pytest.raises(TridentError, match=r"(emitted|returned) 'ab'"):
        processor.execute(0, chunk("s", "x"))


def test_flat_map_takes_none_for_nothing() -> None:
    processor, emitted = made(Replace(lambda t: None, Fields("s"), True, Fields("s")), "s", "s")
    processor.execute(0, chunk("s", "x"))
    assert emitted == []


# -- counts and sums ----------------------------------------------------------------------------------------------


def counting(*kinds: Any, phase: Any = "full", group: Any = "k") -> Aggregate:
    names = ["a", "b"]
    parts = [
        Part(kind, Fields("v") if isinstance(kind, Sum) else Fields(), Fields(names[i])) for i, kind in enumerate(kinds)
    ]
    return Aggregate(tuple(parts), Fields.of(group), phase)


class Own(CombinerAggregator):
    """A count without a kernel."""


def test_kernels_are_for_grouped_counts_and_sums_only() -> None:
    assert kernels_for(counting(Count(), Sum()).parts, Fields("k")) == ("count", "sum")
    assert kernels_for(counting(Count()).parts, None) is kernels_for(counting(Count()).parts, Fields()) is None
    assert kernels_for(counting(Count(), Own()).parts, Fields("k")) is None


FEEDS: dict[str, list[list[tuple]]] = {
    "texts": [[("x", 1), ("y", 2)], [("x", 3)]],
    "texts, then numbers": [[("x", 1)], [(1, 2), ("x", 3)], [("x", 4)]],
    "texts, then null": [[("x", 1)], [(None, 2), (None, 3), ("x", 4)]],
    "one, one point zero and true": [[(1, 1), (1, 2)], [(1.0, 3), (True, 4)], [(1, 5)]],
    "half a surrogate pair": [[("x", 1)], [("\ud800", 2), ("x", 3)], [("\ud800", 4)]],
    "a list among texts": [[("x", 1)], [("x", 2), (["x"], 3), ("y", 4), (["x"], 5)], [("y", 6)]],
    "sums beyond 64 bits": [[("x", 2**62)], [("x", 2**62), ("y", -(2**63))], [("x", 2**70), ("y", -1)]],
    "floats behind whole numbers": [[("x", 1)], [("x", 0.5)], [("x", 2)]],
}


@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("kinds", [(Count(),), (Sum(),), (Count(), Sum())], ids=["count", "sum", "both"])
def test_kernels_give_exact_values_whatever_comes(feed: str, kinds: tuple) -> None:
    out = ["k", "a", "b"][: 1 + len(kinds)]
    processor, emitted = made(counting(*kinds), ["k", "v"], out)
    assert isinstance(processor, KernelProcessor)
    for part in FEEDS[feed]:
        processor.execute(0, chunk(["k", "v"], *part))
    processor.finish()
    expected = []
    whole = [row for part in FEEDS[feed] for row in part]
    for text in {repr(key) for key, _ in whole}:
        values = [value for key, value in whole if repr(key) == text]
        results = [len(values) if isinstance(kind, Count) else sum(values) for kind in kinds]
        expected.append(f"({text}, {', '.join(map(repr, results))})")
    assert sorted(map(repr, rows(emitted, out))) == sorted(expected)


COLUMNS = st.one_of(
    st.lists(st.sampled_from(["x", "y", "", "\ud800"]), min_size=1),
    st.lists(st.sampled_from([1, 2, "1", None]), min_size=1),
    st.lists(st.sampled_from(["x", "y", None]), min_size=1).map(lambda values: pa.array(values, pa.string())),
    st.lists(st.sampled_from([1, 2, None]), min_size=1).map(lambda values: pa.array(values, pa.int64())),
    st.lists(st.sampled_from([1, 2, None]), min_size=1).map(lambda values: pa.array(values, pa.int32())),
    st.lists(st.sampled_from([1.0, 0.5]), min_size=1).map(pa.array),
)


@given(columns=st.lists(COLUMNS, max_size=6), held=st.sampled_from([1, 40, 1 << 22]))
def test_counts_are_exact_whatever_the_types_of_the_columns(columns: list[Any], held: int) -> None:
    with mock.patch("trident_py.engine.processors.columns.HELD_BYTES", held):
        processor, emitted = made(counting(Count()), ["k", "v"], ["k", "a"])
        assert isinstance(processor, KernelProcessor) and processor.counting
        for column in columns:
            processor.execute(0, Chunk({"k": column, "v": [0] * len(column)}, len(column)))
            assert processor.counter.size < held
        processor.finish()
    expected = Counter(repr((value,)) for column in columns for value in to_list(column))
    found = [(repr((value,)), count) for value, count in rows(emitted, ["k", "a"])]
    assert sorted(found) == sorted(expected.items())


@pytest.mark.parametrize("keys", [range(100), [f"k{i % 7}" for i in range(100)]])
def test_a_column_that_is_held_does_not_hold_the_rows_it_came_with(keys: Any) -> None:
    """What a worker reads is one block of memory for all columns."""
    block = Chunk.of_rows(Fields("k", "v string"), [(key, "wide" * 100) for key in keys]).encode()
    memory = np.frombuffer(block, np.uint8).copy()
    alive = weakref.ref(memory)
    processor, emitted = made(counting(Count()), ["k", "v"], ["k", "a"])
    processor.execute(0, Chunk.decode(pa.py_buffer(memory)))
    del memory
    gc.collect()
    assert processor.counter.size > 0 and alive() is None
    processor.finish()
    assert sorted(rows(emitted, ["k", "a"])) == sorted(Counter(keys).items())


@pytest.mark.parametrize("field", ["v", "v bigint"])
def test_whole_numbers_behind_a_float_are_added_one_by_one(field: str) -> None:
    """In floats 1e16 + 1 + 1 is 1e16, and 1e16 + 2 is not."""
    processor, emitted = made(replace(counting(Sum()), group=None), ["k", "v"], ["a"])
    processor.execute(0, chunk(["k", "v"], ("x", 1e16)))
    processor.execute(0, chunk(["k", field], ("x", 1), ("x", 1)))
    processor.finish()
    assert rows(emitted, ["a"]) == [(1e16,)]


def test_a_new_attempt_forgets_what_an_older_one_counted() -> None:
    processor, emitted = made(counting(Count()), ["k", "v"], ["k", "a"])
    processor.execute(0, chunk(["k", "v"], ("x", 1)))
    processor.start(TransactionAttempt(1, 1))
    processor.execute(0, chunk(["k", "v"], ("x", 1)))
    processor.finish()
    assert rows(emitted, ["k", "a"]) == [("x", 1)]


def test_null_is_no_number_for_a_sum() -> None:
    processor, _ = made(counting(Sum()), ["k", "v"], ["k", "a"])
    with pytest.raises(TridentError, match="null in field 'v' is not a number"):
        processor.execute(0, chunk(["k", "v"], ("x", None)))


# -- queries, merges ----------------------------------------------------------------------------------------------


class TooMany(MapGet):
    def batchRetrieve(self, state: Any, tuples: Any) -> list:
        return [1, 2, 3]


def test_a_query_answers_as_many_as_it_was_asked() -> None:
    state = NonTransactionalMap.build(MemoryBackingMap())
    processor, _ = made(StateQuery(TooMany(), Fields("k"), Fields("n")), "k", ["k", "n"], state=state)
    processor.execute(0, chunk("k", 1, 2))
    with pytest.raises(TridentError, match="Results size is different than argument size: 3 vs 2"):
        processor.finish()


def test_a_query_asks_once_for_a_batch_and_never_for_none() -> None:
    asked: list[list] = []

    class Asks(MapGet):
        def batchRetrieve(self, state: Any, tuples: Any) -> list:
            asked.append(list(tuples))
            return [None] * len(tuples)

    processor, emitted = made(StateQuery(Asks(), Fields("k"), Fields("n")), "k", ["k", "n"])
    processor.finish()
    for value in (1, 2):
        processor.execute(0, chunk("k", value))
    processor.finish()
    assert asked == [[(1,), (2,)]] and rows(emitted, ["k", "n"]) == [(1, None), (2, None)]


def test_a_merge_renames_columns_by_position() -> None:
    spec = Merge((Fields("a", "b"), Fields("b", "a")), Fields("x", "y"))
    processor, emitted = made(spec, (["a", "b"], ["b", "a"]), ["x", "y"])
    processor.execute(0, chunk(["a", "b"], (1, 2)))
    processor.execute(1, chunk(["b", "a"], (3, 4)))
    assert rows(emitted, ["x", "y"]) == [(1, 2), (3, 4)]


# -- around -------------------------------------------------------------------------------------------------------


def test_every_partition_has_a_prepared_copy_of_its_own() -> None:
    class Knows(Function):
        index = -1

        def prepare(self, conf: dict, context: Any) -> None:
            self.index = context.getPartitionIndex()

    original = Knows()
    processor, _ = made(Each(original, Fields("s"), Fields("w")), "s", ["s", "w"])
    assert (original.index, processor.function.index) == (-1, 0)  # type: ignore[attr-defined]


def test_garbage_collection_is_on_again_after_an_error_and_stays_off_where_it_was_off() -> None:
    with pytest.raises(ZeroDivisionError), no_collection():
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled()
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


# -- one group or two, the same on every path ----------------------------------------------------------------------


class Word(enum.StrEnum):
    A = "a"


class PlainCount(Count):
    """Count without a kernel."""

    kernel = None  # type: ignore[assignment]


@pytest.mark.parametrize("aggregator", [Count(), PlainCount()])
@pytest.mark.parametrize("column", [
    ["a", Word.A, np.str_("a")], ["a", "b", Word.A, Word.A],
    [1, http.HTTPMethod.GET, np.int64(1), http.HTTPStatus.OK, 200],
    [1.0, np.float64(1), 1, True], [Decimal("1"), Decimal("1.00")], [b"a", bytearray(b"a"), memoryview(b"a")],
    [float("nan"), -float("nan"), 0.0, -0.0], [None, "a", None, Word.A],
])  # fmt: skip
def test_kernels_and_dicts_make_the_same_groups_of_whatever_order(column: list, aggregator: Any) -> None:
    wanted = Counter(map(identity, column))
    for values in (column, column[::-1]):
        processor, emitted = made(Aggregate((Part(aggregator, Fields(), Fields("n")),), Fields("k")), "k", ["k", "n"])
        for value in ([values], [[each] for each in values]):
            for part in value:
                processor.execute(0, Chunk({"k": part}, len(part)))
        processor.finish()
        assert {identity(k): n for k, n in rows(emitted, ["k", "n"])} == {k: 2 * n for k, n in wanted.items()}
