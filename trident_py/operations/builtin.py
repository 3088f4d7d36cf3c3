"""Storm's built-in operations. Source in Storm: org.apache.storm.trident.operation.builtin.

``Count`` and ``Sum`` name their Arrow kernel in ``kernel``, which `processors.aggregate` uses on typed fields where
results and errors are the same. ``output_type`` is the type of an output field that declares none. ``MapGet``,
``SnapshotGet`` and ``TupleCollectionGet`` are defined with the states and can be imported from here too.
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

from ..entry_points import absent
from ..errors import DefinitionError, TridentError
from ..model.canonical import UnkeyableError, identity, is_null, to_plain
from ..tuples import TridentTuple
from .base import CombinerAggregator, Filter, TridentOperationContext
from .columnar import Columnar
from .ordering import (
    ComparisonAggregator,
    FirstN,
    FirstNAgg,
    FirstNSortedAgg,
    Max,
    MaxWithComparator,
    Min,
    MinWithComparator,
)

_DECIMALS = decimal.Context(
    prec=10_000, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.Inexact, decimal.InvalidOperation]
)
_QUERIES = ("MapGet", "SnapshotGet", "TupleCollectionGet")

__all__ = [
    "ComparisonAggregator",
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
    """Load the three queries, which need the state interfaces: those may import operations, not the reverse."""
    if name in _QUERIES:
        return vars(importlib.import_module("trident_py.state.updaters"))[name]
    raise absent(__name__, name)


class Count(CombinerAggregator):
    """The number of tuples. Takes no input fields."""

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
    """The sum of the first input field: a Decimal if any value is one, else a float if any value is one, else an int.

    Raises TridentError for null, text and any other value that is not a number (Storm: NullPointerException or
    ClassCastException). Floats are not truncated, as Storm's Float is.
    """

    kernel: ClassVar[str] = "sum"
    needs_input: ClassVar[bool] = True
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
    """The smallest number of the first input field, as a combiner for `persistentAggregate`. `Min` keeps whole tuples.

    Skips nulls; without any number the result is None. Of equal numbers it keeps the first; -0.0 counts as 0.0.
    Raises TridentError for NaN, which has no order, and for a value that is not a number.
    """

    needs_input: ClassVar[bool] = True
    sql: ClassVar[str | None] = "CASE WHEN {new} < {old} THEN {new} ELSE {old} END"

    def init(self, tuple: TridentTuple) -> Any:
        value = to_plain(tuple[0])
        if value is None or type(value) is int:
            return value
        value = _number(type(self).__name__, value, tuple)
        if value != value:
            name = type(self).__name__
            raise TridentError(f"{name}: NaN{_in_field(tuple)} has no order; filter such tuples out first")
        return value + 0.0 if isinstance(value, float) else value  # a zero's sign must not depend on tuple order

    def combine(self, val1: Any, val2: Any) -> Any:
        if val1 is None or val2 is None:
            return val2 if val1 is None else val1
        return val2 if val2 < val1 else val1

    def zero(self) -> Any:
        return None


class Maximum(Minimum):
    """The largest number of the first input field, as a combiner, like `Minimum`. `Max` keeps whole tuples."""

    sql: ClassVar[str | None] = "CASE WHEN {new} > {old} THEN {new} ELSE {old} END"

    def combine(self, val1: Any, val2: Any) -> Any:
        if val1 is None or val2 is None:
            return val2 if val1 is None else val1
        return val2 if val2 > val1 else val1


def _number(name: str, value: Any, where: TridentTuple) -> Any:
    """Return the value as a Python number: NumPy's overflow silently. Raises TridentError if it is not a number."""
    plain = to_plain(value)
    if isinstance(plain, numbers.Real | Decimal) and not isinstance(plain, bool):
        return plain
    shown = "null" if plain is None else f"{value!r}, a {type(value).__name__},"
    hint = " (FilterNull)" if plain is None else ""
    raise TridentError(f"{name}: {shown}{_in_field(where)} is not a number; filter such tuples out first{hint}")


def _in_field(where: TridentTuple) -> str:
    field = where.getFields().names[:1]
    return f" in field {field[0]!r}" if field else ""


def _exact_sum(a: Any, b: Any) -> Decimal:
    """Return all digits of the sum; a float counts with its exact value, as in Storm's BigDecimal."""
    try:
        return _DECIMALS.add(Decimal(a), Decimal(b))
    except (ArithmeticError, TypeError, ValueError):
        raise TridentError(
            f"Sum: cannot add {a!r} and {b!r}: both must be numbers, and their sum may have no more than "
            f"{_DECIMALS.prec} digits. Round the values first"
        ) from None


class Debug(Filter):
    """Prints each tuple (``<date> DEBUG(name): [values]``) and keeps it.

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
    """Keeps the tuples whose values are all equal, compared as in Java: 1, 1.0 and True differ.

    A null and a value are unequal. Raises TridentError for two adjacent nulls (Storm: NullPointerException).
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
    except UnkeyableError:  # the value cannot be a key, but may have its own ==
        return type(first) is type(second) and bool(first == second)


class FilterNull(Filter):
    """Drops a tuple if any of its values is null."""

    def isKeep(self, tuple: TridentTuple) -> bool:
        return not any(map(is_null, tuple))  # never calls ``==`` of a user's value


class Negate(Filter):
    """Keeps the tuples that another filter drops. Takes a Filter, or a callable of the input values."""

    def __init__(self, filter: Filter | Callable[..., Any]) -> None:
        if isinstance(filter, Columnar):
            raise DefinitionError(f"Negate sees one tuple at a time, {filter.name} whole columns; negate inside of it")
        self.filter = filter

    def prepare(self, conf: dict, context: TridentOperationContext) -> None:
        if isinstance(self.filter, Filter):
            self.filter = copy.copy(self.filter)  # a copy for this partition
            self.filter.prepare(conf, context)

    def cleanup(self) -> None:
        if isinstance(self.filter, Filter):
            self.filter.cleanup()

    def isKeep(self, tuple: TridentTuple) -> bool:
        if isinstance(self.filter, Filter):
            return not self.filter.isKeep(tuple)
        return not self.filter(*tuple)
