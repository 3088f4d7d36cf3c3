"""`expr`: what a topology takes, refuses and shows, and values that have no result. Results: spark/, properties/."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from trident_py import DefinitionError, Fields, LocalCluster, LocalDRPC, SparkCluster, TopologyError, TridentTopology
from trident_py.extras.expressions import parser
from trident_py.operations import expr
from trident_py.operations.builtin import Negate
from trident_py.operations.determinism import judge
from trident_py.testing import FixedBatchSpout, collect

TYPED = Fields("word string", "n bigint", "x double")
ROWS = [("a", 1, 0.5), ("straße", -7, 1.5), (None, None, None), ("a%b", 2**62, -0.0)]


def run(define: Callable[[Any], Any], rows: Any = ROWS, fields: Any = TYPED, cluster: Any = None) -> list[tuple]:
    topology = TridentTopology()
    collect(define(topology.newStream("rows", FixedBatchSpout(fields, 2, *rows))), "out")
    with cluster or LocalCluster() as running_on:
        running = running_on.submitTopology("expressions", {}, topology.build())
        assert running.awaitTermination(60)
        return [row for _, batch in sorted(running.collected("out").items()) for row in batch]


def stream(fields: Any = TYPED) -> Any:
    return TridentTopology().newStream("rows", FixedBatchSpout(fields, 2, *ROWS))


def test_each_appends_the_results_and_needs_no_input_fields() -> None:
    shown = expr("upper(word) AS w", "length(word) > 3 AS long")
    found = run(lambda s: s.each(shown, ["w", "long"]).project(["w", "long"]))
    assert found == [("A", False), ("STRASSE", True), (None, None), ("A%B", False)]
    assert run(lambda s: s.each(["word", "n"], expr("n % 3"), "r").project("r")) == [(1,), (-1,), (None,), (1,)]
    assert run(lambda s: s.each(expr("1"), "one").project("one")) == [(1,)] * 4


def test_map_takes_its_names_from_the_expressions_or_from_the_call() -> None:
    mapped = stream().map(expr("upper(word) AS w, n"))
    assert mapped.getOutputFields() == Fields("w string", "n bigint")
    assert run(lambda s: s.map(expr("length(word)"), "l")) == [(1,), (6,), (None,), (3,)]
    with pytest.raises(DefinitionError, match=r"length\(word\) has no name; write AS, or give outputFields"):
        stream().map(expr("length(word)"))


def test_a_filter_keeps_what_is_true() -> None:
    assert run(lambda s: s.filter(expr("n > 0 AND word IS NOT NULL"))) == [ROWS[0], ROWS[3]]
    assert run(lambda s: s.filter(["n"], expr("NOT n > 0"))) == [ROWS[1]]
    assert run(lambda s: s.each("n", expr("n IS NULL"))) == [ROWS[2]]


@pytest.mark.spark
def test_expressions_run_on_spark() -> None:
    def define(s: Any) -> Any:
        return s.filter(expr("x IS NOT NULL")).shuffle().map(expr("upper(word) AS w, n div 2 AS h, x < 1 AS low"))

    expected = [("A", 0, True), ("A%B", 2**61, True), ("STRASSE", -3, False)]
    assert sorted(run(define, cluster=SparkCluster())) == expected


def test_results_have_types_where_the_fields_have() -> None:
    every = expr("upper(word), length(word), n + 1, n / 2, n > 0, 1.5, NULL, word")
    names = list("abcdefgh")
    assert stream().each(every, names).getOutputFields().types == dict(
        TYPED.types, a="string", b="int", c="bigint", d="double", e="boolean", f="decimal(2,1)", h="string"
    )
    untyped = stream(Fields("word", "n bigint", "x")).each(every, names).getOutputFields().types
    assert untyped == {"n": "bigint", "c": "bigint", "d": "double", "e": "boolean", "f": "decimal(2,1)"}


def test_declared_types_are_kept() -> None:
    def define(s: Any) -> Any:
        long = s.each(expr("length(word)"), "l bigint")
        return long.each(expr("l + 9223372036854775801"), "m").project("m")

    found = run(define, [("abc", 1, 1.0)])
    assert found == [(9223372036854775804,)]
    with pytest.raises(DefinitionError, match="field 'l' is declared string, but gets int; use CAST"):
        stream().each(expr("length(word)"), "l string")


def test_untyped_fields_get_the_types_of_their_values() -> None:
    fields = Fields("word", "n", "x")
    assert run(lambda s: s.map(expr("upper(word) AS w, n % 3 AS r, x + n AS s")), ROWS[:2], fields) == [
        ("A", 1, 1.5), ("STRASSE", -1, -5.5),
    ]  # fmt: skip
    assert run(lambda s: s.map(expr("upper(word) AS w, n + 1 AS m")), ROWS[2:3], fields) == [(None, None)]
    with pytest.raises(TopologyError, match=r"word \+ 1 brings string and int together; use CAST"):
        run(lambda s: s.map(expr("word + 1 AS m")), ROWS, fields)
    with pytest.raises(TopologyError, match="field 'n' holds 'x', a str, beside a int"):
        run(lambda s: s.map(expr("n AS m")), [("a", 1, 1.0), ("a", "x", 1.0)], fields)


REFUSED = {
    "upper(wrod)": "no field 'wrod' here; there are: word, n, x",
    "uper(word)": "no function uper; did you mean upper",
    "rand()": "no function rand; there are abs, ceil",
    "now() > x": "no function now",
    "count(n)": "no function count",
    "word RLIKE 'a'": "RLIKE 'a' is not offered; docs/expressions.md lists what is. For others use @vectorized",
    "word + 1": r"word \+ 1 brings string and int together; use CAST",
    "n > 'a'": "n > 'a' brings bigint and string together",
    "n + 2.5": "n [+] 2.5 brings bigint and .* together; write a fraction as 2.5D",
    "n AND true": r"n AND TRUE needs a condition, but has bigint|n AND true needs a condition, but has bigint",
    "length(n)": r"length\(n\) needs texts, but has bigint",
    "year(word)": "year.* needs date or timestamp_ntz, but has string",
    "hour(DATE '2024-01-01')": "needs timestamp_ntz, but has date",
    "substring(word, n)": "the position must be a literal",
    "contains(word, word)": "the second text must be a literal",
    "n IN (x)": "IN takes literals",
    "CAST(x AS STRING)": "a cast of double to string is not offered",
    "CAST(word AS DATE)": "only a literal becomes a date",
    "TRY_CAST(n AS INT)": "no function try_cast",
    "CAST(word AS VARCHAR(3))": "a text with a length is not offered",
    "word LIKE 'a' ESCAPE '!'": "is not offered",
    "n < 1 < 2": "put parentheses around n < 1",
    "word || 'a' || n + 1": "put parentheses around n [+] 1",
    "n & 1": "n & 1 is not offered",
    "(SELECT 1)": "is not offered",
    "n FROM word": "an expression, or a list of them, is needed, without clauses",
    "1; 2": "an expression, or a list of them, is needed",
    "*": "is not offered",
    "sum(n) OVER ()": "is not offered",
    "upper(": "cannot be parsed",
    "": "expr needs an expression",
    r"'\x41'": r"the escape \\x is not offered",
    "99999999999999999999": "does not fit bigint",
    "word.x": "is not offered",
    "DATE '2026-02-30' = DATE '2026-03-01'": "DATE '2026-02-30' is no date: day is out of range",
    "0." + 39 * "1": "has more than 38 digits; write a double, as 1e40",
    "x < -1e400": "-1e400 does not fit double",
    "128Y": "128 does not fit tinyint",
    "round(n, n)": "the digits must be a literal from 0 to 100",
    "floor(n)": "which is whole already",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_offered_is_refused_before_the_start(text: str) -> None:
    with pytest.raises(DefinitionError, match=REFUSED[text]):
        stream().each(expr(text), "out")
        raise AssertionError(f"{text} was taken")


@pytest.mark.parametrize("text", ["d = DATE '2026-02-30'", "d = 0." + 39 * "1", "d = 1e400"])
def test_a_literal_that_is_none_is_refused_where_the_fields_have_no_types(text: str) -> None:
    with pytest.raises(DefinitionError, match=r"is no date|more than 38 digits|does not fit double"):
        expr(text)
    assert expr("d = -128Y").parts


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "names": (lambda: stream().each(expr("n AS a"), "b"), "'a' behind AS would be the field 'b'"),
    "a count": (lambda: stream().each(expr("n, x"), "b"), "gives 2 values for the 1 fields"),
    "a filter of numbers": (lambda: stream().filter(expr("n + 1")), "gives bigint, but a filter is one condition"),
    "two conditions": (lambda: stream().filter(expr("n > 1, x > 1")), "gives 2 values, but a filter is one condition"),
    "flatMap": (lambda: stream().flatMap(expr("n AS n")), "flatMap does not take expr"),
    "Negate": (lambda: stream().filter(Negate(expr("n > 1"))), "Negate sees one tuple at a time"),
    "no input of that name": (lambda: stream().each("n", expr("x + 1"), "y"), "no field 'x' here; there are: n"),
    "no text": (lambda: expr(7), "expr takes SQL expressions as texts, got 7"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_does_not_fit_is_refused(name: str) -> None:
    define, text = CALLS[name]
    with pytest.raises(DefinitionError, match=text):
        define()


FAILING = {
    "n + n": (2**62, "overflow"),
    "100 / n": (0, "division by zero"),
    "100 % n": (0, "division by zero"),
    "100 div n": (0, "divide by zero"),
    "CAST(n AS TINYINT)": (128, "not in range"),
    "CAST(CAST(n AS STRING) AS TINYINT)": (300, "Failed to parse|out of range|does not fit"),
    "-n": (-(2**63), "overflow"),
}


@pytest.mark.parametrize("text", FAILING)
def test_a_value_without_a_result_ends_the_run_with_its_row(text: str) -> None:
    value, why = FAILING[text]
    rows = [(f"row {i}", value if i == 13 else 1, 0.0) for i in range(20)]
    topology = TridentTopology()
    topology.newStream("rows", FixedBatchSpout(TYPED, 20, *rows)).each(expr(text, "word"), ["out", "w"])
    with LocalCluster() as cluster, pytest.raises(TopologyError, match=why) as caught:
        cluster.submitTopology("expressions", {}, topology.build()).awaitTermination(60)
    assert f"n={value}" in str(caught.value) and "word='row 13'" in str(caught.value)
    assert f"in each expr(\"{text}, word\"), txid 1, partition 0" in str(caught.value)


def test_what_fails_is_not_computed_where_it_is_not_needed() -> None:
    rows = [("12", 0, 1.0), ("x", 5, 1.0), (None, None, None)]
    texts = {
        "CASE WHEN n <> 0 THEN 10 / n ELSE 0D END": [0.0, 2.0, 0.0],
        "if(n = 0, NULL, 10 div n)": [None, 2, None],
        "n <> 0 AND 10 / n > 1": [False, True, None],
        "n = 0 OR 10 / n > 1": [True, True, None],
        "coalesce(x, 10 / n)": [1.0, 1.0, None],
        "CASE WHEN n = 0 THEN CAST(word AS INT) END": [12, None, None],
        "CAST(NULL AS INT) + 10 % n": [None, None, None],
    }
    for text, expected in texts.items():
        assert [value for (value,) in run(lambda s, text=text: s.map(expr(text), "o"), rows)] == expected, text


def test_explain_shows_the_expression() -> None:
    topology = TridentTopology()
    made = topology.newStream("rows", FixedBatchSpout(TYPED, 2, *ROWS)).filter(expr("n > 0"))
    made.each(expr("upper(word)"), "w")
    assert '#1 filter expr("n > 0") <- #0' in topology.explain()
    assert '#2 each expr("upper(word)") <- #1: [word string, n bigint, x double, w string]' in topology.explain()


def test_an_expression_is_deterministic_and_travels_without_its_parser() -> None:
    operation = expr("upper(word) AS w, n + 1.5D, DATE '2024-01-02', CASE WHEN n IN (1, NULL) THEN 'it\\'s' END")
    assert judge(operation).deterministic
    assert pickle.loads(pickle.dumps(operation)) == operation != expr("n")
    assert b"sqlglot" not in pickle.dumps(operation)


def test_without_the_parser_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(parser.importlib, "import_module", missing)
    with pytest.raises(DefinitionError, match=r"expr needs sqlglot: pip install 'trident-py\[sql\]'"):
        expr("n")
    monkeypatch.undo()
    assert importlib.import_module("sqlglot") is not None


def test_an_expression_answers_drpc_requests() -> None:
    drpc, topology = LocalDRPC(), TridentTopology()
    topology.newDRPCStream("shout", drpc).map(expr("upper(args) AS w, length(args) AS l"))
    with LocalCluster() as cluster:
        cluster.submitTopology("expressions", {}, topology.build())
        assert drpc.execute("shout", "abc") == [["ABC", 3]]


SHOWN = ["n + 1", "NOT (n = 1)", "CASE WHEN n > 1 THEN 'a' ELSE NULL END", "CAST(n AS INT)", "word LIKE 'a'",
         "n IN (1, NULL)", "word IS NULL", "DATE '2024-01-02'", "upper(word)"]  # fmt: skip


@pytest.mark.parametrize("text", SHOWN)
def test_errors_show_a_call_as_it_is_written(text: str) -> None:
    assert str(expr(text).parts[0].tree) == text
    assert expr(str(expr(text).parts[0].tree)).parts == expr(text).parts


def test_an_expression_reads_only_the_fields_that_it_names() -> None:
    operation = expr("upper(word), length(word) + n")
    assert operation.reads(TYPED) == Fields("word string", "n bigint")
    upper, length = operation(pa.array(["ab"]), pa.array([1]))
    assert (upper.to_pylist(), length.to_pylist()) == (["AB"], [3])
