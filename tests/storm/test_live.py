"""Fresh random cases, other ones than the recorded, against real Storm where it is at hand."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from trident_py import LocalCluster

from . import oracle
from .live import all_operations, differing, own_shapes

COUNT = 100


@pytest.mark.skipif(oracle.missing() is not None, reason=oracle.missing() or "")
@pytest.mark.parametrize(
    "draw", [oracle.fresh, own_shapes, all_operations], ids=["the oracle's", "of every operation", "with windows, DRPC"]
)
def test_fresh_random_cases_give_what_storm_gives(draw: Any, tmp_path: Path) -> None:
    seed = f"day-{datetime.date.today():%Y%m%d}"
    with LocalCluster() as cluster:
        tally = differing(COUNT, seed, cluster, tmp_path, draw)
    assert tally.compared > COUNT * 2 // 3
    assert tally.wrong == {}, f"seed {seed}"
