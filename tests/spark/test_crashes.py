"""What survives the death of the driver process, and what a person sees of an end."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from .driving import PATIENCE, Start, exact, kill, until
from .folder import attempts, copy_topology, numbers, written

pytestmark = pytest.mark.spark


@pytest.mark.whole("test_at_the_end_every_row_is_that_of_an_undisturbed_run")
def test_a_driver_killed_again_and_again_loses_nothing(
    spark_cluster: Any, start: Start, tmp_path: Path
) -> None:
    for _ in range(3):
        process = start(1000)
        until(process, "committed", 5)
        kill(process)
    done = max(written(tmp_path / "out"))
    running = spark_cluster(tmp_path / "checkpoints").submitTopology(
        "t", {}, copy_topology(tmp_path / "out", numbers(2 * done + 4))
    )
    assert running.awaitTermination(120)
    assert running.txid == done + 2
    assert written(tmp_path / "out") == exact(done + 2)


@pytest.mark.whole("test_a_second_driver_on_a_checkpoint_is_found_out")
def test_of_two_drivers_on_one_checkpoint_one_is_told_and_no_batch_changes(start: Start, tmp_path: Path) -> None:
    drivers = [start(1000, "cycle")]
    until(drivers[0], "committed", 1)
    drivers.append(start(1000, "cycle"))
    ended: list[str] = []
    try:
        for _ in range(2):
            for driver in drivers:
                if driver.returncode is not None:
                    continue
                try:
                    until(driver, "committed", 3)
                except AssertionError as error:
                    ended.append(str(error))
    finally:
        for driver in drivers:
            kill(driver)
    for said in ended:
        assert "another driver runs on the checkpoint" in said
    rows = written(tmp_path / "out")
    right = {txid: [[0], [1]] if txid % 1000 == 1 else exact(txid)[txid] for txid in rows}
    newest = max(rows)
    assert all(row in right[newest] for row in rows.pop(newest))  # the kill may have come in the middle of it
    assert rows == {txid: right[txid] for txid in rows}


def test_an_error_of_the_user_shows_no_java_and_leaves_nothing(start: Start, tmp_path: Path) -> None:
    process = start(10, "divide")
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "ZeroDivisionError" in said and "txid 3" in said
    assert "\tat " not in said and "java." not in said and "py4j" not in said
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.whole("test_a_signal_ends_a_run_after_its_batch_and_without_a_traceback")
def test_ctrl_c_ends_a_run_without_java_and_leaves_nothing(start: Start, tmp_path: Path) -> None:
    process = start(1000, "cycle")
    until(process, "committed", 2)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert said.rstrip().endswith("KeyboardInterrupt")
    assert "\tat " not in said and "java." not in said and "py4j" not in said
    _, alive = psutil.wait_procs(children, timeout=PATIENCE)
    assert alive == []
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.whole("test_a_task_that_spark_retries_counts_once_and_in_a_plain_state_twice")
def test_a_task_that_spark_tries_again_is_the_same_attempt_and_an_event(start: Start, tmp_path: Path) -> None:
    process = start(4, "retry")
    events, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    kinds = [line.split()[0] for line in events.splitlines()]
    assert "task-retry 2" in events.splitlines()
    assert "replay" not in kinds
    assert written(tmp_path / "out") == exact(4)
    assert attempts(tmp_path / "out")[2] == {0}
