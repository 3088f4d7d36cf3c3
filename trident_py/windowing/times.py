"""Which tuples are late, and which belong to a window."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import StateError
from ..model.chunks import Chunk
from ..tuples import MISSING
from .config import CountWindow, DurationWindow, WindowConfig
from .triggers import NEVER, Head, Trigger

_EPOCH = datetime.datetime(1970, 1, 1)


def split_late(config: WindowConfig, chunk: Chunk, watermark: int) -> tuple[Chunk, Chunk]:
    """Return the tuples that enter, and those that are behind the watermark: only in event time are there any."""
    times = _times(config, chunk)
    if times is None or watermark == NEVER:
        return chunk, Chunk({}, 0)
    late = pc.less(times, watermark)
    if not pc.any(late).as_py():
        return chunk, Chunk({}, 0)
    return chunk.take(pc.indices_nonzero(pc.invert(late)).to_pylist()), chunk.take(pc.indices_nonzero(late).to_pylist())


def least_and_greatest(config: WindowConfig, chunk: Chunk, now: int) -> tuple[int, int]:
    """Return the least and the greatest time of the tuples; without event time both are that of the batch."""
    times = _times(config, chunk)
    if times is None:
        return now, now
    if len(times) == 0:
        return NEVER, NEVER
    ends = pc.min_max(times)
    return ends["min"].as_py(), ends["max"].as_py()


def touches(config: WindowConfig, head: Head, trigger: Trigger) -> bool:
    """Return whether a block may hold tuples of a window."""
    if isinstance(config, CountWindow):
        return head.first < trigger.end and head.first + head.length > trigger.start
    return head.length > 0 and head.newest >= trigger.start and head.oldest < trigger.end


def part_of(config: WindowConfig, chunk: Chunk, head: Head, trigger: Trigger) -> Chunk:
    """Return the tuples of a block that belong to a window."""
    if isinstance(config, CountWindow):
        first, last = max(trigger.start, head.first), min(trigger.end, head.first + head.length)
        return chunk.between(first - head.first, last - head.first)
    if trigger.start <= head.oldest and head.newest < trigger.end:
        return chunk
    times = _times(config, chunk)
    assert times is not None, "a batch has one time, so its blocks are in a window as a whole"
    inside = pc.and_(pc.greater_equal(times, trigger.start), pc.less(times, trigger.end))
    return chunk.take(pc.indices_nonzero(inside).to_pylist())


def _times(config: WindowConfig, chunk: Chunk) -> pa.Array | None:
    """Return the time of each tuple in milliseconds; None without event time."""
    if not isinstance(config, DurationWindow) or config.timestampField is None:
        return None
    if chunk.length == 0:
        return pa.array([], pa.int64())
    name = config.timestampField
    column = chunk.columns[name]
    if isinstance(column, list):
        return pa.array([_milliseconds(name, value) for value in column], pa.int64())
    if column.null_count:
        raise _unfit(name, None)
    if pa.types.is_timestamp(column.type):
        whole = pc.floor_temporal(column, unit="millisecond")
        return whole.cast(pa.timestamp("ms", column.type.tz)).cast(pa.int64())
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    raise _unfit(name, column[0].as_py())


def _milliseconds(name: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, datetime.datetime):
        naive = value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)
        return (naive - _EPOCH) // datetime.timedelta(milliseconds=1)
    raise _unfit(name, value)


def _unfit(name: str, value: Any) -> StateError:
    what = "was never emitted" if value is MISSING else f"is {value!r}"
    return StateError(
        f"the timestamp field {name!r} of a window {what}; it must be milliseconds since 1970 or a datetime. Filter "
        "such tuples before the window"
    )
