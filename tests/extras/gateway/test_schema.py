"""What a sensor is told of an event that is none: the field, what was found there, what is wanted. In words of ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trident_py.extras.gateway.event_reader import value_of
from trident_py.extras.gateway.examination import _KINDS, SHOWN, Schema
from trident_py.extras.gateway.settings import EventSettings

VALUES = ["null", "true", "1", "1.5", "1e400", "123456789012345678901234567890", '"x"', '"\\ud800"', "[1]", '{"a": 1}']
FITTING = {
    "string": {'"x"', '"\\ud800"'}, "boolean": {"true"}, "array": {"[1]"},
    "integer": {"1", "123456789012345678901234567890"},
    "number": {"1", "1.5", "1e400", "123456789012345678901234567890"}, "object": {'{"a": 1}'}, "any": {*VALUES},
}  # fmt: skip


def told(settings: dict[str, Any], event: str) -> str | None:
    return Schema(EventSettings(**settings)).problem(value_of(event))


@pytest.mark.parametrize("part", ["required", "optional"])
@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("value", VALUES)
def test_every_value_in_a_field_of_every_type_is_right_or_told_in_our_words(part: str, kind: str, value: str) -> None:
    said = told({part: {"f": kind}}, f'{{"f": {value}}}')
    if value in FITTING[kind] or (value == "null" and part == "optional"):
        assert said is None
    else:
        assert said is not None and said.startswith("f: found ") and "; expected " in said
        assert not any(word in said for word in ("nput", "valid", "dictionary", "list", "bool", "parse"))


def test_a_missing_field_is_told_with_all_that_an_event_needs() -> None:
    said = told({"required": {"sensor": "string", "number": "integer"}}, '{"number": 1}')
    assert said == "sensor: is missing; an event needs: sensor, number"


def test_an_unknown_field_is_told_with_those_that_there_are() -> None:
    settings = {"required": {"sensor": "string"}, "optional": {"celsius": "number"}, "others": "refuse"}
    said = told(settings, '{"sensor": "a", "celcius": 1}')
    assert said == "celcius: an event has no such field; it has: sensor, celsius. Did you mean celsius?"


def test_many_problems_are_told_up_to_a_limit() -> None:
    names = [f"f{number}" for number in range(SHOWN + 2)]
    said = told({"required": dict.fromkeys(names, "integer")}, json.dumps(dict.fromkeys(names, "secret")))
    assert said is not None and said.endswith("; and 2 more") and "secret" not in said
