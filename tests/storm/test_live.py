"""Fresh random cases, other ones than the recorded, against real Storm where it is at hand."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from trident_py import LocalCluster

from . import oracle
from .live import differing

COUNT = 300


@pytest.mark.skipif(oracle.missing() is not None, reason=oracle.missing() or "")
def test_fresh_random_cases_give_what_storm_gives(tmp_path: Path) -> None:
    seed = f"day-{datetime.date.today():%Y%m%d}"
    with LocalCluster() as cluster:
        ran, wrong = differing(COUNT, seed, cluster, tmp_path)
    assert ran > COUNT // 2
    assert wrong == {}, f"seed {seed}"
