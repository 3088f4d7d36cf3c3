"""The canonical encoding of a JSON value: equal values have equal bytes, different values different bytes.

It is JSON itself: no spaces, the keys of objects sorted, UTF-8, floats in their shortest form. The syntax tags the
types: ``1``, ``1.0``, ``true``, ``"1"`` and ``null`` differ. So anybody can compute it again, in any language.

Refused, because JSON or a reader of it cannot keep them apart: NaN, infinities, -0.0 (equal to 0.0, written
differently), lone surrogates, keys that are not strings.

Text is **not** normalised (NFC): a resend sends the same code points; the tables of normalisation change with
Unicode's version, and with them fingerprints would; and it could make one of two different events.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from .errors import EventError

PLAIN = frozenset({str, int, bool, type(None)})  # always encodable, but for lone surrogates
ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True,
                           separators=(",", ":"))  # fmt: skip
DIGEST = 16


def canonical(value: Any) -> bytes:
    """The canonical encoding of a JSON value (None, bool, int, float, str, list, dict with string keys).

    EventError for anything else, naming the place in the value. Big integers are kept, up to Python's limit of
    digits (4,300).
    """
    try:
        if type(value) not in PLAIN:
            _check(value, "")
        return ENCODER.encode(value).encode()
    except UnicodeEncodeError as error:
        raise EventError(f"half a character (a lone surrogate) in {error.object[:60]!r}: send valid UTF-8") from None
    except RecursionError:
        raise EventError("the event is nested too deeply: send flatter events") from None
    except ValueError as error:
        raise EventError(f"the event has a number that cannot be written: {error}") from None


def payload_hash(event: Mapping[str, Any]) -> str:
    """32 hex digits of blake2b over the whole event; tells two events with one fingerprint apart."""
    return digest(canonical(dict(event)))


def digest(data: bytes) -> str:
    """32 hex digits of blake2b."""
    return hashlib.blake2b(data, digest_size=DIGEST).hexdigest()


def _check(value: Any, place: str) -> None:
    """EventError for what JSON has not; ``place`` is the path to ``value``."""
    kind = type(value)
    if kind is dict:
        if not set(map(type, value)) <= {str}:
            odd = next(key for key in value if type(key) is not str)
            raise EventError(f"{_at(place)} has the key {odd!r} ({type(odd).__name__}): keys of objects are strings")
        if not set(map(type, value.values())) <= PLAIN:
            for key, inner in value.items():
                _check(inner, f"{place}.{key}" if place else key)
    elif kind is list:
        if not set(map(type, value)) <= PLAIN:
            for number, inner in enumerate(value):
                _check(inner, f"{place}[{number}]")
    elif kind is float:
        if not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0):
            raise EventError(f"{_at(place)} is {value}: send null for what was not measured, and 0.0 for -0.0")
    elif kind not in PLAIN:
        raise EventError(f"{_at(place)} is a {kind.__name__}; JSON has objects, arrays, text, numbers, true, null")


def _at(place: str) -> str:
    return f"field {place!r}" if place else "the event"
