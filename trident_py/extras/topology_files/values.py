"""Lengths and windows, as a file writes them."""

from __future__ import annotations

from typing import Any

from ...windowing import (
    Duration,
    SlidingCountWindow,
    SlidingDurationWindow,
    TumblingCountWindow,
    TumblingDurationWindow,
    WindowConfig,
)
from .locations import Located
from .models import WindowKeys

UNITS = {
    "milliseconds": Duration.of,
    "seconds": Duration.seconds,
    "minutes": Duration.minutes,
    "hours": Duration.hours,
    "days": Duration.days,
}


def length(place: Located) -> int | Duration:
    """Return a number of tuples, or a Duration. Raises Told."""
    number = _number(place.value)
    return duration(place) if number is None else number


def duration(place: Located) -> Duration:
    """Parse ``{seconds: 10}``. Raises Told, or DefinitionError for a time that is too long."""
    value = place.value
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in UNITS:
        times = f"a time in {', '.join(UNITS)}, such as {{seconds: 10}}"
        raise place.refuse(f"found {_show(place)}; expected a number of tuples, or {times}")
    unit = next(iter(value))
    number = _number(value[unit])
    if number is None:
        raise place.at(unit).refuse(f"found {place.at(unit).found}; expected an integer")
    return UNITS[unit](number)


def window(place: Located) -> WindowConfig:
    """Return the window of ``{windowLength: 100, slideLength: 10}``. Raises Told, or DefinitionError."""
    keys = place.read(WindowKeys, "a window")
    size = length(place.at("windowLength"))
    slide = None if keys.slideLength is None else length(place.at("slideLength"))
    if isinstance(size, int):
        if keys.timestampField is not None or keys.lag is not None:
            raise place.refuse("timestampField and lag need a window of a time, such as windowLength: {seconds: 10}")
        if slide is None:
            return TumblingCountWindow.of(size)
        return SlidingCountWindow.of(size, _alike(place, size, slide))
    config: TumblingDurationWindow | SlidingDurationWindow
    if slide is None:
        config = TumblingDurationWindow.of(size)
    else:
        config = SlidingDurationWindow.of(size, _alike(place, size, slide))
    if keys.timestampField is not None:
        config = config.withTimestampField(keys.timestampField)
    return config if keys.lag is None else config.withLag(duration(place.at("lag")))


def _alike(place: Located, size: Any, slide: Any) -> Any:
    if type(size) is not type(slide):
        raise place.at("slideLength").refuse("windowLength and slideLength are two numbers of tuples, or two times")
    return slide


def _number(value: Any) -> int | None:
    """Return the integer, which a variable of the environment gives as a text."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _show(place: Located) -> str:
    return ", ".join(place.value) if isinstance(place.value, dict) else place.found
