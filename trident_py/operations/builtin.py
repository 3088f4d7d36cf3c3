"""Storm's built-in operations. Source in Storm: org.apache.storm.trident.operation.builtin.

``Count``, ``Sum``, ``Min`` and ``Max`` name their Arrow kernel in ``kernel``; an engine may use it on
typed fields if it gives the same results and errors. ``output_type`` is the type of an output field that is
declared without one. ``MapGet``, ``SnapshotGet`` and ``TupleCollectionGet`` stand with the states and are
found here too.
"""

from __future__ import annotations

import copy
import datetime
import importlib
import itertools
import logging
import numbers
from collections.abc import Callable
from decimal import Decimal
from typing import Any, ClassVar

from ..errors import DefinitionError, TridentError
from ..tuples import TridentTuple, identity
from .base import Aggregator, Assembly, CombinerAggregator, Filter, TridentCollector, TridentOperationContext
from .ordering import Comparator, JavaHeap, compare

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
    "Min",
    "MinWithComparator",
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

    def init(self, tuple: TridentTuple) -> Any:
        value = tuple[0]
        if type(value) is not int and type(value) is not float:
            _check_number(value, tuple)
        return value

    def combine(self, val1: Any, val2: Any) -> Any:
        try:
            return val1 + val2
        except TypeError:
            return _add(val1, val2)

    def zero(self) -> int:
        return 0


def _check_number(value: Any, where: TridentTuple) -> None:
    if isinstance(value, numbers.Real | Decimal) and not isinstance(value, bool):
        return
    field = where.getFields().names[:1]
    name = f" in field {field[0]!r}" if field else ""
    what = "null" if value is None else f"{value!r}, a {type(value).__name__},"
    raise TridentError(f"Sum: {what}{name} is no number; filter such tuples before (FilterNull)")


def _add(a: Any, b: Any) -> Any:
    """A Decimal with a float: the float enters with its exact value, as in Storm."""
    if isinstance(a, Decimal) and isinstance(b, float):
        return a + Decimal(b)
    if isinstance(b, Decimal) and isinstance(a, float):
        return Decimal(a) + b
    raise TridentError(f"Sum: cannot add {a!r} and {b!r}; both must be numbers")


class _Comparison(Aggregator):
    """Keeps the winning tuple of a partition; of equal ones the later. Tuples with a null value are skipped.

    Without a field whole tuples are compared. A partition without a winner emits nothing (Storm emits null,
    and the next reader throws).
    """

    def __init__(self, inputFieldName: str | None, comparator: Comparator) -> None:
        if not callable(comparator):
            raise DefinitionError(f"a comparator is a callable (a, b) -> int, got {comparator!r}")
        self.inputFieldName = inputFieldName
        self.comparator = comparator

    def beats(self, order: int) -> bool:
        """Whether a candidate replaces the winner that compares to it as `order`."""
        raise NotImplementedError

    def init(self, batchId: Any, collector: TridentCollector) -> TridentTuple | None:
        return None

    def aggregate(self, value: TridentTuple | None, tuple: TridentTuple, collector: TridentCollector) -> Any:
        candidate = self.value(tuple)
        if candidate is None:
            return value
        if value is None or self.beats(self.comparator(self.value(value), candidate)):
            return tuple
        return value

    def complete(self, value: TridentTuple | None, collector: TridentCollector) -> None:
        if value is not None:
            collector.emit(value)

    def value(self, tuple: TridentTuple) -> Any:
        return tuple if self.inputFieldName is None else tuple.getValueByField(self.inputFieldName)


class MinWithComparator(_Comparison):
    """The smallest tuple by a comparator: ``(comparator)`` of tuples or ``(field, comparator)`` of values."""

    def __init__(self, inputFieldName: Any = None, comparator: Comparator | None = None) -> None:
        super().__init__(*_field_and_comparator(inputFieldName, comparator))

    def beats(self, order: int) -> bool:
        return order >= 0


class MaxWithComparator(_Comparison):
    """The largest tuple by a comparator: ``(comparator)`` of tuples or ``(field, comparator)`` of values."""

    def __init__(self, inputFieldName: Any = None, comparator: Comparator | None = None) -> None:
        super().__init__(*_field_and_comparator(inputFieldName, comparator))

    def beats(self, order: int) -> bool:
        return order <= 0


def _field_and_comparator(field: Any, comparator: Comparator | None) -> tuple[str | None, Any]:
    return (None, field) if comparator is None else (field, comparator)


class Min(MinWithComparator):
    """The tuple with the smallest value of a field; values of different types are an error, as in Storm."""

    kernel: ClassVar[str] = "min"

    def __init__(self, inputFieldName: str) -> None:
        super().__init__(inputFieldName, compare)


class Max(MaxWithComparator):
    """The tuple with the largest value of a field; values of different types are an error, as in Storm."""

    kernel: ClassVar[str] = "max"

    def __init__(self, inputFieldName: str) -> None:
        super().__init__(inputFieldName, compare)


class FirstN(Assembly):
    """The first n tuples of a batch; with a sort field the n smallest by it, largest if reverse.

    Works in each partition, then over all of them. The fields stay. An empty batch gives nothing.
    """

    def __init__(self, n: int, sortField: str | None = None, reverse: bool = False) -> None:
        self.aggregator = FirstNAgg(n) if sortField is None else FirstNSortedAgg(n, sortField, reverse)

    def apply(self, stream: Any) -> Any:
        fields = stream.getOutputFields()
        partial = stream.partitionAggregate(fields, self.aggregator, fields)
        return partial.global_().partitionAggregate(fields, self.aggregator, fields)


class FirstNAgg(Aggregator):
    """Emits the first n tuples as they come."""

    def __init__(self, n: int) -> None:
        self.n = n

    def init(self, batchId: Any, collector: TridentCollector) -> int:
        return 0

    def aggregate(self, value: int, tuple: TridentTuple, collector: TridentCollector) -> int:
        if value < self.n:
            collector.emit(tuple)
        return value + 1

    def complete(self, value: int, collector: TridentCollector) -> None:
        """All is emitted."""


class FirstNSortedAgg(Aggregator):
    """Emits the n smallest (largest) tuples by a field when the batch ends.

    Raises TridentError when it runs: n below 1, two values that cannot be compared, null among several.
    """

    def __init__(self, n: int, sortField: str, reverse: bool = False) -> None:
        self.n = n
        self.sortField = sortField
        self.reverse = reverse

    def init(self, batchId: Any, collector: TridentCollector) -> JavaHeap:
        if self.n < 1:
            raise TridentError(f"FirstN sorted by {self.sortField!r}: n must be 1 or more, got {self.n}")
        return JavaHeap(self.order)

    def aggregate(self, value: JavaHeap, tuple: TridentTuple, collector: TridentCollector) -> None:
        value.add(tuple)

    def complete(self, value: JavaHeap, collector: TridentCollector) -> None:
        for _ in range(min(self.n, len(value))):
            collector.emit(value.remove())

    def order(self, a: TridentTuple, b: TridentTuple) -> int:
        order = compare(a.getValueByField(self.sortField), b.getValueByField(self.sortField))
        return -order if self.reverse else order


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
            if first is None and second is None:
                raise TridentError(
                    f"Equals: two nulls in {tuple.getFields()}; filter them first (FilterNull)"
                )
            if identity(first) != identity(second):
                return False
        return True


class FilterNull(Filter):
    """Drops a tuple if any of its values is null."""

    def isKeep(self, tuple: TridentTuple) -> bool:
        return None not in map(_null_or_not, tuple)


def _null_or_not(value: Any) -> bool | None:
    """Null alone is None: never asks a value of the user for equality."""
    return None if value is None else True


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
