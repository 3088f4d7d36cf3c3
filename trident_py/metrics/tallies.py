"""Sums the metrics reported by partitions, on the driver; a histogram's reservoir."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import partialmethod
from typing import Any, NamedTuple


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

    getMedian = partialmethod(getValue, 0.5)
    get75thPercentile = partialmethod(getValue, 0.75)
    get95thPercentile = partialmethod(getValue, 0.95)
    get98thPercentile = partialmethod(getValue, 0.98)
    get99thPercentile = partialmethod(getValue, 0.99)
    get999thPercentile = partialmethod(getValue, 0.999)

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


KEPT = 1028  # values that percentiles are taken of: codahale's number


class Tally:
    """The driver's side of a metric: adds up what the partitions report."""

    def add(self, partition: int, new: Any) -> None:
        raise NotImplementedError

    def end(self, seconds: float) -> None:
        """Record the attempt's duration."""

    def value(self) -> Any:
        """Return what ``progress.metrics`` shows."""
        raise NotImplementedError


class Total(Tally):
    """A sum."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, partition: int, new: int) -> None:
        self.count += new

    def value(self) -> Any:
        return self.count


class Rate(Total):
    """A sum, and how much it grew by in each second of the last attempt."""

    def __init__(self) -> None:
        super().__init__()
        self.before = 0
        self.rate = 0.0

    def end(self, seconds: float) -> None:
        self.rate = (self.count - self.before) / seconds if seconds > 0 else 0.0
        self.before = self.count

    def value(self) -> dict[str, float]:
        return {"count": self.count, "rate": self.rate}


class Distribution(Tally):
    """What is exact about all numbers, and percentiles of the latest sampled ones."""

    def __init__(self) -> None:
        self.all = Summary()
        self.recent: deque[float] = deque(maxlen=KEPT)

    def add(self, partition: int, new: Summary) -> None:
        self.all.join(new.count, new.sum, new.min, new.max)
        self.recent.extend(new.sample)

    def value(self) -> dict[str, float]:
        every, recent = self.all, Snapshot(self.recent)
        exact = {"count": every.count, "min": every.min, "max": every.max, "mean": every.sum / max(every.count, 1)}
        return exact | {"p50": recent.getMedian(), "p95": recent.get95thPercentile(), "p99": recent.get99thPercentile()}


class Latest(Tally):
    """The latest value by partition."""

    def __init__(self) -> None:
        self.by_partition: dict[int, Any] = {}

    def add(self, partition: int, new: Any) -> None:
        self.by_partition[partition] = new

    def value(self) -> dict[int, Any]:
        return dict(sorted(self.by_partition.items()))


class Reported(NamedTuple):
    """What a metric of one partition reports to the driver after an attempt."""

    name: str
    tally: Tally
    new: Any


class Tallies:
    """All metrics of a component, on the driver."""

    def __init__(self) -> None:
        self._tallies: dict[str, Tally] = {}

    def attempt(self, reports: Sequence[tuple[int, Reported]], seconds: float) -> None:
        """Add what the partitions reported of one attempt. A name that two kinds of metrics have is the first's."""
        for partition, report in reports:
            tally = self._tallies.setdefault(report.name, report.tally)
            if type(tally) is type(report.tally):
                tally.add(partition, report.new)
        for tally in self._tallies.values():
            tally.end(seconds)

    def values(self) -> dict[str, Any]:
        return {name: tally.value() for name, tally in sorted(self._tallies.items())}
