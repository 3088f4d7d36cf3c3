"""States in Redis on Spark: workers are killed at every point of their commits, and every value is the fold's."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from redis_topology import STATES, RedisStart

from trident_py.testing import Crashing

pytestmark = pytest.mark.spark
POINTS = ("beginCommit", "put", "commit", "afterCommit")


@pytest.mark.parametrize("kinds", [("opaque",), pytest.param(STATES, marks=pytest.mark.whole)], ids="-".join)
def test_a_worker_killed_at_any_point_of_a_commit_loses_and_doubles_nothing(
    redis: str, spark_cluster: Callable[..., Any], tmp_path: Path, kinds: tuple[str, ...]
) -> None:
    """Two batches are each state's own: two attempts of each lose a worker, each time at another point."""
    last = 2 * len(kinds) + 2
    start = RedisStart(redis, tmp_path, last, prefix=f"spark-{os.getpid()}-{len(kinds)}", kinds=kinds)

    def wrap(name: str, factory: Any) -> Any:
        for number, point in enumerate(POINTS):
            when = {(2 * kinds.index(name) + 2 + number // 2, number % 2)}
            factory = Crashing(factory, point, when, "kill", number % 2)
        return factory

    running = spark_cluster().submitTopology("workers", {}, start.topology(wrap))
    assert running.awaitTermination(300)
    tries = {event.txid: event.attempt for event in running.events if event.kind == "committed"}
    assert tries == {txid: 2 if 1 < txid < last else 0 for txid in range(1, last + 1)}
    assert start.differences(last) == {}
