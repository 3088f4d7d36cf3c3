"""What an operation may emit as the values of one tuple, and the collectors' checks of it."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..errors import TridentError
from ..tuples import Fields

Emit = Callable[[Any], Any]

_PLAIN = frozenset({list, tuple})


def is_frame(kind: type) -> bool:
    """Return whether the class is a DataFrame, a Series or an Arrow table. Iterating one gives column names or bare
    values."""
    return kind.__module__.partition(".")[0] in ("pandas", "polars", "pyarrow", "pyspark")


def is_row(row: Any) -> bool:
    """Return whether this can be the values of one tuple: they have a number and positions."""
    # Users emit rows of any class: what counts is that it has positions, so no interface is asked for.
    if isinstance(row, str | bytes | bytearray | Mapping) or is_frame(type(row)):
        return False
    return hasattr(row, "__getitem__") and hasattr(row, "__len__")


def check_row(row: Any, operation: str) -> None:
    """Raise TridentError for what is no row: mostly a bare value in place of a tuple's values."""
    if not is_row(row):
        raise TridentError(f"{operation} emitted {row!r}; emit the values of one tuple, for example [{row!r}]")


def check_rows(rows: Sequence[Any], outputs: Fields, operation: str) -> None:
    """Check one row of each type. Without fields it does not matter what a row holds."""
    if len(outputs):
        for kind in set(map(type, rows)) - _PLAIN:
            check_row(next(row for row in rows if type(row) is kind), operation)


def emit_into(rows: list[Any], outputs: Fields, operation: str) -> Emit:
    """Return an ``emit`` that checks each row, and copies a list: the operation may fill it again."""

    def emit(values: Any) -> None:
        if type(values) is not tuple:
            if len(outputs):
                check_row(values, operation)
            if isinstance(values, list):
                values = tuple(values)
        rows.append(values)

    return emit


def emit_behind(prefix: tuple, rows: list[Any], outputs: Fields, operation: str) -> Emit:
    """Return an ``emit`` that puts the row behind other values, and so takes neither fewer nor more values than
    there are fields."""
    width = len(outputs)

    def emit(values: Any) -> None:
        if type(values) is not tuple and type(values) is not list:
            check_row(values, operation)
        if len(values) != width:
            shown = reprlib.repr(list(values))
            raise TridentError(f"{operation} emitted {len(values)} values for the {width} fields {outputs}: {shown}")
        rows.append((*prefix, *values))

    return emit


def copy_lists(rows: Iterable[Any]) -> list[Any]:
    """Return the rows of an iterator. A list is copied: the iterator may fill it again."""
    return [tuple(row) if type(row) is list else row for row in rows]
