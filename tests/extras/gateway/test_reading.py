"""Reading a body: events keep their own bytes, and no two different ones become one."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trident_py.extras.gateway.canonical import EventError, canonical
from trident_py.extras.gateway.event_reader import events_of, value_of
from trident_py.extras.gateway.fingerprints import Fingerprint, instant
from trident_py.extras.gateway.linter import read

SPACE = st.text(" \t\r\n", max_size=3)
DIGITS = st.text("0123456789", max_size=25)
NUMBER_TEXTS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-"]),
    st.integers(0, 10**18) | st.sampled_from([0, 1, 2**53, 2**53 + 1, 2**63, 10**30]),
    st.just("") | DIGITS.filter(bool).map(lambda digits: f".{digits}"),
    st.just("") | st.integers(-420, 300).map(lambda exponent: f"e{exponent}") | st.sampled_from(["E0", "e+0", "E-00"]),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4).map(json.dumps)
VALUES = st.recursive(
    NUMBER_TEXTS | TEXTS | st.sampled_from(["true", "false", "null"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: f"[{','.join(parts)}]")
        | st.dictionaries(TEXTS, inner, max_size=3).map(
            lambda parts: f"{{{','.join(f'{k}:{v}' for k, v in parts.items())}}}"
        )
    ),
    max_leaves=5,
)


def refused_or_text(text: str) -> bytes | None:
    try:
        return canonical(value_of(text))
    except EventError:
        return None


def meant(text: str) -> tuple[bool, Decimal] | None:
    """The number to its last digit, and whether it is written with a fraction or an exponent; None: -0 or too large."""
    number = Decimal(text)
    whole = text.lstrip("-").isdigit()
    if (number == 0 and text.startswith("-")) or (not whole and abs(float(number)) == float("inf")):
        return None
    return whole, number


@given(NUMBER_TEXTS, NUMBER_TEXTS)
def test_two_numbers_have_one_encoding_exactly_if_they_are_equal_to_the_last_digit(one: str, other: str) -> None:
    encoded = refused_or_text(one), refused_or_text(other)
    assert [each is None for each in encoded] == [meant(each) is None for each in (one, other)]
    if None not in encoded:
        assert (encoded[0] == encoded[1]) == (meant(one) == meant(other))


@given(NUMBER_TEXTS, st.integers(0, 40), st.integers(0, 9))
def test_no_digit_is_too_far_behind_to_count(text: str, where: int, digit: int) -> None:
    at = where % len(text)
    other = f"{text[:at]}{digit}{text[at + 1 :]}"
    try:
        there = refused_or_text(other)
    except ValueError:
        return  # no number any more
    if there is not None and refused_or_text(text) is not None:
        assert (there == refused_or_text(text)) == (meant(text) == meant(other))


@given(NUMBER_TEXTS)
def test_an_encoded_number_says_the_same_number(text: str) -> None:
    found = refused_or_text(text)
    assert found is None or Decimal(found.decode()) == Decimal(text)


@given(VALUES, SPACE, SPACE)
def test_an_event_keeps_its_bytes(text: str, before: str, behind: str) -> None:
    found, single = events_of(f"{before}{text}{behind}".encode())
    if single:
        assert [each.text.decode() for each in found] == [text]


@given(st.lists(st.tuples(SPACE, VALUES, SPACE), max_size=4), SPACE)
def test_the_events_of_an_array_keep_their_bytes(events: list[tuple[str, str, str]], space: str) -> None:
    body = f"{space}[{','.join(map(''.join, events)) or space}]{space}"
    found, single = events_of(body.encode())
    assert ([each.text.decode() for each in found], single) == ([text for _, text, _ in events], False)


@given(st.text('[]{}",:-+.eE019 \\u', max_size=12))
def test_what_json_refuses_is_refused_and_nothing_else(text: str) -> None:
    def read(how: Any) -> Any:
        try:
            return how(text)
        except ValueError:
            return ValueError

    def all_of(text: str) -> Any:
        found, single = events_of(text.encode())
        return found[0].value if single else [each.value for each in found]

    def plain(text: str) -> Any:
        return json.loads(text, parse_constant=lambda name: 1 / 0)

    assert (read(plain) is ValueError) == (read(all_of) is ValueError)


@pytest.mark.parametrize("body", [b"\xff\xfe{\x00}\x00", b'"\xed\xa0\x80"', b'{"a": NaN}', b"[1,]", b"[1", b"[1 2]"])
def test_a_body_that_is_no_json_in_utf_8_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):
        events_of(body)


def test_the_largest_and_smallest_exponents_are_refused_or_exact() -> None:
    assert canonical(value_of("1e-999999999")) == b"1e-999999999"
    with pytest.raises(ValueError, match="exponent"):
        value_of("1e-99999999999999999999999")
    with pytest.raises(EventError, match="is inf"):
        canonical(value_of("1e99999999999999999999999"))


@pytest.mark.parametrize("text, told", [
    ('{"a": 1, "a": 1}', "the event has the key 'a' twice"),
    ('{"b": {"a": 1, "\\u0061": 2}}', "field 'b' has the key 'a' twice"),
    ('{"b": [1, {"a": null, "a": 1.5}]}', r"field 'b\[1\]' has the key 'a' twice"),
])  # fmt: skip
def test_a_key_that_comes_twice_is_refused_with_its_place(text: str, told: str) -> None:
    with pytest.raises(EventError, match=told):
        canonical(value_of(text))


def test_an_object_with_many_keys_of_which_one_comes_twice_is_refused_at_once() -> None:
    text = "{" + ",".join(f'"{n}":0' for n in range(50_000)) + ',"49999":0}'
    with pytest.raises(EventError, match="key '49999' twice"):
        canonical(value_of(text))


@pytest.mark.parametrize("one, other", [
    (value_of("1700000000.123456701"), value_of("1700000000.123456702")),
    (value_of("1e-400"), 0),
    ("2013-11-03T06:00:00.1234567Z", "2013-11-03T06:00:00.123456Z"),
    ("2013-11-03T06:00:00,123456789Z", "2013-11-03T06:00:00.123456788Z"),
])  # fmt: skip
def test_two_instants_are_one_only_if_they_are_equal_to_the_last_digit(one: Any, other: Any) -> None:
    assert instant(one, "at") != instant(other, "at")
    assert instant(one, "at", 60) == instant(other, "at", 60)


def test_one_instant_has_one_text_behind_the_microsecond_too() -> None:
    texts = {
        instant("2013-11-03T06:00:00.123456700Z", "at"), instant("2013-11-03T07:00:00.1234567+01:00", "at"),
        instant(Decimal("1383458400.1234567"), "at"), instant(value_of("1383458400.12345670000000000000"), "at"),
    }  # fmt: skip
    assert texts == {"20131103T060000.1234567Z"}
    assert instant(Decimal("-0.0000001"), "at") == "19691231T235959.9999999Z"


def test_the_linter_sees_what_the_gateway_sees(tmp_path: Any) -> None:
    sample = tmp_path / "sample.jsonl"
    sample.write_text('{"a": 9007199254740993.0}\n{"a": 9007199254740992.0}\n')
    first, other = (Fingerprint().of(each) for each in read(sample))
    assert first != other
