"""One operation in three forms, a plain callable, `vectorized` and `expr`: the same values, types and tuples."""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_py import Fields, LocalCluster, TopologyError, TridentTopology
from trident_py.operations import expr, vectorized
from trident_py.testing import FixedBatchSpout, collect

TYPED = Fields("w string", "v string", "n bigint", "m bigint", "x double", "y double", "b boolean", "d date")
UNTYPED = Fields(TYPED.names)
# Letters with one upper case each: kernels map letter by letter (docs/expressions.md).
TEXT = st.text(st.sampled_from(" aAbz%_\\\n.éÉüñωЖж日🙂"), max_size=6)
WHOLE = st.sampled_from([0, 1, -1, 7, -7, 2**63 - 1, -(2**63), 2**53 + 1]) | st.integers(-(2**63), 2**63 - 1)
FLOAT = st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1e308]) | st.floats()
DAY = st.dates()


# A topology of a hundred steps takes a while to start, so a few examples have many rows.
FEW = settings(max_examples=max(3, settings().max_examples // 16))


def nullable(values: Any) -> Any:
    return st.none() | values


ROW = st.tuples(*map(nullable, (TEXT, TEXT, WHOLE, WHOLE, FLOAT, FLOAT, st.booleans(), DAY)))


def null_if_any(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: [None if any(value is None for value in values) else function(*values)]


class Form(NamedTuple):
    inputs: str
    output: str
    plain: Callable[..., Any]
    arrays: Callable[..., Any]
    sql: str


def remainder(n: int) -> int:
    return int(math.copysign(1, n)) * (abs(n) % 7)


def both(n: int | None, b: bool | None) -> list[bool | None]:
    above = None if n is None else n > 0
    return [False] if above is False or b is False else [None] if above is None or b is None else [True]


def above(x: float, y: float) -> bool:
    return (x != x and y == y) or x > y


def arrow_above(x: pa.Array, y: pa.Array) -> pa.Array:
    return pc.or_(pc.greater(x, y), pc.and_not(pc.is_nan(x), pc.is_nan(y)))


def int32(array: pa.Array) -> pa.Array:
    return pc.cast(array, pa.int32())


FORMS = {
    "upper": Form("w", "string", null_if_any(str.upper), pc.utf8_upper, "upper(w)"),
    "lower": Form("w", "string", null_if_any(str.lower), pc.utf8_lower, "lower(w)"),
    "length": Form("w", "int", null_if_any(len), pc.utf8_length, "length(w)"),
    "trim": Form("w", "string", null_if_any(lambda w: w.strip(" ")), lambda w: pc.utf8_trim(w, " "), "trim(w)"),
    "substring": Form(
        "w", "string", null_if_any(lambda w: w[1:4]), lambda w: pc.utf8_slice_codeunits(w, 1, 4), "substring(w, 2, 3)"
    ),
    "concat": Form(
        "w v", "string", null_if_any(lambda w, v: f"{w}-{v}"),
        lambda w, v: pc.binary_join_element_wise(w, v, "-"), "concat(w, '-', v)",
    ),
    "replace": Form(
        "w", "string", null_if_any(lambda w: w.replace("a", "bb")),
        lambda w: pc.replace_substring(w, "a", "bb"), "replace(w, 'a', 'bb')",
    ),
    "starts": Form("w", "boolean", null_if_any(lambda w: w.startswith("a")), lambda w: pc.starts_with(w, "a"),
                   "startswith(w, 'a')"),
    "like": Form("w", "boolean", null_if_any(lambda w: w[1:2] == "%"),
                 lambda w: pc.equal(pc.utf8_slice_codeunits(w, 1, 2), "%"), r"w LIKE '_\\%%'"),
    "remainder": Form("n", "bigint", null_if_any(remainder),
                      lambda n: pc.subtract(n, pc.multiply(pc.divide(n, 7), 7)), "n % 7"),
    "quotient": Form("n", "bigint", null_if_any(lambda n: (n - remainder(n)) // 7),
                     lambda n: pc.divide(n, 7), "n div 7"),
    "sum": Form("n m", "bigint", null_if_any(lambda n, m: (n >> 1) + (m >> 1)),
                lambda n, m: pc.add(pc.shift_right(n, 1), pc.shift_right(m, 1)),
                "if(n % 2 < 0, n div 2 - 1, n div 2) + CAST(if(m % 2 < 0, m div 2 - 1, m div 2) AS BIGINT)"),
    "product": Form("x y", "double", null_if_any(lambda x, y: x * 2.5 - y),
                    lambda x, y: pc.subtract(pc.multiply(x, 2.5), y), "x * 2.5 - y"),
    "quarter": Form("x", "double", null_if_any(lambda x: x / 4), lambda x: pc.divide(x, 4.0), "x / 4"),
    "of a number": Form("n", "double", null_if_any(lambda n: float(n) / 3),
                        lambda n: pc.divide(pc.cast(n, pa.float64(), safe=False), 3.0),
                        "n / 3"),
    "root": Form("x", "double", null_if_any(lambda x: math.sqrt(abs(x))), lambda x: pc.sqrt(pc.abs(x)), "sqrt(abs(x))"),
    "above": Form("x y", "boolean", null_if_any(above), arrow_above, "x > y"),
    "equal": Form("x y", "boolean", null_if_any(lambda x, y: x == y or (x != x and y != y)),
                  lambda x, y: pc.or_(pc.equal(x, y), pc.and_(pc.is_nan(x), pc.is_nan(y))), "x = y"),
    "and": Form("n b", "boolean", both, lambda n, b: pc.and_kleene(pc.greater(n, 0), b), "n > 0 AND b"),
    "in": Form("n", "boolean", null_if_any(lambda n: n in (0, 1, 7)),
               lambda n: pc.or_(pc.and_(pc.greater_equal(n, 0), pc.less_equal(n, 1)), pc.equal(n, 7)),
               "n IN (0, 1, 7)"),
    "between": Form("n", "boolean", null_if_any(lambda n: -7 <= n <= 7),
                    lambda n: pc.and_(pc.greater_equal(n, -7), pc.less_equal(n, 7)), "n BETWEEN -7 AND 7"),
    "known": Form("w", "boolean", lambda w: [w is not None], pc.is_valid, "w IS NOT NULL"),
    "first": Form("w v", "string", lambda w, v: [w if w is not None else v if v is not None else "none"],
                  lambda w, v: pc.coalesce(w, v, "none"), "coalesce(w, v, 'none')"),
    "case": Form("x b", "double", lambda x, b: [x if b else None if b is None else 0.0],
                 lambda x, b: pc.if_else(b, x, 0.0), "CASE WHEN b THEN x WHEN NOT b THEN 0D END"),
    "year": Form("d", "int", null_if_any(lambda d: d.year), pc.year, "year(d)"),
    "text": Form("n", "string", null_if_any(str), lambda n: pc.cast(n, pa.string()), "CAST(n AS STRING)"),
    "number": Form("b", "int", null_if_any(int), int32, "CAST(b AS INT)"),
}  # fmt: skip


def exact(value: Any) -> Any:
    """The value with its type; a float by its bits, NaN as one."""
    return struct.pack(">d", value if value == value else math.nan) if type(value) is float else (type(value), value)


def collected(define: Callable[[Any], Any], rows: list[tuple], fields: Fields, size: int, names: list[str]) -> list:
    """The rows of each named stream, over all batches."""
    topology = TridentTopology()
    define(topology.newStream("rows", FixedBatchSpout(fields, size, *rows)))
    with LocalCluster() as cluster:
        running = cluster.submitTopology("forms", {}, topology.build())
        assert running.awaitTermination(60)
        return [[row for _, batch in sorted(running.collected(name).items()) for row in batch] for name in names]


def three_forms(stream: Any, declared: bool) -> Any:
    """Each operation in three forms, beside each other."""
    for name, form in FORMS.items():
        kinds = [f"{name.replace(' ', '_')}{n}{f' {form.output}' if declared else ''}" for n in range(3)]
        inputs = form.inputs.split()
        stream = stream.each(inputs, form.plain, kinds[0])
        stream = stream.each(inputs, vectorized(form.arrays), kinds[1]).each(inputs, expr(form.sql), kinds[2])
    return collect(stream, "out")


def check_rows(rows: list[tuple], fields: Fields, size: int, declared: bool = True) -> None:
    (found,) = collected(lambda stream: three_forms(stream, declared), rows, fields, size, ["out"])
    assert len(found) == len(rows)
    for row in found:
        for at, name in enumerate(FORMS):
            plain, arrays, sql = map(exact, row[len(fields) + 3 * at :][:3])
            assert plain == arrays == sql, (name, row[: len(fields)])


@FEW
@given(st.lists(ROW, min_size=1, max_size=60), st.integers(1, 25))
def test_three_forms_of_a_function_give_the_same_values_and_types(rows: list[tuple], size: int) -> None:
    check_rows(rows, TYPED, size, declared=len(rows) % 2 == 0)


SAMPLE = ("a", " Éa%b ", 7, -(2**63), -0.0, math.nan, True, datetime.date(2024, 2, 29))


@FEW
@given(st.lists(st.tuples(TEXT, TEXT, WHOLE, WHOLE, FLOAT, FLOAT, st.booleans(), DAY), min_size=1, max_size=60))
def test_three_forms_agree_on_untyped_fields(rows: list[tuple]) -> None:
    """A date has no Arrow form among untyped values, so the date is typed."""
    fields = Fields([name if name != "d" else "d date" for name in UNTYPED])
    check_rows(rows, fields, 3, declared=False)


def test_three_forms_agree_over_the_borders_of_chunks() -> None:
    rows = [(f"a{i}", None if i % 3 else "b", i, -i, i / 7, -0.0, i % 2 == 0, SAMPLE[-1]) for i in range(8_300)]
    check_rows(rows, TYPED, 8_300)


FILTERS = {
    "n > 0": (lambda n: n is not None and n > 0, lambda n: pc.greater(n, 0)),
    "NOT (n > 0)": (lambda n: n is not None and n <= 0, lambda n: pc.invert(pc.greater(n, 0))),
    "n IS NULL OR n % 2 = 0": (
        lambda n: n is None or n % 2 == 0,
        lambda n: pc.or_kleene(pc.is_null(n), pc.equal(pc.bit_wise_and(n, 1), 0)),
    ),
    "n IN (1, NULL)": (lambda n: n == 1, lambda n: pc.equal(n, 1)),
    "CAST(NULL AS BOOLEAN)": (lambda n: False, lambda n: pa.nulls(len(n), pa.bool_())),
    "true": (lambda n: True, lambda n: pa.repeat(True, len(n))),
}


@FEW
@given(st.lists(ROW, min_size=1, max_size=60), st.integers(1, 25))
def test_three_forms_of_a_filter_keep_the_same_tuples(rows: list[tuple], size: int) -> None:
    def define(stream: Any) -> None:
        for text, (plain, arrays) in FILTERS.items():
            for form, keep in (("plain", plain), ("arrays", vectorized(arrays))):
                collect(stream.filter("n", keep), f"{form} {text}")
            collect(stream.filter(expr(text)), f"expr {text}")
            none = stream.filter(expr("n < 0")).filter(expr("n > 0"))
            collect(none.each("w", expr("upper(w)"), "e"), f"empty {text}")

    names = [f"{form} {text}" for text in FILTERS for form in ("plain", "arrays", "expr", "empty")]
    found = dict(zip(names, collected(define, rows, TYPED, size, names), strict=True))
    for text in FILTERS:
        plain, arrays, sql, empty = (found[f"{form} {text}"] for form in ("plain", "arrays", "expr", "empty"))
        assert list(map(repr, plain)) == list(map(repr, arrays)) == list(map(repr, sql)) and empty == []
        assert all(FILTERS[text][0](row[2]) for row in plain)


@FEW
@given(st.lists(ROW, min_size=1, max_size=60))
def test_three_forms_of_a_map_give_the_same_tuples(rows: list[tuple]) -> None:
    outputs = Fields("w string", "l int", "n bigint")

    def define(stream: Any) -> None:
        read = stream.project(["w", "n"])
        plain = read.map(lambda t: [t[0] and t[0].upper(), None if t[0] is None else len(t[0]), t[1]], outputs)
        collect(plain, "plain")
        collect(read.map(vectorized(lambda w, n: (pc.utf8_upper(w), pc.utf8_length(w), n)), outputs), "arrays")
        collect(stream.map(expr("upper(w) AS w, length(w) AS l", "n")), "expr")

    plain, arrays, sql = collected(define, rows, TYPED, 2, ["plain", "arrays", "expr"])
    assert plain == arrays == sql == [(w and w.upper(), None if w is None else len(w), n) for w, _, n, *_ in rows]


@pytest.mark.parametrize("form", ["plain", "arrays", "expr"])
def test_no_form_lets_a_number_overflow(form: str) -> None:
    arrays = vectorized(lambda n: pc.add_checked(n, 1))
    add: Any = {"plain": lambda n: [n + 1], "arrays": arrays, "expr": expr("n + 1")}[form]
    with pytest.raises(TopologyError, match=r"overflow|too large|does not fit"):
        collected(lambda s: s.each("n", add, "o bigint"), [(1,), (2**63 - 1,)], Fields("n bigint"), 2, [])
