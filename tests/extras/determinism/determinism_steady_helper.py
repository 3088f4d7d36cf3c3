"""A module of the user's own, next to the one with the topology."""

from __future__ import annotations

import re

LIMIT = 10
NAMES = ["a", "b"]
_SPACE = re.compile(r"\s+")


def clean(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def to_celsius(fahrenheit: float) -> float:
    return round((fahrenheit - 32) / 1.8, 1)


class Scale:
    def __init__(self, factor: int) -> None:
        self.factor = factor

    def apply(self, n: int) -> int:
        return n * self.factor
