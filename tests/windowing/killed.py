"""A process that runs a window over a SQL table and kills itself at a step of one batch; forked by the test."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from states.sql import SqlWindowsStoreFactory
from trident_py import Config, LocalCluster, TridentTopology
from trident_py.operations import Aggregator
from trident_py.testing import Crashing
from trident_py.windowing import Duration as D
from trident_py.windowing import MakesWindows, SlidingCountWindow, TumblingDurationWindow, WindowConfig
from windowing.naive import Batch
from windowing.support import Clock, Gather, Timed

CONFIGS: dict[str, WindowConfig] = {
    "count": SlidingCountWindow.of(7, 3),
    "time": TumblingDurationWindow.of(D.of(30)),
    "event time": TumblingDurationWindow.of(D.of(20)).withTimestampField("time").withLag(D.of(5)),
}
BATCHES = [
    Batch([[(txid * 11 + n - part, f"{txid}.{part}.{n}") for n in range(4 - part)] for part in (0, 1)], txid * 17)
    for txid in range(1, 6)
]


class Killed(MakesWindows):
    def __init__(self, inner: MakesWindows, at: str, txid: int) -> None:
        self.inner = inner
        self.at = at
        self.txid = txid

    def windowState(self, config: WindowConfig, name: str) -> Any:
        state = self.inner.windowState(config, name)
        return Crashing(state, at=self.at, when={(self.txid, 0)}, how="kill", partition=1)


class Appends(Aggregator):
    """Adds the rows of a batch and partition to a file, a line for each attempt."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def prepare(self, conf: dict, context: Any) -> None:
        self.context = context

    def init(self, batchId: Any, collector: Any) -> list:
        return []

    def aggregate(self, value: list, tuple: Any, collector: Any) -> None:
        number, values, start, end = tuple
        value.append((number, start, end, values))

    def complete(self, value: list, collector: Any) -> None:
        if value:
            txid, partition = self.context.transaction.txid, self.context.getPartitionIndex()
            with self.path.open("a") as file:
                file.write(json.dumps({"txid": txid, "partition": partition, "rows": value}) + "\n")
                file.flush()
                os.fsync(file.fileno())


def main(url: str, folder: str, at: str, txid: str, config: str) -> None:
    clock = Clock(BATCHES, done=max(int(txid) - 2, 0))
    topology = TridentTopology()
    stream = topology.newStream("timed", Timed(BATCHES, {}, clock)).parallelismHint(2).filter(["time"], bool)
    store = Killed(SqlWindowsStoreFactory(url, "w"), at, int(txid))
    made = stream.window(CONFIGS[config], store, ["value"], Gather(), ["n", "values"], windowFields=["start", "end"])
    made.partitionAggregate(made.getOutputFields(), Appends(Path(folder) / "emitted.jsonl"), [])
    with LocalCluster(folder) as cluster:
        conf = Config({Config.TOPOLOGY_CLOCK: clock})
        cluster.submitTopology("killed", conf, topology.build()).awaitTermination(60)
