"""Copies of values, so that what a map keeps and what it hands out are never one object that both can change."""

from __future__ import annotations

import copy
import datetime
import decimal
import fractions
import uuid
from collections.abc import Sequence
from typing import Any

from ..errors import StateError
from .values import OpaqueValue, TransactionalValue

PLAIN = frozenset({
    str, int, float, bool, type(None), bytes, complex, decimal.Decimal, fractions.Fraction, uuid.UUID,
    datetime.date, datetime.datetime, datetime.time, datetime.timedelta,
})  # fmt: skip
"""Types whose values never change: they need no copy."""
_TUPLES = frozenset({tuple, TransactionalValue, OpaqueValue})
_FLAT = frozenset({list, set})


def copy_values(values: Sequence[Any]) -> Sequence[Any]:
    """Return the values with a copy of each that can change; the sequence itself if there is none."""
    if PLAIN.issuperset(map(type, values)):
        return values
    return [value if type(value) in PLAIN else copy_value(value) for value in values]


def copy_value(value: Any) -> Any:
    """Return a copy that shares nothing with the value that can change; the value itself if it never changes.

    Raises StateError if it cannot be copied.
    """
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind in _TUPLES:
        return value if PLAIN.issuperset(map(type, value)) else tuple.__new__(kind, map(copy_value, value))
    if kind is memoryview:
        return bytes(value)
    if kind in _FLAT and PLAIN.issuperset(map(type, value)):
        return value.copy()
    if kind is dict and PLAIN.issuperset(map(type, value)) and PLAIN.issuperset(map(type, value.values())):
        return value.copy()
    try:
        return copy.deepcopy(value)
    except Exception as error:
        raise StateError(
            f"a map state keeps a copy of each value, and one of type {kind.__qualname__} cannot be copied: {error}"
        ) from error


def copy_initial(value: Any) -> Any:
    """Return a copy of an aggregator's first value; one that cannot be copied is taken as it is."""
    try:
        return copy_value(value)
    except StateError:
        return value
