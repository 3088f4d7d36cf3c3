"""BigDecimal: exact, with the scale that Java gives a result."""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import Any

from .errors import NumberFormatError
from .objects import to_text

__all__ = ["big_decimal", "big_integer", "decimal_divide", "decimal_of", "decimal_sum", "decimal_times", "move_point",
           "plain_text", "scale_of", "set_scale"]  # fmt: skip

_EXACT = decimal.Context(prec=2000, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def big_decimal(value: Any) -> Decimal:
    """Return ``new BigDecimal(value)``. Raises NumberFormatError."""
    if isinstance(value, str) and ("_" in value or value != value.strip()):
        raise NumberFormatError(value)
    try:
        made = Decimal(value)
    except decimal.InvalidOperation:
        raise NumberFormatError(value) from None
    if not made.is_finite():
        raise NumberFormatError(f"Infinite or NaN: {value}")
    return made


def decimal_of(value: float, scale: int = 0) -> Decimal:
    """Return ``BigDecimal.valueOf(value, scale)``."""
    if isinstance(value, float):
        return big_decimal(to_text(value))
    return Decimal(value).scaleb(-scale, _EXACT)


def big_integer(value: str, base: int = 10) -> int:
    try:
        return int(value, base)
    except ValueError:
        raise NumberFormatError(f'For input string: "{value}"') from None


def decimal_sum(a: Decimal, b: Decimal) -> Decimal:
    return _EXACT.add(a, b)


def decimal_times(a: Decimal, b: Decimal) -> Decimal:
    return _EXACT.multiply(a, b)


def set_scale(value: Decimal, scale: int, rounding: str | None = None) -> Decimal:
    if rounding is None:
        rounded = value.quantize(Decimal(1).scaleb(-scale), decimal.ROUND_DOWN, _EXACT)
        if rounded != value:
            raise ArithmeticError("Rounding necessary")
        return rounded
    return value.quantize(Decimal(1).scaleb(-scale), rounding, _EXACT)


def decimal_divide(a: Decimal, b: Decimal, scale: int, rounding: str) -> Decimal:
    """Divide to a scale, rounded once."""
    if b == 0:
        raise ZeroDivisionError("/ by zero")
    unit = Decimal(1).scaleb(-scale)
    rough = decimal.Context(prec=2000, rounding=decimal.ROUND_DOWN).divide(a, b)
    if decimal.Context(prec=4000).multiply(rough, b) != a and rough.quantize(unit, decimal.ROUND_DOWN, _EXACT) == rough:
        rough += (unit / 1000).copy_sign(a * b)
    return rough.quantize(unit, rounding, _EXACT)


def move_point(value: Decimal, places: int) -> Decimal:
    moved = value.scaleb(places, _EXACT)
    return moved if scale_of(moved) >= 0 else moved.quantize(Decimal(1), context=_EXACT)


def scale_of(value: Decimal) -> int:
    return -int(value.as_tuple().exponent)


def plain_text(value: Decimal) -> str:
    return format(value, "f")
