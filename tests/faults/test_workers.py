"""kill -9 of the Python worker that holds a state, at every point of its commit, in every state, on Spark.

Two batches are each state's own: the first two attempts of each lose a worker, every time at another point of the
commit and in the other partition. (After four deaths in a row the engine gives up.) Where the states are on several
stores, one batch is each state's own, and one attempt of it loses a worker: each point comes in both partitions.
Partitions commit at the same time here, each in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from trident_py.testing import Crashing

from .readings import Fold, Readings
from .stores import EXACT, build, differences

pytestmark = pytest.mark.spark
SEED = 9
POINTS = ("beginCommit", "put", "commit", "afterCommit")


def dying(factory: Any, first: int, points: Sequence[str]) -> Any:
    """The factory, whose states take their worker with them: at two points in two attempts of one batch."""
    for number, point in enumerate(points):
        when = {(first + number // 2, number % 2)}
        factory = Crashing(factory, point, when, "kill", (number + first // 4) % 2)
    return factory


def test_a_worker_killed_at_any_point_of_a_commit_loses_and_doubles_nothing(
    spark_cluster: Callable[..., Any], urls: dict[str, str]
) -> None:
    each = 1 if len(set(urls.values())) > 1 else 2
    last = each * len(EXACT) + 2

    def wrap(name: str, factory: Any) -> Any:
        number = EXACT.index(name)
        return dying(factory, each * number + 2, POINTS if each == 2 else POINTS[number % 4 :][:1])

    topology = build(urls, Readings(SEED), last, wrap=wrap)
    running = spark_cluster().submitTopology("workers", {}, topology)
    assert running.awaitTermination(500)
    tries = {event.txid: event.attempt for event in running.events if event.kind == "committed"}
    assert tries == {txid: each if 1 < txid < last else 0 for txid in range(1, last + 1)}
    assert differences(urls, Fold(Readings(SEED), last)) == []
