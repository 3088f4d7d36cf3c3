"""What differs between the versions of Spark that we run on: 3.5 to 4.3. Nothing else asks for a version."""

from __future__ import annotations

from functools import lru_cache
from itertools import count

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

SPARK = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
TAKES_ARROW = SPARK >= (4, 0)  # createDataFrame takes an Arrow table
PLACES_BY_ID = SPARK >= (4, 1)  # repartitionById
CHECKS_SHUFFLES = SPARK >= (4, 1)  # gives a job up if a stage that it repeats in part has another output
# Where Spark's classes that write its logs are.
CHECKPOINTING = "org.apache.spark.sql.execution.streaming" + (".checkpointing" if SPARK >= (4, 1) else "")
_SEED = 42  # of Spark's hash
_WORD = 0xFFFFFFFF


def frame_of(session: SparkSession, table: pa.Table, schema: str) -> DataFrame:
    """Return an Arrow table as a frame. Spark may split it over any number of tasks."""
    return session.createDataFrame(table if TAKES_ARROW else [tuple(row.values()) for row in table.to_pylist()], schema)


def partition_exactly(frame: DataFrame, partitions: int) -> DataFrame:
    """Send each row to the partition that its column ``pid`` names."""
    if PLACES_BY_ID:
        return frame.repartitionById(partitions, "pid")
    keys = F.lit(list(keys_of(partitions)))
    return frame.repartition(partitions, keys[F.col("pid")])


@lru_cache(maxsize=64)
def keys_of(partitions: int) -> tuple[int, ...]:
    """Return for each partition the least key that Spark's hash partitioning sends there."""
    found: dict[int, int] = {}
    for key in count():
        found.setdefault(_hash(key) % partitions, key)
        if len(found) == partitions:
            break
    return tuple(found[partition] for partition in range(partitions))


def _hash(key: int) -> int:
    """Return Spark's ``hash`` of an int, which is Murmur3 (x86, 32 bits)."""
    mixed = _rotate(key * 0xCC9E2D51 & _WORD, 15) * 0x1B873593 & _WORD
    mixed = (_rotate(_SEED ^ mixed, 13) * 5 + 0xE6546B64 & _WORD) ^ 4
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _WORD
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _WORD
    mixed ^= mixed >> 16
    return mixed - (1 << 32) if mixed >> 31 else mixed


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _WORD
