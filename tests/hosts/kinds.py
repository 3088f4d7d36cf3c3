"""The kinds of faults, and what a seed draws from them for one story."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from faults.steps import DRIVER, Fault

TASK = ("begin", "begun", "half", "written", "committed")
ENDING = ("publish", "published", "over")
ANY_TIME = ""
QUICK = ("plain", "crowded")
PER_BATCH = {"crowded": 3}
HELD = ("driver and worker cut", "straggler")  # a process is held until its batch may be over, and then goes on


@dataclass(frozen=True)
class Kind:
    """``steps``: where it may come. ``lasts``: seconds until what was hurt comes back, from and to. ``under``: the
    `PROFILES` in which it is drawn."""

    steps: tuple[str, ...]
    lasts: tuple[float, float] = (0, 0)
    under: tuple[str, ...] = ("plain",)
    weight: int = 2


# Settings of Spark. "crowded" has several faults in one batch, of kinds that are soon over; "hdfs" has its checkpoints
# there, on a host of its own, and not in a folder that all hosts see.
PROFILES: dict[str, dict[str, str]] = {
    "plain": {},
    "crowded": {},
    "hdfs": {},
    "one try": {"spark.task.maxFailures": "1"},
    "speculation": {
        "spark.speculation": "true", "spark.speculation.interval": "100ms", "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.5", "spark.speculation.minTaskRuntime": "100ms",
    },
    "allocation": {
        "spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.timeout": "1s", "spark.dynamicAllocation.executorIdleTimeout": "1s",
        "spark.dynamicAllocation.maxExecutors": "2", "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    },
    "decommission": {"spark.decommission.enabled": "true", "spark.storage.decommission.enabled": "true",
                     "spark.storage.decommission.shuffleBlocks.enabled": "true"},
}  # fmt: skip

KINDS: dict[str, Kind] = {
    "Python worker killed": Kind(TASK, under=QUICK, weight=12),
    "executor killed": Kind((*TASK, ANY_TIME), weight=5),
    "worker host killed": Kind((*TASK, ANY_TIME), (0.5, 4), weight=4),
    "master killed": Kind((*TASK, "publish", ANY_TIME), (0.5, 4)),
    "driver killed": Kind((*TASK, *ENDING, ANY_TIME), under=("plain", "hdfs"), weight=3),
    "driver host killed": Kind((*TASK, *ENDING, ANY_TIME), (1, 4), ("plain", "hdfs"), 2),
    "driver and worker cut": Kind(("begin", "half", "written"), (12, 18), weight=2),
    "driver and store cut": Kind((*TASK, "publish", ANY_TIME), (0.2, 3), QUICK, 8),
    "worker and store cut": Kind((*TASK, ANY_TIME), (0.2, 3), QUICK, 8),
    "driver and checkpoint cut": Kind((*TASK, *ENDING, ANY_TIME), (1, 15), ("hdfs",), 6),
    "host slow": Kind((ANY_TIME,), (2, 6), weight=3),
    "worker host paused": Kind((*TASK, ANY_TIME), (1, 60), weight=1),
    "driver host paused": Kind((*TASK, "publish", ANY_TIME), (1, 20), weight=1),
    "shuffle files lost": Kind(("begin",), under=QUICK, weight=7),
    "one try: Python worker killed": Kind(TASK, under=("one try",), weight=3),
    "one try: executor killed": Kind((*TASK, ANY_TIME), under=("one try",)),
    "straggler": Kind(("begin", "half", "written"), (3, 15), under=("speculation",)),
    "executors taken away": Kind(("begin", "written", "over"), (10, 20), under=("allocation",)),
    "worker decommissioned": Kind((*TASK, ANY_TIME), (2, 5), under=("decommission",)),
}


@dataclass(frozen=True)
class Planned:
    """A fault to come: at its ``place``, or ``delay`` seconds after the batch before ``txid`` is over."""

    kind: str
    txid: int
    place: Fault | None
    delay: float
    lasts: float
    pick: int

    @property
    def step(self) -> str:
        return "any time" if self.place is None else self.place.step

    @property
    def state(self) -> str:
        return "" if self.place is None or self.place.step == "over" else self.place.state


def drawn(
    draw: random.Random, last: int, states: Sequence[str], profile: str, only: Sequence[str] = (), often: float = 0.9
) -> list[Planned]:
    """At most `PER_BATCH` for each batch from the second on; every kind of the profile (or of ``only``) may come."""
    kinds = [name for name, kind in KINDS.items() if profile in kind.under and (not only or name in only)]
    weights = [KINDS[name].weight for name in kinds]
    made = []
    for txid in [txid for txid in range(2, last) for _ in range(PER_BATCH.get(profile, 1))]:
        if draw.random() < often:
            made.append(_planned(draw, draw.choices(kinds, weights)[0], txid, states))
    return made


def _planned(draw: random.Random, name: str, txid: int, states: Sequence[str]) -> Planned:
    kind = KINDS[name]
    step, state, partition = draw.choice(kind.steps), draw.choice(states), draw.randrange(2)
    if name == "shuffle files lost":
        partition = 0  # the last partition's task starts when one of the first two has ended
    elif step in ENDING:
        partition = DRIVER
    action = "hold" if name in HELD else "ask"
    place = None if step == ANY_TIME else Fault(step, "" if step == "over" else state, txid, partition, action)
    return Planned(name, txid, place, draw.random() * 1.5, draw.uniform(*kind.lasts), draw.randrange(1000))
