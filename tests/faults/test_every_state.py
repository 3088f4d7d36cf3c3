"""kill -9 of the driver at every named step of a batch, in every state, on every store.

Each start goes on where the last one was killed: it replays that batch and is killed in the next one. At the end
every table is compared with a plain fold of the input, row by row and value by value. What each start leaves is judged
by the specification of the simulation, too.
"""

from __future__ import annotations

import itertools
import signal
from pathlib import Path

import pytest

from .forks import Start, run
from .readings import Fold, Readings
from .steps import STEPS, Fault
from .stores import EXACT, differences
from .traces import Trace

pytestmark = [pytest.mark.one_of_each, pytest.mark.dear]
SEED = 4
PLACES = [
    *((step, 0) for step in STEPS),
    ("begin", 1),  # one of two partitions has committed every state before this one, the other has begun none
    ("committed", 1),  # both have committed this state
]


@pytest.mark.parametrize("third", range(3))
@pytest.mark.parametrize("state", EXACT)
def test_a_driver_killed_at_any_step_loses_and_doubles_nothing(
    database: str, tmp_path: Path, state: str, third: int
) -> None:
    places = PLACES[third::3]
    last = len(places) + 2
    trace = Trace(database, tmp_path, Readings(SEED), last)
    for txid, (step, partition) in enumerate(places, 2):
        fault = Fault(step, state, txid, partition)
        driver = run(Start(database, tmp_path, last, (fault,), SEED))
        trace.after(driver)
        assert driver.process.exitcode == -signal.SIGKILL, (fault, driver.told[-2:])
        assert [event[1] for event in driver.of("committed")][-1:] in ([], [txid - 1]), fault
    driver = run(Start(database, tmp_path, last, (), SEED))
    trace.after(driver)
    trace.end()
    assert driver.told[-1] == ("done", last), driver.told[-1]
    assert differences(database, Fold(Readings(SEED), last)) == []


def test_a_driver_killed_before_the_checkpoint_has_the_batch_does_nothing_twice(database: str, tmp_path: Path) -> None:
    last = 5
    trace = Trace(database, tmp_path, Readings(SEED), last)
    for txid in range(1, last):
        driver = run(Start(database, tmp_path, last, (Fault("over", "", txid),), SEED))
        trace.after(driver)
        assert driver.process.exitcode == -signal.SIGKILL
        assert differences(database, Fold(Readings(SEED), txid)) == []  # all of it, before the replay
    assert run(Start(database, tmp_path, last, (), SEED)).told[-1] == ("done", last)
    assert differences(database, Fold(Readings(SEED), last)) == []


@pytest.mark.parametrize("state", EXACT)
def test_a_driver_killed_before_any_statement_of_a_partition_loses_nothing(
    database: str, tmp_path: Path, state: str
) -> None:
    """Finer than the named steps: before the first, second, ... request, until the commit has fewer. A server gets
    three: the fence, the rows, the mark with COMMIT."""
    txid = 1
    for number in itertools.count(1):
        txid += 1
        fault = Fault("statement", state, txid, number % 2, number=number)
        driver = run(Start(database, tmp_path, txid, (fault,), SEED, only=(state,)))
        if driver.process.exitcode == 0:
            break
        assert driver.process.exitcode == -signal.SIGKILL, driver.told[-2:]
    assert driver.told[-1] == ("done", txid)
    assert number > 3
    assert differences(database, Fold(Readings(SEED), txid), (state,)) == []
