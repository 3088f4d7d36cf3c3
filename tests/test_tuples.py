"""Fields, tuples and the identity of values."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from states.columns.values import _FAMILIES
from trident_py import DefinitionError, Fields, TransactionAttempt, TridentError, TridentTuple, Values
from trident_py.model.canonical import identity, key_of
from trident_py.model.chunks import _DDL
from trident_py.tuples import MISSING, TYPES

GUIDE = (Path(__file__).parent.parent / "docs" / "porting_classes.md").read_text()
NAMES = st.text("ab `.,date()<>") | st.text() | st.sampled_from([*TYPES, "birth date", "a map<b>"])


def test_fields_are_an_ordered_list_of_distinct_names() -> None:
    fields = Fields("a", "b", "c")
    assert (len(fields), list(fields), fields[1], "b" in fields, fields.index("c")) == (
        3,
        ["a", "b", "c"],
        "b",
        True,
        2,
    )
    assert (fields.get(0), fields.size(), fields.toList(), str(fields)) == ("a", 3, ["a", "b", "c"], "[a, b, c]")
    with pytest.raises(DefinitionError, match="duplicate field 'a'"):
        Fields("a", "b", "a")


def test_a_field_may_have_a_type() -> None:
    fields = Fields("word STRING", "price decimal(10, 2)", "any")
    assert fields.names == ("word", "price", "any")
    assert fields.types == {"word": "string", "price": "decimal(10, 2)"}
    assert fields != Fields("word", "price", "any")


@pytest.mark.parametrize("given", ["a", ["a"], ("a",), Fields("a")])
def test_fields_of_takes_whatever_stands_for_fields(given: Any) -> None:
    assert Fields.of(given) == Fields("a")


def test_none_stands_for_no_fields_never_for_all() -> None:
    assert Fields.of(None) == Fields() and len(Fields.of(None)) == 0


@pytest.mark.parametrize("name", [1, None])
def test_a_field_is_named_by_a_string(name: Any) -> None:
    with pytest.raises(DefinitionError, match="must be a string"):
        Fields("a", name)


@given(st.lists(st.tuples(NAMES, st.sampled_from(["", *TYPES, "decimal(10, 2)"])), unique_by=lambda pair: pair[0]))
def test_any_text_names_a_field_and_keeps_its_type(pairs: list[tuple[str, str]]) -> None:
    fields = Fields.of_names([name for name, _ in pairs], dict(pairs))
    assert list(fields) == [name for name, _ in pairs] and fields.types == {n: ddl for n, ddl in pairs if ddl}
    assert Fields(fields.declarations()) == pickle.loads(pickle.dumps(fields)) == fields
    assert Fields.of_columns(fields.declarations()) == fields


@pytest.mark.parametrize("name", ["", " ", "first name", " a", "a.b", ".", "site map", "decimal", "a date b"])
def test_a_name_that_storm_takes_is_that_name(name: str) -> None:
    assert Fields(name).names == (name,) and not Fields(name).types


def test_a_name_in_backquotes_is_read_as_it_stands() -> None:
    declared = Fields("`birth date`", "`a,b` int", "`a``b`")
    assert declared == Fields.of_names(["birth date", "a,b", "a`b"], {"a,b": "int"})
    assert Fields("birth date", "m map<string, array<int>>").types == {"birth": "date", "m": "map<string, array<int>>"}


def test_every_type_of_a_field_or_a_column_can_be_declared() -> None:
    assert {*_DDL, *_FAMILIES, "decimal"} == set(TYPES)


def test_an_unknown_field_is_named_with_those_that_exist() -> None:
    with pytest.raises(DefinitionError, match=r"x does not exist; the fields are \[a, b\]"):
        Fields("a", "b").fieldIndex("x")


def test_fields_are_concatenated_selected_and_subtracted_with_their_types() -> None:
    fields = Fields("a int", "b")
    assert fields.concat(Fields("c string")) == Fields("a int", "b", "c string")
    assert fields.only(["b", "a"]) == Fields("b", "a int")
    assert fields.without(["b"]) == Fields("a int")
    with pytest.raises(DefinitionError, match="duplicate field 'a'"):
        fields.concat(Fields("a"))


def test_fields_cannot_be_changed_and_survive_pickling() -> None:
    fields = Fields("a int", "b")
    with pytest.raises(AttributeError, match="Fields are immutable"):
        fields.names = ()
    assert pickle.loads(pickle.dumps(fields)) == fields
    assert hash(fields) == hash(Fields("a int", "b"))


def test_a_tuple_is_its_values() -> None:
    made = TridentTuple.of(["a", "b"], [1, "x"])
    assert made == (1, "x") and made == [1, "x"] and made != (1, "y") and made != [2, "x"]
    assert (len(made), made.size(), made[0], made[-1], list(made), made[:1]) == (2, 2, 1, "x", [1, "x"], (1,))
    assert hash(made) == hash((1, "x")) and made.getValues() == made
    assert pickle.loads(pickle.dumps(made)).getValueByField("b") == "x"


def test_a_tuple_is_read_as_a_list_of_java() -> None:
    made = TridentTuple.of(["a", "b", "c"], [1, None, 1])
    assert (made.get(0), made.get(1), made.isEmpty(), TridentTuple.EMPTY_TUPLE.isEmpty()) == (1, None, False, True)
    assert [made.indexOf(value) for value in (1, None, True, 1.0, "1")] == [0, 1, -1, -1, -1]
    assert [made.lastIndexOf(value) for value in (1, None, True)] == [2, 1, -1]
    assert (made.toArray(), made.subList(1, 3), list(made)) == ([1, None, 1], [None, 1], [1, None, 1])
    with pytest.raises(IndexError):
        made.get(3)


def test_the_guide_promises_no_method_of_tuples_and_fields_that_is_missing() -> None:
    section = GUIDE.partition("## Tuples, Fields, Values")[2].partition("\n## ")[0]
    rows = [row.split("|")[1:3] for row in section.splitlines() if row.startswith("| `")]
    same = {name for names, here in rows if here.strip().startswith("the same")
            for name in re.findall(r"`(?:\w+\.)?([A-Za-z_]\w*)(?:\([^`]*\))?`", names)}  # fmt: skip
    assert len(same) > 30
    assert not [name for name in same if not hasattr(TridentTuple, name) and not hasattr(Fields, name)]


def test_a_tuple_knows_its_fields() -> None:
    made = TridentTuple.of(["a", "b"], [1, "x"])
    assert (made.getFields(), made.contains("a"), made.contains("c"), made.fieldIndex("b")) == (
        Fields("a", "b"),
        True,
        False,
        1,
    )
    assert made.select(["b", "a"]) == ("x", 1) and made.select("b").getStringByField("b") == "x"


def test_of_wants_as_many_values_as_fields() -> None:
    with pytest.raises(DefinitionError, match="1 values for 2 fields"):
        TridentTuple.of(["a", "b"], [1])


VALUES = {
    "Long": 1,
    "Integer": 1,
    "Short": 1,
    "Byte": 1,
    "Double": 1.5,
    "Float": 1.5,
    "String": "x",
    "Boolean": True,
    "Binary": b"x",
}


@pytest.mark.parametrize("kind", VALUES)
def test_s19_an_accessor_gives_the_value_by_index_and_by_field_and_null_as_null(kind: str) -> None:
    made = TridentTuple.of(["a", "n"], [VALUES[kind], None])
    assert getattr(made, f"get{kind}")(0) == getattr(made, f"get{kind}ByField")("a") == VALUES[kind]
    assert getattr(made, f"get{kind}")(1) is None


@pytest.mark.parametrize(("kind", "value"), [("Long", 1.0), ("Long", True), ("Long", "1"), ("Double", 1), ("String", 1),
                                             ("Boolean", 1), ("Binary", "x")])  # fmt: skip
def test_s19_an_accessor_never_converts(kind: str, value: Any) -> None:
    made = TridentTuple.of("a", [value])
    with pytest.raises(TridentError, match=f"get{kind}: 'a' holds"):
        getattr(made, f"get{kind}ByField")("a")


def test_s19_an_unknown_field_of_a_tuple_is_an_error_that_lists_the_fields() -> None:
    made = TridentTuple.of("a", [1])
    for call in (lambda: made.getValueByField("x"), lambda: made.getLongByField("x"), lambda: made.select("x")):
        with pytest.raises(DefinitionError, match=r"x does not exist; the fields are \[a\]"):
            call()


def test_values_is_a_tuple_of_values() -> None:
    assert Values(1, None) == (1, None) and Values(None) == (None,)


def test_an_attempt_is_its_txid_and_its_number() -> None:
    attempt = TransactionAttempt(3, 1)
    assert (attempt.getTransactionId(), attempt.getAttemptId(), attempt.getId(), str(attempt)) == (3, 1, 3, "3:1")
    assert attempt == TransactionAttempt(3, 1) != TransactionAttempt(3, 2)


DISTINCT: list[Any] = [
    1,
    1.0,
    True,
    "1",
    b"1",
    None,
    0.0,
    -0.0,
    float("nan"),
    (1,),
    (1.0,),
    frozenset([1]),
    {"a": 1},
    {"a": 1.0},
]


def test_s29_values_that_java_tells_apart_have_different_identities() -> None:
    assert len({identity(value) for value in DISTINCT}) == len(DISTINCT)


@pytest.mark.parametrize(
    ("one", "other"),
    [(float("nan"), -float("nan")), ([1, "a"], (1, "a")), ([[1]], ((1,),)), ({1: "a", 2: "b"}, {2: "b", 1: "a"}),
     ({1, 2}, frozenset([2, 1])), (bytearray(b"x"), bytearray(b"x"))],
)  # fmt: skip
def test_values_that_java_holds_equal_have_one_identity(one: Any, other: Any) -> None:
    assert identity(one) == identity(other) and hash(identity(one)) == hash(identity(other))


def test_a_key_is_made_of_identities() -> None:
    assert key_of(["a", 1]) == ("a", 1)
    assert len({key_of([value, "x"]) for value in DISTINCT}) == len(DISTINCT)


def test_missing_stays_one_object_through_pickling() -> None:
    assert pickle.loads(pickle.dumps(MISSING)) is MISSING


@pytest.mark.parametrize("field", ["a int, b string", "a,b", "a, b", "a decimal(10, 2), b int", "a struct<b:int>,c"])
def test_fields_in_one_string_are_refused(field: str) -> None:
    with pytest.raises(DefinitionError, match="is one string, and so one field"):
        Fields(field)


@pytest.mark.parametrize("kind", ["decimal(10, 2)", "struct<b:int,c:map<string,int>>", "map<string, array<int>>"])
def test_a_type_may_have_commas_in_its_brackets(kind: str) -> None:
    assert Fields(f"a {kind}").types == {"a": kind}
