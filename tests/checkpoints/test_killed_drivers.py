"""kill -9 of a driver before any call with which its checkpoint asks its disk or store something, at its start too."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from faults.forks import Start, run
from faults.readings import Fold, Readings
from faults.stores import EXACT, differences
from remotes import Remote

SEED = 9


def goes_on_exactly(url: str, folder: Path, states: tuple[str, ...], last: int, place: Remote | None = None) -> int:
    """Each start goes on where the last one was killed, and comes three calls further. Returns the number of starts."""
    where = {} if place is None else place.of_start
    for number in range(1, 400):
        driver = run(Start(url, folder, last, (), SEED, only=states, call=3 * number - 2, **where))
        if driver.process.exitcode == 0:
            break
        assert driver.process.exitcode == -signal.SIGKILL, driver.told[-2:]
    assert driver.told[-1] in (("done", last), ("done", None))  # None: the one before was killed behind the last batch
    assert differences(url, Fold(Readings(SEED), last), states) == []
    return number


def test_a_driver_killed_at_the_calls_of_its_checkpoint_loses_and_doubles_nothing(tmp_path: Path) -> None:
    assert goes_on_exactly(f"sqlite:///{tmp_path}/store.db", tmp_path, ("opaque",), 2) > 4


@pytest.mark.whole("test_a_driver_killed_at_the_calls_of_its_checkpoint_loses_and_doubles_nothing")
def test_every_state_is_exact_when_a_driver_is_killed_at_the_calls_of_its_checkpoint(
    database: str, tmp_path: Path
) -> None:
    assert goes_on_exactly(database, tmp_path, EXACT, 12) > 10


@pytest.mark.whole("test_a_driver_killed_at_the_calls_of_its_checkpoint_loses_and_doubles_nothing")
def test_a_driver_killed_at_the_requests_of_its_checkpoint_loses_and_doubles_nothing(
    place_of_uri: Remote, tmp_path: Path
) -> None:
    assert goes_on_exactly(f"sqlite:///{tmp_path}/store.db", tmp_path, EXACT, 4, place_of_uri) > 5
