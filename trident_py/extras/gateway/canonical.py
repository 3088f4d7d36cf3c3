"""The canonical encoding of a JSON value: equal values have equal bytes, different values different bytes.

It is JSON: no spaces, sorted keys, UTF-8. The syntax shows the types: ``1``, ``1.0``, ``true``, ``"1"`` and ``null``
differ. A number with a fraction or an exponent is written in the shortest form of its float if that is exactly its
value (``10.50`` and ``1.05e1`` are ``10.5``), else with all its digits (``1700000000123456701e-9``), so that rounding
never makes two numbers one. Any language can compute the encoding.

Refused, because JSON or its readers cannot tell them apart: NaN, infinities, -0.0 (equal to 0.0, written differently),
lone surrogates, keys that are not strings, a repeated key in one object.

Text is **not** normalised (NFC). A resend sends the same code points; normalisation tables change with Unicode's
version, and fingerprints would change with them; and normalisation could make two different events one.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ...errors import TridentError

PLAIN = frozenset({str, int, bool, type(None)})  # always encodable, except lone surrogates
ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True,
                           separators=(",", ":"))  # fmt: skip
DIGEST = 16


class EventError(TridentError):
    """An event that cannot be taken. Says what is wrong, where, and what to send instead."""


class Repeated(dict[str, Any]):
    """A JSON object that repeats a key, ``key``. It is not a valid event, whatever its values."""

    key = ""


def canonical(value: Any) -> bytes:
    """Return the encoding of a JSON value (None, bool, int, float, Decimal, str, list, dict with string keys).

    Raises EventError for any other value, naming its place. Big integers are exact, up to Python's limit of digits
    (4,300).
    """
    try:
        if type(value) not in PLAIN and _check(value, ""):
            return _write(value).encode()
        return ENCODER.encode(value).encode()
    except UnicodeEncodeError as error:
        raise EventError(f"{error.object[:60]!r} has half a character (a lone surrogate): send valid UTF-8") from None
    except RecursionError:
        raise EventError("the event is nested too deeply: send flatter events") from None
    except ValueError as error:
        raise EventError(f"the event has a number that cannot be encoded: {error}") from None


def payload_hash(event: Mapping[str, Any]) -> str:
    """Return 32 hex digits of blake2b over the whole event, which tell two events with one fingerprint apart."""
    return digest(canonical(dict(event)))


def digest(data: bytes) -> str:
    """Return 32 hex digits of blake2b."""
    return hashlib.blake2b(data, digest_size=DIGEST).hexdigest()


def _check(value: Any, place: str) -> bool:
    """Return whether the value contains a Decimal. Raises EventError for a value that JSON lacks; ``place`` is its
    path."""
    kind = type(value)
    if kind is dict:
        if not set(map(type, value)) <= {str}:
            wrong = next(key for key in value if type(key) is not str)
            raise EventError(f"{_at(place)} has the key {wrong!r} ({type(wrong).__name__}): object keys are strings")
        if not set(map(type, value.values())) <= PLAIN:
            return True in [_check(inner, f"{place}.{key}" if place else key) for key, inner in value.items()]
    elif kind is list:
        if not set(map(type, value)) <= PLAIN:
            return True in [_check(inner, f"{place}[{number}]") for number, inner in enumerate(value)]
    elif kind is float or kind is Decimal:
        if not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0):
            raise EventError(f"{_at(place)} is {value}: send null for a missing measurement, and 0.0 for -0.0")
        return kind is Decimal
    elif kind is Repeated:
        raise EventError(f"{_at(place)} has the key {value.key!r} twice: send it once")
    elif kind not in PLAIN:
        raise EventError(f"{_at(place)} is a {kind.__name__}; JSON has objects, arrays, strings, numbers, true, null")
    return False


def _write(value: Any) -> str:
    """Return the encoding of a value that contains a Decimal."""
    kind = type(value)
    if kind is dict:
        return "{" + ",".join(f"{ENCODER.encode(key)}:{_write(value[key])}" for key in sorted(value)) + "}"
    if kind is list:
        return "[" + ",".join(map(_write, value)) + "]"
    return number_text(value) if kind is Decimal else ENCODER.encode(value)


def number_text(number: Decimal) -> str:
    """Return one text for all spellings of a number with fraction or exponent, another for any other number."""
    shortest = repr(float(number))
    if Decimal(shortest) == number:
        return shortest
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits))
    shorter = text.rstrip("0")
    assert isinstance(exponent, int)  # the number is finite
    return f"{'-' * sign}{shorter}e{exponent + len(text) - len(shorter)}"


def _at(place: str) -> str:
    return f"field {place!r}" if place else "the event"
