"""kill -9 of the Python worker that holds a state, at every point of its commit, in every state, on Spark.

Two batches are each state's own: the first two attempts of each lose a worker, every time at another point of the
commit and in the other partition. (After four deaths in a row the engine gives up.) Partitions commit at the same
time here, each in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trident_py.testing import Crashing

from .conftest import shares
from .readings import Fold, Readings
from .stores import build, differences

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SEED = 9
POINTS = ("beginCommit", "put", "commit", "afterCommit")


def dying(factory: Any, first: int) -> Any:
    """The factory, whose states take their worker with them in two attempts of two batches."""
    for number, point in enumerate(POINTS):
        when = {(first + number // 2, number % 2)}
        factory = Crashing(factory, point, when, "kill", number % 2)
    return factory


@pytest.mark.parametrize(("database", "only"), shares(), indirect=["database"])
def test_a_worker_killed_at_any_point_of_a_commit_loses_and_doubles_nothing(
    spark_cluster: Callable[..., Any], database: str, only: tuple[str, ...], tmp_path: Path
) -> None:
    last = 2 * len(only) + 2

    def wrap(name: str, factory: Any) -> Any:
        return dying(factory, 2 * only.index(name) + 2)

    topology = build(database, Readings(SEED), last, only=only, wrap=wrap)
    running = spark_cluster().submitTopology("workers", {}, topology)
    assert running.awaitTermination(500)
    tries = {event.txid: event.attempt for event in running.events if event.kind == "committed"}
    assert tries == {txid: 2 if 1 < txid < last else 0 for txid in range(1, last + 1)}
    assert differences(database, Fold(Readings(SEED), last), only) == []
