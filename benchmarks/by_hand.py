"""What a person would write without us: foreachBatch under Spark's default settings.

Every function runs a query of ``batches`` micro-batches and returns the seconds of each, as Spark reports
them.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa


def session(settings: Mapping[str, str] | None = None) -> Any:
    import os

    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("by hand").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "2g").config(map=dict(settings or {}))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def run_batches(spark: Any, body: Callable[[Any, int], None], batches: int, rows: int = 10) -> list[float]:
    """``body`` as foreachBatch over a JVM source of ``rows`` rows a batch; seconds per batch, in order."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).load()
    return durations_of(source, body, batches)


def durations_of(source: Any, body: Callable[[Any, int], None], batches: int) -> list[float]:
    """``body`` as foreachBatch over a streaming frame; seconds per batch that called it, in order.

    The number of input rows does not tell: it is 0 where ``body`` leaves its frame unread.
    """
    with tempfile.TemporaryDirectory() as folder:
        query = source.writeStream.foreachBatch(body).option("checkpointLocation", folder).start()
        durations: dict[int, float] = {}
        while len(durations) < batches and query.isActive:
            for progress in query.recentProgress:
                if "addBatch" in progress["durationMs"]:
                    durations[progress["batchId"]] = progress["batchDuration"] / 1000
            time.sleep(0.05)
        query.stop()
    return [durations[batch] for batch in sorted(durations)][:batches]


def split_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        words = [word for sentence in batch.column("sentence").to_pylist() for word in sentence.split(" ")]
        yield pa.record_batch({"word": pa.array(words, pa.string())})


def split_each(sentence: str, emit: Callable[[str], None]) -> None:
    for word in sentence.split(" "):
        emit(word)


def emit_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        words: list[str] = []
        for sentence in batch.column("sentence").to_pylist():
            split_each(sentence, words.append)
        yield pa.record_batch({"word": pa.array(words, pa.string())})


def word_count_rows(paths: list[str], batches: int) -> list[float]:
    """The counterpart of a Function: one call per sentence, which emits word by word."""
    return count_words(paths, batches, emit_rows)


def word_count(paths: list[str], batches: int) -> list[float]:
    """The counterpart of a plain callable: one comprehension per record batch."""
    return count_words(paths, batches, split_rows)


def count_words(paths: list[str], batches: int, stage: Callable) -> list[float]:
    """spark.read, mapInArrow with a Python split, groupBy and count, the counts fetched to the driver."""
    spark = session()

    def body(_: Any, batch_id: int) -> None:
        words = spark.read.parquet(*paths).mapInArrow(stage, "word string")
        words.groupBy("word").count().toArrow()

    return run_batches(spark, body, batches)


def count_in_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    counts: Counter[str] = Counter()
    for batch in batches:
        for sentence in batch.column("sentence").to_pylist():
            counts.update(sentence.split(" "))
    yield pa.record_batch({"word": pa.array(counts, pa.string()), "n": pa.array(counts.values(), pa.int64())})


def word_count_tuned(paths: list[str], batches: int) -> list[float]:
    """As one would after a profile: each task counts its words itself, and only the counts are exchanged."""
    from pyspark.sql import functions as F

    spark = session({"spark.sql.shuffle.partitions": "2"})

    def body(_: Any, batch_id: int) -> None:
        counts = spark.read.parquet(*paths).mapInArrow(count_in_task, "word string, n bigint")
        counts.groupBy("word").agg(F.sum("n")).toArrow()

    return run_batches(spark, body, batches)


def word_count_native(paths: list[str], batches: int) -> list[float]:
    """Spark's own split, explode and count: no Python in it."""
    from pyspark.sql import functions as F

    spark = session()

    def body(_: Any, batch_id: int) -> None:
        words = spark.read.parquet(*paths).select(F.explode(F.split("sentence", " ")).alias("word"))
        words.groupBy("word").count().toArrow()

    return run_batches(spark, body, batches)


def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [value + 1 for value in batch.column("value").to_pylist()]
        yield pa.record_batch({"value": pa.array(rows, pa.int64())})


def tiny_batches(batches: int, stages: int) -> list[float]:
    """Batches of ten tuples through so many Python stages, with an exchange between two of them."""

    def body(frame: Any, batch_id: int) -> None:
        passed = frame.select("value").coalesce(2).mapInArrow(pass_on, "value bigint")
        for _ in range(1, stages):
            passed = passed.repartition(2, "value").mapInArrow(pass_on, "value bigint")
        passed.write.format("noop").mode("append").save()

    return run_batches(session(), body, batches)


def joined(folder: str, batches: int) -> list[float]:
    """The files of a batch read, joined by key and summed; two shuffle partitions, as there are two cores."""
    from pyspark.sql import functions as F

    spark = session({"spark.sql.shuffle.partitions": "2"})

    def body(_: Any, batch_id: int) -> None:
        left, right = (spark.read.parquet(f"{folder}/{side}/{batch_id:02d}.parquet") for side in ("left", "right"))
        left.join(right, "key").agg(F.sum("left"), F.sum("right")).toArrow()

    return run_batches(spark, body, batches)


def tumbling_window(folder: str, batches: int) -> list[float]:
    """Spark's own windows in event time: one sum for each window of 10 s, a file for each batch."""
    from pyspark.sql import functions as F

    spark = session({"spark.sql.shuffle.partitions": "2"})
    source = spark.readStream.schema("time bigint, value bigint").option("maxFilesPerTrigger", 1).parquet(folder)
    stamped = source.select(F.timestamp_millis("time").alias("at"), "value").withWatermark("at", "0 seconds")
    sums = stamped.groupBy(F.window("at", "10 seconds")).agg(F.sum("value"))
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = sums.writeStream.format("noop").outputMode("append").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        found = [progress for progress in query.recentProgress if progress["numInputRows"]]
    return [progress["batchDuration"] / 1000 for progress in found][:batches]
