"""`vectorized`: callables of whole columns in each, filter and map, and what they may return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from trident_py import DefinitionError, Fields, LocalCluster, LocalDRPC, SparkCluster, TopologyError, TridentTopology
from trident_py.operations import nondeterministic, vectorized
from trident_py.operations.builtin import Negate
from trident_py.operations.determinism import judge
from trident_py.testing import FixedBatchSpout, collect

ROWS = [("a", 1), ("straße", 2), (None, 3), ("cccc", None)]


@vectorized
def shout(words: pa.Array) -> pa.Array:
    """Words in capitals."""
    return pc.ascii_upper(words)


@vectorized
def both(words: pa.Array, numbers: pa.Array) -> tuple[pa.Array, pa.Array]:
    return pc.utf8_length(words), pc.add(numbers, 1)


@vectorized
def several(numbers: pa.Array) -> pa.Array:
    return pc.greater(numbers, 1)


@vectorized
def drawn(words: pa.Array) -> pa.Array:
    return pc.random(len(words))


class Scaled:
    """Takes its factor from the conf."""

    factor = 0

    def prepare(self, conf: dict, context: Any) -> None:
        self.factor = conf["factor"]

    def __call__(self, numbers: pa.Array) -> pa.Array:
        return pc.multiply(numbers, self.factor)


def run(define: Callable[[Any], Any], rows: Any = ROWS, fields: Any = "word n", cluster: Any = None) -> list[tuple]:
    """The rows of all batches, two tuples a batch."""
    topology = TridentTopology()
    names = Fields(fields.split(" ")) if isinstance(fields, str) else fields
    collect(define(topology.newStream("rows", FixedBatchSpout(names, 2, *rows))), "out")
    with cluster or LocalCluster() as running_on:
        running = running_on.submitTopology("vectorised", {"factor": 10}, topology.build())
        assert running.awaitTermination(60)
        return [row for _, batch in sorted(running.collected("out").items()) for row in batch]


TYPED = Fields("word string", "n bigint")
EVERY_FORM: dict[str, tuple[Callable[[Any], Any], list[tuple]]] = {
    "each": (lambda s: s.each("word", shout, "w").project("w"), [("A",), ("STRAßE",), (None,), ("CCCC",)]),
    "each, two results": (
        lambda s: s.each(["word", "n"], both, Fields("l", "m bigint")).project(["l", "m"]),
        [(1, 2), (6, 3), (None, 4), (4, None)],
    ),
    "filter": (lambda s: s.filter("n", several).project("n"), [(2,), (3,)]),
    "filter by each": (lambda s: s.each("n", several), ROWS[1:3]),
    "map": (lambda s: s.map(both), [(1, 2), (6, 3), (None, 4), (4, None)]),
    "map to other fields": (
        lambda s: s.project("word").map(shout, "w string").each("w", lambda w: [w], "x").project("x"),
        [("A",), ("STRAßE",), (None,), ("CCCC",)],
    ),
    "prepared": (lambda s: s.each("n", vectorized(Scaled()), "m").project("m"), [(10,), (20,), (30,), (None,)]),
    "a kernel itself": (
        lambda s: s.each("n", vectorized(pc.negate), "m").project("m"),
        [(-1,), (-2,), (-3,), (None,)],
    ),
    "grouped": (
        lambda s: s.groupBy("word").each("n", vectorized(pc.abs), "m").toStream().project("m"),
        [(1,), (2,), (3,), (None,)],
    ),
}


@pytest.mark.parametrize("typed", [False, True], ids=["untyped", "typed"])
@pytest.mark.parametrize("name", EVERY_FORM)
def test_a_vectorised_callable_gives_one_row_per_tuple(name: str, typed: bool) -> None:
    define, expected = EVERY_FORM[name]
    assert run(define, fields=TYPED if typed else "word n") == expected


@pytest.mark.spark
def test_vectorised_callables_run_on_spark() -> None:
    def define(stream: Any) -> Any:
        changed = stream.each("word", shout, "w").each("n", vectorized(lambda n: pc.add(n, 1)), "m bigint")
        return changed.shuffle().filter("m", several).each(["w", "m"], both, ["l", "k"]).project(["w", "m", "l", "k"])

    expected = [("A", 2, 1, 3), ("STRAßE", 3, 6, 4), (None, 4, None, 5)]
    assert sorted(run(define, cluster=SparkCluster()), key=str) == sorted(expected, key=str)


def test_a_vectorised_callable_answers_drpc_requests() -> None:
    drpc, topology = LocalDRPC(), TridentTopology()
    topology.newDRPCStream("shout", drpc).each("args", shout, "w").project("w")
    with LocalCluster() as cluster:
        cluster.submitTopology("vectorised", {}, topology.build())
        assert drpc.execute("shout", "abc") == [["ABC"]]


def test_types_that_a_callable_could_not_emit_become_python_values() -> None:
    def dates(numbers: pa.Array) -> pa.Array:
        return pc.cast(pc.cast(numbers, pa.int32()), pa.date32())

    kinds = [
        vectorized(lambda n: n.cast(pa.int8())),
        vectorized(dates),
        vectorized(lambda n: pa.chunked_array([n.cast(pa.string()).dictionary_encode()])),
        vectorized(lambda n: pa.nulls(len(n))),
        vectorized(lambda n: n.cast(pa.timestamp("ns"))),
    ]
    rows = [run(lambda s, kind=kind: s.map(kind), [(7,)], "n") for kind in kinds[:4]]
    assert [[repr(value) for (value,) in each] for each in rows] == [
        ["7"], ["datetime.date(1970, 1, 8)"], ["'7'"], ["None"],
    ]  # fmt: skip
    with pytest.raises(TopologyError, match="field 'n': a time has nanoseconds"):
        run(lambda s: s.map(kinds[4]), [(7,)], "n")


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a scalar": (
        lambda s: s.each("n", vectorized(lambda n: pa.scalar(1)), "x"),
        r"returned a scalar, pyarrow\.Int64Scalar; return an array with one value per tuple",
    ),
    "a sum": (lambda s: s.filter("n", vectorized(lambda n: pc.any(pc.is_null(n)))), "returned a scalar"),
    "too few": (lambda s: s.each("n", vectorized(lambda n: n[1:]), "x"), "returned 1 values for 2 tuples"),
    "numpy": (
        lambda s: s.each("n", vectorized(lambda n: np.arange(len(n))), "x"),
        r"returned a numpy\.ndarray; return pyarrow arrays",
    ),
    "nothing": (lambda s: s.each("n", vectorized(lambda n: None), "x"), r"returned a builtins\.NoneType"),
    "one for two": (lambda s: s.each("n", shout_of_n, ["x", "y"]), "returned 1 columns for 2 output fields"),
    "no boolean": (
        lambda s: s.filter("n", vectorized(lambda n: n)),
        "returned a column of type int64; a filter returns a boolean array",
    ),
    "text for a number": (
        lambda s: s.each("n", vectorized(lambda n: n.cast(pa.string())), "x bigint"),
        "field 'x' is declared bigint, but the column is text",
    ),
    "a fraction for a number": (
        lambda s: s.each("n", vectorized(lambda n: pc.divide(n.cast(pa.float64()), 2)), "x bigint"),
        "field 'x': double cannot be converted to int64: Float value 0.500000 was truncated",
    ),
}
shout_of_n = vectorized(lambda n: n)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_result_is_named_with_its_operation(name: str) -> None:
    define, text = WRONG[name]
    with pytest.raises(TopologyError, match=text) as caught:
        run(define)
    assert "(vectorised), txid 1, partition 0" in str(caught.value)


UNFIT: dict[str, tuple[list[tuple], str]] = {
    "two types": ([(1,), ("x",)], "field 'n' holds 'x', a str, beside a int; an Arrow column has one type"),
    "an object": ([(None,), ({1},)], r"field 'n' holds \{1\}, a set, which fits no Arrow column"),
    "too large": ([(1,), (2**70,)], f"field 'n' holds {2**70}, a int, which fits no Arrow column"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_an_untyped_value_that_fits_no_column_is_named(name: str) -> None:
    rows, text = UNFIT[name]
    with pytest.raises(TopologyError, match=text):
        run(lambda s: s.each("n", vectorized(lambda n: n), "x"), rows, "n")


def test_a_value_that_was_never_emitted_is_an_error_only_if_it_is_read() -> None:
    def short(stream: Any) -> Any:
        return stream.flatMap(lambda t: [(t[0], 1), (t[0],)], ["n", "m"])

    assert run(lambda s: short(s).each("n", vectorized(pc.negate), "x").project("x"), [(7,)], "n") == [(-7,), (-7,)]
    with pytest.raises(TopologyError, match="it has none for field 'm'"):
        run(lambda s: short(s).each("m", vectorized(pc.negate), "x"), [(7,)], "n")


def test_a_failing_kernel_shows_no_lines_of_arrow() -> None:
    with pytest.raises(TopologyError, match="Function 'ascii_upper' has no kernel") as caught:
        run(lambda s: s.each("n", shout, "x"))
    assert "in shout: return pc.ascii_upper(words)" in str(caught.value) and ".pyx" not in str(caught.value)


def test_a_kernel_without_nulls_of_no_type_says_what_to_declare() -> None:
    with pytest.raises(TopologyError, match="field 'word' is untyped and holds only nulls here; declare its type"):
        run(lambda s: s.each("word", shout, "x"), [(None,)], "word")
    assert run(lambda s: s.map(shout), [(None,)], Fields("word string")) == [(None,)]


def test_an_error_shows_the_users_line_and_the_start_of_each_column() -> None:
    def failing(words: pa.Array, api_key: pa.Array) -> pa.Array:
        raise ValueError("broken")

    rows = [(f"word {i}", f"secret {i}") for i in range(9)]
    topology = TridentTopology()
    spout = FixedBatchSpout(Fields("word", "key"), 9, *rows)
    topology.newStream("rows", spout).each(["word", "key"], vectorized(failing), "x")
    with LocalCluster() as cluster, pytest.raises(TopologyError) as caught:
        cluster.submitTopology("vectorised", {}, topology.build()).awaitTermination(60)
    text = str(caught.value)
    assert 'failing: raise ValueError("broken")' in text and "secret" not in text.replace("api_key=", "")
    assert "with words=string['word 0', 'word 1', 'word 2', 'word 3', ... 9 values]" in text


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "flatMap": (lambda s: s.flatMap(shout), r"flatMap does not take shout \(vectorised\): it gives one row for each"),
    "peek": (lambda s: s.peek(shout), "peek does not take shout .*: it works on whole columns, not on one tuple"),
    "partition": (lambda s: s.partition(shout), "partition does not take shout"),
    "maxBy": (lambda s: s.maxBy("n", shout), "a comparator must be a callable"),
    "Negate": (lambda s: s.filter("n", Negate(shout)), "Negate sees one tuple at a time"),
    "no input": (lambda s: s.each(shout, "w"), "gets no columns, so it cannot know how many tuples there are"),
    "no output": (lambda s: s.each("word", shout, []), "name its function fields, or use filter"),
    "a class": (lambda s: s.each("n", vectorized(Scaled), "m"), "vectorized got the class Scaled; pass an object"),
    "twice": (lambda s: s.each("n", vectorized(shout), "m"), "works on columns already"),
    "no callable": (lambda s: s.each("n", vectorized(7), "m"), "vectorized takes a callable"),  # type: ignore[arg-type]
    "an aggregator": (lambda s: s.aggregate("n", shout, "m"), "aggregate does not take shout"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_topology_refuses_columns_where_tuples_are_needed(name: str) -> None:
    define, text = REFUSED[name]
    with pytest.raises(DefinitionError, match=text):
        define(TridentTopology().newStream("rows", FixedBatchSpout(Fields("word", "n"), 2, *ROWS)))


def test_explain_says_vectorised() -> None:
    topology = TridentTopology()
    topology.newStream("rows", FixedBatchSpout(Fields("word"), 2, ("a",))).each("word", shout, "w").filter("w", several)
    assert "#1 each shout (vectorised) <- #0" in topology.explain()
    assert "#2 filter several (vectorised) <- #1" in topology.explain()


def test_whether_it_is_deterministic_is_read_in_the_callable() -> None:
    assert judge(shout).deterministic and judge(vectorized(pc.utf8_upper)).deterministic
    assert judge(drawn).kind == "not deterministic" and "calls pyarrow.compute.random" in judge(drawn).why
    assert not judge(nondeterministic(vectorized(lambda n: n))).deterministic
    assert not judge(vectorized(nondeterministic(lambda n: n))).deterministic


def test_it_can_be_called_as_the_function_that_it_is() -> None:
    assert shout(pa.array(["x"])).to_pylist() == ["X"] and shout.__doc__ == "Words in capitals."

