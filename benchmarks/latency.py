"""Group 2: milliseconds per tiny batch, against foreachBatch by hand under Spark's default settings."""

from __future__ import annotations

from collections.abc import Iterator

from .measure import measure
from .report import Figure, at_most, median

GROUP = "latency"
BATCHES = 100
WARM_UP = 30


def millis(seconds: list[float]) -> float:
    return 1000 * median(seconds[WARM_UP:])


def figures() -> Iterator[Figure]:
    for name, function, bar in (
        ("one stage", "one_stage", 0.65),
        ("two stages, one exchange", "two_stages", 0.7),
    ):
        hand = millis(measure(f"by_hand.{function}", BATCHES))
        yield Figure(GROUP, f"{name}, foreachBatch by hand", hand, "ms/batch")
        ours = millis(measure(f"ours.{function}", BATCHES))
        ratio = ours / hand
        yield Figure(GROUP, name, ours, "ms/batch", "by hand", ratio, **at_most(ratio, bar))  # type: ignore[arg-type]
    for phase, seconds in measure("ours.phases", BATCHES).items():
        yield Figure(GROUP, f"two stages: {phase}", 1000 * seconds, "ms/batch")
