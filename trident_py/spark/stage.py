"""One level of a program as a function for ``mapInArrow``, which Spark's Python workers run.

Rows in and out are (pid int, tag int, block binary). The function is pickled by value and carries the program as bytes,
because a worker on the driver's machine can import and unpickle nothing before it has the driver's ``sys.path``.
"""

from __future__ import annotations

import gc
import json
import pickle
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from time import monotonic
from typing import Any

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import SparkSession

from ..engine import phases
from ..engine.phases import TaskPhases, measure_handing, measure_pulls, phase
from ..engine.program import REPORT, BatchInfo, NodeReport, Program, Row
from ..engine.worker_cache import end_run, run_level
from ..model.pickling import dumps
from .worker_logs import enter_task

BATCH = "trident.batch"
RUNS = "trident.runs"
RETRY = -1_000_000
SCHEMA = "pid int, tag int, block binary"
FLUSH_BYTES = 1 << 20
FLUSH_ROWS = 1024
NO_NODE = -1
COLLECT_SECONDS = 10.0
MOST_BYTES = 1 << 16

ROWS = pa.schema([("pid", pa.int32()), ("tag", pa.int32()), ("block", pa.binary())])
_programs: dict[str, Program] = {}
_runs_seen = 0  # in a worker: the highest number of a list of runs
_collected = monotonic()  # in a worker: when all garbage was collected


@dataclass(frozen=True)
class Shipped:
    """One component of one run, for the workers. ``key`` is <run>/<component>, ``title`` names it in logs; ``levels``
    are those of the driver's loggers. ``profiled``: the tasks report their phases."""

    key: str
    program: bytes | Broadcast[bytes]
    paths: tuple[str, ...]
    title: str
    levels: str
    profiled: bool = False


def load_program(spark: SparkSession, key: str, program: bytes, *more: Any) -> Shipped:
    """Return what workers get of a component. A large program travels once, not with each job."""
    sent = program if len(program) < MOST_BYTES else spark.sparkContext.broadcast(program)
    return Shipped(key, sent, *more)


def level_function(shipped: Shipped, level: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of one level. Nested, so that it is pickled by value and not by its module's name."""
    key, program, paths = shipped.key, shipped.program, shipped.paths
    more = (shipped.title, shipped.levels, shipped.profiled)

    def level_of_a_batch(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        sys.path.extend(path for path in paths if path not in sys.path)
        try:
            from trident_py.spark.stage import execute
        except ImportError as error:
            import platform

            raise ImportError(f"{error} (host {platform.node()}, {sys.executable})") from error
        return execute(key, program, level, batches, *more)

    return level_of_a_batch


def execute(
    key: str,
    program: bytes | Broadcast[bytes],
    level: int,
    batches: Iterator[pa.RecordBatch],
    title: str,
    levels: str,
    profiled: bool,
) -> Iterator[pa.RecordBatch]:
    """Run this task's partition of a level, on the executor. An exception here is never one of user code."""
    from pyspark import TaskContext

    phases.start(profiled)
    context = TaskContext.get()
    assert context is not None
    partition = context.partitionId()
    with phase("task rest"):
        with phase("program"):
            batch = _batch_info(context.getLocalProperty(BATCH))
            enter_task(levels, f"{title}, txid {batch.txid}, attempt {batch.attempt}, partition {partition}")
            _drop_ended_runs(str(context.getLocalProperty(RUNS)))
            loaded = _program(key, program)
        arrived = read_batches(measure_pulls(batches, "exchange read", "from Spark"))
        yield from measure_handing(
            write_batches(run_level(loaded, level, partition, batch, arrived)), "exchange write", "to Spark"
        )
    if context.attemptNumber() > 0:
        retry = {"level": level, "partition": partition, "retries": context.attemptNumber()}
        yield from write_batches([(0, RETRY, json.dumps(retry).encode())])
    if (taken := phases.take()) is not None:
        measured = TaskPhases(level, partition, context.taskAttemptId(), taken)
        yield from write_batches([(0, REPORT, dumps(NodeReport(NO_NODE, partition, phases.REPORTED, measured)))])
    collect_seldom()


def collect_seldom() -> None:
    """Called at the end of a task. Spark's daemon then collects garbage in the worker, and its next task waits until
    every object of every module has been looked at. Frozen objects are not. Every few seconds all are."""
    global _collected
    if monotonic() - _collected < COLLECT_SECONDS:
        gc.freeze()
    else:
        gc.unfreeze()
        _collected = monotonic()


def read_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Any]]:
    """Return the rows (tag, block). A block is a view of Spark's memory, not a copy."""
    for batch in batches:
        blocks = batch.column("block")
        for i, tag in enumerate(batch.column("tag").to_pylist()):
            yield tag, blocks[i].as_buffer()


def write_batches(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Return the rows as record batches. Small rows share a batch."""
    held: list[Row] = []
    size = 0
    for row in rows:
        held.append(row)
        size += len(row[2])
        if size >= FLUSH_BYTES or len(held) >= FLUSH_ROWS:
            yield _record_batch(held)
            held, size = [], 0
    if held:
        yield _record_batch(held)


def _record_batch(rows: list[Row]) -> pa.RecordBatch:
    pids, tags, blocks = zip(*rows, strict=True)
    columns = [pa.array(pids, pa.int32()), pa.array(tags, pa.int32()), pa.array(blocks, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=ROWS)


@lru_cache(maxsize=16)
def _batch_info(text: str) -> BatchInfo:
    return BatchInfo.from_json(text)


def _program(key: str, program: bytes | Broadcast[bytes]) -> Program:
    """Return the component's program in this worker. Raises ImportError, with the host, if the worker lacks a
    module."""
    if key not in _programs:
        try:
            _programs[key] = pickle.loads(program if isinstance(program, bytes) else program.value)  # noqa: S301  from the driver, by Spark
        except ImportError as error:
            raise ImportError(f"{error} (host {platform.node()}, {sys.executable})") from error
    return _programs[key]


def _drop_ended_runs(text: str) -> None:
    """Drop what this worker keeps of runs that have ended. ``text`` is the driver's `active_runs` when it started the
    job. Ignores a list that is older than one seen before: it may lack a run that began since."""
    global _runs_seen
    number, runs = json.loads(text)
    if number <= _runs_seen:
        return
    _runs_seen = number
    for ended in {key.partition("/")[0] for key in _programs} - set(runs):
        for key in [key for key in _programs if key.startswith(f"{ended}/")]:
            del _programs[key]
        end_run(ended)
