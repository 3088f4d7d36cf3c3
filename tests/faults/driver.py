"""A driver process of its own, for tests that kill it: python -m faults.driver

Makes its Spark session, says so, waits for a line of JSON on stdin (an `Order`), runs the topology of that
line and prints a line of JSON for each event.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trident_py import Config, SparkCluster, TopologyError
from trident_py.engine.program import BatchInfo
from trident_py.spark.driver_execution import DriverExecution
from trident_py.spark.internals import java_process
from trident_py.spark.session import OwnSession

from .deaths import DEATHS
from .hooks import Kill, Wait
from .topology import Shape, build


@dataclass(frozen=True)
class Order:
    """What a driver is to do. ``where``: one of `WHERE`; "" leaves it to Spark's settings."""

    folder: str
    shape: Shape
    point: str = ""
    txid: int = 0
    states: tuple[str, str] = ("", "")
    conf: dict = field(default_factory=dict)
    deaths: str = ""
    where: str = ""
    checkpoints: str = "checkpoints"

    @classmethod
    def of(cls, text: str) -> Order:
        values = json.loads(text)
        shape = values["shape"]
        shape["wait"] = Wait(**shape["wait"])
        return cls(**{**values, "shape": Shape(**shape), "states": tuple(values["states"])})


ANY_SIZE = {Config.TOPOLOGY_INLINE_MAX_TUPLES: 1_000_000}
WHERE: dict[str, Callable[[BatchInfo], bool]] = {
    "driver": lambda batch: True,
    "executors": lambda batch: False,
    "retries in the driver": lambda batch: batch.attempt > 0,
    "in turns": lambda batch: (batch.txid + batch.attempt) % 2 == 0,
}
"""Which attempts run in the driver process, whatever their size."""


def tell(*words: Any) -> None:
    print(json.dumps(words), flush=True)


def run(own: OwnSession, order: Order) -> None:
    java = java_process(own.spark).pid
    processes = (os.getpid(), java)
    partitions = order.shape.state_partitions
    kill = Kill(order.folder, order.point, order.txid, order.states, partitions, processes)

    def told(event: Any, progress: Any) -> None:
        if event.kind == "committed":
            kill.at("over", event.txid)
        tell(*event)

    conf = order.conf
    if order.where:
        conf = ANY_SIZE | conf
        DriverExecution.takes = lambda self, batch, tuples: WHERE[order.where](batch)  # type: ignore[method-assign]
    folder = Path(order.folder)
    wrap = DEATHS.get(order.deaths)
    topology = build(folder, order.shape, kill, None if wrap is None else wrap(order.folder))
    with SparkCluster(own.spark, str(folder / order.checkpoints)) as cluster:
        running = cluster.submitTopology("faults", conf, topology)
        running.addListener(told)
        try:
            running.awaitTermination()
        except TopologyError as error:
            tell("error", type(error.__cause__).__name__, str(error))
        else:
            tell("done", running.txid)


def main(settings: dict[str, str]) -> None:
    own = OwnSession({"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"} | settings)
    try:
        tell("ready", os.getpid())
        for line in sys.stdin:
            run(own, Order.of(line))
    finally:
        own.stop()


if __name__ == "__main__":
    main(dict(argument.split("=", 1) for argument in sys.argv[1:]))
