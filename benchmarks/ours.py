"""Our side of the benchmarks. Each function runs in a process of its own (measure.py)."""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

import trident_py
from states.sql import SqlMapState, SqlWindowsStoreFactory
from trident_py import Config, Fields, LocalCluster, RunningTopology, TridentTopology, TridentTuple, Values
from trident_py.operations import BaseFunction
from trident_py.operations.builtin import Count, Sum
from trident_py.spouts import FileSpout
from trident_py.state import SILENT, MapCombinerAggStateUpdater, persist
from trident_py.testing import FixedBatchSpout, MemoryMapState, Split
from trident_py.windowing import Duration, InMemoryWindowsStoreFactory, TumblingDurationWindow

from .sqlite_updates import batches as sqlite_batches


class SplitWithCollector(BaseFunction):
    """As anyone would port it from Java."""

    def execute(self, tuple, collector):  # type: ignore[no-untyped-def]
        for word in tuple.getString(0).split(" "):
            collector.emit(Values(word))


SPLITS: dict[str, Any] = {
    "function": SplitWithCollector(),
    "callable": lambda sentence: sentence.split(" "),
    "builtin": Split(),
}


class Laps:
    """Seconds between the commits of one run; ``phases`` are the driver's own, of each batch."""

    def __init__(self, running: RunningTopology) -> None:
        self.at: list[float] = [time.perf_counter()]
        self.phases: list[dict[str, float]] = []
        running.addListener(self.listen)

    def listen(self, event: Any, progress: Any) -> None:
        if event.kind == "committed":
            self.at.append(time.perf_counter())
            self.phases.append(dict(progress.seconds))

    @property
    def seconds(self) -> list[float]:
        return [later - earlier for earlier, later in zip(self.at, self.at[1:], strict=False)]


@contextmanager
def on_spark() -> Iterator[tuple[Any, Path]]:
    """A cluster on two cores and its checkpoints, thrown away afterwards."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory(prefix="trident-bench-") as folder:
        checkpoints = Path(folder) / "checkpoints"
        with trident_py.SparkCluster(checkpoints=str(checkpoints)) as cluster:
            yield cluster, checkpoints


@contextmanager
def on_local() -> Iterator[tuple[Any, Path]]:
    """The same in one process, without Spark."""
    with tempfile.TemporaryDirectory(prefix="trident-bench-") as folder, LocalCluster(folder) as cluster:
        yield cluster, Path(folder)


JOBS = "SparkCluster, as jobs"  # also batches that the driver would run itself
CONF: dict[str, dict[str, Any]] = {JOBS: {Config.TOPOLOGY_INLINE_MAX_TUPLES: 0}}


@contextmanager
def cluster_on(where: str) -> Iterator[Any]:
    """LocalCluster or SparkCluster, by its name; either keeps a checkpoint."""
    with on_local() if where == "LocalCluster" else on_spark() as (cluster, _):
        yield cluster


def run(cluster: Any, topology: TridentTopology, conf: dict[str, Any] | None = None) -> Laps:
    running = cluster.submitTopology("bench", conf or {}, topology.build())
    laps = Laps(running)
    running.awaitTermination()
    return laps


def word_count(paths: list[str], batches: int, kind: str) -> list[float]:
    """Every batch is the whole data set again, by hard links, so that the spout sees new files."""
    with on_spark() as (cluster, folder):
        links = folder.parent / "links"
        links.mkdir()
        for batch in range(batches):
            for number, path in enumerate(paths):
                os.link(path, links / f"{batch}-{number}.parquet")
        rows = parquet_rows(paths)
        topology = TridentTopology()
        sentences = topology.newStream("in", FileSpout(links, Fields("sentence string"), batchSize=rows))
        words = sentences.parallelismHint(2).each("sentence", SPLITS[kind], Fields("word string"))
        counts = words.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
        counts.parallelismHint(2)
        return run(cluster, topology).seconds


def parquet_rows(paths: list[str]) -> int:
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(path).num_rows for path in paths)


def joined(folder: str, batches: int) -> list[float]:
    topology = TridentTopology()
    sides = []
    for side in ("left", "right"):
        spout = FileSpout(f"{folder}/{side}", Fields("key bigint", f"{side} bigint"), batchSize=500_000)
        sides.append(topology.newStream(side, spout).parallelismHint(2))
    both = topology.join(sides, [["key"], ["key"]], Fields("key bigint", "left bigint", "right bigint"))
    sums = both.parallelismHint(2).chainedAgg().aggregate("left", Sum(), Fields("lefts bigint"))
    sums.aggregate("right", Sum(), Fields("rights bigint")).chainEnd()
    with on_spark() as (cluster, _):
        return run(cluster, topology).seconds[:batches]


def numbers(batches: int, per_batch: int = 10) -> FixedBatchSpout:
    rows = [(n,) for n in range(batches * per_batch)]
    return FixedBatchSpout(Fields("value bigint"), per_batch, *rows)


def stages_topology(batches: int, stages: int) -> TridentTopology:
    """So many stages of one function each, with an exchange between two of them."""
    topology = TridentTopology()
    stream = topology.newStream("in", numbers(batches)).parallelismHint(2)
    stream = stream.each("value", lambda value: [value + 1], Fields("value1 bigint"))
    for stage in range(1, stages):
        exchanged = stream.partitionBy(f"value{stage}")
        stream = exchanged.each(f"value{stage}", lambda value: [value + 1], Fields(f"value{stage + 1} bigint"))
        stream = stream.parallelismHint(2)
    return topology


def tiny_batches(batches: int, stages: int, where: str) -> list[float]:
    with cluster_on(where) as cluster:
        return run(cluster, stages_topology(batches, stages), CONF.get(where)).seconds


def phases(batches: int) -> dict[str, float]:
    """Median seconds of each phase of a tiny batch, as the driver measures them; the rest is Spark's own."""
    with on_spark() as (cluster, _):
        laps = run(cluster, stages_topology(batches, 2))
    warm = laps.phases[batches // 3 :]
    middle = {name: sorted(phase[name] for phase in warm)[len(warm) // 2] for name in warm[0]}
    whole = sorted(laps.seconds[batches // 3 :])[len(warm) // 2]
    return {**middle, "between batches (Spark)": whole - sum(middle.values())}


def sqlite_updates() -> list[float]:
    """The state alone, called as a topology calls it: persist with the updater of a grouped Sum, and the ledger."""
    with tempfile.TemporaryDirectory() as folder:
        factory = SqlMapState.opaque(f"sqlite:///{folder}/counts.sqlite", "counts", "word string", "count bigint")
        conf: dict[str, Any] = {"topology.name": "bench", "trident.state.name": "counts"}
        conf |= {"trident.lineage": "bench", "trident.run": "bench", "trident.home": None}
        driver = factory.participant()
        conf["trident.generation"] = driver.open(conf)
        state = factory.makeState(conf, None, 0, 1)
        updater = MapCombinerAggStateUpdater(Sum(), "word", "count")
        seconds = []
        for txid, rows in enumerate(sqlite_batches(), 1):
            tuples = [TridentTuple.of(["word", "count"], row) for row in rows]
            began = time.perf_counter()
            driver.prepare(txid, 0, 1)
            driver.publish(txid, 0, [persist(state, txid, updater, tuples, SILENT)])
            seconds.append(time.perf_counter() - began)
        return seconds


def sqlite_topology() -> list[float]:
    """The same through a whole topology in one process: spout, groupBy, Sum, exchange, state."""
    rows = [row for batch in sqlite_batches() for row in batch]
    per_batch = len(next(iter(sqlite_batches())))
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/counts.sqlite"
        state = SqlMapState.opaque(url, "counts", key="word string", value="count bigint")
        topology = TridentTopology()
        spout = FixedBatchSpout(Fields("word string", "n bigint"), per_batch, *rows)
        topology.newStream("in", spout).groupBy("word").persistentAggregate(state, "n", Sum(), "count")
        with LocalCluster() as cluster:
            return run(cluster, topology).seconds


def growth(batches: int) -> dict[str, Any]:
    """Small batches into SQLite, opaque; what is left on disk and in memory early and late."""
    seen: dict[str, Any] = {}
    with on_spark() as (cluster, folder):
        database = folder.parent / "growth.sqlite"
        state = SqlMapState.opaque(f"sqlite:///{database}", "counts", key="value bigint", value="count bigint")
        topology = TridentTopology()
        keyed = topology.newStream("in", numbers(batches)).each(
            "value", lambda value: [value % 100], Fields("key bigint")
        )
        keyed.groupBy("key").persistentAggregate(state, Count(), "count")
        running = cluster.submitTopology("growth", {}, topology.build())
        laps = Laps(running)
        while not running.awaitTermination(timeout=0.05):
            if len(laps.phases) >= 120 and "early" not in seen:
                seen["early"] = left_behind(folder, database)
        seen["late"] = left_behind(folder, database)
    return {**seen, "seconds": laps.seconds}


def left_behind(checkpoints: Path, database: Path) -> dict[str, float]:
    with closing(sqlite3.connect(database)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        ours = [name for name in tables if name != "counts"]
        rows = sum(db.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in ours)
    return {
        "checkpoint files": sum(1 for path in checkpoints.rglob("*") if path.is_file()),
        "ledger rows": rows,
        "driver MB": psutil.Process().memory_info().rss / 2**20,
    }


def local_batches(batches: int) -> float:
    topology = TridentTopology()
    stream = topology.newStream("in", numbers(batches, 2))
    stream.groupBy("value").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    with LocalCluster() as cluster:
        return batches / sum(run(cluster, topology).seconds)


def local_tuples(tuples: int) -> float:
    """Tuples through each, groupBy, count in one process, in batches of 10,000."""
    topology = TridentTopology()
    stream = topology.newStream("in", numbers(tuples // 10_000, 10_000))
    keyed = stream.each("value", lambda value: [value % 1000], Fields("key bigint"))
    keyed.groupBy("key").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    with LocalCluster() as cluster:
        return tuples / sum(run(cluster, topology).seconds)


def worker_memory(tuples: int) -> float:
    """The largest resident size, in MB, of a Python worker while batches of so many sentences run."""
    from .data import sentences

    with on_spark() as (cluster, folder):
        paths = sentences(folder.parent / "in", total=3 * tuples, files=3)
        topology = TridentTopology()
        spout = FileSpout(paths, Fields("sentence string"), batchSize=tuples)
        words = topology.newStream("in", spout).each("sentence", SPLITS["function"], Fields("word string"))
        words.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
        with watched_workers() as largest:
            run(cluster, topology, {Config.TOPOLOGY_INLINE_MAX_TUPLES: 0})
    return largest[0] / 2**20


def python_sizes(processes: list[psutil.Process]) -> Iterator[int]:
    """The resident sizes in bytes of those that run Python. One that ends meanwhile is left out."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if "python" in process.name():
                yield process.memory_info().rss


@contextmanager
def watched_workers() -> Iterator[list[int]]:
    """Watches all Python processes below this one; the list holds the largest resident size in bytes."""
    largest, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            largest[0] = max([*largest, *python_sizes(psutil.Process().children(recursive=True))])

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield largest
    finally:
        done.set()
        thread.join()


def tumbling_window(folder: str, store: str) -> dict[str, Any]:
    """A window of 10 s in event time and its sum, a file for each batch; seconds of each, and the memory at the end."""
    with on_spark() as (cluster, checkpoints):
        stores: dict[str, Any] = {
            "memory": InMemoryWindowsStoreFactory(),
            "SQLite": SqlWindowsStoreFactory(f"sqlite:///{checkpoints.parent}/window.db", "window"),
        }
        topology = TridentTopology()
        spout = FileSpout(folder, Fields("time bigint", "value bigint"), batchSize=1_000_000)
        stream = topology.newStream("in", spout).parallelismHint(2)
        config = TumblingDurationWindow.of(Duration.seconds(10)).withTimestampField("time")
        stream.window(config, stores[store], ["value"], Sum(), ["sum"])
        seconds = run(cluster, topology).seconds
        processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
        return {"seconds": seconds, "megabytes": sum(python_sizes(processes)) / 1e6}
