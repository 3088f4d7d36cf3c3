"""Two drivers on one local checkpoint: the newer goes on, the older writes nothing more, wherever it was stopped."""

from __future__ import annotations

import itertools
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import backups
from faults.forks import Driver, Start
from faults.readings import Fold, Readings
from faults.steps import Fault
from faults.stores import EXACT, differences

SEED = 7
LAST = 5
CHECKPOINT = "checkpoints/faults/readings/journal"
OF_THE_DRIVER = ("described", "recorded", "over")
OF_A_STATE = ("begin", "committed", "publish", "published")
PLACES = [*((step, "") for step in OF_THE_DRIVER), *((step, state) for state in EXACT for step in OF_A_STATE)]


@pytest.fixture
def drivers() -> Iterator[list[Driver]]:
    """Drivers that are gone after the test, also if they are stopped."""
    made: list[Driver] = []
    yield made
    for driver in made:
        driver.close()


def refused(driver: Driver) -> str:
    """What the older driver says at its end."""
    driver.next()
    assert driver.told[-1][:2] == ("error", "ZombieError"), driver.told[-1]
    text: str = driver.told[-1][2]
    return text


@pytest.mark.one_of_each
@pytest.mark.parametrize(("step", "state"), PLACES)
def test_a_driver_that_was_stopped_and_wakes_up_writes_nothing(
    database: str, tmp_path: Path, drivers: list[Driver], step: str, state: str
) -> None:
    """It stands still between two transactions: in the middle of one it would keep the newer from its rows."""
    only = (state or "opaque",)
    older = Driver(Start(database, tmp_path, LAST, (Fault(step, state, 3, action="ask"),), SEED, only=only))
    drivers.append(older)
    assert older.next() == "at"
    assert older.process.pid is not None
    os.kill(older.process.pid, signal.SIGSTOP)
    newer = Driver(Start(database, tmp_path, LAST, (), SEED, only=only))
    drivers.append(newer)
    newer.next()
    assert newer.told[-1] == ("done", LAST), newer.told[-1]
    rows, journal = backups.contents(database), (tmp_path / CHECKPOINT).read_bytes()
    older.go_on()
    os.kill(older.process.pid, signal.SIGCONT)
    said = refused(older)
    if step in OF_THE_DRIVER and step != "recorded":
        assert re.search(rf"process {newer.process.pid} on host \S+ has taken it over .* Nothing more is written", said)
    assert backups.contents(database) == rows
    assert (tmp_path / CHECKPOINT).read_bytes() == journal
    assert differences(database, Fold(Readings(SEED), LAST), only) == []


@pytest.mark.whole("test_a_driver_that_was_stopped_and_wakes_up_writes_nothing")
def test_each_of_several_drivers_takes_the_checkpoint_from_the_one_before_in_full_run(
    database: str, tmp_path: Path, drivers: list[Driver]
) -> None:
    last, states = 60, ("rows", "opaque", "append", "batch")
    for _ in range(4):
        drivers.append(Driver(Start(database, tmp_path, last, (), SEED, only=states)))
        for _ in range(3):
            drivers[-1].until("committed")
            drivers[-1].told.append(("counted",))
    drivers[-1].next()
    assert drivers[-1].told[-1] == ("done", last)
    for older, newer in itertools.pairwise(drivers):
        said = refused(older)
        assert f"process {newer.process.pid} on host" in said or "a newer one with generation" in said
    assert differences(database, Fold(Readings(SEED), last), states) == []
