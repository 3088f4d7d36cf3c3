"""Runs on hosts of their own, on which machines die and lines are cut: compared with a fold, every row and value.

`make test-all` lives through a story of each kind, `make host-faults` through as many as you like. docs/reliability.md
has what came of them.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from faults.steps import DRIVER, Fault
from needed import HOSTS, needed

from .acts import ACTS
from .hook import HOLD
from .kinds import KINDS, PROFILES, Planned, drawn
from .lab import Driver, Lab
from .orders import SHAPES, order_of
from .rounds import play
from .story import WROTE, Hung, Story, Told
from .table import tables

# What a lost machine does to a batch, a lost executor of local-cluster does in `make test`.
LOST = pytest.mark.whole("test_an_executor_lost_between_two_commits", "test_a_worker_killed_at_any_point_of_a_commit")


@pytest.fixture
def small_lab() -> Iterator[Lab]:
    """A cluster on hosts, with one database."""
    yield from _running("mariadb")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A cluster on hosts, with the servers that the stories of this module need."""
    yield from _running("mariadb", "postgresql", "kafka")


def _running(*servers: str) -> Iterator[Lab]:
    with ExitStack() as stack:
        with needed(HOSTS):
            lab = stack.enter_context(Lab(servers))
        yield lab


def lived_through(lab: Lab, shape: str, store: str, planned: list[Planned], last: int, profile: str = "plain") -> Told:
    order = order_of(lab, f"smoke-{shape}-{planned[0].step}-{profile}", shape, store, 1, last)
    order = order.standing(one.place for one in planned if one.place is not None)
    story = Story(lab, order, planned, Told(order.name, 1, store, shape, profile, last))
    try:
        return story.run()
    finally:
        print(*story.history, sep="\n")  # pytest shows it where the test fails


@pytest.mark.spark
@LOST
def test_a_worker_host_killed_in_the_middle_of_a_commit(small_lab: Lab) -> None:
    planned = [Planned("worker host killed", 3, Fault("written", "trans", 3, 0, "ask"), 0, 1.0, 0)]
    told = lived_through(small_lab, "files", "mariadb", planned, 4)
    assert [(one.kind, one.step) for one in told.happened] == [("worker host killed", "written")]
    assert (told.differences, told.errors, told.drivers) == ([], [], 1)
    assert told.happened[0].replays > 0


@pytest.mark.spark
@LOST
def test_a_worker_host_killed_and_a_driver_that_goes_on_elsewhere(lab: Lab) -> None:
    planned = [
        Planned("worker host killed", 3, Fault("written", "trans", 3, 0, "ask"), 0, 1.0, 0),
        Planned("driver host killed", 5, Fault("publish", "batch", 5, DRIVER, "ask"), 0, 1.0, 0),
    ]
    told = lived_through(lab, "files", "mariadb", planned, 7)
    assert [(one.kind, one.step) for one in told.happened] == [
        ("worker host killed", "written"), ("driver host killed", "publish")]  # fmt: skip
    assert (told.differences, told.errors, told.drivers) == ([], [], 2)


@pytest.mark.spark
@LOST
def test_a_task_that_was_given_up_commits_too_late(lab: Lab) -> None:
    """Its host is cut off from driver and master, not from the store; another one has committed its batch and the
    next one when it goes on."""
    planned = [Planned("driver and worker cut", 3, Fault("begin", "append", 3, 0, HOLD), 0, 40.0, 3)]
    told = lived_through(lab, "spout", "postgresql", planned, 6)
    assert told.differences == []
    assert "ZombieError: state 'appended'" in told.happened[0].late
    assert "batch 3 is behind batch 4" in told.happened[0].late


@pytest.mark.spark
@LOST
def test_a_task_that_was_given_up_in_its_transaction_commits_late(lab: Lab) -> None:
    """It holds the lock of its partition's mark: the task that runs again waits for it and finds the batch written."""
    planned = [Planned("driver and worker cut", 3, Fault("written", "append", 3, 0, HOLD), 0, 15.0, 3)]
    told = lived_through(lab, "spout", "postgresql", planned, 5)
    assert told.differences == []
    assert told.happened[0].late == WROTE


@pytest.mark.spark
@LOST
def test_a_worker_that_is_decommissioned_tells_the_master_and_does_not_just_end(lab: Lab) -> None:
    planned = [Planned("worker decommissioned", 3, Fault("written", "trans", 3, 0, "ask"), 0, 5.0, 0)]
    told = lived_through(lab, "files", "mariadb", planned, 5, "decommission")
    assert (told.differences, told.errors, told.drivers) == ([], [], 1)
    assert "Telling app of decommission executors" in lab.hosts.log("master")


SEEDS = [("spout", "mariadb", "plain", 1), ("files", "postgresql", "crowded", 2), ("kafka", "mariadb", "crowded", 3),
         ("opaque", "postgresql", "plain", 4), ("spout", "postgresql", "one try", 5),
         ("files", "mariadb", "speculation", 6)]  # fmt: skip


@pytest.mark.spark
@LOST
@pytest.mark.parametrize("shape,store,profile,seed", SEEDS)
def test_a_story(lab: Lab, shape: str, store: str, profile: str, seed: int) -> None:
    told = play(lab, seed, shape, store, profile, last=8)
    assert told.differences == []
    assert all(one.seconds >= 0 for one in told.happened)


# -- the harness itself


def test_a_seed_draws_the_same_faults_again() -> None:
    first, second = (drawn(random.Random("7"), 30, SHAPES["spout"], "plain") for _ in range(2))
    assert first == second
    assert first != drawn(random.Random("8"), 30, SHAPES["spout"], "plain")
    assert len({one.txid for one in first}) == len(first)  # at most one in a batch, but for the crowded ones
    assert len(drawn(random.Random("7"), 30, SHAPES["spout"], "crowded")) > 60


def test_every_kind_is_drawn_and_done() -> None:
    found = {one.kind for profile in PROFILES for one in drawn(random.Random("1"), 400, SHAPES["spout"], profile)}
    assert found == set(KINDS)
    assert {kind.rpartition(": ")[2] for kind in KINDS} == set(ACTS)


@dataclass
class SlowLab:
    """A lab whose drivers take long to come up, and then soon tell their end, or say nothing."""

    seconds: float
    words: tuple
    network: Any = None
    folder: Path = Path()

    def driver_for(self, profile: str, settings: dict[str, str], not_on: str) -> Driver:
        time.sleep(self.seconds)
        driver = Driver("driver", self.folder)
        driver.connection = self
        return driver

    def send(self, order: Any) -> None:
        if self.words:
            threading.Timer(0.7, lambda: self.story._heard(("told", self.story.driver, *self.words))).start()

    def begun(self) -> Story:
        self.story: Story = Story(self, None, [], Told("", 1, "", "", "plain", 3))  # type: ignore[arg-type]
        self.story._next_driver()
        return self.story


def test_only_silence_is_a_hang_not_the_start_of_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hosts.story.GAP", 1.0)
    slow = SlowLab(0.8, ("done", 3)).begun()
    slow._watch()
    assert slow._over()
    with pytest.raises(Hung, match="no batch for 1 s"):
        SlowLab(0.0, ()).begun()._watch()


def test_the_published_tables_count_faults_losses_and_seconds() -> None:
    happened = [
        {"kind": "executor killed", "state": "rows", "seconds": 4.0, "replays": 1},
        {"kind": "executor killed", "state": "", "seconds": 2.0, "replays": 0},
    ]
    story = {"seed": 3, "happened": happened, "drivers": 1, "replays": 1, "differences": [["rows", 2, 5, []]]}
    text = tables([story, {**story, "seed": 4, "happened": [], "differences": []}])
    assert "2 stories (seeds 3-4), 2 faults" in text
    assert "lost 2, doubled 5" in text
    assert "| executor killed | 2 | 2 | 5 | 3.0 | 4.0 |" in text
