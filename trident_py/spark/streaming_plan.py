"""Builds a program's streaming query: sources of descriptors, then a stage and an exchange for each level.

The plan is built once; foreachBatch only triggers it. A replay has a plan of its own, which begins with the descriptors
of that attempt: so they travel with the job. `repartitionById` sends a row to exactly the partition that it
names, so a task's partition index is the program's, never a choice of adaptive execution.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from ..run.program import FAILURE, Program, Row
from ..spouts.sparkspout import SparkSpout
from ..tuples import Fields
from .internals import source_rows
from .stage import ROWS, SCHEMA, Shipped, level_function


def streaming_plan(spark: SparkSession, program: Program, source: str, shipped: Shipped) -> DataFrame:
    """The whole component as one streaming DataFrame. Its rows are the rows that leave the last level."""
    return _levels(_sources(spark, program, source, shipped), program, shipped)


def replay_plan(
    session: SparkSession, query: StreamingQuery, program: Program, shipped: Shipped, descriptors: list[Row]
) -> DataFrame:
    """Another attempt of the query's running batch. These descriptors replace those of the source for Python spouts;
    sources of Spark are read again. ``session`` is the batch's own: it has the query's settings."""
    columns = zip(*descriptors, strict=True) if descriptors else ([], [], [])
    table = pa.table([pa.array(column, kind.type) for column, kind in zip(columns, ROWS, strict=True)], ROWS)
    rows = session.createDataFrame(table, SCHEMA)
    numbers = python_spouts(program)
    if len(numbers) < len(program.spouts):
        streamed = source_rows(query, session, program.level_count)
        rows = streamed.where(~streamed["tag"].isin([*numbers, FAILURE])).unionAll(rows)
    if program.partitions(0) == 1:
        rows = rows.coalesce(1)  # Spark spreads the rows of a table over tasks as it likes
    return _levels(rows, program, shipped)


def _levels(rows: DataFrame, program: Program, shipped: Shipped) -> DataFrame:
    if program.partitions(0) > 1:
        rows = rows.repartitionById(program.partitions(0), "pid")
    elif _needs_one_partition(program):
        rows = rows.coalesce(1)
    rows = _stage(rows, shipped, 0)
    for level in range(1, program.level_count):
        rows = _stage(rows.repartitionById(program.partitions(level), "pid"), shipped, level)
    return rows


def _stage(rows: DataFrame, shipped: Shipped, level: int) -> DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # pyspark 4.3 about pandas 3, which we do not use
        return rows.mapInArrow(level_function(shipped, level), SCHEMA)


def python_spouts(program: Program) -> list[int]:
    """The numbers of the spouts whose descriptors come from the source in `source`."""
    return [i for i, info in enumerate(program.spouts) if not isinstance(info.spout, SparkSpout)]


class StreamedSpout:
    """Replaces a SparkSpout in the workers. Its tuples come in the descriptors, as those of a home spout do."""

    home = True

    def __init__(self, fields: Fields) -> None:
        self.fields = fields

    def getComponentConfiguration(self) -> dict | None:
        return None


def with_streamed_spouts(program: Program) -> Program:
    """The program for the workers, with a StreamedSpout in place of each SparkSpout."""
    infos = tuple(
        info._replace(spout=StreamedSpout(info.fields)) if isinstance(info.spout, SparkSpout) else info
        for info in program.spouts
    )
    return replace(program, spouts=infos)


def _needs_one_partition(program: Program) -> bool:
    return len(python_spouts(program)) < len(program.spouts)


def _sources(spark: SparkSession, program: Program, source: str, shipped: Shipped) -> DataFrame:
    frames = []
    if python_spouts(program):
        frames.append(spark.readStream.format(source).option("run", shipped.key).load())
    for index, info in enumerate(program.spouts):
        if isinstance(info.spout, SparkSpout):
            frames.append(_packed(spark, index, info.spout, program.partitions(0), shipped.paths))
    return reduce(DataFrame.unionAll, frames)


def _packed(spark: SparkSession, index: int, spout: SparkSpout, partitions: int, paths: tuple[str, ...]) -> DataFrame:
    """The rows of a source of Spark, packed into descriptors by the tasks that read them."""
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
    """The function that packs a source's record batches. Nested, so that it is pickled by value, as in `stage`."""

    def pack_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        sys.path.extend(path for path in paths if path not in sys.path)
        from trident_py.spark.streaming_plan import pack

        return pack(index, partitions, batches)

    return pack_rows


def pack(index: int, partitions: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turns each record batch into a descriptor of a chunk that is emitted as it is. Runs on the executor."""
    from pyspark import TaskContext

    from ..chunks import Chunk
    from ..spouts.coordination import Descriptor
    from .stage import leaving

    context = TaskContext.get()
    assert context is not None
    target = context.partitionId()
    for batch in batches:
        chunk = Chunk(dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows)
        pid = target % partitions
        yield from leaving([(pid, index, Descriptor(index, pid, chunk.encode()).encode())])
        target += 1
