"""Histogram reservoir: sampled order, exact totals."""

from __future__ import annotations

from collections.abc import Iterable


class Snapshot:
    """Some numbers in their order. Codahale's names."""

    def __init__(self, values: Iterable[float]) -> None:
        self._values = sorted(values)

    def size(self) -> int:
        return len(self._values)

    def getValues(self) -> list[float]:
        return list(self._values)

    def getValue(self, quantile: float) -> float:
        """Return the value at the quantile, between the two values nearest to it; 0 without values."""
        values = self._values
        if not values:
            return 0.0
        place = quantile * (len(values) + 1) - 1
        if place < 0:
            return float(values[0])
        if place >= len(values) - 1:
            return float(values[-1])
        below = values[int(place)]
        return below + (place - int(place)) * (values[int(place) + 1] - below)

    def getMedian(self) -> float:
        return self.getValue(0.5)

    def get75thPercentile(self) -> float:
        return self.getValue(0.75)

    def get95thPercentile(self) -> float:
        return self.getValue(0.95)

    def get98thPercentile(self) -> float:
        return self.getValue(0.98)

    def get99thPercentile(self) -> float:
        return self.getValue(0.99)

    def get999thPercentile(self) -> float:
        return self.getValue(0.999)

    def getMin(self) -> float:
        return self._values[0] if self._values else 0.0

    def getMax(self) -> float:
        return self._values[-1] if self._values else 0.0

    def getMean(self) -> float:
        return sum(self._values) / len(self._values) if self._values else 0.0


class Summary:
    """Count, sum, least and greatest of some numbers, and a sample of them."""

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0.0
        self.min = self.max = 0.0
        self.sample: list[float] = []

    def add(self, value: float) -> None:
        self.join(1, value, value, value)

    def join(self, count: int, sum: float, min: float, max: float) -> None:
        first = self.count == 0
        self.min = min if first or min < self.min else self.min
        self.max = max if first or max > self.max else self.max
        self.count += count
        self.sum += sum
