"""Numbers in JSON, as the libraries of Java read them."""

from __future__ import annotations

import math

import pytest

from trident_py.extras.moving import java


@pytest.mark.parametrize(
    ("text", "whole", "double", "truth"),
    [
        ('"12.7"', 12, 12.7, False), ('" 12 "', 12, 12.0, False), ('"+5"', 5, 5.0, False), ('"1e3"', 1000, 1e3, False),
        ('"1_000"', 7, 7.5, False), ('"nan"', 7, 7.5, False), ('"99999999999"', 7, 99999999999.0, False),
        ('"-Infinity"', -(2**31), -math.inf, False), ('" true "', 7, 7.5, True), ("0.5", 0, 0.5, False),
        ("true", 1, 1.0, True), ("[1]", 7, 7.5, False),
    ],
)  # fmt: skip
def test_jackson_reads_numbers_of_texts_as_in_java(text: str, whole: int, double: float, truth: bool) -> None:
    """What Jackson 2.20 has read. The typed getters take numbers alone."""
    node = java.ObjectMapper().readTree(text)
    assert (node.asInt(7), node.asDouble(7.5), node.asBoolean()) == (whole, double, truth)
    assert (node.intValue(), node.doubleValue()) == ((0, 0.5) if text == "0.5" else (0, 0.0))


@pytest.mark.parametrize("text", ['{"v": NaN}', "[-Infinity]", "01", "1x", "[" * 100_000])
def test_jackson_refuses_what_is_no_json(text: str) -> None:
    with pytest.raises(java.JsonProcessingError):
        java.ObjectMapper().readTree(text)
    assert str(java.ObjectMapper().readTree(' {"v": 1}\0x')) == '{"v":1}'  # what follows is not looked at


def test_org_json_reads_numbers_of_texts_as_in_java() -> None:
    """What org.json 20250517 has read."""
    found = java.OrgJSONObject.parse('{"id": "9007199254740993", "half": "12.7", "far": "Infinity", "yes": "TRUE"}')
    assert (found.getLong("id"), found.optLong("id"), found.optInt("half")) == (9007199254740993, 9007199254740993, 12)
    assert (found.optInt("id"), found.optInt("far", 7), found.optDouble("half", 0.0)) == (1, 7, 12.7)
    assert (found.optBoolean("yes"), found.optBoolean("half", True), found.getDouble("far")) == (True, True, math.inf)
    for get in (lambda: found.getInt("id"), lambda: found.getInt("half"), lambda: found.getLong("far")):
        with pytest.raises(java.JSONError, match="is not a"):
            get()
