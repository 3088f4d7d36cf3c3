"""LocalCluster, SparkCluster and a naive reference agree on random topologies, batches and failures."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as hypothesis_seed

from trident_py import LocalCluster

from .drafts import cases
from .engine import Engine, shown
from .naive import Naive
from .steps import Case

ON_SPARK = 12
ON_SPARK_ALWAYS = 4
SEED = 3


@pytest.fixture(scope="module")
def local() -> Iterator[Any]:
    with LocalCluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def on_spark(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from trident_py import SparkCluster

    folder: Path = tmp_path_factory.mktemp("checkpoints")
    with SparkCluster(spark, checkpoints=str(folder)) as cluster:
        yield cluster


def check(case: Case, cluster: Any) -> None:
    naive, engine = Naive(case), Engine(case).run(cluster)
    assert shown(engine.outputs) == shown(naive.outputs)
    assert engine.states == {step_id: naive.states.get(step_id, {}) for step_id in engine.states}


@settings(derandomize=True, suppress_health_check=list(HealthCheck))
@given(case=cases())
def test_the_local_cluster_agrees_with_the_reference(case: Case, local: Any) -> None:
    check(case, local)


@cache
def _drawn(count: int, seed: int) -> list[Case]:
    """Random cases, the same ones for the same seed."""
    found: list[Case] = []

    @settings(max_examples=count * 4, derandomize=False, suppress_health_check=list(HealthCheck))
    @hypothesis_seed(seed)
    @given(case=cases())
    def draw(case: Case) -> None:
        found.append(case)

    draw()
    return random.Random(seed).sample([case for case in found if len(case.steps) > 4], count)


@pytest.mark.spark
@pytest.mark.parametrize("number", [
    *range(ON_SPARK_ALWAYS), *(pytest.param(n, marks=pytest.mark.whole) for n in range(ON_SPARK_ALWAYS, ON_SPARK)),
])  # fmt: skip
def test_the_spark_cluster_agrees_with_the_reference(number: int, on_spark: Any) -> None:
    check(_drawn(ON_SPARK, SEED)[number], on_spark)
