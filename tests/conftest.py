"""What several tests share: one Spark session, made when the first test needs it, and clusters on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The session of all Spark tests: two cores, two shuffle partitions."""
    from trident_py.spark.session import OwnSession

    own = OwnSession({"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"})
    try:
        yield own.spark
    finally:
        own.stop()


@pytest.fixture
def spark_cluster(spark: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """``spark_cluster(checkpoints=None)``: a SparkCluster on the shared session, shut down after the test."""
    from trident_py import SparkCluster

    made: list[Any] = []

    def make(checkpoints: Path | str | None = None) -> Any:
        made.append(SparkCluster(spark, str(checkpoints or tmp_path / "checkpoints")))
        return made[-1]

    yield make
    for cluster in made:
        cluster.shutdown()
