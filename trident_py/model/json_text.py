"""Reads JSON that another program, or a damaged disk, may have written; writes JSON of what users have made."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any


def parse_json(text: str | bytes, number: Callable[[str], Any] | None = None) -> Any:
    """Return the value of a JSON text; ``number`` makes the numbers that have a fraction. Raises ValueError for what is
    none, and for what is nested too deeply."""
    try:
        return json.loads(text, parse_float=number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def write_json(value: Any) -> str:
    """Return the JSON text of any value. What JSON lacks: NaN and infinities are null, a key or another value is its
    text."""
    try:
        return json.dumps(value, default=str, allow_nan=False)
    except (TypeError, ValueError):
        return json.dumps(_plain(value), default=str)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
