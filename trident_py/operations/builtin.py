"""Storm's built-in operations. Source in Storm: org.apache.storm.trident.operation.builtin.

``Count``, ``Sum``, ``Min`` and ``Max`` name their Arrow kernel in ``kernel``; an engine may use it on
typed fields if it gives the same results and errors. ``output_type`` is the type of an output field that is
declared without one. ``MapGet``, ``SnapshotGet`` and ``TupleCollectionGet`` stand with the states and are
found here too.
"""

from __future__ import annotations

import copy
import datetime
import decimal
import importlib
import itertools
import logging
import numbers
from collections.abc import Callable
from decimal import Decimal
from typing import Any, ClassVar

from ..canonical import UnkeyableError, identity, is_null, meant
from ..errors import TridentError
from ..tuples import TridentTuple
from .base import CombinerAggregator, Filter, TridentOperationContext
from .ordering import FirstN, FirstNAgg, FirstNSortedAgg, Max, MaxWithComparator, Min, MinWithComparator

_DECIMALS = decimal.Context(
    prec=10_000, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.Inexact, decimal.InvalidOperation]
)
_QUERIES = ("MapGet", "SnapshotGet", "TupleCollectionGet")

__all__ = [
    "Count",
    "Debug",
    "Equals",
    "FilterNull",
    "FirstN",
    "FirstNAgg",
    "FirstNSortedAgg",
    "Max",
    "MaxWithComparator",
    "Maximum",
    "Min",
    "MinWithComparator",
    "Minimum",
    "Negate",
    "Sum",
    *_QUERIES,
]


def __getattr__(name: str) -> Any:
    """The three queries: they need the state interfaces, which stand above the operations."""
    if name in _QUERIES:
        return getattr(importlib.import_module("trident_py.state.queries"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Count(CombinerAggregator):
    """How many tuples there are. Takes no input fields."""

    kernel: ClassVar[str] = "count"
    sql: ClassVar[str | None] = "{old} + {new}"
    output_type: ClassVar[str] = "bigint"

    def init(self, tuple: TridentTuple) -> int:
        return 1

    def combine(self, val1: int, val2: int) -> int:
        return val1 + val2

    def zero(self) -> int:
        return 0


class Sum(CombinerAggregator):
    """The sum of the first input field: a Decimal if one value is, else a float if one is, else an int.

    Raises TridentError for null, text and anything else that is no number (Storm: NullPointerException or
    ClassCastException; floats are not truncated, as Storm's Float is).
    """

    kernel: ClassVar[str] = "sum"
    sql: ClassVar[str | None] = "{old} + {new}"

    def init(self, tuple: TridentTuple) -> Any:
        value = tuple[0]
        return value if type(value) is int or type(value) is float else _number("Sum", value, tuple)

    def combine(self, val1: Any, val2: Any) -> Any:
        if isinstance(val1, Decimal) or isinstance(val2, Decimal):
            return _exact_sum(val1, val2)
        try:
            return val1 + val2
        except TypeError:
            raise TridentError(f"Sum: cannot add {val1!r} and {val2!r}; both must be numbers") from None

    def zero(self) -> int:
        return 0


class Minimum(CombinerAggregator):
    """The smallest number of the first input field, as a combiner: for `persistentAggregate`. `Min` keeps whole tuples.

    Nulls are skipped; where there was no number it is None. Of equal numbers the first stays; -0.0 enters as 0.0.
    Raises TridentError for NaN, which has no order, and for what is no number.
    """

    sql: ClassVar[str | None] = "CASE WHEN {new} < {old} THEN {new} ELSE {old} END"

    def init(self, tuple: TridentTuple) -> Any:
        value = meant(tuple[0])
        if value is None or type(value) is int:
            return value
        value = _number(type(self).__name__, value, tuple)
        if value != value:
            raise TridentError(f"{type(self).__name__}: NaN{_in_field(tuple)} has no order; filter such tuples before")
        return value + 0.0 if isinstance(value, float) else value  # so that no order of tuples tells on a zero's sign

    def combine(self, val1: Any, val2: Any) -> Any:
        if val1 is None or val2 is None:
            return val2 if val1 is None else val1
        return val2 if val2 < val1 else val1

    def zero(self) -> Any:
        return None


class Maximum(Minimum):
    """The largest number of the first input field, as a combiner; else as `Minimum`. `Max` keeps whole tuples."""

    sql: ClassVar[str | None] = "CASE WHEN {new} > {old} THEN {new} ELSE {old} END"

    def combine(self, val1: Any, val2: Any) -> Any:
        if val1 is None or val2 is None:
            return val2 if val1 is None else val1
        return val2 if val2 > val1 else val1


def _number(name: str, value: Any, where: TridentTuple) -> Any:
    """The number as Python's own: one of NumPy would overflow unseen. Raises TridentError for what is none."""
    plain = meant(value)
    if isinstance(plain, numbers.Real | Decimal) and not isinstance(plain, bool):
        return plain
    what = "null" if plain is None else f"{value!r}, a {type(value).__name__},"
    hint = " (FilterNull)" if plain is None else ""
    raise TridentError(f"{name}: {what}{_in_field(where)} is no number; filter such tuples before{hint}")


def _in_field(where: TridentTuple) -> str:
    field = where.getFields().names[:1]
    return f" in field {field[0]!r}" if field else ""


def _exact_sum(one: Any, other: Any) -> Decimal:
    """All digits of the sum; a float enters with its exact value, as in Storm's BigDecimal."""
    try:
        a, b = (Decimal(each) for each in (one, other))
        return _DECIMALS.add(a, b)
    except (ArithmeticError, TypeError, ValueError):
        raise TridentError(
            f"Sum: cannot add {one!r} and {other!r}: both must be numbers, and their sum may have no more than "
            f"{_DECIMALS.prec} digits. Round the values before"
        ) from None


class Debug(Filter):
    """Prints each tuple (``<date> DEBUG(name): [values]``) where it passes, and keeps it.

    ``Debug()`` and ``Debug("name")`` print, ``Debug(True)`` writes to the logger of this module.
    """

    def __init__(self, name: str | bool = False) -> None:
        self.label = f"DEBUG({name}): " if isinstance(name, str) else "DEBUG: "
        self.useLogger = name is True

    def isKeep(self, tuple: TridentTuple) -> bool:
        line = f"{self.label}{tuple}"
        if self.useLogger:
            logging.getLogger(__name__).info(line)
        else:
            print(f"{datetime.datetime.now():%a %b %d %H:%M:%S %Y} {line}", flush=True)
        return True


class Equals(Filter):
    """Keeps the tuples whose values are all equal, as Java compares: 1, 1.0 and True differ.

    A null is unequal to a value. Two nulls side by side raise TridentError (Storm: NullPointerException).
    """

    def isKeep(self, tuple: TridentTuple) -> bool:
        for first, second in itertools.pairwise(tuple):
            if is_null(first) and is_null(second):
                raise TridentError(f"Equals: two nulls in {tuple.getFields()}; filter them first (FilterNull)")
            if not _equal(first, second):
                return False
        return True


def _equal(first: Any, second: Any) -> bool:
    try:
        return bool(identity(first) == identity(second))
    except UnkeyableError:  # no key, but Python may know
        return type(first) is type(second) and bool(first == second)


class FilterNull(Filter):
    """Drops a tuple if any of its values is null."""

    def isKeep(self, tuple: TridentTuple) -> bool:
        return None not in map(_null_or_not, tuple)


def _null_or_not(value: Any) -> bool | None:
    """Null alone is None, also as NaT and NA: never asks a value of the user for equality."""
    return None if is_null(value) else True


class Negate(Filter):
    """Keeps what another filter drops. Takes a Filter, or a callable of the input values."""

    def __init__(self, filter: Filter | Callable[..., Any]) -> None:
        self.filter = filter

    def prepare(self, conf: dict, context: TridentOperationContext) -> None:
        if isinstance(self.filter, Filter):
            self.filter = copy.copy(self.filter)  # this partition's own
            self.filter.prepare(conf, context)

    def cleanup(self) -> None:
        if isinstance(self.filter, Filter):
            self.filter.cleanup()

    def isKeep(self, tuple: TridentTuple) -> bool:
        if isinstance(self.filter, Filter):
            return not self.filter.isKeep(tuple)
        return not self.filter(*tuple)
