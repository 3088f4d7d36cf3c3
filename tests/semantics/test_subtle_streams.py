"""Subtle behaviours of streams: S1 to S5, S13, S14, S20, S29, S30."""

from __future__ import annotations

from typing import Any

import pytest

from trident_py import DefinitionError, TopologyError, TridentTopology
from trident_py.operations import Aggregator, MultiReducer
from trident_py.operations.builtin import Count, Sum
from trident_py.state import BaseQueryFunction, BaseStateUpdater
from trident_py.testing import LoggingBackingMap, MemoryMapState, collect, stored

from .support import Batches, Collects, Emits, Joined, Size, Trace, bag, bags, both, both_always, run, through

ROWS = [(1, 2), (3, 4)]


class Sizes(BaseStateUpdater, BaseQueryFunction):
    """Emits the sizes of the tuples it gets, as an updater and as a query."""

    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        for each in tuples:
            collector.emit((len(each),))

    def batchRetrieve(self, state: Any, tuples: Any) -> list:
        return [len(each) for each in tuples]

    def execute(self, tuple: Any, result: Any, collector: Any) -> None:
        collector.emit((result,))


class TagAndSize(MultiReducer):
    def init(self, collector: Any) -> None:
        return None

    def execute(self, state: Any, streamIndex: int, input: Any, collector: Any) -> None:
        collector.emit((streamIndex, len(input)))

    def complete(self, state: Any, collector: Any) -> None:
        pass


# -- S1: left-out input fields ------------------------------------------------------------------------------------


def _persist(stream: Any) -> Any:
    return stream.partitionPersist(LoggingBackingMap.Factory(), Sizes(), functionFields="n").newValuesStream()


def _query(stream: Any) -> Any:
    return stream.stateQuery(stream.topology.newStaticState(MemoryMapState.Factory()), Sizes(), "n").project("n")


EMPTY = {
    "each": lambda s: s.each(Size(), "n").project("n"),
    "aggregate": lambda s: s.aggregate(Collects(), "n"),
    "partitionAggregate": lambda s: s.partitionAggregate(Collects(), "n"),
    "groupBy aggregate": lambda s: s.groupBy("a").aggregate(Collects(), "n").project("n"),
    "partitionPersist": _persist,
    "stateQuery": _query,
}


@pytest.mark.parametrize("call", EMPTY)
def test_s01_left_out_input_fields_mean_an_empty_tuple(call: str, cluster: Any) -> None:
    whole = call in ("aggregate", "partitionAggregate")
    expected = [("[[], []]",)] if whole else [("[[]]",)] * 2 if call == "groupBy aggregate" else [(0,)] * 2
    assert through(cluster, ["a", "b"], [ROWS], EMPTY[call]) == {1: bag(expected)}


def test_s01_filter_map_flat_map_peek_and_min_see_the_whole_tuple(cluster: Any) -> None:
    seen: list[int] = []

    def build(stream: Any) -> Any:
        stream = stream.filter(lambda a, b: a + b > 3).peek(lambda t: seen.append(len(t)))
        stream = stream.map(lambda t: (t[0], len(t))).flatMap(lambda t: [t, t])
        return stream.min(lambda one, other: len(one) - len(other))

    assert through(cluster, ["a", "b"], [ROWS], build) == {1: bag([(3, 2)])}
    assert seen == [2]


def test_s01_multi_reduce_without_fields_sees_the_whole_tuples(cluster: Any) -> None:
    topology = TridentTopology()
    one = topology.newStream("one", Batches(["a", "b"], [ROWS]))
    two = topology.newStream("two", Batches(["c"], [[(5,)]]))
    collect(topology.multiReduce(one, two, TagAndSize(), ["i", "n"]), "out")
    assert bags(run(cluster, topology).collected("out")) == {1: bag([(0, 2), (0, 2), (1, 1)])}


# -- S2: what a function emits ------------------------------------------------------------------------------------


@both
def test_s02_a_function_appends_drops_and_repeats(cluster: Any) -> None:
    assert through(cluster, "n", [[(0,), (1,), (3,)]], lambda s: s.each("n", range, "i")) == {
        1: bag([(1, 0), (3, 0), (3, 1), (3, 2)])
    }


def test_s02_a_function_without_output_fields_passes_the_tuple_once_for_each_emit(cluster: Any) -> None:
    assert through(cluster, "n", [[(0,), (1,), (2,)]], lambda s: s.each("n", range, [])) == {1: bag([(1,), (2,), (2,)])}


# -- S3: names of aggregates --------------------------------------------------------------------------------------


def test_s03_a_combiner_needs_a_new_name_a_reducer_and_an_aggregator_may_reuse_one(cluster: Any) -> None:
    stream = TridentTopology().newStream("s", Batches(["a", "b"], []))
    for call in (stream.aggregate, stream.partitionAggregate, stream.groupBy("a").aggregate):
        with pytest.raises(DefinitionError, match="duplicate field 'b'"):
            call("b", Sum(), "b")
    assert through(cluster, ["a", "b"], [ROWS], lambda s: s.aggregate("b", Joined(), "b")) == {1: bag([("24",)])}
    assert through(cluster, ["a", "b"], [ROWS], lambda s: s.groupBy("a").aggregate("b", Collects(), "b")) == {
        1: bag([(1, "[[2]]"), (3, "[[4]]")])
    }
    with pytest.raises(DefinitionError, match="duplicate field 'a'"):
        stream.groupBy("a").aggregate("b", Joined(), "a")


# -- S4: where zero goes in ---------------------------------------------------------------------------------------


@both
def test_s04_a_combiner_folds_its_zero_in_once_for_each_partition_and_once_more_at_the_end(cluster: Any) -> None:
    found = through(cluster, "v", [[(1,), (2,)], []], lambda s: s.aggregate("v", Trace(), "t"), partitions=2)
    either = ("((Z+(Z+1))+(Z+2))", "((Z+(Z+2))+(Z+1))")
    assert found[1] in [bag([(trace,)]) for trace in either]
    assert found[2] == bag([("((Z+Z)+Z)",)])


def test_s04_a_grouped_combiner_folds_zero_in_for_each_partition_that_has_the_group(cluster: Any) -> None:
    rows = [("k", 1), ("k", 3), ("l", 5)]
    found = through(cluster, ["k", "v"], [rows], lambda s: s.groupBy("k").aggregate("v", Trace(), "t"), partitions=2)
    traces = dict(eval(row) for row in found[1])
    assert traces["k"] in ("((Z+(Z+1))+(Z+3))", "((Z+(Z+3))+(Z+1))") and traces["l"] == "(Z+(Z+5))"


def test_s04_partition_aggregate_folds_zero_in_once(cluster: Any) -> None:
    found = through(cluster, "v", [[(1,), (2,), (3,)]], lambda s: s.partitionAggregate("v", Trace(), "t"), partitions=4)
    assert found == {1: bag([("(Z+1)",), ("(Z+2)",), ("(Z+3)",), ("Z",)])}


def test_s04_a_chain_with_one_reducer_aggregates_nothing_before_the_exchange(cluster: Any) -> None:
    def build(stream: Any) -> Any:
        return stream.chainedAgg().aggregate("v", Trace(), "t").aggregate("v", Joined(), "j").chainEnd()

    assert through(cluster, "v", [[(1,), (2,), (3,)]], build) == {1: bag([("(((Z+1)+2)+3)", "123")])}
    (two,) = through(cluster, "v", [[(1,), (2,)]], build, partitions=2)[1]
    assert eval(two)[0] in ("((Z+1)+2)", "((Z+2)+1)")


class Named(Size):
    """Emits its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit((self.name,))


# -- S5: empty batches --------------------------------------------------------------------------------------------


@both
def test_s05_a_global_aggregate_emits_once_for_an_empty_batch(cluster: Any) -> None:
    def build(stream: Any) -> Any:
        topology = stream.topology
        kinds = {"combiner": Count(), "reducer": Joined(), "aggregator": Collects()}
        streams = [stream.aggregate("v", agg, "r").each(Named(name), "kind") for name, agg in kinds.items()]
        return topology.merge(*streams)

    expected = bag([(0, "combiner"), ("", "reducer"), ("[]", "aggregator")])
    assert through(cluster, "v", [[], []], build, partitions=3) == {1: expected, 2: expected}


@pytest.mark.parametrize("aggregator", [Count(), Joined(), Collects()], ids=["combiner", "reducer", "aggregator"])
def test_s05_a_grouped_aggregate_emits_nothing_for_an_empty_batch(aggregator: Any, cluster: Any) -> None:
    assert through(cluster, "v", [[], [(1,)]], lambda s: s.groupBy("v").aggregate(aggregator, "r"))[2]
    assert through(cluster, "v", [[]], lambda s: s.groupBy("v").aggregate(aggregator, "r"), partitions=2) == {}


@pytest.mark.parametrize(
    ("aggregator", "empty"),
    [(Count(), 0), (Joined(), ""), (Collects(), "[]")],
    ids=["combiner", "reducer", "aggregator"],
)
def test_s05_partition_aggregate_emits_once_for_each_partition_even_if_empty(
    aggregator: Any, empty: Any, cluster: Any
) -> None:
    found = through(cluster, "v", [[]], lambda s: s.partitionAggregate("v", aggregator, "r"), partitions=3)
    assert found == {1: bag([(empty,)] * 3)}


# -- S13: chains --------------------------------------------------------------------------------------------------


def _chain(*aggregators: Any) -> Any:
    def build(stream: Any) -> Any:
        chain = stream.chainedAgg()
        for i, aggregator in enumerate(aggregators):
            chain = chain.aggregate("v", aggregator, f"f{i}")
        return chain.chainEnd()

    return build


def test_s13_several_emissions_in_a_chain_give_the_cross_product_with_the_last_part_varying_fastest(
    cluster: Any,
) -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [[(1,)]]))
    collect(_chain(Emits("a", "b"), Emits(1, 2), Count())(stream), "out")
    rows = run(cluster, topology).collected("out")[1]
    assert rows == [("a", 1, 1), ("a", 2, 1), ("b", 1, 1), ("b", 2, 1)]


def test_s13_an_aggregator_that_emits_nothing_ends_the_run_and_is_named(cluster: Any) -> None:
    """Storm dies of an IndexOutOfBoundsException; here the error says which part (docs/differences.md)."""
    with pytest.raises(TopologyError, match=r"Emits -> \[f1\] emitted nothing"):
        through(cluster, "v", [[(1,)]], _chain(Count(), Emits()))


def test_s13_a_single_aggregator_may_emit_nothing(cluster: Any) -> None:
    assert through(cluster, "v", [[(1,)]], _chain(Emits())) == {}


# -- S14: min and max ---------------------------------------------------------------------------------------------


@both
def test_s14_min_and_max_are_per_partition(cluster: Any) -> None:
    rows = [(5, "a"), (3, "b"), (4, "c"), (1, "d")]
    assert through(cluster, ["n", "x"], [rows], lambda s: s.minBy("n"), partitions=2) == {1: bag([(4, "c"), (1, "d")])}
    found = through(cluster, ["n", "x"], [rows], lambda s: s.maxBy("n").global_().maxBy("n"), partitions=2)
    assert found == {1: bag([(5, "a")])}


def test_s14_of_equal_tuples_the_last_wins(cluster: Any) -> None:
    rows = [(1, "a"), (2, "b"), (1, "c"), (2, "d")]
    by_first = lambda one, other: one[0] - other[0]  # noqa: E731
    compare = lambda one, other: one - other  # noqa: E731
    for build in (lambda s: s.minBy("n"), lambda s: s.minBy("n", compare), lambda s: s.min(by_first)):
        assert through(cluster, ["n", "x"], [rows], build) == {1: bag([(1, "c")])}
    for build in (lambda s: s.maxBy("n"), lambda s: s.maxBy("n", compare), lambda s: s.max(by_first)):
        assert through(cluster, ["n", "x"], [rows], build) == {1: bag([(2, "d")])}


def test_s14_tuples_with_a_null_are_skipped(cluster: Any) -> None:
    assert through(cluster, ["n", "x"], [[(None, "a"), (2, "b"), (None, "c")]], lambda s: s.maxBy("n")) == {
        1: bag([(2, "b")])
    }


def test_s14_an_empty_partition_emits_nothing(cluster: Any) -> None:
    """Storm emits null, and the next reader throws (docs/differences.md)."""
    batches = [[], [(1,)], [(None,)]]
    assert through(cluster, "n", batches, lambda s: s.minBy("n").map(lambda t: t), partitions=2) == {2: bag([(1,)])}


# -- S20: how many values -----------------------------------------------------------------------------------------

TOO_MANY: dict[str, Any] = {
    "function": lambda s: s.each("v", Emitting([1, 2, 3]), ["x", "y"]),
    "map": lambda s: s.map(lambda t: (9, 1, 2), ["v", "x"]).each("x", lambda x: [2], "y"),
    "aggregator": lambda s: s.aggregate("v", EmittingAtEnd([9, 1, 2, 4]), ["v", "x", "y"]),
}
TOO_FEW: dict[str, Any] = {
    "function": lambda s: s.each("v", Emitting([1]), ["x", "y"]),
    "map": lambda s: s.map(lambda t: (9,), ["v", "y"]),
    "flatMap": lambda s: s.flatMap(lambda t: [(9,)], ["v", "y"]),
    "aggregator": lambda s: s.aggregate("v", EmittingAtEnd([9]), ["v", "y"]),
    "merge": lambda s: s.topology.merge(["v", "y"], s, s.map(lambda t: t)),
    "join": lambda s: s.topology.join(s, "v", s.map(lambda t: t), "v", ["v", "y"]),
}


class Emitting(Size):
    def __init__(self, values: list) -> None:
        self.values = values

    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit(self.values)


class EmittingAtEnd(Aggregator):
    def __init__(self, values: list) -> None:
        self.values = values

    def init(self, batchId: Any, collector: Any) -> None:
        return None

    def aggregate(self, value: Any, tuple: Any, collector: Any) -> None:
        return None

    def complete(self, value: Any, collector: Any) -> None:
        collector.emit(self.values)


@pytest.mark.parametrize("operation", TOO_MANY)
def test_s20_values_beyond_the_fields_are_refused(operation: str, cluster: Any) -> None:
    """Storm drops them in silence (docs/differences.md)."""
    with pytest.raises(TopologyError, match=r"emitted \d values for the \d fields"):
        through(cluster, "v", [[(9,)]], TOO_MANY[operation])


@pytest.mark.parametrize("operation", TOO_FEW)
def test_s20_a_missing_value_fails_where_it_is_read(operation: str, cluster: Any) -> None:
    with pytest.raises(TopologyError, match="too few values: it has none for field 'y'"):
        through(cluster, "v", [[(9,)]], lambda s: TOO_FEW[operation](s).each("y", lambda y: [y], "z"))


@pytest.mark.parametrize("operation", TOO_FEW)
def test_s20_a_missing_value_that_nobody_reads_does_no_harm(operation: str, cluster: Any) -> None:
    assert through(cluster, "v", [[(9,)]], lambda s: TOO_FEW[operation](s).project("v"))[1][:1] == bag([(9,)])


# -- S29: equality of keys ----------------------------------------------------------------------------------------

KEYS: list[Any] = [1, 1.0, True, "1", None, [1], b"1"]


@both_always
def test_s29_one_one_point_zero_true_text_and_null_are_different_groups(cluster: Any) -> None:
    rows = [(key,) for key in KEYS for _ in range(2)]
    found = through(cluster, "k", [rows], lambda s: s.groupBy("k").aggregate(Count(), "n"), partitions=2)
    assert found == {1: bag([(key, 2) for key in KEYS])}


def test_s29_a_state_keeps_them_apart_and_a_query_finds_each(cluster: Any) -> None:
    factory = MemoryMapState.Factory()
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("k", [[(key,) for key in KEYS]]))
    stream.groupBy("k").persistentAggregate(factory, Joined(), "n")
    run(cluster, topology)
    rows = stored(factory)
    assert bag([(key[0],) for key in rows]) == bag([(key,) for key in KEYS])


def test_s29_no_group_fields_are_one_group(cluster: Any) -> None:
    factory = MemoryMapState.Factory()
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("x", [[(1,), (2,)], [], [(3,)]])).parallelismHint(2)
    state = stream.groupBy([]).persistentAggregate(factory, "x", Sum(), "sum")
    collect(state.newValuesStream(), "sums")
    running = run(cluster, topology)
    assert bags(running.collected("sums")) == {1: bag([(3,)]), 3: bag([(6,)])}
    assert [value.curr for value in stored(factory).values()] == [6]


def test_s29_a_join_keeps_them_apart_and_null_meets_null(cluster: Any) -> None:
    topology = TridentTopology()
    one = topology.newStream("one", Batches(["k", "a"], [[(key, repr(key)) for key in KEYS]]))
    two = topology.newStream("two", Batches(["k", "b"], [[(key, repr(key)) for key in KEYS]]))
    collect(topology.join(one, "k", two, "k", ["k", "a", "b"]), "out")
    assert bags(run(cluster, topology).collected("out")) == {1: bag([(key, repr(key), repr(key)) for key in KEYS])}


# -- S30: order ---------------------------------------------------------------------------------------------------


@both_always
def test_s30_between_one_sender_and_one_receiver_tuples_keep_their_order(cluster: Any) -> None:
    rows = [(i % 2, i) for i in range(40)]
    found = through(
        cluster,
        ["k", "v"],
        [rows],
        lambda s: s.partitionBy("k").each("v", lambda v: [v], "w").groupBy("k").aggregate("w", InOrder(), "t"),
        partitions=2,
    )
    assert found == {1: bag([(0, True), (1, True)])}


class InOrder(Aggregator):
    """Emits whether the numbers came in ascending order."""

    def init(self, batchId: Any, collector: Any) -> list:
        return []

    def aggregate(self, value: list, tuple: Any, collector: Any) -> None:
        value.append(tuple[0])

    def complete(self, value: list, collector: Any) -> None:
        collector.emit((value == sorted(value) and len(value) == 20,))
