"""Group latency: milliseconds per batch of 10 tuples, in the driver and as a job, against foreachBatch by hand.

By hand is under Spark's default settings. A batch in the driver is no job, so what it is compared with is the same
batch on LocalCluster; a job is compared with the job by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import ours
from .measure import interleaved, measure, ratio
from .report import Figure, at_most, median

GROUP = "latency"
BATCHES = 60
WARM_UP = 20
DRIVER, JOB = "SparkCluster", ours.JOBS
HAND, LOCAL = "foreachBatch by hand", "LocalCluster"
ASKED = ((DRIVER, LOCAL, 1.5), (JOB, HAND, 1.0))


def millis(seconds: list[float]) -> float:
    return 1000 * median(seconds[WARM_UP:])


def figures() -> Iterator[Figure]:
    for name, stages in (("one stage", 1), ("two stages, one exchange", 2)):
        sides = {side: ("ours.tiny_batches", BATCHES, stages, side) for side in (DRIVER, JOB, LOCAL)}
        rates = interleaved({HAND: ("by_hand.tiny_batches", BATCHES, stages), **sides}, millis)
        for side in (HAND, LOCAL):
            yield Figure(GROUP, f"{name}: {side}", median(rates[side]), "ms/batch")
        for side, against, most in ASKED:
            found = ratio(rates[side], rates[against])
            asked: Any = at_most(found, most)
            yield Figure(GROUP, f"{name}: {side}", median(rates[side]), "ms/batch", against, found, **asked)
    for phase, seconds in measure("ours.phases", BATCHES).items():
        yield Figure(GROUP, f"two stages: {phase}", 1000 * seconds, "ms/batch")
