"""Sizes and durations as settings give them: 1000, "128MB", "30d"."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trident_py.errors import DefinitionError

SIZES = {"": 1, "b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}
TIMES = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_AMOUNT = re.compile(r"\s*(\d+)\s*([a-z]*)\s*", re.IGNORECASE)


def amount(name: str, value: float | str, units: Mapping[str, int], most: int | None = None, least: int = 1) -> int:
    """Raise DefinitionError for something else than an amount between these bounds."""
    match = None if isinstance(value, bool) else _AMOUNT.fullmatch(str(value))
    if match is not None and match[2].lower() in units:
        found = int(match[1]) * units[match[2].lower()]
        if least <= found and (most is None or found <= most):
            return found
    known = ", ".join(unit for unit in units if unit)
    upto = f", up to {most}" if most is not None else ""
    raise DefinitionError(f"{name} must be a whole number from {least} on{upto}, with one of {known}; got {value!r}")
