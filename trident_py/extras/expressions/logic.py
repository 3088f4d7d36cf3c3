"""Comparisons, three-valued logic and choices (CASE, COALESCE, greatest), as in Spark."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DefinitionError
from .compiled import Compiled, Datum, SqlRows, at, eager, literal, strict, widen
from .types import BOOLEAN, FLOATS, VOID, SqlCall, common, sql_name


def unify(call: SqlCall, args: list[Compiled]) -> list[Compiled]:
    """Return the arguments in their common type."""
    kind = common(call, *(arg.kind for arg in args))
    return [widen(arg, kind) for arg in args]


def _equal(a: Datum, b: Datum) -> Datum:
    """Compare: NaN equals NaN, and -0.0 equals 0.0."""
    same = pc.equal(a, b)
    return pc.or_(same, pc.and_(pc.is_nan(a), pc.is_nan(b))) if a.type in FLOATS else same


def _less(a: Datum, b: Datum) -> Datum:
    """Compare: NaN is above every other number."""
    below = pc.less(a, b)
    return pc.or_(below, pc.and_not(pc.is_nan(b), pc.is_nan(a))) if a.type in FLOATS else below


def _at_most(a: Datum, b: Datum) -> Datum:
    below = pc.less_equal(a, b)
    return pc.or_(below, pc.is_nan(b)) if a.type in FLOATS else below


def _null_safe(a: Datum, b: Datum) -> Datum:
    nulls = pc.is_null(a), pc.is_null(b)
    return pc.if_else(pc.or_(*nulls), pc.and_(*nulls), _equal(a, b))


COMPARISONS: dict[str, Callable[[Datum, Datum], Datum]] = {
    "=": _equal,
    "<": _less,
    "<=": _at_most,
    ">": lambda a, b: _less(b, a),
    ">=": lambda a, b: _at_most(b, a),
}


def compile_comparison(call: SqlCall, args: list[Compiled]) -> Compiled:
    parts = unify(call, args)
    kind = parts[0].kind
    if kind == VOID:
        return literal(None, BOOLEAN)
    if pa.types.is_binary(kind) and call.name != "=":
        raise DefinitionError(f"expr: {call}: values of type binary are only compared with = and <=>")
    return strict(BOOLEAN, COMPARISONS[call.name], parts)


def null_safe(call: SqlCall, args: list[Compiled]) -> Compiled:
    parts = unify(call, args)
    if parts[0].kind == VOID:
        return literal(True, BOOLEAN)
    return eager(BOOLEAN, _null_safe, parts)


def condition(call: Any, part: Compiled) -> Compiled:
    """Return the expression as a condition. Raises DefinitionError unless it is boolean."""
    if part.kind not in (BOOLEAN, VOID):
        raise DefinitionError(f"expr: {call} needs a condition, but has {sql_name(part.kind)}")
    return widen(part, BOOLEAN)


def both(call: SqlCall, args: list[Compiled]) -> Compiled:
    """Compile AND: the right side is computed where the left one is not false."""
    left, right = (condition(call, arg) for arg in args)

    def run(rows: SqlRows) -> Datum:
        first = left.run(rows)
        return pc.and_kleene(first, at(right, rows, pc.fill_null(first, True)))

    return Compiled(BOOLEAN, run, left.fallible or right.fallible)


def either(call: SqlCall, args: list[Compiled]) -> Compiled:
    """Compile OR: the right side is computed where the left one is not true."""
    left, right = (condition(call, arg) for arg in args)

    def run(rows: SqlRows) -> Datum:
        first = left.run(rows)
        return pc.or_kleene(first, at(right, rows, pc.invert(pc.fill_null(first, False))))

    return Compiled(BOOLEAN, run, left.fallible or right.fallible)


def compile_not(call: SqlCall, args: list[Compiled]) -> Compiled:
    return eager(BOOLEAN, pc.invert, [condition(call, args[0])])


def is_null(call: SqlCall, args: list[Compiled]) -> Compiled:
    return eager(BOOLEAN, pc.is_null, args)


def is_true(call: SqlCall, args: list[Compiled]) -> Compiled:
    return eager(BOOLEAN, lambda x: pc.fill_null(x, False), [condition(call, args[0])])


def is_false(call: SqlCall, args: list[Compiled]) -> Compiled:
    return eager(BOOLEAN, lambda x: pc.invert(pc.fill_null(x, True)), [condition(call, args[0])])


def among(call: SqlCall, args: list[Compiled]) -> Compiled:
    """Compile IN with literals: null if the value is null, or not found beside a null."""
    if not all(arg.constant for arg in args[1:]):
        raise DefinitionError(f"expr: {call}: IN takes literals; compare with = and OR")
    value, *items = unify(call, args)
    if value.kind == VOID:
        return literal(None, BOOLEAN)
    if value.kind in FLOATS:
        return strict(BOOLEAN, lambda x: reduce(pc.or_kleene, (_equal(x, item.run(_NONE)) for item in items)), [value])
    known = pa.array([item.value for item in items if item.value is not None], value.kind)
    missing = pa.scalar(None if any(item.value is None for item in items) else False, BOOLEAN)

    def kernel(x: Datum) -> Datum:
        found = pc.is_in(x, value_set=known)
        return pc.if_else(pc.is_null(x), pa.scalar(None, BOOLEAN), pc.if_else(found, True, missing))

    return strict(BOOLEAN, kernel, [value])


_NONE = SqlRows({}, 0)


# -- choices ----------------------------------------------------------------------------------------------------------


def compile_case(call: SqlCall, args: list[Compiled]) -> Compiled:
    """Compile CASE: condition, value, ..., else. A value is computed only in the rows that it is for."""
    conditions = [condition(call, part) for part in args[:-1:2]]
    values = unify(call, [*args[1::2], args[-1]])

    def run(rows: SqlRows) -> Datum:
        left: Datum = pa.scalar(True)
        hits, results = [], []
        for test, value in zip(conditions, values, strict=False):
            hit = pc.and_(left, pc.fill_null(at(test, rows, left), False))
            hits.append(hit)
            results.append(at(value, rows, hit))
            left = pc.and_not(left, hit)
        found = at(values[-1], rows, left)
        for hit, result in zip(reversed(hits), reversed(results), strict=True):
            found = pc.if_else(hit, result, found)
        return found

    return Compiled(values[0].kind, run, any(part.fallible for part in [*conditions, *values]))


def first_known(call: SqlCall, args: list[Compiled]) -> Compiled:
    """Compile COALESCE: an argument is computed only in the rows in which all before it are null."""
    parts = unify(call, args)

    def run(rows: SqlRows) -> Datum:
        found = parts[0].run(rows)
        for part in parts[1:]:
            missing = pc.is_null(found)
            found = pc.if_else(missing, at(part, rows, missing), found)
        return found

    return Compiled(parts[0].kind, run, any(part.fallible for part in parts))


def extreme(name: str) -> Callable[[SqlCall, list[Compiled]], Compiled]:
    """Compile greatest and least: nulls are skipped; of equal values the first one counts."""

    def better(a: Datum, b: Datum) -> Datum:
        return _less(a, b) if name == "greatest" else _less(b, a)

    def kernel(*data: Datum) -> Datum:
        found = data[0]
        for datum in data[1:]:
            take = pc.or_(pc.is_null(found), pc.fill_null(better(found, datum), False))
            found = pc.if_else(take, datum, found)
        return found

    def compile_call(call: SqlCall, args: list[Compiled]) -> Compiled:
        parts = unify(call, args)
        if len(parts) < 2 or pa.types.is_binary(parts[0].kind):
            raise DefinitionError(f"expr: {call} takes two or more numbers, texts, dates or conditions")
        return eager(parts[0].kind, kernel, parts)

    return compile_call


def null_if_equal(call: SqlCall, args: list[Compiled]) -> Compiled:
    """Compile NULLIF: the first argument, but null where both are equal."""
    first = args[0]
    same = compile_comparison(SqlCall("=", call.args), args)

    def run(rows: SqlRows) -> Datum:
        return pc.if_else(pc.fill_null(same.run(rows), False), pa.scalar(None, first.kind), first.run(rows))

    return Compiled(first.kind, run, same.fallible)
