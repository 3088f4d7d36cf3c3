"""A compiled expression: kernels over the columns of some rows, and which rows need not be computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import TridentError
from .types import VOID

Datum = Any  # an array, or a scalar that stands for every row


@dataclass(frozen=True)
class SqlRows:
    """Columns of equal length."""

    columns: dict[str, pa.Array]
    length: int

    def where(self, mask: pa.Array) -> SqlRows:
        return SqlRows({name: column.filter(mask) for name, column in self.columns.items()}, pc.sum(mask).as_py() or 0)


@dataclass(frozen=True)
class Compiled:
    """An expression of a known type. ``fallible``: it may raise for some values, so it is computed only where Spark
    computes it. ``constant``: its value is ``value``."""

    kind: pa.DataType
    run: Callable[[SqlRows], Datum]
    fallible: bool = False
    constant: bool = False
    value: Any = None


class SqlValueError(TridentError):
    """A value for which an expression has no result, as in Spark's ANSI mode: an overflow, a division by zero."""


def literal(value: Any, kind: pa.DataType) -> Compiled:
    scalar = pa.scalar(value, kind)
    return Compiled(kind, lambda rows: scalar, constant=True, value=value)


def full(datum: Datum, length: int) -> pa.Array:
    """Return the datum as an array: one value for each row."""
    if isinstance(datum, pa.Scalar):
        return pa.nulls(length, datum.type) if not datum.is_valid else pa.repeat(datum, length)
    return datum.combine_chunks() if isinstance(datum, pa.ChunkedArray) else datum


def at(part: Compiled, rows: SqlRows, wanted: Datum) -> Datum:
    """Return the result where ``wanted`` is true. Elsewhere it may be anything, but nothing fails."""
    if not part.fallible:
        return part.run(rows)
    mask = full(wanted, rows.length)
    count = pc.sum(mask).as_py() or 0
    if count == rows.length:
        return part.run(rows)
    if count == 0:
        return pa.nulls(rows.length, part.kind)
    return pc.replace_with_mask(pa.nulls(rows.length, part.kind), mask, full(part.run(rows.where(mask)), count))


def strict(
    kind: pa.DataType, kernel: Callable[..., Datum], args: list[Compiled], where: Any = None, order: Any = None
) -> Compiled:
    """Return a call whose result is null if an argument is: later arguments are not computed where an earlier one is
    null.

    ``where``: the call, for errors, if the kernel itself may raise ArrowInvalid. ``order``: the order of computing.
    """
    numbers = list(order or range(len(args)))

    def run(rows: SqlRows) -> Datum:
        data: list[Datum] = [None] * len(args)
        valid: Datum = pa.scalar(True)
        for place, number in enumerate(numbers):
            data[number] = at(args[number], rows, valid)
            if any(args[later].fallible for later in numbers[place + 1 :]):
                valid = pc.and_(valid, pc.is_valid(data[number]))
        try:
            return kernel(*data)
        except pa.ArrowInvalid as error:
            raise SqlValueError(f"{where}: {error}") from error

    return Compiled(kind, run, where is not None or any(arg.fallible for arg in args))


def eager(kind: pa.DataType, kernel: Callable[..., Datum], args: list[Compiled]) -> Compiled:
    """Return a call that computes all its arguments in every row."""
    return Compiled(kind, lambda rows: kernel(*(arg.run(rows) for arg in args)), any(arg.fallible for arg in args))


def widen(part: Compiled, kind: pa.DataType) -> Compiled:
    """Return the expression in a wider type, one of `kinds.common`."""
    if part.kind == kind:
        return part
    if part.kind == VOID:
        return literal(None, kind)
    if part.constant:
        value = part.value
        return literal(float(value) if value is not None and pa.types.is_floating(kind) else value, kind)
    return Compiled(kind, lambda rows: pc.cast(part.run(rows), kind, safe=False), part.fallible)


def by_value(function: Callable[[Any], Any], datum: Datum, kind: pa.DataType) -> Datum:
    """Apply a function of one value that is not null, where no kernel does the same as Spark."""
    if isinstance(datum, pa.Scalar):
        return pa.scalar(function(datum.as_py()) if datum.is_valid else None, kind)
    return pa.array([None if value is None else function(value) for value in datum.to_pylist()], kind)
