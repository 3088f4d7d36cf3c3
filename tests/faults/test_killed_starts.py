"""kill -9 of a driver on Spark before each thing that a start writes: every way on is still there, and exact."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from . import backups
from .processes import Drivers
from .starts import STEPS, WAYS, Order, world

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
WRITTEN = STEPS.index("prepare opaque")  # from here on the stores may belong to the new start


HELD_ALONE = ("keep readings",)
"""Not killed before: while the first world is held where its spout's coordinator writes, the next ones of the same
session do not get there (tried for 100 s). The steps on both sides of it are killed before."""


QUICK = "prepare batched"
"""In the middle of the stores."""


def steps() -> list[Any]:
    """Every step but `HELD_ALONE`; `make test` takes one."""
    whole = pytest.mark.whole("test_a_driver_killed_before_a_step_of_its_start_leaves_every_way_on")
    return [pytest.param(step, id=step.replace(" ", "-"), marks=() if step == QUICK else whole)
            for step in STEPS if step not in HELD_ALONE]  # fmt: skip


@pytest.fixture(scope="module")
def before(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A world for each way: the checkpoint lost, the store restored from a backup, the tables another topology's."""
    from trident_py import SparkCluster

    folder = tmp_path_factory.mktemp("before")
    for way in WAYS:
        made = world(folder, way, lambda checkpoints: SparkCluster(spark, checkpoints))
        made.start(2)
        if way == "lost":
            made.lose()
        if way == "behind":
            backup = made.dump()
            made.start(3)
            made.restore(backup)
    return folder


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    made = Drivers(tmp_path_factory.mktemp("drivers"), module="faults.starts")
    yield made
    made.close()


def test_a_start_writes_what_is_listed_and_nothing_else(before: Path, drivers: Drivers, tmp_path: Path) -> None:
    folder = shutil.copytree(before, tmp_path / "here")
    driver = drivers.start(Order(str(folder)), ahead=True)
    driver.until("done")
    assert [tuple(steps) for kind, *told in driver.told if kind == "steps" for steps in told] == [STEPS] * len(WAYS)
    driver.end()


@pytest.mark.parametrize("step", steps())
def test_a_driver_killed_before_a_step_of_its_start_leaves_every_way_on(
    before: Path, drivers: Drivers, spark_cluster: Callable[[Any], Any], tmp_path: Path, step: str
) -> None:
    folder = shutil.copytree(before, tmp_path / "here")
    ahead = step not in (QUICK, STEPS[-1])  # the last one of a run of `make test`, or of all
    assert drivers.start(Order(str(folder), step), ahead).wait_killed() == -signal.SIGKILL
    worlds = {way: world(folder, way, spark_cluster) for way in WAYS}
    if STEPS.index(step) <= WRITTEN:
        for way, made in worlds.items():
            assert backups.contents(made.url) == backups.contents(world(before, way, spark_cluster).url)
        goes_on_with_the_old_checkpoint(shutil.copytree(folder / "lost", tmp_path / "again" / "lost"), spark_cluster)
    for name, way in WAYS.items():
        worlds[name].start(way.last, way.conf, name=way.topology)
        worlds[name].holds(*way.batches)
        worlds[name].start(way.last + 1, name=way.topology)  # from now on without the setting
        worlds[name].holds(*way.batches, way.last + 1)


def goes_on_with_the_old_checkpoint(folder: Path, cluster: Callable[[Any], Any]) -> None:
    found = world(folder.parent, "lost", cluster)
    found.put_back(folder / "lost")
    found.start(3)
    found.holds(1, 2, 3)
