"""What one batch costs on Spark: runs for `scale`, each in a process of its own (measure.py).

Counts come from Spark's event log, from the server's own counters and from the checkpoint; processor time from the
operating system.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyspark

import trident_py
from states.sql import SqlMapState
from states.sql.store import parse_url, store_of
from testbed.sql_servers import MariaDb
from trident_py import Fields, TridentTopology
from trident_py.model.chunks import Chunk
from trident_py.operations.builtin import Count
from trident_py.spark.driver_execution import SETTING
from trident_py.spark.session import OwnSession
from trident_py.spouts import ITridentSpout

from .numbered import Numbered

KEYS = 1_000
WARM_UP = 4
CLUSTER = "local-cluster[2,1,1024]"


class Generated(ITridentSpout):
    """So many batches of so many tuples, made by the tasks; the key of a tuple is its number modulo `KEYS`."""

    kind = "transactional"

    class Emitter(ITridentSpout.Emitter):
        def __init__(self, numbers: range) -> None:
            self.keys = pa.array(np.array(numbers, np.int64) % KEYS)

        def emitChunks(self, tx: Any, coordinatorMeta: Any, wanted: Iterable[str] | None = None) -> Iterator[Chunk]:
            yield Chunk({"key": self.keys}, len(self.keys))

    def __init__(self, batches: int, tuples: int) -> None:
        self.batches, self.tuples = batches, tuples

    def getCoordinator(self, txStateId: str, conf: dict, context: Any) -> Any:
        return Numbered(self.batches)

    def getEmitter(self, txStateId: str, conf: dict, context: Any) -> Any:
        index, count = context.getPartitionIndex(), context.numPartitions()
        return self.Emitter(range(index * self.tuples // count, (index + 1) * self.tuples // count))

    def getOutputFields(self) -> Fields:
        return Fields("key bigint")


def topology_of(url: str, batches: int, tuples: int, partitions: int) -> Any:
    """Spout and state have so many partitions each, with one exchange between them."""
    topology = TridentTopology()
    stream = topology.newStream("in", Generated(batches, tuples)).parallelismHint(partitions)
    state = SqlMapState.opaque(url, "counts", "key bigint", "count bigint")
    stream.groupBy("key").persistentAggregate(state, Count(), "count").parallelismHint(partitions)
    return topology.build()


@contextmanager
def cluster_on(master: str) -> Iterator[tuple[Any, Path]]:
    """A cluster, and its folder with ``checkpoints`` and Spark's event log in ``events``."""
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(Path(pyspark.__file__).parent)}
    with tempfile.TemporaryDirectory(prefix="trident-bench-") as name:
        folder = Path(name)
        (folder / "events").mkdir()
        log = {"enabled": "true", "dir": f"file://{folder}/events", "compress": "false", "rolling.enabled": "false"}
        settings = {f"spark.eventLog.{key}": value for key, value in log.items()}
        settings[SETTING] = "0"  # what a batch costs on executors is asked, however small it is
        own = OwnSession({"spark.master": master, "spark.executor.memory": "1g", **settings})
        try:
            with trident_py.SparkCluster(own.spark, checkpoints=str(folder / "checkpoints")) as cluster:
                yield cluster, folder
        finally:
            own.stop()


def processors(java: psutil.Process) -> dict[str, float]:
    """Processor seconds so far, by role. The planner is Spark's process for our source, beside the driver's JVM."""
    seconds = {"driver Python": own_seconds(psutil.Process()), "driver JVM": own_seconds(java)}
    seconds |= dict.fromkeys(("planner", "executor JVMs", "workers"), 0.0)
    for child in java.children():
        executor = "java" in child.name()
        seconds["executor JVMs" if executor else "planner"] += own_seconds(child)
        for below in child.children(recursive=True):
            seconds["workers" if executor else "planner"] += own_seconds(below)
    return seconds


def own_seconds(process: psutil.Process) -> float:
    """Its own and those of its ended children."""
    try:
        return sum(process.cpu_times()[:4])
    except psutil.NoSuchProcess:
        return 0.0


class Watch:
    """Notes the time, the processor time and the server's counters at each commit of a run."""

    def __init__(self, running: Any, java: psutil.Process, ask: Any) -> None:
        self.java, self.ask = java, ask
        self.seconds: list[float] = []
        self.processors: list[dict[str, float]] = []
        self.counters: list[dict[str, int]] = []
        running.addListener(self.listen)

    def listen(self, event: Any, progress: Any) -> None:
        if event.kind == "committed":
            self.seconds.append(time.perf_counter())
            self.processors.append(processors(self.java))
            self.counters.append(self.ask())

    def per_batch(self, taken: list[Any]) -> dict[str, float]:
        """The mean increase for each batch after the warm-up."""
        first, last = taken[WARM_UP - 1], taken[-1]
        return {name: (last[name] - first[name]) / (len(taken) - WARM_UP) for name in last}


def counters(connection: Any) -> dict[str, int]:
    """MariaDB's own counters. Reading them is a statement too."""
    names = "('QUESTIONS', 'COM_COMMIT', 'INNODB_ROW_LOCK_WAITS')"
    text = f"SELECT variable_name, variable_value FROM information_schema.global_status WHERE variable_name IN {names}"
    found = {name: int(value) for name, value in connection.execute(text).fetchall()}
    commits, waits = found["COM_COMMIT"], found["INNODB_ROW_LOCK_WAITS"]
    return {"statements": found["QUESTIONS"], "commits": commits, "lock waits": waits}


def one(partitions: int, tuples: int, batches: int, master: str = CLUSTER) -> dict[str, Any]:
    """The mean of a batch with so many partitions and tuples."""
    with MariaDb() as server, cluster_on(master) as (cluster, folder):
        connection = store_of(parse_url(server.url)).take()
        java = next(child for child in psutil.Process().children() if "java" in child.name())
        running = cluster.submitTopology("scale", {}, topology_of(server.url, batches, tuples, partitions))
        watch = Watch(running, java, lambda: counters(connection))
        running.awaitTermination()
        rows = int(connection.execute("SELECT count(*) FROM trident_part").fetchone()[0])
        ledger = rows + int(connection.execute("SELECT count(*) FROM trident_fence").fetchone()[0])
        cluster.spark.stop()  # closes the event log
        sent = batches_of(folder / "events")[WARM_UP:]
    laps = np.diff(watch.seconds)[WARM_UP - 1 :]
    stored = watch.per_batch(watch.counters)
    stored["statements"] -= 1  # our own question
    means = {name: float(np.mean([batch[name] for batch in sent])) for name in sent[0]}
    return {
        **means,
        **stored,
        "ledger rows left": ledger,
        "wall ms": 1000 * float(np.median(laps)),
        **{f"{name} ms": 1000 * value for name, value in watch.per_batch(watch.processors).items()},
    }


def batches_of(events: Path) -> list[dict[str, float]]:
    """What Spark's event log says of each batch's job: its tasks, what its stages wrote and returned."""
    (log,) = [path for path in events.iterdir() if path.is_file()]
    jobs: list[tuple[list[int], int]] = []
    stages: dict[int, dict[str, float]] = {}
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart" and (event["Properties"] or {}).get("trident.batch"):
            jobs.append((sorted(event["Stage IDs"]), properties_size(event["Properties"])))
        elif event["Event"] == "SparkListenerTaskEnd":
            add_task(stages.setdefault(event["Stage ID"], {}), event["Task Metrics"])
    return [batch_of([stages[number] for number in numbers if number in stages], size) for numbers, size in jobs]


def properties_size(properties: dict[str, str]) -> int:
    """The bytes of the local properties of ours, which travel with every task."""
    return sum(len(key) + len(value) for key, value in properties.items() if key.startswith("trident."))


def add_task(stage: dict[str, float], metrics: dict[str, Any]) -> None:
    written = metrics["Shuffle Write Metrics"]
    for name, value in {
        "tasks": 1,
        "rows": written["Shuffle Records Written"],
        "bytes": written["Shuffle Bytes Written"],
        "result": metrics["Result Size"],
    }.items():
        stage[name] = stage.get(name, 0) + value


def batch_of(stages: list[dict[str, float]], properties: int) -> dict[str, float]:
    """The planner's rows are written by the first stage, exchanges by those in between; the last one answers."""
    first, between, last = stages[0], stages[1:-1], stages[-1]
    return {
        "tasks": sum(stage["tasks"] for stage in stages),
        "descriptor rows": first["rows"],
        "descriptor bytes": first["bytes"],
        "exchange rows": sum(stage["rows"] for stage in between),
        "exchange bytes": sum(stage["bytes"] for stage in between),
        "collected bytes": last["result"],
        "property bytes": properties,
    }


def over_time(batches: int, partitions: int) -> dict[str, Any]:
    """The same small batch again and again: what each costs, and what is left behind after some of them."""
    left: dict[int, dict[str, float]] = {}
    with MariaDb() as server, cluster_on("local[2]") as (cluster, folder):
        connection = store_of(parse_url(server.url)).take()
        java = next(child for child in psutil.Process().children() if "java" in child.name())
        running = cluster.submitTopology("scale", {}, topology_of(server.url, batches, partitions, partitions))
        watch = Watch(running, java, lambda: counters(connection))

        def look(event: Any, progress: Any) -> None:
            if event.kind == "committed" and event.txid in (10, 200, batches):
                left[event.txid] = left_behind(folder / "checkpoints", connection, cluster.spark)

        running.addListener(look)
        running.awaitTermination()
        cluster.spark.stop()
        sent = batches_of(folder / "events")
    return {"seconds": np.diff(watch.seconds).tolist(), "counters": watch.counters, "sent": sent, "left": left}


def left_behind(checkpoints: Path, connection: Any, spark: Any) -> dict[str, float]:
    files = [path for path in checkpoints.rglob("*") if path.is_file()]
    logs = [path for path in files if path.parent.name in ("offsets", "commits")]
    tables = ("trident_fence", "trident_part")
    ledger = [connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables]
    java = spark.sparkContext._jvm.java.lang
    java.System.gc()
    memory = java.Runtime.getRuntime()
    return {
        "our files": len(files) - len(logs),
        "Spark's log files": len(logs),
        "bytes of our files": sum(path.stat().st_size for path in files if path not in logs),
        "ledger rows": sum(map(int, ledger)),
        "driver Python MB": psutil.Process().memory_info().rss / 2**20,
        "driver JVM heap MB": (memory.totalMemory() - memory.freeMemory()) / 2**20,
    }

