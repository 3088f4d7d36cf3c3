"""Arithmetic as in Spark's ANSI mode: an overflow and a division by zero are errors, null gives null."""

from __future__ import annotations

import decimal
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DefinitionError
from .casts import cut
from .compiled import Compiled, Datum, by_value, full, strict, widen
from .types import DOUBLE, FLOATS, INTEGERS, NUMBERS, VOID, SqlCall, common, sql_name

_ROOM = decimal.Context(prec=800, rounding=decimal.ROUND_HALF_UP)
_EXACT = 2.0**53
_TOO_LARGE = 2.0**63


def numbers(call: SqlCall, args: list[Compiled]) -> list[Compiled]:
    """Return the arguments in their common type. Raises DefinitionError unless that is a number."""
    kind = common(call, *(arg.kind for arg in args))
    kind = DOUBLE if kind == VOID else kind
    if kind not in NUMBERS:
        raise DefinitionError(f"expr: {call} needs numbers, but has {sql_name(kind)}")
    return [widen(arg, kind) for arg in args]


def compile_checked(kernel: Callable[..., Datum]) -> Callable[[SqlCall, list[Compiled]], Compiled]:
    """Compile +, -, *, the negative and abs: ``kernel`` raises for an overflow."""

    def compile_call(call: SqlCall, args: list[Compiled]) -> Compiled:
        parts = numbers(call, args)
        return strict(parts[0].kind, kernel, parts, call if parts[0].kind in INTEGERS else None)

    return compile_call


def compile_division(call: SqlCall, args: list[Compiled]) -> Compiled:
    parts = [widen(part, DOUBLE) for part in numbers(call, args)]
    return strict(DOUBLE, _quotient, parts, call, order=(1, 0))


def _quotient(a: Datum, b: Datum) -> Datum:
    _check_divisor(a, b)
    return pc.divide(a, b)


def _check_divisor(a: Datum, b: Datum) -> None:
    zero = pc.and_(pc.is_valid(a), pc.equal(b, pa.scalar(0, b.type)))
    if pc.any(pa.array([zero.as_py()]) if isinstance(zero, pa.Scalar) else zero).as_py():
        raise pa.ArrowInvalid("division by zero")


def whole_quotient(call: SqlCall, args: list[Compiled]) -> Compiled:
    parts = numbers(call, args)
    if parts[0].kind not in INTEGERS:
        raise DefinitionError(f"expr: {call} needs whole numbers, but has {sql_name(parts[0].kind)}")
    wide = [widen(part, pa.int64()) for part in parts]
    return strict(pa.int64(), pc.divide_checked, wide, call, order=(1, 0))


def remainder(call: SqlCall, args: list[Compiled]) -> Compiled:
    parts = numbers(call, args)
    return strict(parts[0].kind, _remainder, parts, call, order=(1, 0))


def _remainder(a: Datum, b: Datum) -> Datum:
    """Return the remainder, which has the sign of the dividend, as in Java."""
    _check_divisor(a, b)
    arrays = [datum for datum in (a, b) if isinstance(datum, pa.Array)]
    kind, length = a.type, len(arrays[0]) if arrays else 1
    sides = full(a, length), full(b, length)
    valid = pc.and_(sides[0].is_valid(), sides[1].is_valid())
    dividend, divisor = (pc.fill_null(side, pa.scalar(1, kind)).to_numpy(zero_copy_only=False) for side in sides)
    safe = np.where(divisor == -1, divisor.dtype.type(1), divisor) if kind in INTEGERS else divisor
    with np.errstate(invalid="ignore", divide="ignore"):
        result = np.fmod(dividend, np.where(safe == 0, divisor.dtype.type(1), safe))
    found = pc.if_else(valid, pa.array(result, kind), pa.scalar(None, kind))
    return found if arrays else found[0]


def root(call: SqlCall, args: list[Compiled]) -> Compiled:
    return strict(DOUBLE, pc.sqrt, [widen(part, DOUBLE) for part in numbers(call, args)])


def compile_round(call: SqlCall, args: list[Compiled]) -> Compiled:
    """Compile round(x[, digits]), half up from the shortest decimal form of the number, as Spark does it."""
    digits = args[1].value if len(args) > 1 else 0
    if len(args) > 1 and not (args[1].constant and type(digits) is int and 0 <= digits <= 100):
        raise DefinitionError(f"expr: {call}: the digits must be a literal from 0 to 100")
    (part,) = numbers(call, args[:1])
    if part.kind in INTEGERS:
        return part
    if part.kind != DOUBLE:
        raise DefinitionError(f"expr: {call} takes double; use CAST({call.args[0]} AS DOUBLE)")
    unit = decimal.Decimal(1).scaleb(-digits)

    def one(value: float) -> float:
        if not -_EXACT < value < _EXACT:  # whole already, or no number
            return value
        return float(_ROOM.quantize(decimal.Decimal(repr(value)), unit)) + 0.0

    return strict(DOUBLE, lambda x: by_value(one, x, DOUBLE), [part])


def whole(name: str) -> Callable[[SqlCall, list[Compiled]], Compiled]:
    """Compile floor and ceil: a double becomes a bigint. NaN becomes 0, but 2 ** 63 fails; a CAST does the reverse."""
    step = pc.floor if name == "floor" else pc.ceil

    def kernel(x: Datum) -> Datum:
        found = pc.if_else(pc.is_nan(x), 0.0, step(x))
        if pc.any(pc.equal(full(found, 1), _TOO_LARGE)).as_py():
            raise pa.ArrowInvalid(f"{_TOO_LARGE} does not fit bigint")
        return cut(found, pa.int64())

    def compile_call(call: SqlCall, args: list[Compiled]) -> Compiled:
        (part,) = numbers(call, args)
        if part.kind not in FLOATS:
            raise DefinitionError(f"expr: {call} takes double, but has {sql_name(part.kind)}, which is whole already")
        return strict(pa.int64(), kernel, [widen(part, DOUBLE)], call)

    return compile_call


def is_nan(call: SqlCall, args: list[Compiled]) -> Compiled:
    """Compile isnan: false for null."""
    (part,) = numbers(call, args)
    if part.kind not in FLOATS:
        raise DefinitionError(f"expr: {call} takes double, but has {sql_name(part.kind)}")
    return Compiled(pa.bool_(), lambda rows: pc.fill_null(pc.is_nan(part.run(rows)), False), part.fallible)
