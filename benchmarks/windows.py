"""Group windows: one window of 10M tuples, against Spark's own window aggregation; what a durable window costs.

Both sides read the same Parquet files, a file of 1M rows for each batch. Spark keeps one sum for each window; a window
of Trident keeps the tuples, because any aggregator may come. The cost of a durable window is the processor's and the
store's time of a batch, against the same tuples summed into a `SqlMapState`.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from states.sql import SqlMapState, SqlWindowsStoreFactory
from testbed.sql_servers import MariaDb
from trident_py.engine.processors.windows import WindowUpdater
from trident_py.model.chunks import Chunk, TupleList
from trident_py.model.context import CurrentBatch
from trident_py.operations.builtin import Sum
from trident_py.state import SILENT, CombinerAggStateUpdater, persist
from trident_py.tuples import Fields, TransactionAttempt, TridentTuple
from trident_py.windowing import TumblingCountWindow

from .measure import measure
from .report import Figure, at_least, at_most, median

GROUP = "windows"
WINDOW = 10_000_000
PER_BATCH = 1_000_000
BATCHES = 12
WARM_UP = 2
SMALL = 10_000


def files(folder: Path) -> list[str]:
    """A file for each batch: times in order, so that ten batches fill a window of 10 s, and values."""
    paths, generator = [], np.random.default_rng(7)
    for batch in range(BATCHES):
        times = batch * 1_000 + np.arange(PER_BATCH) // (PER_BATCH // 1_000)
        table = pa.table({"time": pa.array(times), "value": pa.array(generator.integers(0, 1_000, PER_BATCH))})
        paths.append(str(folder / f"{batch:02d}.parquet"))
        pq.write_table(table, paths[-1], row_group_size=50_000)
    return paths


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="trident-bench-") as folder:
        files(Path(folder))
        spark = PER_BATCH / median(measure("by_hand.tumbling_window", folder, BATCHES)[WARM_UP:])
        yield Figure(GROUP, "Spark's window() and sum", spark, "tuples/s")
        for store in ("memory", "SQLite"):
            taken = measure("ours.tumbling_window", folder, store)
            ours = PER_BATCH / median(taken["seconds"][WARM_UP:])
            name, ratio = f"a window of 10M tuples, in {store}", ours / spark
            asked: Any = at_least(ratio, 0.8)
            yield Figure(GROUP, name, ours, "tuples/s", "Spark's own", ratio, **asked)
            yield Figure(GROUP, f"{name}: the batch that ends it", max(taken["seconds"][WARM_UP:]), "s")
            yield Figure(GROUP, f"{name}: memory of the workers and the driver", taken["megabytes"], "MB")
    seconds = durable()
    for size, (window, sums) in seconds.items():
        more = window / sums - 1
        bar: Any = at_most(more, 0.15)
        name = f"durable window on MariaDB, {size:,} tuples a batch"
        yield Figure(GROUP, name, window * 1_000, "ms", "a sum in SqlMapState", more, **bar)


def durable() -> dict[int, tuple[float, float]]:
    """Median seconds of a batch, for each size: into a window, and into the sum of a map state."""
    with MariaDb() as server:
        return {size: _durable(server.create_database(), size) for size in (1_000, SMALL, 100_000)}


def _durable(url: str, size: int) -> tuple[float, float]:
    ways: dict[str, Callable[[int, TupleList], Any]] = {"window": _window(url, size), "sum": _sums(url)}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for txid in range(1, 31):
        for name in random.Random(txid).sample(list(ways), len(ways)):
            tuples = TupleList(Fields("value bigint"))
            tuples.append(Chunk({"value": pa.array(range(size), pa.int64())}, size))
            began = time.perf_counter()
            ways[name](txid, tuples)
            seconds[name].append(time.perf_counter() - began)
    return median(seconds["window"][5:]), median(seconds["sum"][5:])


def _window(url: str, size: int) -> Callable[[int, TupleList], Any]:
    config = TumblingCountWindow.of(10 * size)
    updater = WindowUpdater(config, Sum(), Fields("value bigint"), 1, 0, Fields())
    return _fenced(SqlWindowsStoreFactory(url, "window").windowState(config, "window"), "window", updater)


def _sums(url: str) -> Callable[[int, TupleList], Any]:
    """As persistentAggregate does it: the sum of the batch, then one update of the state."""
    factory = SqlMapState.opaque(url, "sums", None, "sum bigint")
    return _fenced(factory, "sums", CombinerAggStateUpdater(Sum()))


def _fenced(factory: Any, name: str, updater: Any) -> Callable[[int, TupleList], Any]:
    running = CurrentBatch()
    conf = {"topology.name": "bench", "trident.state.name": name, "trident.lineage": "bench",
            "trident.context": running}  # fmt: skip
    driver = factory.participant()
    conf["trident.generation"] = driver.open(conf)
    state = factory.makeState(conf, None, 0, 1)

    def run(txid: int, tuples: TupleList) -> None:
        running.transaction = TransactionAttempt(txid, 0)
        driver.prepare(txid, 0, 1)
        rows: Any = tuples
        if name == "sums":
            total = sum(np.asarray(chunk.columns["value"]).sum() for chunk in tuples.chunks)
            rows = [TridentTuple.of(Fields("sum bigint"), [int(total)])]
        driver.publish(txid, 0, [persist(state, txid, updater, rows, SILENT, True)])

    return run
