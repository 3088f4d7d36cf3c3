"""Which windows a batch completes, and which earlier tuples a partition still needs: plain rules over `Head` values.

All follow from the blocks that batches below the txid have left, from the tuples of the batch, and from the batch's
time. So a replay with the same tuples completes the same windows, with the same content and the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from .config import CountWindow, DurationWindow, WindowConfig

NEVER = -(2**62)


class Head(NamedTuple):
    """One block: tuples of one batch in one partition, without the tuples themselves.

    ``first``: the number of tuples of the partition before it. ``time``: the time of its batch, or in event time the
    batch's watermark. ``oldest`` and ``newest``: the least and greatest time of its tuples. ``token`` names the content
    of the block; a block that is written again gets another token.
    """

    txid: int
    block: int
    first: int
    length: int
    time: int
    oldest: int
    newest: int
    token: str


class Trigger(NamedTuple):
    """One window: its number, and its range, in tuples of the partition or in milliseconds; ``end`` is exclusive."""

    number: int
    start: int
    end: int


def total(before: Sequence[Head]) -> int:
    """Return the number of tuples that have entered the partition."""
    return before[-1].first + before[-1].length if before else 0


def time_of(before: Sequence[Head]) -> int | None:
    """Return the time of the last batch that left a block; None before the first."""
    return before[-1].time if before else None


def by_count(config: CountWindow, before: Sequence[Head], arriving: int) -> Iterator[Trigger]:
    """Return the windows that this number of tuples completes."""
    length, slide, entered = config.windowLength, config.slidingLength, total(before)
    for number in range(entered // slide + 1, (entered + arriving) // slide + 1):
        yield Trigger(number, max(0, number * slide - length), number * slide)


def by_time(
    config: DurationWindow, before: Sequence[Head], now: int, times: Callable[[Head], Iterable[int]]
) -> Iterator[Trigger]:
    """Return the windows that end after the time of the last batch and until ``now``. May yield windows without a
    tuple. ``times`` returns the times of a block's tuples; asked only if those cannot fill all windows between the
    least and the greatest."""
    length, slide, last = config.windowLength, config.slidingLength, time_of(before)
    if last is None:
        return
    ends: set[int] = set()
    for head in (head for head in before if head.length):
        between = _ends(config, last, now, head.oldest, head.newest)
        if between[head.length * -(-length // slide) :]:
            ends.update(end for time in times(head) for end in _ends(config, last, now, time, time))
        else:
            ends.update(between)
    for end in sorted(ends):
        yield Trigger(end // slide, end - length, end)


def _ends(config: DurationWindow, last: int, now: int, oldest: int, newest: int) -> range:
    slide = config.slidingLength
    return range((max(oldest, last) // slide + 1) * slide, min(newest + config.windowLength, now) + 1, slide)


def first_needed(config: WindowConfig, before: Sequence[Head]) -> list[Head]:
    """Return the blocks whose tuples a later window can hold, seen from before this batch; and always the last block,
    which tells how many tuples have entered, and when."""
    if isinstance(config, CountWindow):
        least = (total(before) // config.slidingLength + 1) * config.slidingLength - config.windowLength
        kept = [head for head in before if head.first + head.length > least]
    else:
        assert isinstance(config, DurationWindow)
        slide, last = config.slidingLength, time_of(before)
        least = NEVER if last is None else (last // slide + 1) * slide - config.windowLength
        kept = [head for head in before if head.length and head.newest >= least]
    return kept if kept and kept[-1] is before[-1] else [*kept, *before[-1:]]
