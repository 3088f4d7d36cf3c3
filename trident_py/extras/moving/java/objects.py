"""Objects: equality, hash codes, order, and the texts of values."""

from __future__ import annotations

import dataclasses
import enum
import math
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from ....model.partitioning import java_hash
from ....state.serializers import java_double
from .dates import date_time_text, hash_of_time
from .numbers import compare_doubles, to_byte, to_float, to_int

__all__ = [
    "Atomic",
    "JavaEnum",
    "JavaRecord",

    "cast",
    "compare",
    "comparing",
    "enum_value",
    "equals",
    "exception_text",
    "float_text",
    "hash_code",
    "message_of",
    "post_update",
    "print_stack_trace",
    "require",
    "reverse_of",
    "reverse_order",
    "then_comparing",
    "to_text",
]  # fmt: skip


class JavaEnum(enum.Enum):
    """An enum whose constants count from 0, with arguments for ``__init__``."""

    def __new__(cls, *arguments: Any) -> Any:
        made = object.__new__(cls)
        made._value_ = len(cls.__members__)
        return made

    def compareTo(self, other: JavaEnum) -> int:
        return self.value - other.value


class JavaRecord:
    """A record: a frozen dataclass with Java's text."""

    def __str__(self) -> str:
        names = [field.name for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        return f"{type(self).__name__}[{', '.join(f'{name}={to_text(getattr(self, name))}' for name in names)}]"


class Atomic:
    """An AtomicInteger, AtomicLong, AtomicBoolean or AtomicReference."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def add(self, number: int) -> int:
        self.value += number
        return self.value

    def getAndAdd(self, number: int) -> int:
        return self.add(number) - number

    def set(self, value: Any) -> None:
        self.value = value

    def getAndSet(self, value: Any) -> Any:
        old, self.value = self.value, value
        return old

    def __str__(self) -> str:
        return to_text(self.value)


def enum_value(kind: type[enum.Enum], name: str) -> Any:
    try:
        return kind[name]
    except KeyError:
        raise ValueError(f"No enum constant {kind.__name__}.{name}") from None


def require(value: Any, message: str | None = None) -> Any:
    """Return the value. Raises TypeError, which stands for a NullPointerException, if it is None."""
    if value is None:
        raise TypeError(message or "null")
    return value


def post_update(owner: Any, name: Any, number: int) -> Any:
    """Add to an attribute, or to an item of a list. Returns the value before that, as ``owner.name++`` does."""
    if isinstance(name, str):
        old = getattr(owner, name)
        setattr(owner, name, old + number)
    else:
        old = owner[name]
        owner[name] = old + number
    return old


def equals(a: Any, b: Any) -> bool:
    """Compare as ``Objects.equals``: 1, 1.0 and true are different."""
    if isinstance(a, bool | int | float) and isinstance(b, bool | int | float):
        if isinstance(a, float) and isinstance(b, float):
            return compare_doubles(a, b) == 0
        return type(a) is type(b) and a == b
    if isinstance(a, Decimal) and isinstance(b, Decimal):
        return a.as_tuple() == b.as_tuple()
    return bool(a == b)


def hash_code(value: Any) -> int:
    """Return ``value.hashCode()``. A whole number within 32 bits counts as an Integer."""
    if value is None:
        return 0
    if isinstance(value, bool):
        return 1231 if value else 1237
    if isinstance(value, enum.Enum):
        return hash_code(value.name)
    if isinstance(value, int):
        return to_int(value ^ (value >> 32)) if not -(2**31) <= value < 2**31 else value
    if isinstance(value, float | str):
        return to_int(java_hash(value))
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        return to_int(31 * _hash_of_big(int(Decimal((sign, digits, 0)))) - int(exponent))
    return _hash_of_object(value)


def _hash_of_big(value: int) -> int:
    """Return the hash code of a BigInteger."""
    result, size = 0, abs(value)
    for shift in range((size.bit_length() + 31) // 32 * 32 - 32, -1, -32):
        result = 31 * result + (size >> shift & 0xFFFFFFFF)
    return to_int(result if value >= 0 else -result)


def _hash_of_object(value: Any) -> int:
    if isinstance(value, bytes):
        value = list(map(to_byte, value))
    if isinstance(value, list | tuple):
        result = 1
        for one in value:
            result = 31 * result + hash_code(one)
        return to_int(result)
    if isinstance(value, Mapping):
        return to_int(sum(hash_code(key) ^ hash_code(one) for key, one in value.items()))
    if isinstance(value, set):
        return to_int(sum(map(hash_code, value)))
    if dataclasses.is_dataclass(value) and isinstance(value, JavaRecord):
        result = 0
        for field in dataclasses.fields(value):
            result = 31 * result + hash_code(getattr(value, field.name))
        return to_int(result)
    if isinstance(value, UUID):
        half = value.int >> 64 ^ value.int
        return to_int(half ^ half >> 32)
    time = hash_of_time(value)
    return to_int(value.__hash__() if time is None else time)


def compare(a: Any, b: Any) -> int:
    """Return ``a.compareTo(b)``: negative, 0 or positive."""
    if a is None or b is None:
        raise TypeError("null cannot be compared")
    if isinstance(a, float) or isinstance(b, float):
        return compare_doubles(a, b)
    if hasattr(a, "compareTo"):
        return a.compareTo(b)
    return (a > b) - (a < b)


def reverse_order(a: Any, b: Any) -> int:
    return compare(b, a)


def reverse_of(comparator: Callable[[Any, Any], int]) -> Callable[[Any, Any], int]:
    return lambda a, b: comparator(b, a)


def comparing(key: Callable[[Any], Any], comparator: Callable[[Any, Any], int] = compare) -> Callable[[Any, Any], int]:
    return lambda a, b: comparator(key(a), key(b))


def then_comparing(
    first: Callable[[Any, Any], int], key: Callable[..., Any], comparator: Callable[[Any, Any], int] = compare
) -> Callable[[Any, Any], int]:
    """Compare by ``first``, then by ``key``: a function of one value, or a comparator."""
    arguments = getattr(getattr(key, "__code__", None), "co_argcount", 1)
    second = key if arguments == 2 else comparing(key, comparator)
    return lambda a, b: first(a, b) or second(a, b)


def to_text(value: Any) -> str:
    """Return ``String.valueOf(value)``."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, enum.Enum):
        return value.name if type(value).__str__ in (enum.Enum.__str__, JavaEnum.__str__) else str(value)
    if isinstance(value, Mapping) and type(value).__str__ in (dict.__str__, object.__str__):
        return "{" + ", ".join(f"{to_text(key)}={to_text(one)}" for key, one in value.items()) + "}"
    if isinstance(value, BaseException):
        return exception_text(value)
    if isinstance(value, datetime):
        return date_time_text(value)
    if isinstance(value, Sequence | set) and type(value).__str__ is object.__str__ and not isinstance(value, bytes):
        return "[" + ", ".join(map(to_text, value)) + "]"
    return str(value)


def float_text(value: float | None) -> str:
    """Return the text of a ``float``: the fewest digits that tell it from its neighbours among those of 32 bits."""
    value = None if value is None else to_float(value)
    if value is None or not math.isfinite(value):
        return to_text(value)
    short = next(text for digits in range(1, 10) if to_float(float(text := f"{value:.{digits}g}")) == value)
    return java_double(float(short))


_JAVA_NAMES = {
    "RuntimeError": "java.lang.RuntimeException", "ValueError": "java.lang.IllegalArgumentException",
    "NumberFormatError": "java.lang.NumberFormatException", "IllegalStateError": "java.lang.IllegalStateException",
    "Exception": "java.lang.Exception", "ZeroDivisionError": "java.lang.ArithmeticException",
}  # fmt: skip


def message_of(error: BaseException) -> str | None:
    """Return ``error.getMessage()``."""
    return str(error.args[0]) if error.args and error.args[0] is not None else None


def exception_text(error: BaseException) -> str:
    name = _JAVA_NAMES.get(type(error).__name__, type(error).__name__)
    message = message_of(error)
    return name if message is None else f"{name}: {message}"


def print_stack_trace(error: BaseException) -> None:
    traceback.print_exception(error, file=sys.stderr)


def cast(value: Any, kind: Any) -> Any:
    """Return the value. Raises TypeError, which stands for a ClassCastException, if it is of another type."""
    if value is None or (isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)):
        return value
    raise TypeError(f"{type(value).__name__} cannot be cast")
