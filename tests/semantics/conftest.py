"""The cluster that a test of a behaviour runs on: LocalCluster, and SparkCluster for tests marked `both`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trident_py import LocalCluster


@pytest.fixture(scope="module")
def spark_in_module(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from trident_py import SparkCluster

    folder: Path = tmp_path_factory.mktemp("checkpoints")
    with SparkCluster(request.getfixturevalue("spark"), checkpoints=str(folder)) as cluster:
        yield cluster


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """LocalCluster unless the test is parametrised with `both` (support.py)."""
    if getattr(request, "param", "local") == "spark":
        yield request.getfixturevalue("spark_in_module")
        return
    with LocalCluster() as local:
        yield local
