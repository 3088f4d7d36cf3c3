"""Fresh random cases, other ones than the recorded, against real Storm where it is at hand."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from hypothesis import settings

from trident_py import LocalCluster

from . import oracle
from .live import Case, all_operations, differing, own_shapes

DRAWS = (oracle.fresh, own_shapes, all_operations)


def of_each(count: int, seed: str, skip: int = 0) -> list[Case]:
    """The oracle's own, those of every operation, and those with windows and DRPC: Storm starts once for all."""
    return [case for draw in DRAWS for case in draw(count // len(DRAWS), seed, skip)]


@pytest.mark.skipif(oracle.missing() is not None, reason=oracle.missing() or "")
def test_fresh_random_cases_give_what_storm_gives(tmp_path: Path) -> None:
    """As many as hypothesis draws examples: `make test-all` asks for six times as many."""
    seed, count = f"day-{datetime.date.today():%Y%m%d}", settings.default.max_examples * 3 // 2
    with LocalCluster() as cluster:
        tally = differing(count, seed, cluster, tmp_path, of_each)
    assert tally.compared > count * 2 // 3
    assert tally.wrong == {}, f"seed {seed}"
