"""join, multiReduce, merge, applyAssembly (semantics, 12)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from trident_py import DefinitionError, JoinOutFieldsMode, JoinType, TopologyError, TridentTopology
from trident_py.operations import Assembly, GroupedMultiReducer, MultiReducer
from trident_py.operations.builtin import Count, FirstN
from trident_py.testing import collect, failing

from .support import Batches, Partition, bag, bags, both, both_always, run, through

INNER, OUTER = JoinType.INNER, JoinType.OUTER
COMPACT, PRESERVE = JoinOutFieldsMode.COMPACT, JoinOutFieldsMode.PRESERVE
LEFT = [("x", 1), ("x", 2), ("y", 3), (None, 4)]
RIGHT = [(10, "x"), (20, "z"), (40, None)]
THIRD = [("x", True), ("z", False)]


def joined(cluster: Any, *args: Any, out: Any, sides: int = 2, partitions: int = 1, **options: Any) -> dict:
    """The join of LEFT(k, a), RIGHT(b, k2), THIRD(k3, c) with these arguments behind the output fields."""
    topology = TridentTopology()
    given = [("one", ["k", "a"], LEFT), ("two", ["b", "k2"], RIGHT), ("three", ["k3", "c"], THIRD)][:sides]
    streams = [topology.newStream(name, Batches(f, [rows])).parallelismHint(partitions) for name, f, rows in given]
    result = topology.join(streams, ["k", "k2", "k3"][:sides], out, *args, **options)
    collect(result.parallelismHint(partitions), "out")
    return bags(run(cluster, topology).collected("out"))


def expected(types: tuple[JoinType, ...], preserve: bool) -> list[tuple]:
    """The naive join: for each key all sides that have it, missing ones null if that side is OUTER."""
    sides = [[(k, (a,), (k, a)) for k, a in LEFT], [(k, (b,), (b, k)) for b, k in RIGHT]]
    sides.append([(k, (c,), (k, c)) for k, c in THIRD])
    sides = sides[: len(types)]
    rows: list[tuple] = []
    for key in dict.fromkeys(key for side in sides for key, _, _ in side):
        parts = []
        for side, kind in zip(sides, types, strict=True):
            own = [row[2] if preserve else row[1] for row in side if row[0] == key]
            missing = [(None,) * (2 if preserve else 1)] if kind is OUTER else []
            parts.append(own or missing)
        for chosen in itertools.product(*parts):
            rows.append((() if preserve else (key,)) + sum(chosen, ()))
    return rows


@pytest.mark.parametrize("mode", [COMPACT, PRESERVE])
@pytest.mark.parametrize(
    "types", [*itertools.product((INNER, OUTER), repeat=2)], ids=lambda t: "-".join(x.name for x in t)
)
def test_a_two_way_join_of_any_types(types: Any, mode: Any, cluster: Any) -> None:
    out = ["k", "a", "b"] if mode is COMPACT else ["k", "a", "b", "k2"]
    found = joined(cluster, JoinType.mixed(*types), mode, out=out, partitions=2)
    assert found == {1: bag(expected(types, mode is PRESERVE))}


@pytest.mark.parametrize("mode", [COMPACT, PRESERVE])
@pytest.mark.parametrize(
    "types", [*itertools.product((INNER, OUTER), repeat=3)], ids=lambda t: "-".join(x.name for x in t)
)
def test_a_three_way_join_of_any_types(types: Any, mode: Any, cluster: Any) -> None:
    out = ["k", "a", "b", "c"] if mode is COMPACT else ["k", "a", "b", "k2", "k3", "c"]
    found = joined(cluster, list(types), mode, out=out, sides=3, partitions=2)
    rows = expected(types, mode is PRESERVE)
    assert found == ({1: bag(rows)} if rows else {})


@both_always
def test_joins_of_all_types_in_one_topology(cluster: Any) -> None:
    topology = TridentTopology()
    one = topology.newStream("one", Batches(["k", "a"], [LEFT])).parallelismHint(2)
    two = topology.newStream("two", Batches(["b", "k2"], [RIGHT])).parallelismHint(2)
    kinds = list(itertools.product((INNER, OUTER), repeat=2))
    for i, types in enumerate(kinds):
        for mode, out in ((COMPACT, ["k", "a", "b"]), (PRESERVE, ["k", "a", "b", "k2"])):
            result = topology.join(one, "k", two, "k2", out, list(types), mode)
            collect(result.parallelismHint(2), f"{i} {mode.name}")
    running = run(cluster, topology)
    for i, types in enumerate(kinds):
        assert bags(running.collected(f"{i} COMPACT")) == {1: bag(expected(types, False))}
        assert bags(running.collected(f"{i} PRESERVE")) == {1: bag(expected(types, True))}


def test_the_naive_join_of_this_test_knows_storms_example() -> None:
    assert expected((INNER, OUTER), preserve=False) == [
        ("x", 1, 10), ("x", 2, 10), ("y", 3, None), (None, 4, 40)
    ]  # fmt: skip


def test_s22_mixed_types_belong_to_the_side_that_may_be_missing(cluster: Any) -> None:
    """mixed(INNER, OUTER) is a left outer join."""
    found = joined(cluster, JoinType.mixed(INNER, OUTER), out=["k", "a", "b"])
    assert found == {1: bag([("x", 1, 10), ("x", 2, 10), ("y", 3, None), (None, 4, 40)])}


def test_one_type_stands_for_all_sides_and_inner_and_compact_are_what_is_left_out(cluster: Any) -> None:
    out = ["k", "a", "b"]
    assert (
        joined(cluster, out=out)
        == joined(cluster, INNER, COMPACT, out=out)
        == {1: bag(expected((INNER, INNER), False))}
    )
    assert joined(cluster, OUTER, out=out) == {1: bag(expected((OUTER, OUTER), False))}


def test_a_compact_join_keeps_the_key_of_a_missing_side_a_preserving_one_nulls_it(cluster: Any) -> None:
    left = JoinType.mixed(OUTER, INNER)
    compact = joined(cluster, left, out=["k", "a", "b"])[1]
    assert repr(("z", None, 20)) in compact
    assert repr((None, None, 20, "z")) in joined(cluster, left, PRESERVE, out=["k", "a", "b", "k2"])[1]


def test_a_join_on_several_fields_goes_by_position(cluster: Any) -> None:
    topology = TridentTopology()
    one = topology.newStream("one", Batches(["a", "b", "v"], [[(1, 2, "v"), (2, 1, "w")]]))
    two = topology.newStream("two", Batches(["x", "y", "z"], [[("q", 1, 2)]]))
    collect(topology.join(one, ["a", "b"], two, ["y", "z"], ["a", "b", "v", "x"]), "out")
    assert run(cluster, topology).collected("out") == {1: [(1, 2, "v", "q")]}


def test_too_few_output_fields_are_refused(cluster: Any) -> None:
    """Storm drops the last columns in silence (docs/differences.md)."""
    with pytest.raises(DefinitionError, match=r"the join makes 3 values for the 2 output fields \[k, a\]"):
        joined(cluster, out=["k", "a"])


def test_join_fields_of_different_number_are_refused() -> None:
    """In Storm no two tuples meet, and an outer join in COMPACT mode ends the worker (docs/differences.md)."""
    topology = TridentTopology()
    one = topology.newStream("one", Batches(["a", "b"], [[(1, 2)]]))
    two = topology.newStream("two", Batches(["x", "y"], [[(1, 2)]]))
    with pytest.raises(DefinitionError, match=r"by position, but their numbers differ: \[a, b\], \[x\]"):
        topology.join(one, ["a", "b"], two, ["x"], ["a", "b", "y"])


def test_a_self_join_works_on_one_stream_object_and_on_different_keys(cluster: Any) -> None:
    """Storm gives nothing for the first and cannot build the second (docs/differences.md)."""
    rows = [("a", "b"), ("b", "c")]
    found = through(
        cluster, ["k", "v"], [rows], lambda s: s.topology.join(s, "k", s, "k", ["k", "v", "w"]), partitions=2
    )
    assert found == {1: bag([("a", "b", "b"), ("b", "c", "c")])}
    found = through(
        cluster, ["k", "v"], [rows], lambda s: s.topology.join(s, "v", s, "k", ["k", "v", "w"]), partitions=2
    )
    assert found == {1: bag([("b", "a", "c")])}


@both
def test_a_join_only_joins_tuples_of_one_batch(cluster: Any) -> None:
    topology = TridentTopology()
    one = topology.newStream("one", Batches(["k", "a"], [[("x", 1)], [("x", 2)], []]))
    two = topology.newStream("two", Batches(["k", "b"], [[], [("x", 3)], [("x", 4)]]))
    result = topology.join(one, "k", two, "k", ["k", "a", "b"], JoinType.INNER)
    collect(result.each("k", failing(lambda k: [k], {(2, 0)}), "l").project(["k", "a", "b"]), "out")
    assert run(cluster, topology).collected("out") == {2: [("x", 2, 3)]}


def test_too_few_join_types_fail_when_it_runs(cluster: Any) -> None:
    with pytest.raises(TopologyError, match="1 join types for 2 streams"):
        joined(cluster, [INNER], out=["k", "a", "b"])


# -- merge --------------------------------------------------------------------------------------------------------


@both
def test_merge_takes_values_by_position_under_the_given_names(cluster: Any) -> None:
    topology = TridentTopology()
    one = topology.newStream("one", Batches(["a", "b"], [[(1, 2)]])).parallelismHint(2)
    two = topology.newStream("two", Batches(["b", "a"], [[(3, 4), (5, 6)]]))
    merged = topology.merge(["x", "y"], [one, two]).each(["y", "x"], lambda y, x: [y - x], "d")
    collect(merged, "out")
    assert bags(run(cluster, topology).collected("out")) == {1: bag([(1, 2, 1), (3, 4, 1), (5, 6, 1)])}


def test_merge_does_not_repartition(cluster: Any) -> None:
    def build(stream: Any) -> Any:
        marked = stream.each("v", Partition(), "p")
        merged = stream.topology.merge(marked, marked.project(["v", "p"]))
        return merged.each(Partition(), "q").filter(["p", "q"], lambda p, q: p == q).aggregate(Count(), "n")

    assert through(cluster, "v", [[(i,) for i in range(6)]], build, partitions=3) == {1: bag([(12,)])}


def test_a_stream_merged_with_itself_gives_its_tuples_twice(cluster: Any) -> None:
    """Storm throws an IndexOutOfBoundsException (docs/differences.md)."""
    assert through(cluster, "v", [[(1,)]], lambda s: s.topology.merge(s, s)) == {1: bag([(1,), (1,)])}


# -- multiReduce --------------------------------------------------------------------------------------------------


class Tags(MultiReducer):
    """Emits what comes with the number of its stream, and how many of each at the end."""

    def init(self, collector: Any) -> list[int]:
        return [0, 0]

    def execute(self, state: list[int], streamIndex: int, input: Any, collector: Any) -> None:
        state[streamIndex] += 1
        collector.emit((streamIndex, *input))

    def complete(self, state: list[int], collector: Any) -> None:
        collector.emit(("end", tuple(state)))


class GroupedTags(GroupedMultiReducer):
    def init(self, collector: Any, group: Any) -> int:
        return 0

    def execute(self, state: int, streamIndex: int, group: Any, input: Any, collector: Any) -> int:
        return state + (100 if streamIndex else 1) * input[0]

    def complete(self, state: int, group: Any, collector: Any) -> None:
        collector.emit((group[0], state))


def reduced(cluster: Any, *args: Any) -> dict:
    topology = TridentTopology()
    one = topology.newStream("one", Batches(["k", "v"], [[("x", 1), ("y", 2)], []])).parallelismHint(2)
    two = topology.newStream("two", Batches(["w", "k"], [[(3, "x"), (4, "x")], []])).parallelismHint(2)
    collect(topology.multiReduce(*[arg({"one": one, "two": two}) if callable(arg) else arg for arg in args]), "out")
    return bags(run(cluster, topology).collected("out"))


@both
def test_multi_reduce_runs_in_every_partition_also_for_empty_batches(cluster: Any) -> None:
    found = reduced(cluster, "v", lambda s: s["one"], "w", lambda s: s["two"], Tags(), ["i", "n"])
    assert found == {
        1: bag([(0, 1), (1, 3), ("end", (1, 1)), (0, 2), (1, 4), ("end", (1, 1))]),
        2: bag([("end", (0, 0))] * 2),
    }


FORMS: dict[str, list[Any]] = {
    "streams": [lambda s: s["one"].project("v"), lambda s: s["two"].project("w")],
    "a list": [lambda s: [s["one"].project("v"), s["two"].project("w")]],
    "fields and streams": ["v", lambda s: s["one"], "w", lambda s: s["two"]],
    "lists of both": [["v", "w"], lambda s: [s["one"], s["two"]]],
}


@pytest.mark.parametrize("form", FORMS)
def test_multi_reduce_takes_streams_in_all_of_storms_forms(form: str, cluster: Any) -> None:
    found = reduced(cluster, *FORMS[form], Tags(), ["i", "n"])
    assert found[1] == bag([(0, 1), (1, 3), ("end", (1, 1)), (0, 2), (1, 4), ("end", (1, 1))])


@both_always
def test_a_grouped_multi_reduce_meets_by_group_and_does_nothing_for_an_empty_batch(cluster: Any) -> None:
    found = reduced(
        cluster, "v", lambda s: s["one"].groupBy("k"), "w", lambda s: s["two"].groupBy("k"), GroupedTags(), ["k", "n"]
    )
    assert found == {1: bag([("x", 1 + 700), ("y", 2)])}


# -- applyAssembly ------------------------------------------------------------------------------------------------


class Loud(Assembly):
    def apply(self, stream: Any) -> Any:
        return stream.map(lambda t: [t[0].upper()]).each("w", lambda w: [len(w)], "n")


def test_apply_assembly_adds_what_the_assembly_builds(cluster: Any) -> None:
    assert through(cluster, "w", [[("abc",)]], lambda s: s.applyAssembly(Loud())) == {1: bag([("ABC", 3)])}


@pytest.mark.parametrize(
    ("first_n", "rows"),
    [
        (FirstN(2, "v"), [(1,), (2,)]),
        (FirstN(2, "v", True), [(5,), (4,)]),
        (FirstN(9, "v"), [(i,) for i in (1, 2, 3, 4, 5)]),
    ],
)
def test_first_n_over_all_partitions(first_n: FirstN, rows: list, cluster: Any) -> None:
    batch = [(3,), (1,), (5,), (4,), (2,)]
    assert through(cluster, "v", [batch, []], lambda s: s.applyAssembly(first_n), partitions=3) == {1: bag(rows)}
