"""A driver that was taken for dead wakes up after another one has gone on, and writes an older batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .driver import Order
from .evidence import evidence
from .hooks import Wait, wait_for
from .processes import Driver, Drivers
from .test_replays import holds_exactly
from .topology import Shape
from .traces import StoryTrace

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def drivers(tmp_path: Path) -> Iterator[Drivers]:
    made = Drivers(tmp_path)
    yield made
    made.close()


@pytest.mark.whole("test_the_older_of_two_drivers_writes_nothing", "test_a_second_driver_on_a_checkpoint_is_found_out")
def test_two_zombies_are_refused_in_words_and_change_nothing(drivers: Drivers, tmp_path: Path) -> None:
    """The first sleeps inside a function of batch 3, the second inside the spout of batch 5; the third goes on."""
    first, second = tmp_path / "first", tmp_path / "second"
    one = drivers.start(Order(str(tmp_path), Shape(6, wait=Wait("function", 3, str(first)))), ahead=True)
    wait_for(Path(f"{first}.reached"))
    two = drivers.start(Order(str(tmp_path), Shape(6, wait=Wait("spout", 5, str(second)))), ahead=True)
    wait_for(Path(f"{second}.reached"))
    three = drivers.start(Order(str(tmp_path), Shape(6)))
    assert three.until("done", "error") == ["done", 6], three.errors
    before, trace = evidence(tmp_path), StoryTrace(tmp_path)
    trace.look("done")
    holds_exactly(before, 6)

    first.touch()
    said = refusal(one)  # its driver is awake, and may have looked at the checkpoint before its task asks the store
    store = "a newer one with generation 3 has taken over; nothing more is written. Stop this driver"
    assert store in said or "another driver runs on the checkpoint" in said
    second.touch()
    assert "another driver runs on the checkpoint" in refusal(two)
    after = evidence(tmp_path)
    trace.look("two zombies were refused")
    assert after.stored == before.stored
    assert [line for line in after.log if line.what == "committed"] == before.log

    three.obey_again(Order(str(tmp_path), Shape(7)))  # nothing of the checkpoint was changed either
    assert three.until("done", "error") == ["done", 7], three.errors
    holds_exactly(evidence(tmp_path), 7)


def refusal(zombie: Driver) -> str:
    """What it says at its end; then it is gone."""
    kind, cause, said = zombie.until("done", "error")
    assert (kind, cause) == ("error", "ZombieError")
    zombie.end()
    return said
