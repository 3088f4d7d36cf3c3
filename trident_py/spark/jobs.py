"""The job of a batch: its descriptors as a frame, then a stage and an exchange for each level of the program.

It is built inside foreachBatch, so the descriptors travel with the job. An exchange sends a row to exactly the
partition that it names: a task's partition index is the program's, never a choice of adaptive execution. Sources of
Spark are read by the streaming query; their rows are packed into descriptors by the tasks that read them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ..engine.program import Program, Row
from ..errors import TridentError
from ..spouts.sparkspout import SparkSpout
from ..tuples import Fields
from .internals import has_repeated_stage
from .launcher import is_alone, master_of
from .stage import ROWS, SCHEMA, Shipped, level_function, write_batches
from .versions import CHECKS_SHUFFLES, frame_of, partition_exactly


def job_of(
    session: SparkSession, program: Program, shipped: Shipped, descriptors: Sequence[Row], streamed: DataFrame | None
) -> DataFrame:
    """Return one attempt of a batch. Its rows are the rows that leave the last level. ``session`` is the micro-batch's
    own: it has the query's settings. ``streamed``: what the query has read from sources of Spark."""
    rows = frame_of(session, pa.Table.from_batches(write_batches(descriptors), ROWS), SCHEMA)
    if streamed is not None:
        rows = streamed.unionAll(rows)
    if program.partitions(0) > 1:
        rows = partition_exactly(rows, program.partitions(0))
    else:
        rows = rows.coalesce(1)  # Spark spreads the rows of a table over tasks as it likes
    rows = _stage(rows, shipped, 0)
    for level in range(1, program.level_count):
        rows = _stage(partition_exactly(rows, program.partitions(level)), shipped, level)
    return rows


def check_stages(spark: SparkSession, description: str) -> None:
    """Called when an attempt's job has ended. When an executor is lost, Spark repeats a part of a stage, and other
    partitions may have used its first output. A version that does not compare the two has the whole batch replayed:
    raises what counts as a lost task."""
    if CHECKS_SHUFFLES or is_alone(master_of(spark)) or not has_repeated_stage(spark, description):
        return
    raise TridentError(f"Spark {spark.version} repeated a part of a stage, with what may be indeterminate output")


def _stage(rows: DataFrame, shipped: Shipped, level: int) -> DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # pyspark 4.3 about pandas 3, which we do not use
        return rows.mapInArrow(level_function(shipped, level), SCHEMA)


def tick(spark: SparkSession) -> DataFrame:
    """Return a source that always has something new, so that Spark calls foreachBatch again and again. Nobody reads
    it."""
    return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).option("numPartitions", 1).load()


def source_of(spark: SparkSession, program: Program, paths: tuple[str, ...]) -> DataFrame:
    """Return what the component's query reads: a tick if it has Python spouts, and the sources of its SparkSpouts."""
    frames = [
        _pack_rows(spark, index, info.spout, program.partitions(0), paths)
        for index, info in enumerate(program.spouts)
        if isinstance(info.spout, SparkSpout)
    ]
    if python_spouts(program):
        clock = tick(spark).where("false").selectExpr("0 pid", "0 tag", "cast(null as binary) block")
        frames.append(clock)
    return reduce(DataFrame.unionAll, frames)


def python_spouts(program: Program) -> list[int]:
    """Return the numbers of the spouts that the driver coordinates."""
    return [i for i, info in enumerate(program.spouts) if not isinstance(info.spout, SparkSpout)]


def has_sources(program: Program) -> bool:
    """Return whether Spark reads a spout of the component."""
    return len(python_spouts(program)) < len(program.spouts)


class StreamedSpout:
    """Replaces a SparkSpout in the workers. Its tuples come in the descriptors, as those of a home spout do."""

    home = True

    def __init__(self, fields: Fields) -> None:
        self.fields = fields

    def getComponentConfiguration(self) -> dict | None:
        return None


def with_streamed_spouts(program: Program) -> Program:
    """Return the program for the workers, with a StreamedSpout in place of each SparkSpout."""
    infos = tuple(
        info._replace(spout=StreamedSpout(info.fields)) if isinstance(info.spout, SparkSpout) else info
        for info in program.spouts
    )
    return replace(program, spouts=infos)


def _pack_rows(
    spark: SparkSession, index: int, spout: SparkSpout, partitions: int, paths: tuple[str, ...]
) -> DataFrame:
    """Return the rows of a source of Spark, packed into descriptors by the tasks that read them."""
    reader = spark.readStream.format(spout.format)
    for key, value in spout.options.items():
        reader = reader.option(key, value)
    if spout.schema is not None:
        reader = reader.schema(spout.schema)
    columns = [f"`{name.replace('`', '``')}`" for name in spout.getOutputFields()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return reader.load().select(*columns).mapInArrow(_pack(index, partitions, paths), SCHEMA)


def _pack(
    index: int, partitions: int, paths: tuple[str, ...]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that packs a source's record batches. Nested, so that it is pickled by value, as in
    `stage`."""

    def pack_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        sys.path.extend(path for path in paths if path not in sys.path)
        from trident_py.spark.jobs import pack

        return pack(index, partitions, batches)

    return pack_rows


def pack(index: int, partitions: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn each record batch into a descriptor of a chunk that is emitted as it is. Runs on the executor."""
    from pyspark import TaskContext

    from ..model.chunks import Chunk
    from ..spouts.coordination import Descriptor
    from .stage import write_batches

    context = TaskContext.get()
    assert context is not None
    target = context.partitionId()
    for batch in batches:
        chunk = Chunk(dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows)
        pid = target % partitions
        yield from write_batches([(pid, index, Descriptor(index, pid, chunk.encode()).encode())])
        target += 1
