"""Windows on Spark: the same as a plain fold, with failing attempts and killed workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import databases
import pytest

from states.sql import SqlWindowsStoreFactory
from trident_py import SparkCluster
from trident_py.windowing import InMemoryWindowsStoreFactory

from .killed import BATCHES, CONFIGS
from .naive import expected
from .support import CrashingStore, windows

STORES = ("memory", "sqlite")


@pytest.mark.parametrize("how", ["fail", "kill"])
@pytest.mark.parametrize("at", ["update", "afterCommit"])
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("name", CONFIGS)
def test_windows_on_spark_are_those_of_a_plain_fold(
    spark: Any, tmp_path: Path, name: str, store: str, at: str, how: str
) -> None:
    inner = {"memory": InMemoryWindowsStoreFactory(), "sqlite": SqlWindowsStoreFactory(databases.sqlite(tmp_path), "w")}
    crashing = CrashingStore(inner[store], at, frozenset([(2, 0), (4, 0)]), how)
    with SparkCluster(spark, checkpoints=str(tmp_path / "checkpoints")) as cluster:
        assert windows(cluster, CONFIGS[name], crashing, BATCHES) == expected(CONFIGS[name], BATCHES)
