"""Sensors, gateway, Kafka, Spark, MariaDB: nothing lost or doubled under kills; and what weaker lines lose."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from examples import sensors_table
from examples.sensors_fleet import readings

ROOT = Path(__file__).parents[2]


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
