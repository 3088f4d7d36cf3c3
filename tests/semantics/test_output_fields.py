"""Output fields of every operation (semantics, section 18)."""

from __future__ import annotations

from typing import Any

import pytest

from states import RowUpdater
from trident_py import Fields, TridentTopology
from trident_py.operations import GroupedMultiReducer, MultiReducer
from trident_py.operations.builtin import Count, FirstN, MapGet, Sum
from trident_py.testing import MemoryMapState, Split

from .support import Batches, Collects, Joined


class Tagged(MultiReducer):
    def init(self, collector: Any) -> Any: ...

    def execute(self, state: Any, streamIndex: int, input: Any, collector: Any) -> Any: ...

    def complete(self, state: Any, collector: Any) -> None: ...


class TaggedGroups(GroupedMultiReducer):
    def init(self, collector: Any, group: Any) -> Any: ...

    def execute(self, state: Any, streamIndex: int, group: Any, input: Any, collector: Any) -> Any: ...

    def complete(self, state: Any, group: Any, collector: Any) -> None: ...


def persisted(stream: Any, **fields: Any) -> Any:
    return stream.partitionPersist(MemoryMapState.Factory(), "a", RowUpdater(), **fields).newValuesStream()


def query(source: Any) -> Any:
    stream = source.toStream()
    return source.stateQuery(stream.topology.newStaticState(MemoryMapState.Factory()), "a", MapGet(), "n")


def chain(source: Any) -> Any:
    return source.chainedAgg().aggregate("b", Sum(), "s").aggregate(Count(), "n").chainEnd()


RULES: list[tuple[str, Any, list[str]]] = [
    ("each with a function", lambda s: s.each("a", Split(), ["x", "y"]), ["a", "b", "x", "y"]),
    ("each with a filter", lambda s: s.each("a", lambda a: True), ["a", "b"]),
    ("each on a grouped stream", lambda s: s.groupBy("a").each("a", Split(), "x"), ["a", "b", "x"]),
    ("filter", lambda s: s.filter(lambda a, b: True), ["a", "b"]),
    ("peek", lambda s: s.peek(print), ["a", "b"]),
    ("name", lambda s: s.name("label"), ["a", "b"]),
    ("project", lambda s: s.project(["b", "a"]), ["b", "a"]),
    ("map", lambda s: s.map(lambda t: t), ["a", "b"]),
    ("map with fields", lambda s: s.map(lambda t: t, "x"), ["x"]),
    ("flatMap", lambda s: s.flatMap(lambda t: [t]), ["a", "b"]),
    ("flatMap with fields", lambda s: s.flatMap(lambda t: [t], ["x", "b"]), ["x", "b"]),
    ("partitionAggregate", lambda s: s.partitionAggregate("b", Count(), "n"), ["n"]),
    ("aggregate, reusing a name", lambda s: s.aggregate("b", Joined(), "b"), ["b"]),
    ("aggregate of several fields", lambda s: s.aggregate("b", Collects(), ["x", "b"]), ["x", "b"]),
    ("grouped aggregate", lambda s: s.groupBy(["b", "a"]).aggregate(Count(), "n"), ["b", "a", "n"]),
    ("grouped partitionAggregate", lambda s: s.groupBy("a").partitionAggregate("b", Collects(), "b"), ["a", "b"]),
    ("chainedAgg", chain, ["s", "n"]),
    ("grouped chainedAgg", lambda s: chain(s.groupBy("a")), ["a", "s", "n"]),
    ("minBy", lambda s: s.minBy("a"), ["a", "b"]),
    ("max", lambda s: s.max(lambda one, other: 0), ["a", "b"]),
    ("FirstN", lambda s: s.applyAssembly(FirstN(2, "a")), ["a", "b"]),
    ("merge", lambda s: s.topology.merge(s, s.project(["b", "a"])), ["a", "b"]),
    ("merge under names", lambda s: s.topology.merge(["x", "y"], s, s.project(["b", "a"])), ["x", "y"]),
    ("join", lambda s: s.topology.join(s, "a", s.project("a"), "a", ["k", "v"]), ["k", "v"]),
    ("multiReduce", lambda s: s.topology.multiReduce(s, s.project("a"), Tagged(), "n"), ["n"]),
    (
        "grouped multiReduce",
        lambda s: s.topology.multiReduce(s.groupBy("a"), s.project("b").groupBy("b"), TaggedGroups(), "n"),
        ["n"],
    ),
    ("stateQuery", query, ["a", "b", "n"]),
    ("grouped stateQuery", lambda s: query(s.groupBy("b")), ["a", "b", "n"]),
    ("partitionPersist", persisted, []),
    ("partitionPersist with fields", lambda s: persisted(s, functionFields=["x"]), ["x"]),
    (
        "persistentAggregate",
        lambda s: s.persistentAggregate(MemoryMapState.Factory(), Count(), "n").newValuesStream(),
        ["n"],
    ),
    (
        "grouped persistentAggregate",
        lambda s: s.groupBy("b").persistentAggregate(MemoryMapState.Factory(), Joined(), "n").newValuesStream(),
        ["b", "n"],
    ),
]


@pytest.mark.parametrize(("build", "names"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_the_output_fields_of_an_operation(build: Any, names: list[str]) -> None:
    stream = TridentTopology().newStream("s", Batches(["a", "b"], []))
    assert build(stream).getOutputFields().toList() == names


@pytest.mark.parametrize(
    "repartition",
    ["shuffle", "localOrShuffle", "global_", "batchGlobal", "broadcast", "identityPartition"],
)
def test_a_repartition_keeps_the_fields(repartition: str) -> None:
    stream = TridentTopology().newStream("s", Batches(["a", "b string"], []))
    for moved in (getattr(stream, repartition)(), stream.partitionBy("b"), stream.partition(lambda t: 0)):
        assert moved.getOutputFields() == Fields("a", "b string")


def test_types_of_fields_go_with_them_through_what_keeps_values() -> None:
    stream = TridentTopology().newStream("s", Batches(["a bigint", "b string"], []))
    assert stream.project(["b", "a"]).getOutputFields() == Fields("b string", "a bigint")
    assert stream.groupBy("b").aggregate(Count(), "n").getOutputFields() == Fields("b string", "n bigint")
    assert stream.minBy("a").getOutputFields() == Fields("a bigint", "b string")
    assert stream.topology.merge(stream, stream.project(["a", "b"])).getOutputFields() == Fields("a bigint", "b string")


def test_map_keeps_names_but_not_types() -> None:
    stream = TridentTopology().newStream("s", Batches(["a bigint"], []))
    assert stream.map(lambda t: [str(t[0])]).getOutputFields() == Fields("a")


def test_a_merge_of_differently_typed_fields_is_untyped() -> None:
    topology = TridentTopology()
    one = topology.newStream("one", Batches(["a bigint", "b string"], []))
    two = topology.newStream("two", Batches(["a double", "c string"], []))
    assert topology.merge(one, two).getOutputFields() == Fields("a", "b string")


def test_fields_may_be_given_in_any_form() -> None:
    for given in ("b", ["b"], ("b",), Fields("b"), Fields(["b"])):
        stream = TridentTopology().newStream("s", Batches(["a", "b"], []))
        assert stream.project(given).getOutputFields() == Fields("b")
        assert stream.groupBy(given).getGroupFields() == Fields("b")


def test_arguments_may_be_given_by_keyword() -> None:
    stream = TridentTopology().newStream("s", Batches(["a", "b"], []))
    assert stream.each(inputFields="a", function=Split(), functionFields="w").getOutputFields().toList() == [
        "a",
        "b",
        "w",
    ]
    assert stream.aggregate(agg=Sum(), inputFields="b", functionFields="n").getOutputFields().toList() == ["n"]


def test_to_stream_of_a_grouped_stream_is_the_stream_before_group_by() -> None:
    stream = TridentTopology().newStream("s", Batches(["a", "b"], [])).name("before")
    grouped = stream.groupBy("a")
    assert grouped.toStream() is stream
    assert (grouped.getName(), grouped.getOutputFields()) == ("before", Fields("a", "b"))
