"""One level of a program as a function for ``mapInArrow``, which Spark's Python workers run.

Rows in and out are (pid int, tag int, block binary). The function is pickled by value and carries the program as bytes,
because a worker can import and unpickle nothing before it has the driver's ``sys.path``.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..home import HomeAddress, HomeError, Proxy
from ..run import worker_memory as runs
from ..run.program import BatchInfo, Program, Row
from ..run.worker_memory import run_level

BATCH = "trident.batch"
DESCRIPTORS = "trident.descriptors"
RETRY = -1_000_000
SCHEMA = "pid int, tag int, block binary"
FLUSH_BYTES = 1 << 20
FLUSH_ROWS = 1024

_ARROW = pa.schema([("pid", pa.int32()), ("tag", pa.int32()), ("block", pa.binary())])
_programs: dict[str, Program] = {}
_homes: dict[str, HomeAddress] = {}


@dataclass(frozen=True)
class Shipped:
    """One component of one run, for the workers. ``key`` is <run>/<component>."""

    key: str
    program: bytes
    home: HomeAddress
    paths: tuple[str, ...]


def level_function(shipped: Shipped, level: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function of one level. Nested, so that it is pickled by value and not by its module's name."""
    key, program, home, paths = shipped.key, shipped.program, pickle.dumps(shipped.home), shipped.paths

    def level_of_a_batch(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        sys.path.extend(path for path in paths if path not in sys.path)
        from trident_py.spark.stage import execute

        return execute(key, program, home, level, batches)

    return level_of_a_batch


def import_paths() -> tuple[str, ...]:
    """The driver's import path, for workers on the same machine."""
    return tuple(path or str(Path.cwd()) for path in sys.path)


def execute(
    key: str, program: bytes, home: bytes, level: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Runs this task's partition of a level, on the executor. An exception here is never one of user code."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    partition = context.partitionId()
    batch = _batch_info(context.getLocalProperty(BATCH))
    loaded = _program(key, program, home)
    rows = arriving(batches)
    fresh = context.getLocalProperty(DESCRIPTORS)
    if level == 0 and fresh:
        rows = _replayed(rows, Proxy(pickle.loads(home), f"{key}/planner"), partition, json.loads(fresh))
    yield from leaving(run_level(loaded, level, partition, batch, rows))
    if context.attemptNumber() > 0:
        retry = {"level": level, "partition": partition, "retries": context.attemptNumber()}
        yield from leaving([(0, RETRY, json.dumps(retry).encode())])


def arriving(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Any]]:
    """The rows (tag, block). A block is a view of Spark's memory, not a copy."""
    for batch in batches:
        blocks = batch.column("block")
        for i, tag in enumerate(batch.column("tag").to_pylist()):
            yield tag, blocks[i].as_buffer()


def leaving(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """The rows as record batches. Small rows share a batch."""
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
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)


def _replayed(
    rows: Iterable[tuple[int, Any]], planner: Any, partition: int, python_spouts: list[int]
) -> Iterator[tuple[int, Any]]:
    """The rows of a replay: descriptors from the driver replace those that the source gave for the first attempt."""
    for tag, block in rows:
        if tag not in python_spouts:
            yield tag, block
    yield from planner.replayed(partition)


@lru_cache(maxsize=16)
def _batch_info(text: str) -> BatchInfo:
    return BatchInfo.from_json(text)


def _program(key: str, program: bytes, home: bytes) -> Program:
    """The component's program in this worker. When a new one arrives, the programs of ended runs are dropped."""
    if key not in _programs:
        for other in list(_programs):
            _drop_if_ended(other)
        _programs[key], _homes[key] = pickle.loads(program), pickle.loads(home)
    return _programs[key]


def _drop_if_ended(key: str) -> None:
    try:
        Proxy(_homes[key], f"{key}/planner").alive()
    except HomeError:
        del _programs[key], _homes[key]
        runs.end_run(key.partition("/")[0])
