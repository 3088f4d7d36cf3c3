"""The ways round what older versions of Spark lack do the same as the newest version's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trident_py.errors import TridentError
from trident_py.spark import failures, jobs, stage, versions
from trident_py.spark.internals import has_repeated_stage, java_classes

pytestmark = pytest.mark.spark
DESCRIPTORS = [(pid, 7 - pid, bytes([pid]) * 3) for pid in range(5)] * 2


@pytest.fixture(params=["own", "older"], autouse=True)
def way(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the installed version has, and the way without it."""
    if request.param == "older":
        monkeypatch.setattr(versions, "TAKES_ARROW", False)
        monkeypatch.setattr(versions, "PLACES_BY_ID", False)


def frame(spark: Any, rows: list) -> DataFrame:
    return versions.frame_of(spark, pa.Table.from_batches(stage.write_batches(rows), stage.ROWS), stage.SCHEMA)


def test_a_version_is_told_by_what_it_has(spark: Any) -> None:
    assert (versions.SPARK >= (4, 1)) == hasattr(DataFrame, "repartitionById")
    java_classes(spark).java.lang.Class.forName(f"{versions.CHECKPOINTING}.CheckpointFileManager")


@pytest.mark.parametrize("rows", [DESCRIPTORS, []])
def test_a_frame_of_descriptors(spark: Any, rows: list) -> None:
    made = frame(spark, rows)
    assert [tuple(row) for row in made.collect()] == rows
    assert made.schema.simpleString() == "struct<pid:int,tag:int,block:binary>"


@pytest.mark.parametrize("partitions", [5, 8, 64])
def test_a_row_goes_to_the_partition_that_it_names(spark: Any, partitions: int) -> None:
    rows = [(pid, 0, b"") for pid in range(0, partitions, 3)]
    placed = versions.partition_exactly(frame(spark, rows), partitions)
    assert placed.columns == ["pid", "tag", "block"]
    assert placed.rdd.getNumPartitions() == partitions
    there = placed.select("pid", F.spark_partition_id().alias("there")).collect()
    assert sorted(row.pid for row in there) == [pid for pid, _, _ in rows]
    assert [row for row in there if row.pid != row.there] == []


def test_one_partition_for_all(spark: Any) -> None:
    placed = versions.partition_exactly(frame(spark, [(0, n, b"") for n in range(5)]), 1)
    assert [len(rows) for rows in placed.rdd.glom().collect()] == [5]


def test_a_job_that_ran_once_repeats_no_stage(spark: Any) -> None:
    spark.sparkContext.setJobDescription("counted once")
    assert versions.partition_exactly(frame(spark, DESCRIPTORS), 5).count() == len(DESCRIPTORS)
    spark.sparkContext.setJobDescription(None)
    assert not has_repeated_stage(spark, "counted once")
    assert not has_repeated_stage(spark, "never ran")


def test_a_job_with_a_repeated_stage_counts_as_a_lost_task_where_spark_compares_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "has_repeated_stage", lambda spark, description: True)
    cluster, alone = (
        SimpleNamespace(version="4.0.5", sparkContext=SimpleNamespace(master=master)) for master in ("yarn", "local[2]")
    )
    for checks, spark in ((True, cluster), (False, alone)):
        monkeypatch.setattr(jobs, "CHECKS_SHUFFLES", checks)
        jobs.check_stages(spark, "ours")  # type: ignore[arg-type]
    with pytest.raises(TridentError) as told:
        monkeypatch.setattr(jobs, "CHECKS_SHUFFLES", False)
        jobs.check_stages(cluster, "ours")  # type: ignore[arg-type]
    assert failures.is_lost_task(failures.chain_of(told.value))


def test_the_hash_of_an_int_is_sparks(spark: Any) -> None:
    keys = [*range(300), 2**31 - 1]
    hashed = spark.createDataFrame([(key,) for key in keys], "key int").select(F.hash("key")).collect()
    assert [versions._hash(key) for key in keys] == [row[0] for row in hashed]
