"""Two drivers on one local checkpoint: the newer goes on, the older writes nothing more, wherever it was stopped."""

from __future__ import annotations

import itertools
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from faults import backups
from faults.forks import Driver, Start
from faults.readings import Fold, Readings
from faults.steps import Fault
from faults.stores import EXACT, differences
from remotes import Remote

from trident_py.checkpoints.uri_folder import open_folder

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
    said = zombie(drivers, Start(database, tmp_path, LAST, (Fault(step, state, 3, action="ask"),), SEED))
    if step in OF_THE_DRIVER and step != "recorded":
        newer = drivers[-1].process
        assert re.search(rf"process {newer.pid} on host \S+ has taken it over .* Nothing more is written", said)


@pytest.mark.whole(
    "test_a_driver_that_was_stopped_and_wakes_up_writes_nothing[", "test_a_start_takes_over_from_a_driver_in_full_run"
)
@pytest.mark.parametrize("step", OF_THE_DRIVER)
def test_a_driver_that_was_stopped_and_wakes_up_writes_nothing_in_hdfs_and_s3(
    place_of_uri: Remote, tmp_path: Path, drivers: list[Driver], step: str
) -> None:
    faults = (Fault(step, "", 3, action="ask"),)
    zombie(drivers, Start(f"sqlite:///{tmp_path}/store.db", tmp_path, LAST, faults, SEED, **place_of_uri.of_start))


def zombie(drivers: list[Driver], start: Start) -> str:
    """Stops a driver at its fault, lets a newer one run to the end, and wakes it. Returns what it says at its end."""
    start = replace(start, only=(start.faults[0].state or "opaque",))
    older = Driver(start)
    drivers.append(older)
    assert older.next() == "at"
    assert older.process.pid is not None
    os.kill(older.process.pid, signal.SIGSTOP)
    newer = Driver(replace(start, faults=()))
    drivers.append(newer)
    newer.next()
    assert newer.told[-1] == ("done", LAST), newer.told[-1]
    rows, kept = backups.contents(start.url), checkpoint(start)
    older.go_on()
    os.kill(older.process.pid, signal.SIGCONT)
    said = refused(older)
    assert backups.contents(start.url) == rows
    assert checkpoint(start) == kept
    assert differences(start.url, Fold(Readings(SEED), LAST), start.only) == []
    return said


def checkpoint(start: Start) -> dict[str, bytes | None]:
    """All files of the checkpoint but the lock."""
    if not start.storage:
        return {CHECKPOINT: (start.folder / CHECKPOINT).read_bytes()}
    folder = open_folder(f"{start.place}/faults/readings", dict(start.storage))
    names = [f"{path}/{name}" for path in folder.names() for name in folder.names(path) if name[0] != "."]
    return {name: folder.read(name) for name in names}


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
