"""`expr` has Spark's results: every value, type and error of random expressions over random rows.

Two rules of Spark's optimizer change results (`CHANGING`); they are switched off.
"""

from __future__ import annotations

import random
import struct
import sys
import unicodedata
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from properties.sql_draft import CALLS, DDL, Draft, rows

from trident_py import Fields
from trident_py.extras.expressions.compiled import SqlValueError
from trident_py.operations import expr

pytestmark = pytest.mark.spark
INPUTS = Fields([declared.strip() for declared in DDL.split(",")])
EXCLUDED = "spark.sql.optimizer.excludedRules"
CHANGING = {
    "SimplifyCaseConversionExpressions": "lower(upper(w))",  # becomes lower(w): ß stays, in place of ss
    "SimplifyCasts": "CAST(CAST(n AS FLOAT) AS DOUBLE)",  # becomes CAST(n AS DOUBLE), without the float's rounding
}
AT_ONCE = 65_536


@pytest.fixture
def plain(spark: Any) -> Iterator[Any]:
    """The session, without the rules of the optimizer that change results."""
    rules = [f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in CHANGING]
    spark.conf.set(EXCLUDED, ",".join(rules))
    yield spark
    spark.conf.unset(EXCLUDED)


def shown(value: Any) -> Any:
    """A form that tells NaN and -0.0 apart from others."""
    return struct.pack(">d", value if value == value else float("nan")).hex() if isinstance(value, float) else value


def ours(text: str, table: pa.Table) -> tuple[str, dict[int, Any]]:
    """The type, and the values of the rows that have one."""
    operation = expr(text)
    fields = operation.reads(INPUTS)
    declared = operation.outputs(fields, Fields("out")).types.get("out", "void")
    try:
        arrays = [table.column(name).combine_chunks() for name in fields]
        (found,) = operation.columns(fields, arrays, table.num_rows)
        return declared, dict(enumerate(map(shown, found.to_pylist())))
    except SqlValueError:
        return declared, dict(one_by_one(text, table))


def one_by_one(text: str, table: pa.Table) -> Any:
    operation = expr(text)
    fields = operation.reads(INPUTS)
    for row in range(table.num_rows):
        try:
            cut = [table.column(name).slice(row, 1).combine_chunks() for name in fields]
            yield row, shown(operation.columns(fields, cut, 1)[0][0].as_py())
        except SqlValueError:
            pass


def disagreements(spark: Any, texts: list[str], table: pa.Table) -> list[str]:
    """The expressions with a type or a value that is not Spark's."""
    numbered = table.append_column("row", pa.array(range(table.num_rows), pa.int32()))
    frame = spark.createDataFrame(numbered).persist()
    found = []
    mine = {text: ours(text, table) for text in texts}
    columns = []
    for at, text in enumerate(texts):
        known = mine[text][1]
        right = len(known) == table.num_rows
        wanted = f"row IN ({', '.join(map(str, known))})" if known else "false"
        columns.append(f"{text} AS c{at}" if right else f"CASE WHEN {wanted} THEN {text} END AS c{at}")
    answer = frame.selectExpr(*columns)
    types = [field.dataType.simpleString() for field in answer.schema.fields]
    result = answer.toArrow()
    for at, text in enumerate(texts):
        declared, known = mine[text]
        theirs = [shown(value) for value in result.column(at).to_pylist()]
        if declared != types[at]:
            found.append(f"{text}: type {declared}, in Spark {types[at]}")
        for row, value in known.items():
            if value != theirs[row]:
                inputs = {name: table.column(name)[row].as_py() for name in expr(text).reads(INPUTS)}
                found.append(f"{text}: {value!r}, in Spark {theirs[row]!r}, with {inputs}")
                break
    frame.unpersist()
    return found


def failing(texts: list[str], table: pa.Table) -> list[tuple[str, int]]:
    """A row that fails here, for each expression that has one."""
    known = {text: ours(text, table)[1] for text in texts}
    rows_of = {text: [row for row in range(table.num_rows) if row not in known[text]] for text in texts}
    return [(text, missing[0]) for text, missing in rows_of.items() if missing]


def drawn(seed: int, count: int, depth: int) -> list[str]:
    draft = Draft(random.Random(seed))
    return [draft.make(kind, depth) for _ in range(count) for kind in CALLS]


def every_call(seed: int) -> list[str]:
    """Each call over plain fields and literals."""
    draft = Draft(random.Random(seed))
    return [make(draft, 0) for makers in CALLS.values() for make in makers for _ in range(3)]


def test_every_call_has_sparks_type_and_values(plain: Any) -> None:
    assert disagreements(plain, every_call(4), rows(random.Random(5), 60)) == []


def test_random_expressions_have_sparks_values(plain: Any) -> None:
    assert disagreements(plain, drawn(2, 12, 3), rows(random.Random(5), 60)) == []


def test_what_fails_here_fails_in_spark(spark: Any) -> None:
    table = rows(random.Random(3), 60)
    cases = failing(list(dict.fromkeys(every_call(3))), table)
    chosen = random.Random(3).sample(cases, min(12, len(cases)))
    assert len(chosen) == 12
    for text, row in chosen:
        one = spark.createDataFrame(table.slice(row, 1))
        with pytest.raises(Exception, match=r"OVERFLOW|BY_ZERO|CAST_INVALID|OUT_OF_RANGE"):
            one.selectExpr(f"{text} AS out").collect()


@pytest.mark.whole("test_random_expressions_have_sparks_values")
@pytest.mark.parametrize("seed", range(10, 30))
def test_more_random_expressions_have_sparks_values(plain: Any, seed: int) -> None:
    assert disagreements(plain, drawn(seed, 12, 4), rows(random.Random(seed), 60)) == []


@pytest.mark.whole("test_every_call_has_sparks_type_and_values")
@pytest.mark.parametrize("rule", CHANGING)
def test_sparks_optimizer_changes_the_results_of_two_expressions(spark: Any, plain: Any, rule: str) -> None:
    """What docs/expressions.md says; if a rule no longer does, it need not be switched off here."""
    table = pa.table({"w": ["straße"], "n": [2**31 + 1]})
    assert disagreements(plain, [CHANGING[rule]], table) == []
    spark.conf.unset(EXCLUDED)
    assert len(disagreements(spark, [CHANGING[rule]], table)) == 1


@pytest.mark.whole("test_every_call_has_sparks_type_and_values")
def test_every_letter_has_sparks_upper_and_lower_case(spark: Any) -> None:
    letters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    for at in range(0, len(letters), AT_ONCE):  # all at once would fill the heap of the session
        assert wrong_letters(spark, letters[at : at + AT_ONCE]) == []


def wrong_letters(spark: Any, letters: list[str]) -> list[tuple[Any, Any, Any]]:
    """Letter, our result, Spark's. ICU knows letters that this Python's Unicode does not have yet: those are left out.
    """
    frame = spark.createDataFrame(pa.table({"w": letters}))
    theirs = frame.selectExpr("w", "upper(w) AS u", "lower(w) AS l", "length(w) AS n").toArrow()
    operation = expr("w", "upper(w)", "lower(w)", "length(w)")
    mine = operation.columns(Fields("w string"), [theirs.column("w").combine_chunks()], len(letters))
    texts = theirs.column("w").to_pylist()
    wrong = []
    for number in (1, 2, 3):
        triples = zip(texts, mine[number].to_pylist(), theirs.column(number).to_pylist(), strict=True)
        wrong += [(text, here, there) for text, here, there in triples if here != there]
    return [case for case in wrong if all(unicodedata.category(c) != "Cn" for c in f"{case[0]}{case[2]}")]
