"""A driver process of its own, for tests that kill it: python -m spark.driver CHECKPOINTS OUT BATCHES [HOW [SETTINGS]].

Prints a line for each event. HOW: "divide" fails in txid 3 with an error, "cycle" never ends, "retry" has a
session whose tasks are tried three times, and a worker that dies once, "hostile" one with all settings at other values,
"full" never ends and fills Java's heap behind txid 2. SETTINGS are those of its session, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trident_py import SparkCluster
from trident_py.spark.session import OwnSession

from .folder import copy_topology, numbers
from .hostile import HOSTILE

SETTINGS = {"retry": {"spark.master": "local[2,3]"}, "hostile": HOSTILE, "full": {"spark.driver.memory": "512m"}}


def divide(n: int) -> list[float]:
    return [n, 1 / (n - 4)][:1]


def die_once(marker: Path) -> Callable[[int], list[int]]:
    def die(n: int) -> list[int]:
        if n == 3 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return [n]

    return die


def fill_heap(spark: Any) -> None:
    gateway = spark.sparkContext._gateway
    held = gateway.jvm.java.util.ArrayList()
    while True:
        held.add(gateway.new_array(gateway.jvm.byte, 1 << 24))


def function(how: str, out: str) -> Any:
    return {"divide": divide, "retry": die_once(Path(out) / "died")}.get(how)


def main(checkpoints: str, out: str, batches: int, how: str = "", settings: str = "{}") -> None:
    def told(event: Any, progress: Any) -> None:
        print(event.kind, event.txid, flush=True)
        if how == "full" and (event.kind, event.txid) == ("committed", 2):
            fill_heap(cluster.spark)

    spout = numbers(batches * 2).setCycle(how in ("cycle", "full"))
    topology = copy_topology(Path(out), spout, function(how, out))
    wanted = {**SETTINGS.get(how, {}), **json.loads(settings)}
    own = OwnSession(wanted) if wanted else None
    with SparkCluster(own.spark if own is not None else None, checkpoints=checkpoints) as cluster:
        running = cluster.submitTopology("t", {}, topology)
        running.addListener(told)
        running.awaitTermination()
    if own is not None:
        own.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
