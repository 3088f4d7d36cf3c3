"""The types of metrics of Storm's two interfaces. Each lives where its operation or state is."""

from __future__ import annotations

import random
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from .tallies import KEPT, Distribution, Latest, Rate, Snapshot, Summary, Tally, Total


class IMetric:
    """A metric of Storm's first interface. `getValueAndReset` is called after each attempt; None reports nothing.

    ``progress.metrics`` has the latest value by partition. The value must be picklable.
    """

    @abstractmethod
    def getValueAndReset(self) -> Any:
        raise NotImplementedError


class CountMetric(IMetric):
    """The number of calls in an attempt."""

    def __init__(self) -> None:
        self._value = 0

    def incr(self) -> None:
        self._value += 1

    def incrBy(self, incrementBy: int) -> None:
        self._value += incrementBy

    def getValueAndReset(self) -> int:
        value, self._value = self._value, 0
        return value


class MultiCountMetric(IMetric):
    """A CountMetric for each key."""

    def __init__(self) -> None:
        self._values: dict[str, CountMetric] = {}

    def scope(self, key: str) -> CountMetric:
        return self._values.setdefault(key, CountMetric())

    def getValueAndReset(self) -> dict[str, int]:
        return {key: metric.getValueAndReset() for key, metric in self._values.items()}


class AssignableMetric(IMetric):
    """The value that was set last; it stays until another is set."""

    def __init__(self, value: Any = None) -> None:
        self._value = value

    def setValue(self, value: Any) -> None:
        self._value = value

    def getValueAndReset(self) -> Any:
        return self._value


class ICombiner:
    """Combines the values of a `CombinedMetric`."""

    @abstractmethod
    def identity(self) -> Any:
        raise NotImplementedError

    @abstractmethod
    def combine(self, a: Any, b: Any) -> Any:
        raise NotImplementedError


class CombinedMetric(IMetric):
    """Combines the values of an attempt."""

    def __init__(self, combiner: ICombiner) -> None:
        self._combiner = combiner
        self._value = combiner.identity()

    def update(self, value: Any) -> None:
        self._value = self._combiner.combine(self._value, value)

    def getValueAndReset(self) -> Any:
        value, self._value = self._value, self._combiner.identity()
        return value


class IReducer:
    """Reduces the values of a `ReducedMetric`."""

    @abstractmethod
    def init(self) -> Any:
        raise NotImplementedError

    @abstractmethod
    def reduce(self, accumulator: Any, input: Any) -> Any:
        raise NotImplementedError

    @abstractmethod
    def extractResult(self, accumulator: Any) -> Any:
        raise NotImplementedError


class MeanReducer(IReducer):
    """The mean of numbers; None without any."""

    def init(self) -> tuple[int, float]:
        return 0, 0.0

    def reduce(self, accumulator: tuple[int, float], input: float) -> tuple[int, float]:
        return accumulator[0] + 1, accumulator[1] + input

    def extractResult(self, accumulator: tuple[int, float]) -> float | None:
        return accumulator[1] / accumulator[0] if accumulator[0] else None


class ReducedMetric(IMetric):
    """Reduces the values of an attempt."""

    def __init__(self, reducer: IReducer) -> None:
        self._reducer = reducer
        self._value = reducer.init()

    def update(self, value: Any) -> None:
        self._value = self._reducer.reduce(self._value, value)

    def getValueAndReset(self) -> Any:
        value, self._value = self._reducer.extractResult(self._value), self._reducer.init()
        return value


SAMPLE = 128  # values of a histogram that a partition reports for an attempt
T = TypeVar("T")


class Metric:
    """What a context registers. `take` is called after each attempt, where the metric is."""

    def take(self) -> Any:
        """Return what is new since the last call, for the metric's `Tally`; None if nothing is."""
        raise NotImplementedError

    def tally(self) -> Tally:
        """Return the driver's side of this kind of metric."""
        raise NotImplementedError


class Counter(Metric):
    """A number that goes up and down. ``progress.metrics`` has the sum over the partitions."""

    def __init__(self) -> None:
        self._count = 0
        self._taken: int | None = None

    def inc(self, n: int = 1) -> None:
        self._count += n

    def dec(self, n: int = 1) -> None:
        self._count -= n

    def getCount(self) -> int:
        """Return the count of this partition, in this process."""
        return self._count

    def take(self) -> int | None:
        before, self._taken = self._taken, self._count
        return self._count if before is None else (self._count - before or None)

    def tally(self) -> Tally:
        return Total()


class Meter(Counter):
    """Counts events. ``progress.metrics`` has the sum over the partitions, and the rate in the last attempt."""

    def mark(self, n: int = 1) -> None:
        self._count += n

    def tally(self) -> Tally:
        return Rate()


class Histogram(Metric):
    """The distribution of numbers.

    ``progress.metrics`` has count, min, max and mean of all, and percentiles of a sample of the latest ones.
    """

    def __init__(self) -> None:
        self._random = random.Random(0)  # noqa: S311  the sample is the same in every process
        self._recent: deque[float] = deque(maxlen=KEPT)
        self._count = 0
        self._new = Summary()

    def update(self, value: float) -> None:
        self._count += 1
        self._recent.append(value)
        new = self._new
        new.add(value)
        if len(new.sample) < SAMPLE:
            new.sample.append(value)
        elif (place := self._random.randrange(new.count)) < SAMPLE:
            new.sample[place] = value

    def getCount(self) -> int:
        """Return the number of values of this partition, in this process."""
        return self._count

    def getSnapshot(self) -> Snapshot:
        """Return the latest values of this partition."""
        return Snapshot(self._recent)

    def take(self) -> Summary | None:
        new, self._new = self._new, Summary()
        return new if new.count else None

    def tally(self) -> Tally:
        return Distribution()


class Timer(Histogram):
    """The distribution of durations, in seconds (Storm: nanoseconds)."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        super().__init__()
        self.clock = clock

    def time(self, event: Callable[[], T] | None = None) -> Any:
        """Time a call, and return its result. Without one: a context, ``with timer.time():`` or its `stop`."""
        running = _Running(self)
        if event is None:
            return running
        with running:
            return event()


class _Running:
    """A duration being taken."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._began = timer.clock()

    def stop(self) -> None:
        """Record the duration. (Storm also returns it: a duration in a tuple would differ in a replay.)"""
        self._timer.update(self._timer.clock() - self._began)

    close = stop

    def __enter__(self) -> _Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Gauge(Metric):
    """A value that is asked for after each attempt: override `getValue`, or pass a callable.

    ``progress.metrics`` has the latest value by partition. The value must be picklable.
    """

    def __init__(self, value: Callable[[], Any] | None = None) -> None:
        self._value = value

    def getValue(self) -> Any:
        if self._value is None:
            raise NotImplementedError
        return self._value()

    def take(self) -> Any:
        return self.getValue()

    def tally(self) -> Tally:
        return Latest()


class MetricSet:
    """Several metrics that are registered together, each under ``<prefix>.<name>``."""

    @abstractmethod
    def getMetrics(self) -> dict[str, Any]:
        raise NotImplementedError
