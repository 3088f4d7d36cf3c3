"""SparkCluster gives what real Storm Trident gave: all cases made by hand and a part of the random ones."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from trident_py import SparkCluster

from . import cases
from .compare import diff
from .deviations import DEVIATIONS, check
from .interpreter import run

pytestmark = pytest.mark.spark

SEED = 3
RANDOM = 12

HANDMADE = [r for r in cases.handmade() if cases.later(r.case) is None]
CHOSEN = random.Random(SEED).sample([r for r in cases.random() if cases.later(r.case) is None], RANDOM)


@pytest.fixture(scope="module")
def cluster(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    checkpoints: Path = tmp_path_factory.mktemp("checkpoints")
    with SparkCluster(spark, checkpoints=str(checkpoints)) as cluster:
        yield cluster


@pytest.mark.parametrize("recorded", HANDMADE, ids=lambda recorded: recorded.name)
def test_a_case_made_by_hand_gives_what_storm_gave(recorded: cases.Recorded, cluster: Any) -> None:
    ours = run(recorded.case, cluster)
    if recorded.name in DEVIATIONS:
        check(recorded, ours)
    else:
        assert diff(recorded.case, recorded.result, ours) == {}, ours["error"]


@pytest.mark.parametrize("recorded", CHOSEN, ids=lambda recorded: recorded.name)
def test_a_random_case_gives_what_storm_gave(recorded: cases.Recorded, cluster: Any) -> None:
    ours = run(recorded.case, cluster)
    assert diff(recorded.case, recorded.result, ours) == {}, ours["error"]
