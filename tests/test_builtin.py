"""Storm's built-in operations, one by one, without a cluster."""

from __future__ import annotations

import logging
import pickle
from decimal import Decimal
from typing import Any

import pytest

from trident_py.errors import DefinitionError, TridentError
from trident_py.operations import Aggregator, Filter, TridentCollector, TridentOperationContext
from trident_py.operations import builtin as b
from trident_py.operations.ordering import JavaHeap, compare
from trident_py.tuples import TransactionAttempt, TridentTuple

BATCH = TransactionAttempt(1, 0)


def rows(fields: str | list[str], *values: Any) -> list[TridentTuple]:
    names = [fields] if isinstance(fields, str) else fields
    return [TridentTuple.of(names, v if isinstance(v, tuple) else (v,)) for v in values]


def aggregated(aggregator: Aggregator, tuples: list[TridentTuple]) -> list[tuple]:
    emitted: list[Any] = []
    collector = TridentCollector(emitted.append)
    value = aggregator.init(BATCH, collector)
    for each in tuples:
        changed = aggregator.aggregate(value, each, collector)
        value = value if changed is None else changed
    aggregator.complete(value, collector)
    return [tuple(values) for values in emitted]


def folded(combiner: Any, tuples: list[TridentTuple]) -> Any:
    value = combiner.zero()
    for each in tuples:
        value = combiner.combine(value, combiner.init(each))
    return value


def kept(filter: Filter, *values: tuple) -> list[tuple]:
    names = [f"f{i}" for i in range(len(values[0]))]
    return [v for v in values if filter.isKeep(TridentTuple.of(names, v))]


def test_count_counts_and_tells_its_kernel_and_type() -> None:
    assert folded(b.Count(), rows("a", "x", None, 3)) == 3
    assert (b.Count.kernel, b.Count.output_type, b.Sum.kernel) == ("count", "bigint", "sum")


@pytest.mark.parametrize(
    "values, total",
    [
        ((), 0),
        ((1, 2), 3),
        ((1, 1.5), 2.5),
        ((1.5, 1.5), 3.0),
        ((1, Decimal("0.1")), Decimal("1.1")),
        ((0.5, Decimal("0.1")), Decimal("0.6")),
        ((Decimal("0.1"), 0.5), Decimal("0.6")),
        ((2**63, 1), 2**63 + 1),
    ],
)
def test_sum_keeps_the_widest_type(values: tuple, total: Any) -> None:
    found = folded(b.Sum(), rows("a", *values))
    assert found == total and type(found) is type(total)


@pytest.mark.parametrize("value", [None, "1", True, [1]])
def test_sum_of_what_is_no_number_names_the_field_and_the_value(value: Any) -> None:
    with pytest.raises(TridentError, match=r"Sum: .*field 'price'"):
        b.Sum().init(TridentTuple.of("price", (value,)))


@pytest.mark.parametrize(
    ("values", "least", "most"),
    [
        ((), None, None),
        ((None, None), None, None),
        ((3, 1, None, 2), 1, 3),
        ((0.5, -2.5, float("inf")), -2.5, float("inf")),
        ((Decimal("0.1"), 1), Decimal("0.1"), 1),
    ],
)
def test_minimum_and_maximum_skip_nulls_and_begin_with_none(values: tuple, least: Any, most: Any) -> None:
    for combiner, expected in ((b.Minimum(), least), (b.Maximum(), most)):
        for order in (values, values[::-1]):
            found = folded(combiner, rows("a", *order))
            assert found == expected and type(found) is type(expected), order


def test_the_order_of_zeros_does_not_tell_on_the_minimum_or_the_maximum() -> None:
    for combiner in (b.Minimum(), b.Maximum()):
        assert {repr(folded(combiner, rows("a", *values))) for values in ((0.0, -0.0), (-0.0, 0.0), (-0.0,))} == {"0.0"}


@pytest.mark.parametrize("combiner", [b.Minimum(), b.Maximum()])
@pytest.mark.parametrize(
    ("value", "why"),
    [("1", "not a number"), (True, "not a number"), (float("nan"), "no order"), (Decimal("NaN"), "no order")],
)
def test_what_has_no_place_among_numbers_is_refused_by_minimum_and_maximum(combiner: Any, value: Any, why: str) -> None:
    with pytest.raises(TridentError, match=rf"^{type(combiner).__name__}: .* in field 'price' .*{why}"):
        combiner.init(TridentTuple.of("price", (value,)))


def test_sum_over_a_stored_text_is_a_clear_error() -> None:
    with pytest.raises(TridentError, match="cannot add 'a' and 1"):
        b.Sum().combine("a", 1)


def test_min_and_max_keep_the_tuple_and_the_later_of_equals() -> None:
    tuples = rows(["k", "v"], ("a", 2), ("b", 1), ("c", 1), ("d", 2))
    assert aggregated(b.Min("v"), tuples) == [("c", 1)]
    assert aggregated(b.Max("v"), tuples) == [("d", 2)]


def test_min_skips_null_values_and_an_empty_partition_emits_nothing() -> None:
    assert aggregated(b.Min("v"), rows(["k", "v"], ("a", None), ("b", 3), ("c", None))) == [("b", 3)]
    assert aggregated(b.Min("v"), rows(["k", "v"], ("a", None))) == []
    assert aggregated(b.Max("v"), []) == []


def test_min_of_values_of_different_types_names_both() -> None:
    with pytest.raises(TridentError, match=r"cannot compare 1 \(int\) with 2.0 \(float\)"):
        aggregated(b.Min("v"), rows("v", 1, 2.0))


def test_comparators_decide_over_tuples_or_over_a_field() -> None:
    def backwards(x: Any, y: Any) -> int:
        return (y > x) - (y < x)

    tuples = rows(["k", "v"], ("a", 1), ("b", 3), ("c", 2))
    assert aggregated(b.MinWithComparator("v", backwards), tuples) == [("b", 3)]
    assert aggregated(b.MaxWithComparator("v", comparator=backwards), tuples) == [("a", 1)]
    assert aggregated(b.MaxWithComparator(lambda x, y: x[1] - y[1]), tuples) == [("b", 3)]
    assert aggregated(b.MinWithComparator(comparator=lambda x, y: x[1] - y[1]), tuples) == [("a", 1)]
    with pytest.raises(DefinitionError, match="comparator"):
        b.MinWithComparator("v")


def test_first_n_takes_the_first_and_zero_takes_none() -> None:
    assert aggregated(b.FirstNAgg(2), rows("a", 3, 1, 2)) == [(3,), (1,)]
    assert aggregated(b.FirstNAgg(0), rows("a", 3)) == []


def test_first_n_sorted_takes_the_smallest_or_the_largest() -> None:
    tuples = rows("a", 3, 1, 2, 1)
    assert aggregated(b.FirstNSortedAgg(3, "a"), tuples) == [(1,), (1,), (2,)]
    assert aggregated(b.FirstNSortedAgg(2, "a", True), tuples) == [(3,), (2,)]
    assert aggregated(b.FirstNSortedAgg(5, "a"), []) == []


def test_first_n_sorted_fails_when_it_runs() -> None:
    with pytest.raises(TridentError, match="n must be 1 or more"):
        aggregated(b.FirstNSortedAgg(0, "a"), [])
    with pytest.raises(TridentError, match="cannot compare null"):
        aggregated(b.FirstNSortedAgg(1, "a"), rows("a", 1, None))
    assert aggregated(b.FirstNSortedAgg(1, "a"), rows("a", None)) == [(None,)]


def test_equal_tuples_leave_the_heap_in_the_order_of_java() -> None:
    heap = JavaHeap(lambda x, y: x[0] - y[0])
    for item in [(2, "a"), (1, "b"), (2, "c"), (1, "d"), (2, "e"), (1, "f"), (2, "g"), (1, "h")]:
        heap.add(item)
    # what java.util.PriorityQueue printed for the same calls
    assert [heap.remove()[1] for _ in range(len(heap))] == ["b", "d", "h", "f", "e", "a", "c", "g"]


@pytest.mark.parametrize(
    "low, high",
    [
        (1, 2),
        ("a", "b"),
        ("B", "a"),
        (False, True),
        (-0.0, 0.0),
        (1.0, float("nan")),
        (float("inf"), float("nan")),
    ],
)
def test_values_have_the_order_of_java(low: Any, high: Any) -> None:
    assert (compare(low, high), compare(high, low), compare(low, low), compare(high, high)) == (-1, 1, 0, 0)


@pytest.mark.parametrize("a, b", [(1, True), (1, 1.0), ("1", 1), (None, 1), (1, None), ({}, {})])
def test_values_of_other_types_and_nulls_have_no_order(a: Any, b: Any) -> None:
    with pytest.raises(TridentError, match="cannot compare"):
        compare(a, b)


def test_equals_compares_as_java_does() -> None:
    pairs = [(1, 1), (1, 1.0), (1, True), ("a", "a"), (None, 1), (1, None)]
    assert kept(b.Equals(), *pairs) == [(1, 1), ("a", "a")]
    assert kept(b.Equals(), (1, 1, 2), (3, 3, 3)) == [(3, 3, 3)]
    with pytest.raises(TridentError, match="two nulls"):
        kept(b.Equals(), (None, None))


def test_filter_null_drops_a_tuple_with_any_null() -> None:
    assert kept(b.FilterNull(), (1, None), (None, None), (0, "")) == [(0, "")]


def test_negate_turns_a_filter_and_a_callable_around() -> None:
    assert kept(b.Negate(b.FilterNull()), (1, None), (1, 1)) == [(1, None)]
    assert kept(b.Negate(lambda x, y: x == y), (1, 1), (1, 2)) == [(1, 2)]


def test_negate_hands_on_prepare_and_cleanup_to_its_own_copy() -> None:
    calls = []

    class Watched(Filter):
        index = -1

        def prepare(self, conf: dict, context: TridentOperationContext) -> None:
            self.index = context.getPartitionIndex()

        def cleanup(self) -> None:
            calls.append(self.index)

        def isKeep(self, tuple: TridentTuple) -> bool:
            return True

    shared = Watched()
    for index in (0, 1):
        negated = b.Negate(shared)
        negated.prepare({}, TridentOperationContext(index, 2))
        negated.cleanup()
    assert calls == [0, 1] and shared.index == -1


def test_debug_prints_or_logs_and_keeps(capsys: Any, caplog: Any) -> None:
    assert kept(b.Debug("here"), (1, "a")) == [(1, "a")]
    assert "DEBUG(here): [1, a]" in capsys.readouterr().out
    with caplog.at_level(logging.INFO):
        assert kept(b.Debug(True), (1,)) == [(1,)]
    assert "DEBUG: [1]" in caplog.text and capsys.readouterr().out == ""


class Rows:
    def multiGet(self, keys: list[tuple]) -> list[Any]:
        return [{("a",): 1}.get(key) for key in keys]

    def get(self) -> int:
        return 7

    def getTuples(self) -> Any:
        return iter([["a", 1], ["b", 2]])


def queried(query: Any, state: Any, tuples: list[TridentTuple]) -> list[list]:
    answers = []
    for each, result in zip(tuples, query.batchRetrieve(state, tuples), strict=True):
        emitted: list[Any] = []
        query.execute(each, result, TridentCollector(emitted.append))
        answers.append([tuple(values) for values in emitted])
    return answers


def test_the_queries_read_maps_values_and_collections() -> None:
    tuples = rows("a", "a", "z")
    assert queried(b.MapGet(), Rows(), tuples) == [[(1,)], [(None,)]]
    assert queried(b.SnapshotGet(), Rows(), tuples) == [[(7,)], [(7,)]]
    assert queried(b.TupleCollectionGet(), Rows(), tuples) == [[("a", 1), ("b", 2)]] * 2


def test_every_built_in_can_be_pickled() -> None:
    made = [b.Count(), b.Sum(), b.Min("a"), b.Max("a"), b.FirstN(2, "a", True), b.Debug("x"), b.Equals()]
    for each in [*made, b.FilterNull(), b.Negate(b.FilterNull()), b.MapGet()]:
        assert type(pickle.loads(pickle.dumps(each))) is type(each)


def test_a_subclass_that_does_something_else_inherits_neither_kernel_nor_sql() -> None:
    class Doubled(b.Sum):
        def init(self, tuple: Any) -> Any:
            return 2 * super().init(tuple)

    class Longest(b.Count):
        def combine(self, val1: int, val2: int) -> int:
            return max(val1, val2)

    class Renamed(b.Count):
        """Changes nothing."""

    class Own(b.Sum):
        kernel, sql = "sum", "{new} + {old}"

        def combine(self, val1: Any, val2: Any) -> Any:
            return val2 + val1

    class Halves:
        def init(self, tuple: Any) -> Any:
            return tuple[0] / 2

        def combine(self, val1: Any, val2: Any) -> Any:
            return max(val1, val2)

    class Mixed(Halves, b.Sum): ...  # type: ignore[misc]

    class OfOwn(Own):
        """Changes nothing."""

    classes = (Doubled, Longest, Renamed, Own, Mixed, OfOwn)
    assert [(c.kernel, c.sql) for c in classes] == [
        (None, b.Sum.sql), (None, None), ("count", b.Count.sql), ("sum", "{new} + {old}"), (None, None),
        ("sum", "{new} + {old}"),
    ]  # fmt: skip
