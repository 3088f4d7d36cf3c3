"""A topology that runs on both clusters, and what its tables must hold: python -m checkpoints.both ORDER

An opaque and a transactional spout in one component; two map states, and one that shows a batch as a whole.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from faults import story
from faults.spouts import ROW, Drifting, Repeating
from faults.stores import read

from states.sql import BatchState, RowUpdater, SqlMapState
from trident_py import LocalCluster, TridentTopology
from trident_py.model.context import with_context
from trident_py.operations.builtin import Sum
from trident_py.testing.faults.kill_point import KillPoint, Point

NAME = "both"
TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Order:
    """What a driver process is to do: run up to batch ``last``, or to its death at a step. ``uri``: of its checkpoint,
    if it is not in the folder, with ``storage`` for `LocalCluster` and ``settings`` of the session for Spark."""

    folder: str
    url: str
    cluster: str
    last: int
    step: str = ""
    name: str = ""
    partition: int = -1
    txid: int = 0
    uri: str = ""
    storage: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def checkpoints(self) -> str:
        return self.uri or str(Path(self.folder) / "checkpoints")


def build(url: str, folder: str | Path, last: int) -> Any:
    topology = TridentTopology()
    repeating = topology.newStream("repeating", Repeating(last)).parallelismHint(2)
    drifting = topology.newStream("drifting", Drifting(last, str(folder))).parallelismHint(2)
    sums = SqlMapState.transactional(url, "sums", "word string", "total bigint")
    drift = SqlMapState.opaque(url, "drift", "word string", "total bigint")
    repeating.groupBy("word").persistentAggregate(sums, "n", Sum(), "total").parallelismHint(2)
    drifting.groupBy("word").persistentAggregate(drift, "n", Sum(), "total").parallelismHint(2)
    everything = topology.merge(repeating, drifting).partitionBy("id")
    everything.partitionPersist(BatchState(url, "seen", columns=ROW), ROW.names, RowUpdater()).parallelismHint(2)
    return topology.build()


def exact(url: str, last: int) -> None:
    """The tables are those of a plain fold over the input."""
    sums = {(word,): (txid, total) for word, total, txid in read(url, "SELECT word, total, txid FROM sums")}
    assert sums == story.fold(range(1, last + 1)).transactional()
    seen = Counter(read(url, "SELECT id, word, n FROM seen"))
    counts = [sum(id_.startswith(f"d{partition}-") for id_, _, _ in seen) for partition in range(story.PARTITIONS)]
    drifted = story.drifted(counts)
    assert seen == Counter([row for n in range(1, last + 1) for row in story.batch(n)] + drifted)
    assert all(count >= 8 * last for count in counts)
    assert dict(read(url, "SELECT word, total FROM drift")) == {word: n for (word,), n in story.sums(drifted).items()}


def obey(order: Order) -> int:
    """Runs it in a process of its own; returns the exit code."""
    paths = [str(TESTS.parent), str(TESTS), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "checkpoints.both", json.dumps(asdict(order))]
    return subprocess.run(command, env=environment, timeout=300, check=False).returncode


def main(order: Order) -> None:
    point = Point(order.step, order.name, order.partition, order.txid) if order.step else None
    made, processes = _cluster(order)
    wire = KillPoint(order.folder, point=point, processes=processes)
    with made as cluster:
        topology = build(order.url, order.folder, order.last)
        cluster.submitTopology(NAME, with_context({}, watcher=wire), topology).awaitTermination(200)


def _cluster(order: Order) -> tuple[Any, tuple[int, ...]]:
    """The cluster, and the processes that die with this one."""
    if order.cluster == "local":
        return LocalCluster(order.checkpoints, order.storage), ()
    from trident_py import SparkCluster
    from trident_py.spark.internals import java_process
    from trident_py.spark.session import OwnSession

    own = OwnSession({"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", **order.settings})
    return SparkCluster(own.spark, order.checkpoints), (os.getpid(), java_process(own.spark).pid)


if __name__ == "__main__":
    main(Order(**json.loads(sys.argv[1])))
