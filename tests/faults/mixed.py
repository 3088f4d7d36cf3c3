"""Random deaths of a driver on Spark whose batches run in it or as jobs: sizes around the bound, or sides drawn."""

from __future__ import annotations

import random
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

from trident_py import Config
from trident_py.spark.driver_execution import HERE

from .driver import WHERE, Order
from .evidence import evidence
from .hooks import POINTS, STATES
from .processes import Driver, Drivers
from .test_replays import holds_exactly
from .topology import Shape

LAST = 8
SIZES = range(32, 46)
"""From below the smallest batch of the topology to above its largest: a batch that comes again has another size."""


class MixedRound:
    """One seed: a run that is killed again and again, each start with another side for its batches."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.counts: Counter[str] = Counter()

    def run(self, folder: Path) -> None:
        """Raises AssertionError if a start does not die where it should, or the last one does not end."""
        drivers = Drivers(folder)
        try:
            txid = self.draw.randrange(1, 4)
            again = False
            while txid <= LAST:
                driver = drivers.start(self._order(folder, txid, again), ahead=True)
                assert driver.wait_killed() == -signal.SIGKILL, driver.errors
                self._count(driver)
                self.counts["driver killed"] += 1
                step = self.draw.randrange(3)
                again, txid = step == 0, txid + step
            last = drivers.start(self._order(folder))
            assert last.until("done", "error") == ["done", LAST], last.errors
            last.end()
            self._count(last)
        finally:
            drivers.close()

    def _order(self, folder: Path, txid: int = 0, again: bool = False) -> Order:
        """A start that is killed in a batch, ``again`` if the last one was. Nobody waits for the other partition."""
        point = self.draw.choice(POINTS[1:] if again else POINTS) if txid else ""
        (folder / f"mark-{txid}-held").touch()
        for done in folder.glob(f"mark-{txid}-done-*"):
            done.unlink()
        where = self.draw.choice(["", "", *WHERE])
        conf = {Config.TOPOLOGY_INLINE_MAX_MILLIS: 1e9}
        if not where:
            conf[Config.TOPOLOGY_INLINE_MAX_TUPLES] = self.draw.choice(SIZES)
        return Order(str(folder), Shape(LAST), point, txid, (self.draw.choice(STATES), ""), conf, where=where)

    def _count(self, driver: Driver) -> None:
        for kind, *told in driver.told:
            if kind == "committed":
                self.counts["in the driver" if told[2] == HERE else "as jobs"] += 1
            if kind == "moved":
                self.counts["moved"] += 1


def on_spark(seed: int, rounds: int) -> str:
    """Runs the rounds; the first that is not exact raises. Returns what happened, in words."""
    total: Counter[str] = Counter()
    for number in range(seed, seed + rounds):
        one = MixedRound(number)
        with tempfile.TemporaryDirectory() as folder:
            one.run(Path(folder))
            holds_exactly(evidence(Path(folder)), LAST)
        total += one.counts
        print(f"spark: {number - seed + 1} of {rounds} rounds", file=sys.stderr, flush=True)
    seen = ", ".join(f"{name} {total[name]}" for name in ("driver killed", "in the driver", "as jobs", "moved"))
    return f"spark: {rounds} rounds from seed {seed}: {seen}; every row of every state as in the fold"
