"""Reads the body of a request: each event as the bytes that the sensor sent, and what they say, to the last digit.

A float would make 1700000000.123456701 and ...702 one number, and of a key that comes twice JSON's readers keep
one: two different events would be one.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from .canonical import Repeated

EXACT = 16  # characters of a number without exponent: at most 15 digits, which no float folds
_SPACE = re.compile(r"[ \t\n\r]*")


@dataclass(frozen=True, slots=True)
class Sent:
    """An event as it was sent: the value that it says, and its own bytes without the space around them."""

    value: Any
    text: bytes


def events_of(body: bytes) -> tuple[list[Sent], bool]:
    """The events of a body, and whether it is a single one and no array of events. ValueError if it is no JSON."""
    text = body.decode().removeprefix("\ufeff")
    start = _after_space(text, 0)
    if text[start : start + 1] == "[":
        return _elements(text, start + 1), False
    event, end = _event(text, start)
    _ended(text, end)
    return [event], True


def value_of(text: str) -> Any:
    """What a JSON text says, to the last digit. ValueError if it is none."""
    return _DECODER.decode(text)


def _elements(text: str, at: int) -> list[Sent]:
    at = _after_space(text, at)
    if text[at : at + 1] == "]":
        _ended(text, at + 1)
        return []
    found = []
    while True:
        event, at = _event(text, _after_space(text, at))
        found.append(event)
        at = _after_space(text, at)
        mark = text[at : at + 1]
        at += 1
        if mark == "]":
            _ended(text, at)
            return found
        if mark != ",":
            raise json.JSONDecodeError("Expecting ',' delimiter", text, at - 1)


def _event(text: str, start: int) -> tuple[Sent, int]:
    value, end = _DECODER.raw_decode(text, start)
    return Sent(value, text[start:end].encode()), end


def _ended(text: str, at: int) -> None:
    if (end := _after_space(text, at)) != len(text):
        raise json.JSONDecodeError("Extra data", text, end)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None  # it matches nothing too
    return found.end()


def _number(text: str) -> float | Decimal:
    """A number with a fraction or an exponent: a float if that is its value to the last digit."""
    near = float(text)
    if (len(text) <= EXACT and "e" not in text and "E" not in text) or math.isinf(near):
        return near
    try:
        exact = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"a number with the exponent of {text[:60]} is none that can be read") from None
    return near if Decimal(repr(near)) == exact else exact


def _whole(text: str) -> int | float:
    return -0.0 if text == "-0" else int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeated = Repeated(found)
    repeated.key = Counter(name for name, _ in pairs).most_common(1)[0][0]
    return repeated


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


_DECODER = json.JSONDecoder(
    parse_float=_number, parse_int=_whole, parse_constant=_no_constant, object_pairs_hook=_object
)
