"""What the oracle's Java code does with values: their text and their order."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from trident_py.model.canonical import identity


def text(value: Any) -> str:
    """String.valueOf."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _double(value) if isinstance(value, float) else str(value)


def _double(value: float) -> str:
    """Double.toString: decimal between 1e-3 and 1e7, scientific outside."""
    if value != value:
        return "NaN"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    shown = "".join(map(str, digits))
    return f"{'-' if sign else ''}{shown[0]}.{shown[1:] or '0'}E{int(exponent) + len(shown) - 1}"


def joined(values: Iterable[Any]) -> str:
    return ",".join(map(text, values))


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(a: Any, b: Any) -> bool:
    """Objects.equals."""
    return identity(a) == identity(b)


def order(a: Any, b: Any) -> int:
    """Null first, numbers by value, values of one class by their order, else by their text."""
    if a is None or b is None:
        return (b is None) - (a is None) if a is not b else 0
    if not (is_number(a) and is_number(b)) and type(a) is not type(b):
        a, b = text(a), text(b)
    return (a > b) - (a < b)


def words(value: Any) -> list[str]:
    return [] if value is None else [word for word in text(value).split(" ") if word]


def upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value
