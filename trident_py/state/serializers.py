"""Storm's JSON serializers of map values, byte for byte. Source in Storm: trident/state/JSON*Serializer.java.

The text is what json-smart 2.6 writes: no spaces, "/" as "\\/", control and some other characters as \\uXXXX in
upper case, everything else as UTF-8. Integers are read back as one type (Storm narrows to Integer; S18).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ..errors import StateError
from ..model.json_text import parse_json
from .base import StateType
from .values import OpaqueValue, TransactionalValue

_ESCAPES = {
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "/": "\\/",
}  # fmt: skip
_SPECIAL = dict(_ESCAPES)
for _code in (*range(0x20), *range(0x7F, 0xA0), *range(0x2000, 0x2100)):
    _SPECIAL.setdefault(chr(_code), f"\\u{_code:04X}")
_TABLE = str.maketrans(_SPECIAL)


class Serializer:
    """Turns what a map keeps under a key into bytes, and back."""

    @abstractmethod
    def serialize(self, obj: Any) -> bytes:
        raise NotImplementedError

    @abstractmethod
    def deserialize(self, data: bytes) -> Any:
        raise NotImplementedError


class JSONNonTransactionalSerializer(Serializer):
    """``5``"""

    def serialize(self, obj: Any) -> bytes:
        return json_text(obj).encode()

    def deserialize(self, data: bytes) -> Any:
        return _parse(data)


class JSONTransactionalSerializer(Serializer):
    """``[txid,value]``"""

    def serialize(self, obj: TransactionalValue) -> bytes:
        return json_text([obj.txid, obj.value]).encode()

    def deserialize(self, data: bytes) -> TransactionalValue:
        txid, value = _parts(data, 2, "[txid,value]")
        return TransactionalValue(txid, value)


class JSONOpaqueSerializer(Serializer):
    """``[currTxid,curr,prev]``"""

    def serialize(self, obj: OpaqueValue) -> bytes:
        return json_text([obj.currTxid, obj.curr, obj.prev]).encode()

    def deserialize(self, data: bytes) -> OpaqueValue:
        return OpaqueValue(*_parts(data, 3, "[currTxid,curr,prev]"))


SERIALIZERS: dict[StateType, Serializer] = {
    StateType.NON_TRANSACTIONAL: JSONNonTransactionalSerializer(),
    StateType.TRANSACTIONAL: JSONTransactionalSerializer(),
    StateType.OPAQUE: JSONOpaqueSerializer(),
}


def json_text(value: Any) -> str:
    """Return a value as json-smart writes it; a value of no JSON type is written as its text."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return str(value)
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{quote_json(_name(k))}:{json_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        return "[" + ",".join(map(json_text, value)) + "]"
    return quote_json(str(value))


def java_double(value: float) -> str:
    """Format a float as Java's Double.toString does: 1.0, 1.0E10, 4.9E-324, NaN, Infinity."""
    value = float(value)  # numpy's are floats, too, with another repr
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    shortest = Decimal(repr(value)).normalize()
    if len(shortest.as_tuple().digits) == 1:
        shortest = Decimal(f"{value:.1e}").normalize()  # Java gives two digits at least
    sign, (first, *rest), exponent = shortest.as_tuple()
    return f"{'-' * sign}{first}.{''.join(map(str, rest)) or 0}E{int(exponent) + len(rest)}"


def quote_json(text: str) -> str:
    """Return a text as json-smart and json-simple write it."""
    return f'"{text.translate(_TABLE)}"'


def _name(key: Any) -> str:
    """Return an object's key as text, as Java's String.valueOf does."""
    return key if isinstance(key, str) else json_text(key)


def _parse(data: bytes) -> Any:
    try:
        return parse_json(data.decode())
    except ValueError as error:
        raise StateError(f"stored bytes {data[:80]!r} are not JSON: {error}") from error


def _parts(data: bytes, count: int, form: str) -> list[Any]:
    """Return the parts of a stored value. A null txid cannot be read back (Storm: NullPointerException)."""
    parts = _parse(data)
    if not isinstance(parts, list) or len(parts) != count:
        raise StateError(f"stored bytes {data[:80]!r} are not {form}; another kind of map wrote them")
    if parts[0] is None:
        raise StateError(f"stored bytes {data[:80]!r} have no txid: they were written outside a batch")
    return parts
