"""Numbers: whole ones wrap and round towards zero, doubles know infinities and NaN."""

from __future__ import annotations

import math
import re
import struct
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ....operations.ordering import compare_doubles
from .errors import NumberFormatError

__all__ = [
    "arithmetic", "ceil", "compare_doubles", "current_time_millis", "divide", "exact", "exp", "floor", "hash_long",
    "in_base", "log", "log10", "max_of", "min_of", "parse_boolean", "parse_double", "parse_int", "parse_long",
    "parse_short", "power", "quotient",
    "remainder", "rint", "round_half_up", "shift_right", "signum", "square_root", "to_byte", "to_degrees", "to_float",
    "to_int", "to_long", "to_radians", "to_short", "trailing_zeros",
]  # fmt: skip


def _wrap(value: float, bits: int) -> int:
    if isinstance(value, float):
        bits = max(bits, 32)
        if math.isnan(value):
            return 0
        return (
            int(max(min(value, 2.0 ** (bits - 1)), -(2.0 ** (bits - 1))))
            if abs(value) < 2 ** (bits - 1)
            else (2 ** (bits - 1) - 1 if value > 0 else -(2 ** (bits - 1)))
        )
    half = 1 << (bits - 1)
    return (value + half) % (half << 1) - half


def to_int(value: float) -> int:
    """Convert to an ``int``: a whole number wraps at 32 bits, a double is cut off and stays within them."""
    return _wrap(value, 32)


def to_long(value: float) -> int:
    return _wrap(value, 64)


def to_short(value: float) -> int:
    return _wrap(to_int(value), 16)


def to_byte(value: float) -> int:
    return _wrap(to_int(value), 8)


def to_float(value: float) -> float:
    """Round to the nearest ``float`` of 32 bits."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def quotient(a: int, b: int) -> int:
    """Divide whole numbers, towards zero."""
    if b == 0:
        raise ZeroDivisionError("/ by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: float, b: float) -> Any:
    """Return ``a % b``, which has the sign of ``a``."""
    if isinstance(a, float) or isinstance(b, float):
        return math.fmod(a, b) if b != 0 and not math.isinf(a) else math.nan
    return a - b * quotient(a, b)


def divide(a: float, b: float) -> float:
    """Divide doubles: by zero it is an infinity or NaN."""
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a) or math.isnan(b):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def arithmetic(value: Any) -> Any:
    """Return the number that an operand is. Raises TypeError for None."""
    if value is None:
        raise TypeError("a number is null")
    return value


def shift_right(value: int, count: int, bits: int) -> int:
    """Return ``value >>> count``."""
    return _wrap((value & ((1 << bits) - 1)) >> (count & (bits - 1)), bits)


def exact(value: int, bits: int) -> int:
    if _wrap(value, bits) != value:
        raise ArithmeticError("integer overflow" if bits == 32 else "long overflow")
    return value


def hash_long(value: int) -> int:
    return to_int(value ^ (value >> 32))


def _parse(text: str | None, radix: int, bits: int) -> int:
    if text is None:
        raise NumberFormatError("Cannot parse null string")
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or not digits.isalnum():
        raise NumberFormatError(
            f'For input string: "{text}"' + (f" under radix {radix}" if radix != 10 and text else "")
        )
    try:
        value = int(text, radix)
    except ValueError:
        value = 1 << 64
    if _wrap(value, bits) != value:
        raise NumberFormatError(f'For input string: "{text}"' + (f" under radix {radix}" if radix != 10 else ""))
    return value


def parse_int(text: str | None, radix: int = 10) -> int:
    return _parse(text, radix, 32)


def parse_long(text: str | None, radix: int = 10) -> int:
    return _parse(text, radix, 64)


def parse_short(text: str | None) -> int:
    value = parse_int(text)
    if _wrap(value, 16) != value:
        raise NumberFormatError(f'Value out of range. Value:"{text}" Radix:10')
    return value


def parse_double(text: str | None) -> float:
    if text is None:
        raise TypeError("a number is null")
    found = text.strip(" \t\n\r\x0b\x0c")
    if not found:
        raise NumberFormatError("empty String")
    plain = found.rstrip("dDfF") if found[-1] in "dDfF" and "n" not in found.lower() else found
    special = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, "+Infinity": math.inf}
    if found in special:
        return special[found]
    if "_" in plain or plain.lower().strip("+-")[:1] in ("n", "i") or not plain.isascii():
        raise NumberFormatError(f'For input string: "{text}"')
    try:
        return float(plain)
    except ValueError:
        raise NumberFormatError(f'For input string: "{text}"') from None


def parse_cut(text: str, parse: Callable[[str], int]) -> float:
    """Return a number as Jackson reads a text that is to be a whole one: if it is not all digits, it is a double."""
    text = text.removeprefix("+")
    return parse(text) if re.fullmatch("-?[0-9]*", text) else parse_double(text)


def number_of_text(text: str) -> float:
    """Return org.json's ``stringToNumber(text)``, with a double for a BigDecimal. Raises NumberFormatError."""
    if re.fullmatch("-?[1-9][0-9]*|0", text):
        return int(text)
    found = parse_double(text) if re.match("-0$|[-0-9].*[.eE]", text) else math.nan
    if not math.isfinite(found):
        raise NumberFormatError(f'For input string: "{text}"')
    return found


def parse_boolean(text: str | None) -> bool:
    return text is not None and text.lower() == "true"


def max_of(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else (float(a) if compare_doubles(a, b) >= 0 else float(b))


def min_of(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else (float(a) if compare_doubles(a, b) <= 0 else float(b))


def floor(x: float) -> float:
    return float(x) if not math.isfinite(x) or x == 0 else float(math.floor(x))


def ceil(x: float) -> float:
    return float(x) if not math.isfinite(x) or x == 0 else math.copysign(float(math.ceil(x)), x)


def rint(x: float) -> float:
    return float(x) if not math.isfinite(x) else math.copysign(float(round(x)), x)


def round_half_up(x: float, bits: int = 64) -> int:
    """Return ``Math.round(x)``."""
    return (
        _wrap(x if not math.isfinite(x) else math.floor(Decimal(x) + Decimal("0.5")), bits)
        if abs(x) < 2**62
        else (_wrap(float(x), bits))
    )


def signum(x: float) -> float:
    return float(x) if x == 0 or math.isnan(x) else math.copysign(1.0, x)


def square_root(x: float) -> float:
    return math.nan if x < 0 or math.isnan(x) else math.sqrt(x)


def exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def log(x: float) -> float:
    return math.log(x) if x > 0 else (-math.inf if x == 0 else math.nan)


def log10(x: float) -> float:
    return math.log10(x) if x > 0 else (-math.inf if x == 0 else math.nan)


def power(x: float, y: float) -> float:
    if math.isnan(y) or (abs(x) == 1 and math.isinf(y)):
        return math.nan
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:
        return math.nan if x != 0 else (math.copysign(math.inf, x) if y % 2 == 1 else math.inf)


def to_radians(x: float) -> float:
    return x * 0.017453292519943295


def to_degrees(x: float) -> float:
    return x * 57.29577951308232


def current_time_millis() -> int:
    return time.time_ns() // 1_000_000


def in_base(value: int, base: int) -> str:
    """Return ``Long.toString(value, base)``."""
    digits, left = "", abs(value)
    while left or not digits:
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[left % base] + digits
        left //= base
    return f"-{digits}" if value < 0 else digits


def trailing_zeros(value: int, bits: int) -> int:
    return bits if value == 0 else (value & -value).bit_length() - 1
