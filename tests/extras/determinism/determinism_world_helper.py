"""A module of the user's own, which another one changes (`determinism_world.py` does)."""

from __future__ import annotations

import time
from typing import Any, ClassVar

RATE = 1.0
FACTOR = 2
TABLE: dict[str, int] = {}
ROWS: list[str] = []
CODES = {"a": 1}
LABELS = {"a": "A"}
LOADED_AT = time.time()
HOOK: Any = str.upper
LIMITS = {"max": 3}


class Settings:
    zone = "UTC"
    depth = 3
    cache: ClassVar[dict[str, int]] = {}


def priced(value: float) -> float:
    return value * RATE


def coded(word: str) -> int:
    return CODES[word]


def shown(word: str) -> str:
    return word.upper()


def limited(n: int) -> int:
    return min(n, LIMITS["max"])
