"""Compares the results of two runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...state import OpaqueValue, TransactionalValue

_SHOWN = 4


@dataclass(frozen=True)
class Discrepancy:
    """Of one state: key -> (expected, found), None for what is not there."""

    state: str
    keys: tuple[tuple[Any, Any, Any], ...]

    def __str__(self) -> str:
        lines = [f"  {_short(key)}: expected {_short(expected)}, found {_short(found)}"
                 for key, expected, found in self.keys[:_SHOWN]]  # fmt: skip
        more = len(self.keys) - _SHOWN
        rest = [f"  and {more} more"] if more > 0 else []
        return "\n".join([f"{self.state}: {len(self.keys)} values differ", *lines, *rest])


def compare(state: str, expected: Any, found: Any, plain: bool = False) -> Discrepancy | None:
    """Return the difference between two contents of a state; None if they are equal. ``plain``: values count, their
    txids do not."""
    if not (isinstance(expected, Mapping) and isinstance(found, Mapping)):
        return None if expected == found else Discrepancy(state, (("content", expected, found),))
    before, after = dict(expected), dict(found)
    if plain:
        before, after = ({key: plain_value(value) for key, value in side.items()} for side in (before, after))
    keys = [*before, *(key for key in after if key not in before)]
    different = tuple((key, before.get(key), after.get(key)) for key in keys if _differ(key, before, after))
    return Discrepancy(state, different) if different else None


def plain_value(value: Any) -> Any:
    """Return what a query of the state would answer."""
    if isinstance(value, TransactionalValue):
        return value.value
    return value.curr if isinstance(value, OpaqueValue) else value


def _differ(key: Any, before: dict, after: dict) -> bool:
    return (key in before) != (key in after) or before[key] != after[key]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
