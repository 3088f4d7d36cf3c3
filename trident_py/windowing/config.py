"""The kinds of windows. Source in Storm: trident.windowing.config, and BaseWindowedBolt.Duration."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ..errors import DefinitionError

_LONGEST = 2**31 - 1


@dataclass(frozen=True)
class Duration:
    """A length of time in milliseconds. Raises DefinitionError if it is negative, too long, or not a whole number."""

    value: int

    def __post_init__(self) -> None:
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise DefinitionError(f"Duration must be a whole number of milliseconds; got {self.value!r}")
        if self.value < 0:
            raise DefinitionError(f"Duration cannot be negative, got {self.value} ms")
        if self.value > _LONGEST:
            raise DefinitionError(f"Duration is too long: {self.value} ms; the longest is {_LONGEST} ms (24 days)")

    @classmethod
    def of(cls, milliseconds: int) -> Duration:
        return cls(milliseconds)

    @classmethod
    def milliseconds(cls, milliseconds: int) -> Duration:
        """Build as `of`, and as Storm's ``new Duration(n, TimeUnit.MILLISECONDS)``."""
        return cls(milliseconds)

    @classmethod
    def seconds(cls, seconds: int) -> Duration:
        return cls(seconds * 1_000)

    @classmethod
    def minutes(cls, minutes: int) -> Duration:
        return cls(minutes * 60_000)

    @classmethod
    def hours(cls, hours: int) -> Duration:
        return cls(hours * 3_600_000)

    @classmethod
    def days(cls, days: int) -> Duration:
        return cls(days * 86_400_000)


DurationLike = Duration | datetime.timedelta


def milliseconds(duration: DurationLike) -> int:
    """Return the duration in milliseconds. Raises DefinitionError for anything but a Duration or a timedelta of whole
    milliseconds."""
    if isinstance(duration, datetime.timedelta):
        if duration.microseconds % 1_000:
            raise DefinitionError(f"a duration must be a whole number of milliseconds; got {duration!r}")
        return Duration(duration // datetime.timedelta(milliseconds=1)).value
    if isinstance(duration, Duration):
        return duration.value
    raise DefinitionError(f"a duration is a Duration, as Duration.seconds(10), or a timedelta; got {duration!r}")


@dataclass(frozen=True)
class WindowConfig:
    """The length of a window, and the distance from one window to the next: in tuples, or in milliseconds."""

    windowLength: int
    slidingLength: int
    unit: ClassVar[str] = ""

    def getWindowLength(self) -> int:
        return self.windowLength

    def getSlidingLength(self) -> int:
        return self.slidingLength

    @property
    def shown(self) -> str:
        """The definition in words. A store notes it: tuples that entered a window fit no other."""
        return f"{self.windowLength} {self.unit} every {self.slidingLength}"

    def validate(self) -> None:
        """Called when a window is defined. Raises DefinitionError for a slide above the length, and for a length or
        slide below 1."""
        for name, value in (("windowLength", self.windowLength), ("slideLength", self.slidingLength)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise DefinitionError(f"{name} must be a whole number, at least 1; got {value!r}")
        if self.slidingLength > self.windowLength:
            raise DefinitionError(
                f"slideLength '{self.slidingLength}' should always be less than windowLength '{self.windowLength}' "
                "(or equal): the tuples between two windows would be in none"
            )


class CountWindow(WindowConfig):
    """A window of a number of tuples."""

    unit = "tuples"


@dataclass(frozen=True)
class DurationWindow(WindowConfig):
    """A window of a length of time, in milliseconds.

    Without ``timestampField`` a tuple's time is that of its batch, by the driver's clock. With it the time is a field
    of the tuple: milliseconds since 1970, or a datetime. A window then ends when the watermark passes its end. The
    watermark of a batch is the latest time in the batches before, less ``lag``; a tuple behind it is late.
    """

    timestampField: str | None = None
    lag: int = 0
    unit: ClassVar[str] = "ms"

    @property
    def shown(self) -> str:
        return super().shown + (f" by {self.timestampField}" if self.timestampField else "")

    def withTimestampField(self, fieldName: str) -> Self:
        """Return the same window in event time."""
        return replace(self, timestampField=fieldName)

    def withLag(self, duration: DurationLike) -> Self:
        """Return the same window in event time; tuples may come this much later than the latest one."""
        return replace(self, lag=milliseconds(duration))

    def validate(self) -> None:
        super().validate()
        Duration(self.lag)
        if self.lag and self.timestampField is None:
            raise DefinitionError("withLag needs withTimestampField: a lag exists only between times of tuples")


class SlidingCountWindow(CountWindow):
    """After every ``slidingCount`` tuples, a window of the last ``windowCount`` tuples; the first ones are shorter."""

    @classmethod
    def of(cls, windowCount: int, slidingCount: int) -> Self:
        return cls(windowCount, slidingCount)


class TumblingCountWindow(CountWindow):
    """A window of each ``windowLength`` tuples."""

    @classmethod
    def of(cls, windowLength: int) -> Self:
        return cls(windowLength, windowLength)


class SlidingDurationWindow(DurationWindow):
    """At every multiple of ``slidingDuration``, a window of the ``windowDuration`` before it."""

    @classmethod
    def of(cls, windowDuration: DurationLike, slidingDuration: DurationLike) -> Self:
        return cls(milliseconds(windowDuration), milliseconds(slidingDuration))


class TumblingDurationWindow(DurationWindow):
    """A window of each ``windowLength`` of time."""

    @classmethod
    def of(cls, windowLength: DurationLike) -> Self:
        return cls(milliseconds(windowLength), milliseconds(windowLength))
