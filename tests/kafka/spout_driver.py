"""A topology that sums what is in a topic into an SQL table, and a driver process that is killed while it runs it.

    python spout_driver.py '{"bootstrap": ..., "topic": ..., "kind": ..., "folder": ..., "spark": false, "die": ...}'

``die``: ["record", n] kills the process while it emits the n-th record of its life (a task's process, on Spark: then
the driver as well), ["over", n] once n batches are over and the checkpoint does not know the last of them.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

from states.sql import SqlMapState
from trident_py import LocalCluster, SparkCluster, TridentTopology
from trident_py.kafka import Json, KafkaSpout
from trident_py.operations import BaseFunction
from trident_py.operations.builtin import Sum

BATCH = 500


class Mortal(BaseFunction):
    """Passes records on, until the one at which the processes are to die; each only once."""

    def __init__(self, at: int, marker: Path, driver: int) -> None:
        self.left, self.marker, self.driver = at, marker, driver

    def execute(self, tuple: Any, collector: Any) -> None:
        self.left -= 1
        if self.left == 0 and not self.marker.exists():
            self.marker.touch()
            os.kill(self.driver, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        collector.emit([])


def topology(order: dict[str, Any]) -> Any:
    """``sums`` in sums.db: by word the sum of n."""
    made = TridentTopology()
    form = Json("word string", "n bigint")
    options = {"endingOffsets": "latest", "maxRecordsPerBatch": BATCH} | order.get("options", {})
    spout = KafkaSpout(order["bootstrap"], order["topic"], kind=order["kind"], fields="value", value=form, **options)
    records = made.newStream("records", spout).parallelismHint(2)
    how, at = order.get("die") or ("", 0)
    if how == "record":
        marker = Path(order["folder"]) / f"died-{order['round']}"
        records = records.each(["n"], Mortal(at, marker, os.getpid()), [])
    factory = getattr(SqlMapState, order["kind"])(
        f"sqlite:///{order['folder']}/sums.db", "sums", "word string", "total bigint"
    )
    records.groupBy("word").persistentAggregate(factory, "n", Sum(), "total")
    return made.build()


def sums(folder: Path) -> dict[str, int]:
    """What the table holds."""
    with sqlite3.connect(folder / "sums.db") as connection:
        found = dict(connection.execute("SELECT word, total FROM sums"))
    connection.close()
    return found


def main(order: dict[str, Any]) -> None:
    how, at = order.get("die") or ("", 0)
    over: list[int] = []

    def told(event: Any, progress: Any) -> None:
        if event.kind == "committed":
            over.append(event.txid)
            if how == "over" and len(over) == at:
                os.kill(os.getpid(), signal.SIGKILL)
        print(json.dumps(event), flush=True)

    checkpoints = f"{order['folder']}/checkpoints"
    with (SparkCluster if order.get("spark") else LocalCluster)(checkpoints=checkpoints) as cluster:
        running = cluster.submitTopology("sums", {}, topology(order))
        running.addListener(told)
        running.awaitTermination()
    print(json.dumps(["done", running.txid]), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
