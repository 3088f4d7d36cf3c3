"""BigDecimal is decimal.Decimal, BigInteger is int. A rounding mode is the name that `decimal` has for it."""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from typing import Any

from .errors import NumberFormatError
from .objects import to_text

__all__ = [
    "decimal_add", "decimal_compare", "decimal_divide", "decimal_multiply", "decimal_of", "decimal_of_double",
    "decimal_plain", "decimal_power", "decimal_remainder", "decimal_scale", "decimal_scaled", "decimal_shifted",
    "decimal_stripped", "decimal_subtract", "decimal_unscaled", "integer_of", "modulus",
]  # fmt: skip

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[InvalidOperation])
UNNECESSARY = "UNNECESSARY"


def decimal_of(value: Any) -> Decimal:
    """Return ``new BigDecimal(value)``. Raises ValueError for a text that is no number."""
    if not isinstance(value, str):
        return _unsign(Decimal(value))
    try:
        found = Decimal(value) if value == value.strip() and "_" not in value else None
    except InvalidOperation:
        found = None
    if found is None or not found.is_finite():
        raise NumberFormatError(None)
    return _unsign(found)


def _unsign(value: Decimal) -> Decimal:
    """Return the value; for a zero one without a sign, which BigDecimal has not."""
    return value if value else value.copy_abs()


def decimal_of_double(value: float) -> Decimal:
    """Return ``BigDecimal.valueOf(double)``: what the text of the double says."""
    return decimal_of(to_text(float(value)))


def decimal_shifted(value: Decimal, places: int) -> Decimal:
    """Move the point to the right, at most to the end of the digits."""
    moved = value.scaleb(places, _EXACT)
    return moved if decimal_scale(moved) >= 0 else decimal_scaled(moved, 0)


def decimal_add(a: Decimal, b: Decimal) -> Decimal:
    return _EXACT.add(a, b)


def decimal_subtract(a: Decimal, b: Decimal) -> Decimal:
    return _EXACT.subtract(a, b)


def decimal_multiply(a: Decimal, b: Decimal) -> Decimal:
    return _unsign(_EXACT.multiply(a, b))


def decimal_power(value: Decimal, exponent: int) -> Decimal:
    result = Decimal(1)
    for _ in range(exponent):
        result = _EXACT.multiply(result, value)
    return result


def decimal_divide(a: Decimal, b: Decimal, scale: int | None = None, rounding: str = UNNECESSARY) -> Decimal:
    """Divide to so many places, or exactly, to the preferred ones. Raises ArithmeticError if that cannot be."""
    if not b:
        raise ArithmeticError("/ by zero" if a else "Division undefined")
    if scale is None:
        return _divide_exactly(a, b)
    digits = max(a.adjusted() - b.adjusted() + scale, 0) + 3
    # One digit more than asked for, odd if anything is left: no second rounding can go wrong.
    with_rest = Context(prec=digits + 3, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding="ROUND_05UP").divide(a, b)
    return decimal_scaled(with_rest, scale, rounding)


def _divide_exactly(a: Decimal, b: Decimal) -> Decimal:
    preferred = decimal_scale(a) - decimal_scale(b)
    digits = len(a.as_tuple().digits) + math.ceil(10 * len(b.as_tuple().digits) / 3)
    try:
        found = Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact]).divide(a, b)
    except Inexact:
        text = "Non-terminating decimal expansion; no exact representable decimal result."
        raise ArithmeticError(text) from None
    return _unsign(found if decimal_scale(found) >= preferred else decimal_scaled(found, preferred))


def decimal_scaled(value: Decimal, scale: int, rounding: str = UNNECESSARY) -> Decimal:
    """Return ``value.setScale(scale, rounding)``."""
    exponent = Decimal((0, (1,), -scale))
    if rounding != UNNECESSARY:
        return _unsign(value.quantize(exponent, rounding, _EXACT))
    found = value.quantize(exponent, "ROUND_DOWN", _EXACT)
    if found != value:
        raise ArithmeticError("Rounding necessary")
    return found


def decimal_scale(value: Decimal) -> int:
    return -int(value.as_tuple().exponent)


def decimal_unscaled(value: Decimal) -> int:
    return int(value.scaleb(decimal_scale(value), _EXACT))


def decimal_stripped(value: Decimal) -> Decimal:
    return value.normalize(_EXACT)


def decimal_plain(value: Decimal) -> str:
    return format(value, "f")


def decimal_compare(a: Decimal, b: Decimal) -> int:
    return (a > b) - (a < b)


def decimal_remainder(a: Decimal, b: Decimal) -> Decimal:
    if not b:
        raise ArithmeticError("Division by zero")
    quotient = _EXACT.divide_int(a, b)
    if not quotient:
        return a
    ends = decimal_scale(quotient.normalize(_EXACT))  # without its zeros at the end, as far as the scales want it
    scale = decimal_scale(b) + max(ends, decimal_scale(a) - decimal_scale(b))
    return decimal_scaled(decimal_subtract(a, decimal_multiply(quotient, b)), scale)


def integer_of(text: str) -> int:
    """Return ``new BigInteger(text)``. Raises ValueError."""
    if not text.lstrip("+-").isdecimal():
        raise NumberFormatError(f'For input string: "{text}"' if text else "Zero length BigInteger")
    return int(text)


def modulus(a: int, b: int) -> int:
    """Return ``a.mod(b)``, which is never negative."""
    if b <= 0:
        raise ArithmeticError("BigInteger: modulus not positive")
    return a % b
