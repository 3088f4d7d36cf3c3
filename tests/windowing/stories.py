"""Random windows and batches, with failures."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from trident_py.windowing import CountWindow, DurationWindow, WindowConfig
from trident_py.windowing import Duration as D

from .naive import Batch

POINTS = ("beginCommit", "update", "commit", "afterCommit")


@st.composite
def batches(draw: Any, partitions: int, count: int) -> list[Batch]:
    """One batch may have tuples of 1970 and of far in the future."""
    clock, made, strays = draw(st.integers(0, 50)), [], draw(st.integers(0, count))
    for txid in range(1, count + 1):
        clock += draw(st.sampled_from((0, 0, 1, 3, 10, 40)))
        times = st.integers(max(0, clock - 25), clock + 5)
        times |= st.sampled_from((0, clock + 10**15)) if txid == strays else st.nothing()
        parts = [
            [(draw(times), draw(st.integers(0, 99))) for _ in range(draw(st.integers(0, 5)))] for _ in range(partitions)
        ]
        made.append(Batch(parts, clock))
    return made


@st.composite
def configs(draw: Any) -> WindowConfig:
    length = draw(st.integers(1, 12))
    slide = draw(st.integers(1, length))
    kind = draw(st.sampled_from(("count", "time", "event time")))
    if kind == "count":
        return CountWindow(length, slide)
    window = DurationWindow(length, slide)
    return window if kind == "time" else window.withTimestampField("time").withLag(D.of(draw(st.integers(0, 8))))


@st.composite
def stories(draw: Any) -> tuple[WindowConfig, list[Batch], dict[int, Batch], str, list[tuple[int, int]]]:
    """A window, its batches, what replays emit instead, and where which attempts fail."""
    partitions, count = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    made = draw(batches(partitions, count))
    fails = draw(st.lists(st.integers(1, count), max_size=2, unique=True))
    attempts = [(txid, attempt) for txid in fails for attempt in range(draw(st.integers(1, 2)))]
    others = draw(batches(partitions, count)) if draw(st.booleans()) else []
    replays = {txid: Batch(others[txid - 1].partitions, made[txid - 1].clock) for txid in fails if others}
    return draw(configs()), made, replays, draw(st.sampled_from(POINTS)), attempts
