"""A task that Spark runs again within a batch: its worker died, or the executor around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .driver import Order
from .evidence import Evidence, counted, evidence
from .hooks import STATES, Wait
from .processes import Driver, Drivers
from .story import batch
from .test_replays import holds_exactly
from .topology import Shape

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


NOWHERE = Wait()


def run(
    folder: Path, master: str, deaths: str, wait: Wait = NOWHERE, where: str = "", **settings: str
) -> tuple[Driver, Evidence]:
    """Four batches on this master, with these deaths."""
    named = {f"spark.{name.replace('_', '.')}": value for name, value in settings.items()}
    drivers = Drivers(folder, {"spark.master": master} | named)
    try:
        driver = drivers.start(Order(str(folder), Shape(4, wait=wait), deaths=deaths, where=where))
        assert driver.until("done", "error") == ["done", 4], driver.errors
        driver.end()
        return driver, evidence(folder)
    finally:
        drivers.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> tuple[Driver, Evidence]:
    """A run on two executors that loses ten workers and one executor."""
    return run(tmp_path_factory.mktemp("cluster"), "local-cluster[2,1,1024]", "executors")


def attempts(driver: Driver) -> dict[int, int]:
    """The attempt that was committed, by txid."""
    return {told[1]: told[2] for told in driver.told if told[0] == "committed"}


def test_a_task_that_spark_retries_counts_once_and_in_a_plain_state_twice(cluster: tuple[Driver, Evidence]) -> None:
    driver, seen = cluster
    assert attempts(driver)[1] == attempts(driver)[2] == 0  # it was Spark that tried again, not we
    assert {told[1] for told in driver.told if told[0] == "task-retry"} >= {1, 2}
    holds_exactly(seen, 4)
    for state in STATES:
        assert len(seen.committed(state, 2)) >= 3
    assert seen.stored["plain"] == counted(seen)
    assert sum(seen.stored["plain"].values()) > sum(len(batch(n)) for n in range(1, 5))


def test_an_executor_lost_between_two_commits_mixes_no_two_tries_of_a_batch(cluster: tuple[Driver, Evidence]) -> None:
    """The spout's task is run again too, and an opaque spout then emits something else."""
    driver, seen = cluster
    assert attempts(driver)[3] == 1  # the batch was replayed whole
    assert len(seen.committed("drift", 3)) > 2
    holds_exactly(seen, 4)


@pytest.mark.whole("test_a_task_of_an_attempt_that_was_given_up_is_refused")
def test_a_task_of_an_attempt_that_was_given_up_cannot_write_over_the_next(tmp_path: Path) -> None:
    """A worker dies and the batch is replayed, while the dead one's neighbour only sleeps. Then it wakes up."""
    wait = Wait("function", 3, str(tmp_path / "awake"))
    _, seen = run(tmp_path, "local[2]", "overtaken", wait, python_task_killTimeout="100s")
    asleep = [line for line in seen.log if (line.txid, line.attempt, line.partition) == (2, 0, 1)]
    assert [line for line in asleep if line.what == "committed"] == []
    refused = [line for line in asleep if line.what == "refused"]
    assert {line.state for line in refused} >= set(STATES) - {"rows"}  # rows locks its store with the first row only
    assert all("attempt 0 of batch 2 was given up, attempt 1 has taken over" in line.error for line in refused)
    holds_exactly(seen, 4)
