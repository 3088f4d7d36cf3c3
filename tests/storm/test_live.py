"""Fresh random cases, other ones than the recorded, against real Storm where it is at hand."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from trident_py import LocalCluster

from . import oracle
from .live import differing, own_shapes

COUNT = 150


@pytest.mark.skipif(oracle.missing() is not None, reason=oracle.missing() or "")
@pytest.mark.parametrize("draw", [oracle.fresh, own_shapes], ids=["the oracle's", "of every operation"])
def test_fresh_random_cases_give_what_storm_gives(draw: Any, tmp_path: Path) -> None:
    seed = f"day-{datetime.date.today():%Y%m%d}"
    with LocalCluster() as cluster:
        ran, wrong = differing(COUNT, seed, cluster, tmp_path, draw)
    assert ran > COUNT // 2
    assert wrong == {}, f"seed {seed}"
