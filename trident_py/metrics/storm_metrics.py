"""The metrics of Storm's first interface, org.apache.storm.metric.api."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any


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
