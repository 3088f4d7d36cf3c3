"""Workers collect the garbage of many tasks at once: Spark's daemon would look at every object after each task."""

from __future__ import annotations

import gc
from time import monotonic
from typing import Any

import pytest

from trident_py import Fields, TridentTopology
from trident_py.spark import stage
from trident_py.testing import FixedBatchSpout, collect


def test_what_a_worker_holds_is_frozen_but_for_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        monkeypatch.setattr(stage, "_collected", monotonic())
        stage.collect_seldom()
        assert gc.get_freeze_count() > 1_000
        monkeypatch.setattr(stage, "_collected", monotonic() - stage.COLLECT_SECONDS)
        stage.collect_seldom()
        assert gc.get_freeze_count() == 0
        stage.collect_seldom()
        assert gc.get_freeze_count() > 1_000
    finally:
        gc.unfreeze()


@pytest.mark.spark
def test_a_worker_does_so_from_its_second_task_on(spark_cluster: Any) -> None:
    topology = TridentTopology()
    spout = FixedBatchSpout(Fields("n bigint"), 1, *((n,) for n in range(6)))
    frozen = topology.newStream("in", spout).each("n", lambda n: [gc.get_freeze_count()], Fields("frozen bigint"))
    collect(frozen, "rows")
    running = spark_cluster().submitTopology("garbage", {}, topology.build())
    assert running.awaitTermination(100)
    assert max(count for rows in running.collected("rows").values() for _, count in rows) > 10_000
