"""What differs between the versions of Spark, in one place."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ..run.program import Row
from .stage import ROWS, SCHEMA


def descriptor_frame(session: SparkSession, rows: Sequence[Row]) -> DataFrame:
    """The rows (pid, tag, block) as a frame."""
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    table = pa.table([pa.array(column, kind.type) for column, kind in zip(columns, ROWS, strict=True)], ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return session.createDataFrame(table, SCHEMA)


def partition_exactly(frame: DataFrame, partitions: int) -> DataFrame:
    """Each row in exactly the partition that its column ``pid`` names."""
    return frame.repartitionById(partitions, "pid")
