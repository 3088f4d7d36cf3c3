"""Windows as a plain fold over all batches: no blocks, no stores, no txids. The oracle of the tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from trident_py.windowing import CountWindow, DurationWindow, WindowConfig


class Batch(NamedTuple):
    """The tuples (time, value) of one batch, by partition, and the clock at its begin."""

    partitions: Sequence[Sequence[tuple[int, Any]]]
    clock: int = 0


Windows = list[tuple[int, int, int, list[Any]]]
"""Each window: number, start, end, values."""


def expected(config: WindowConfig, batches: Sequence[Batch]) -> tuple[dict[int, dict[int, Windows]], dict[int, list]]:
    """By txid and partition the windows, and by txid the late tuples."""
    windows: dict[int, dict[int, Windows]] = {}
    late: dict[int, list] = {}
    count = max(len(batch.partitions) for batch in batches)
    seen: list[list[tuple[int, Any]]] = [[] for _ in range(count)]
    done: list[int] = [-(10**30)] * count
    for txid, batch in enumerate(batches, 1):
        mark = _watermark(config, batches[: txid - 1])
        for partition, tuples in enumerate(batch.partitions):
            if isinstance(config, CountWindow):
                found = _by_count(config, seen[partition], [value for _, value in tuples])
            else:
                assert isinstance(config, DurationWindow)
                now = batch.clock if config.timestampField is None else mark
                found = _by_time(config, seen[partition], done[partition], now)
                done[partition] = max(done[partition], now)
                if config.timestampField is None:
                    tuples = [(batch.clock, value) for _, value in tuples]
                late.setdefault(txid, []).extend(value for time, value in tuples if time < now)
                tuples = [(time, value) for time, value in tuples if time >= now]
            seen[partition] += tuples
            if found:
                windows.setdefault(txid, {})[partition] = found
    return windows, {txid: sorted(values) for txid, values in late.items() if values}


def _watermark(config: WindowConfig, before: Sequence[Batch]) -> int:
    """Tuples that were late do not move it: they are behind it."""
    times = [time for batch in before for tuples in batch.partitions for time, _ in tuples]
    return max(times) - config.lag if times and isinstance(config, DurationWindow) else -(10**30)


def _by_count(config: CountWindow, seen: list, arriving: list) -> Windows:
    values, found = [value for _, value in seen], []
    for value in arriving:
        values.append(value)
        if len(values) % config.slidingLength == 0:
            start = max(0, len(values) - config.windowLength)
            found.append((len(values) // config.slidingLength, start, len(values), values[start:]))
    return found


def _by_time(config: DurationWindow, seen: list, last: int, now: int) -> Windows:
    slide, length = config.slidingLength, config.windowLength
    ends = {time // slide * slide + slide * i for time, _ in seen for i in range(1, length // slide + 2)}
    found = []
    for end in sorted(end for end in ends if last < end <= now):
        values = [value for time, value in seen if end - length <= time < end]
        if values:
            found.append((end // slide, end - length, end, values))
    return found
