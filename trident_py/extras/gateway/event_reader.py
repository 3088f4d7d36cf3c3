"""Reads the body of a request: each event as the bytes that the sensor sent, and as a value exact to the last digit.

Floats would make 1700000000.123456701 and ...702 one number, and JSON readers keep only one of two equal keys: two
different events would become one.
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

EXACT = 16  # characters of a number without exponent: at most 15 digits, which a float keeps apart
_SPACE = re.compile(r"[ \t\n\r]*")


@dataclass(frozen=True, slots=True)
class Sent:
    """An event as it was sent: its value, and its own bytes without surrounding space."""

    value: Any
    text: bytes


def events_of(body: bytes) -> tuple[list[Sent], bool]:
    """Return the events of a body, and whether it is one event and not an array. ValueError if it is not JSON."""
    text = body.decode().removeprefix("\ufeff")
    start = _after_space(text, 0)
    if text[start : start + 1] == "[":
        return _elements(text, start + 1), False
    event, end = _event(text, start)
    _check_end(text, end)
    return [event], True


def value_of(text: str) -> Any:
    """Return the value of a JSON text, to the last digit. Raises ValueError if it is not JSON."""
    return _DECODER.decode(text)


def _elements(text: str, at: int) -> list[Sent]:
    at = _after_space(text, at)
    if text[at : at + 1] == "]":
        _check_end(text, at + 1)
        return []
    events = []
    while True:
        event, at = _event(text, _after_space(text, at))
        events.append(event)
        at = _after_space(text, at)
        mark = text[at : at + 1]
        at += 1
        if mark == "]":
            _check_end(text, at)
            return events
        if mark != ",":
            raise json.JSONDecodeError("Expecting ',' delimiter", text, at - 1)


def _event(text: str, start: int) -> tuple[Sent, int]:
    value, end = _DECODER.raw_decode(text, start)
    return Sent(value, text[start:end].encode()), end


def _check_end(text: str, at: int) -> None:
    if (end := _after_space(text, at)) != len(text):
        raise json.JSONDecodeError("Extra data", text, end)


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None  # the pattern also matches the empty text
    return space.end()


def _number(text: str) -> float | Decimal:
    """Return a number with a fraction or an exponent: a float if that is exactly its value, else a Decimal."""
    near = float(text)
    if (len(text) <= EXACT and "e" not in text and "E" not in text) or math.isinf(near):
        return near
    try:
        exact = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"the exponent of the number {text[:60]} is out of range") from None
    return near if Decimal(repr(near)) == exact else exact


def _integer(text: str) -> int | float:
    return -0.0 if text == "-0" else int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    repeated = Repeated(members)
    repeated.key = Counter(name for name, _ in pairs).most_common(1)[0][0]
    return repeated


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(
    parse_float=_number, parse_int=_integer, parse_constant=_no_constant, object_pairs_hook=_object
)
