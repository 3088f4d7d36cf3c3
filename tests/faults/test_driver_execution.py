"""State partitions that move between the driver process and workers from attempt to attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trident_py import Config
from trident_py.spark.driver_execution import HERE, DriverExecution
from trident_py.testing import Crashing

from .driver import ANY_SIZE, Order
from .evidence import evidence
from .hooks import STATES, Wait, wait_for
from .mixed import LAST, MixedRound
from .processes import Drivers
from .readings import Fold, Readings
from .stores import EXACT, build, differences
from .test_replays import holds_exactly
from .test_retries import run
from .test_zombies import refusal
from .topology import Shape

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
SEED = 5
COMMIT = ("beginCommit", "put", "commit", "afterCommit")


def places(running: Any) -> dict[int, str]:
    """Where each batch was committed."""
    return {event.txid: event.reason for event in running.events if event.kind == "committed"}


def test_every_state_holds_the_fold_while_batches_move_between_the_driver_and_workers(
    spark_cluster: Callable[..., Any], urls: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt runs on the other side than the one before. In each batch a state fails in one partition, at one
    point of its commit, and is committed again on the other side."""
    last = 2 * len(EXACT)
    monkeypatch.setattr(DriverExecution, "takes", lambda self, batch, tuples: (batch.txid + batch.attempt) % 2 == 0)

    def wrap(name: str, factory: Any) -> Any:
        number = EXACT.index(name)
        for txid in (number + 1, number + 1 + len(EXACT)):
            factory = Crashing(factory, COMMIT[(txid // 2) % 4], {(txid, 0)}, partition=number % 2)
        return factory

    topology = build(urls, Readings(SEED), last, wrap=wrap)
    running = spark_cluster().submitTopology("both", ANY_SIZE, topology)
    assert running.awaitTermination(500)
    assert running.attempts == dict.fromkeys(range(1, last + 1), 1)
    assert places(running) == {txid: HERE if txid % 2 else "" for txid in range(1, last + 1)}
    assert differences(urls, Fold(Readings(SEED), last)) == []


@pytest.fixture
def drivers(tmp_path: Path) -> Iterator[Drivers]:
    made = Drivers(tmp_path)
    yield made
    made.close()


def params() -> list[Any]:
    """The point, and which states are caught there: partitions are one after the other in a driver."""
    quick = [("updated", "opaque")]
    every = [("function", ""), ("begun", "trans"), *quick, ("one", ""), ("all", ""), ("published", ""), ("over", "")]
    return [pytest.param(*each, marks=[] if each in quick else pytest.mark.whole) for each in every]


@pytest.mark.parametrize(("point", "state"), params())
def test_a_batch_begun_on_one_side_is_replayed_on_the_other_by_the_next_driver(
    drivers: Drivers, tmp_path: Path, point: str, state: str
) -> None:
    """SIGKILL of the driver in batch 2, which it runs itself, and of the next one, in batch 3 on its workers."""
    (tmp_path / "mark-2-held").touch()  # nobody waits for the other partition
    orders = [
        Order(str(tmp_path), Shape(5), point, 2, (state, ""), where="driver"),
        Order(str(tmp_path), Shape(5), "one", 3, where="executors"),
    ]
    for order in orders:
        assert drivers.start(order, ahead=True).wait_killed() == -9
    last = drivers.start(Order(str(tmp_path), Shape(5), where="driver"))
    assert last.until("done", "error") == ["done", 5], last.errors
    seen = evidence(tmp_path)
    holds_exactly(seen, 5)
    if point in ("one", "all", "published", "over"):
        assert len(seen.committed("opaque", 2)) > 2  # before the death, and after it


@pytest.mark.whole("test_a_batch_begun_on_one_side_is_replayed_on_the_other_by_the_next_driver")
@pytest.mark.parametrize("seed", range(1, 6))
def test_random_deaths_while_batches_change_sides_lose_and_double_nothing(tmp_path: Path, seed: int) -> None:
    """More seeds: make faults STORES=spark"""
    MixedRound(seed).run(tmp_path)
    holds_exactly(evidence(tmp_path), LAST)


@pytest.mark.whole("test_a_batch_begun_on_one_side_is_replayed_on_the_other_by_the_next_driver")
def test_a_task_that_was_given_up_is_refused_after_the_driver_has_run_its_batch(tmp_path: Path) -> None:
    """A worker dies, and the driver runs the batch again itself, while the dead one's neighbour only sleeps."""
    wait = Wait("function", 3, str(tmp_path / "awake"))
    where = "retries in the driver"
    driver, seen = run(tmp_path, "local[2]", "overtaken", wait, where, python_task_killTimeout="100s")
    assert [told[3] for told in driver.told if told[0] == "committed" and told[1] == 2] == [HERE]
    asleep = [line for line in seen.log if (line.txid, line.attempt, line.partition) == (2, 0, 1)]
    assert [line for line in asleep if line.what == "committed"] == []
    refused = [line for line in asleep if line.what == "refused"]
    assert {line.state for line in refused} >= set(STATES) - {"rows"}
    holds_exactly(seen, 4)


@pytest.mark.parametrize(
    "points",
    [
        ("updated", "over"),
        pytest.param(("function", "published", "begun"), marks=pytest.mark.whole),
        pytest.param(("one", "all", "log"), marks=pytest.mark.whole),
    ],
)
def test_drivers_that_die_in_batches_that_follow_others_lose_and_double_nothing(
    drivers: Drivers, tmp_path: Path, points: tuple[str, ...]
) -> None:
    """In batches 2 to 5, each in the first micro-batch of its query. In the last start none follows another."""
    for txid, point in enumerate(points, 2):
        (tmp_path / f"mark-{txid}-held").touch()  # nobody waits for the other partition
        order = Order(str(tmp_path), Shape(6), point, txid, ("opaque", ""), follow(60_000), where="driver")
        driver = drivers.start(order, ahead=True)
        assert driver.wait_killed() == -9, driver.errors
        seen = evidence(tmp_path)
        assert (seen.begun, seen.over) == (txid - (point == "log"), txid - 1)
    last = drivers.start(Order(str(tmp_path), Shape(6), conf=follow(0), where="driver"))
    assert last.until("done", "error") == ["done", 6], last.errors
    last.end()
    seen = evidence(tmp_path)
    holds_exactly(seen, 6)
    assert seen.begun == seen.over == 6


def follow(millis: int) -> dict[str, int]:
    return {Config.TOPOLOGY_INLINE_FOLLOW_MILLIS: millis}


@pytest.mark.whole(
    "test_a_driver_that_was_stopped_and_wakes_up_writes_nothing",
    "test_each_driver_takes_the_checkpoint_from_the_one_before_in_full_run[following]",
)
def test_a_driver_that_slept_in_a_batch_that_follows_is_refused(drivers: Drivers, tmp_path: Path) -> None:
    order = Order(str(tmp_path), Shape(6, wait=Wait("function", 3, str(tmp_path / "wake"))), where="driver")
    older = drivers.start(order, ahead=True)
    wait_for(tmp_path / "wake.reached")
    newer = drivers.start(Order(str(tmp_path), Shape(6), where="driver"))
    assert newer.until("done", "error") == ["done", 6], newer.errors
    before = evidence(tmp_path)
    holds_exactly(before, 6)
    (tmp_path / "wake").touch()
    assert "another driver runs on the checkpoint" in refusal(older)
    after = evidence(tmp_path)
    assert after.stored == before.stored
    assert [line for line in after.log if line.what == "committed"] == before.log
    newer.obey_again(Order(str(tmp_path), Shape(7), where="driver"))
    assert newer.until("done", "error") == ["done", 7], newer.errors
    holds_exactly(evidence(tmp_path), 7)
