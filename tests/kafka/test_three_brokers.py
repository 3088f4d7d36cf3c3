"""Three brokers with replication 3: leaders and coordinators move, a broker stands still, drivers die.

From a topic into three: records in transactions, rows and sums in compacted topics; compared with a plain fold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faults.drawn import Drawn, DrawnStart, compare
from faults.forks import Driver, run_with
from faults.homes import Brokers
from faults.inputs import write
from faults.steps import Fault
from needed import needed

KEPT = "test_transactional_faults.py::test_a_broker_killed_around_commit"
pytestmark = [pytest.mark.servers, pytest.mark.whole(KEPT)]
STATES = ("topic", "rows", "opaque")
LAST = 12
SESSION = 2.0
"""Seconds after which the others give a broker up that stands still."""
STORY = {
    2: ("written", "topic", "leader"), 3: ("begun", "opaque", "coordinator"), 4: ("half", "rows", "driver"),
    5: ("committed", "topic", "marks"), 6: ("written", "rows", "leader"), 7: ("half", "topic", "driver"),
    8: ("publish", "opaque", "coordinator"), 9: ("written", "opaque", "driver"), 10: ("half", "topic", "leader"),
}  # fmt: skip
"""In which batch, at which step of which state what dies."""


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    with needed("kafka"), Brokers("brokers") as made:
        yield made


@pytest.fixture
def start(brokers: Brokers, tmp_path: Path) -> Iterator[DrawnStart]:
    drawn = Drawn("brokers", "kafka", STATES, 2, False, False)
    with brokers.place(tmp_path) as url:
        made = DrawnStart(url, tmp_path, LAST, drawn=drawn)
        write(made.input, tmp_path, url)
        yield made
        brokers.settle()


def ask(step: str, state: str, txid: int, action: str = "ask") -> Fault:
    return Fault(step, state, txid, action=action)


def differences(start: DrawnStart) -> dict[str, Any]:
    """The topics that do not hold what a fold over the input gives."""
    pairs = {name: compare(start.drawn, name, start.url, start.input.fold()) for name in STATES}
    return {name: made for name, made in pairs.items() if any(found != expected for found, expected in made)}


def test_leaders_and_coordinators_die_in_turn_with_drivers_and_nothing_is_lost_or_doubled(
    brokers: Brokers, start: DrawnStart
) -> None:
    def die(txid: int) -> None:
        _, state, which = STORY[txid]
        brokers.crash(0.1, brokers.broker(which, start.url, state, 0))

    done = 0
    while done < LAST:
        story = {txid: what for txid, what in STORY.items() if txid > done}
        faults = tuple(ask(*at, txid, "kill" if what == "driver" else "ask") for txid, (*at, what) in story.items())
        driver = run_with(replace(start, faults=faults), die)
        assert driver.process.exitcode == -9 or driver.told[-1][0] == "done", driver.told[-3:]
        done = next((txid for txid, what in story.items() if what[2] == "driver"), LAST)
    assert driver.told[-1][0] == "done"
    assert differences(start) == {}


@pytest.mark.parametrize("which", ["leader", "coordinator", "marks"])
@pytest.mark.parametrize("seconds", [0.5, 3 * SESSION])
def test_a_broker_that_stands_still_holds_a_batch_up_and_loses_nothing(
    brokers: Brokers, start: DrawnStart, which: str, seconds: float
) -> None:
    """For a moment; and until the others have taken its partitions over, which it learns when it wakes up."""
    faults = tuple(ask(step, "topic", txid) for txid, step in enumerate(("begun", "half", "written"), 2))

    def freeze(txid: int) -> None:
        brokers.freeze(seconds, brokers.broker(which, start.url, "topic", 0))

    driver = run_with(replace(start, faults=faults), freeze)
    assert driver.told[-1][0] == "done", driver.told[-3:]
    assert differences(start) == {}


def test_with_too_few_replicas_a_run_waits_and_goes_on(brokers: Brokers, start: DrawnStart) -> None:
    """Two of three die with records of a transaction sent: min.insync.replicas=2 lets nobody commit."""
    driver = Driver(replace(start, faults=(ask("written", "topic", 3),)))
    try:
        assert driver.next() == "at"
        leader = brokers.broker("leader", start.url, "topic", 0)
        dead = [leader, next(each for each in brokers.server.brokers if each is not leader)]
        for each in dead:
            each.kill()
        driver.go_on()
        assert not driver.pipe.poll(2 * SESSION) or driver.pipe.recv()[0] == "replay"
        for each in dead:
            brokers.schedule(0, each.restart)  # neither answers alone
        driver.next()
    finally:
        driver.close()
    assert driver.told[-1][0] == "done", driver.told[-3:]
    assert differences(start) == {}
