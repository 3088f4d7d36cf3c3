"""Java's Random: the same seed gives the same numbers."""

from __future__ import annotations

import math
import time
from itertools import count
from typing import Any

from .numbers import to_int, to_long

__all__ = ["Random", "shuffle"]

_MASK = (1 << 48) - 1
_unique = count(1)


class Random:
    """Without a seed, the numbers differ in each process, as in Java."""

    def __init__(self, seed: int | None = None) -> None:
        self.setSeed(next(_unique) * 1181783497276652981 ^ time.time_ns() if seed is None else seed)

    def setSeed(self, seed: int) -> None:
        self._seed = (seed ^ 0x5DEECE66D) & _MASK
        self._gaussian: float | None = None

    def _next(self, bits: int) -> int:
        self._seed = (self._seed * 0x5DEECE66D + 0xB) & _MASK
        return to_int(self._seed >> (48 - bits))

    def nextInt(self, low: int | None = None, high: int | None = None) -> int:
        if low is None:
            return self._next(32)
        if high is not None:
            return self._between(low, high)
        if low <= 0:
            raise ValueError("bound must be positive")
        drawn = self._next(31)
        if low & (low - 1) == 0:
            return (low * drawn) >> 31
        while drawn - drawn % low + low - 1 >= 1 << 31:
            drawn = self._next(31)
        return drawn % low

    def _between(self, low: int, high: int) -> int:
        if low >= high:
            raise ValueError("bound must be greater than origin")
        drawn, size = self._next(32), to_int(high - low)
        if size > 0:
            if size & (size - 1) == 0:
                return (drawn & (size - 1)) + low
            shifted = (drawn & 0xFFFFFFFF) >> 1
            while shifted - shifted % size + size - 1 >= 1 << 31:
                shifted = (self._next(32) & 0xFFFFFFFF) >> 1
            return shifted % size + low
        while not low <= drawn < high:
            drawn = self._next(32)
        return drawn

    def nextLong(self) -> int:
        high = self._next(32)
        return to_long((high << 32) + self._next(32))

    def nextDouble(self, low: float | None = None, high: float = 1.0) -> float:
        first = self._next(26) << 27
        drawn = (first + self._next(27)) * 2.0**-53
        return drawn if low is None else drawn * (high - low) + low

    def nextFloat(self) -> float:
        return self._next(24) / float(1 << 24)

    def nextBoolean(self) -> bool:
        return self._next(1) != 0

    def nextGaussian(self) -> float:
        if self._gaussian is not None:
            kept, self._gaussian = self._gaussian, None
            return kept
        size = 0.0
        while size >= 1 or size == 0:
            a, b = 2 * self.nextDouble() - 1, 2 * self.nextDouble() - 1
            size = a * a + b * b
        factor = math.sqrt(-2 * math.log(size) / size)
        self._gaussian = b * factor
        return a * factor


def shuffle(values: list[Any], random: Random) -> None:
    """Shuffle as ``Collections.shuffle(values, random)`` does."""
    for size in range(len(values), 1, -1):
        other = random.nextInt(size)
        values[size - 1], values[other] = values[other], values[size - 1]
