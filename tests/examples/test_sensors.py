"""Sensors, gateway, Kafka, Spark, MariaDB: nothing lost or doubled under kills; and what weaker lines lose."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from examples import sensors_table
from examples.sensors import drive
from examples.sensors_chain import Chain, Killer
from examples.sensors_fleet import Fleet, readings

ROOT = Path(__file__).parents[2]


class Restless(Fleet):
    """Reports that all is acknowledged, again and again, and sends nothing."""

    async def run(self, step: Callable[[int], None]) -> None:
        for _ in range(2_000):
            step(10)
            await asyncio.sleep(0.001)


class Unkillable(Chain):
    def __init__(self) -> None: ...

    def kill(self, link: str) -> None:
        raise OSError(f"the {link} does not start again")


def test_a_kill_that_fails_ends_the_run() -> None:
    killer = Killer(Unkillable(), 10, 1, 0, print)
    with pytest.raises(OSError, match="does not start again"):
        asyncio.run(drive(Restless("http://nowhere", [], 1, 1.0, 0), killer))


@pytest.mark.spark
@pytest.mark.whole("test_drivers_killed_in_the_middle_of_batches_lose_and_double_nothing")
def test_every_link_is_killed_and_every_reading_is_there_once(
    tmp_path: Path, own_kafka: Callable[..., Any], own_server: Callable[..., Any]
) -> None:
    own_kafka().close()  # both are there, or the test says so
    own_server("mariadb").close()
    command = ["-m", "examples.sensors", "--readings", "1500", "--kills", "4", "--rate", "80", "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=500,
        env={**os.environ, "COLUMNS": "120"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for told in ("gateway 1, broker 1, driver 1, database 1", "1,500 of 1,500 events", "EWR", "gateway: processed"):
        assert told in done.stdout


@pytest.mark.whole("test_a_cell_holds_what_it_says_and_no_more")
def test_what_the_weaker_lines_lose_and_double(own_kafka: Callable[..., Any]) -> None:
    own_kafka().close()
    rows = sensors_table.run(readings(1_400), seed=1)
    found = {row[:3]: row[3:] for row in rows}
    assert len(found) == 2 * 3 * 5
    for (source, _, state), (promised, lost, doubled) in found.items():
        if promised.startswith("exactly once"):
            assert lost == 0
            assert (doubled > 0) == (source == "no gateway" and state != "insert-ignore")
    for spout in ("transactional", "opaque"):
        assert found["gateway", spout, "non-transactional map"][1:] == (0, 200)  # one batch counted twice
    for state in sensors_table.states("sqlite:///table.sqlite"):
        assert found["gateway", "non-transactional", state][1] >= 200  # the batch that was read and not written
