"""What an operator sees in Spark: jobs and queries by their names, executor logs."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trident_py.errors import FailedException
from trident_py.spark import worker_logs

from .folder import copy_topology, numbers, written

ROOT = Path(__file__).parents[2]
spark_test = pytest.mark.spark


def once(marker: Path) -> Callable[[int], list[int]]:
    def fail(n: int) -> list[int]:
        if n == 2 and not marker.exists():
            marker.touch()
            raise FailedException("once")
        return [n]

    return fail


def descriptions(spark: Any) -> list[str]:
    """Of the jobs that Spark's UI lists, the last first."""
    store = spark._jsc.sc().statusStore()
    jobs = spark._jvm.scala.jdk.javaapi.CollectionConverters.asJava(store.jobsList(None))
    return [job.description().get() for job in jobs if job.description().isDefined()]


@spark_test
def test_jobs_carry_topology_txid_and_attempt(spark: Any, spark_cluster: Any, tmp_path: Path) -> None:
    topology = copy_topology(tmp_path / "out", numbers(4), once(tmp_path / "failed"))
    spark_cluster().submitTopology("seen jobs", {}, topology).awaitTermination(120)
    assert written(tmp_path / "out") == {1: [[0], [1]], 2: [[2], [3]]}
    named = [text for text in reversed(descriptions(spark)) if text.startswith("seen jobs/numbers")]
    batches = [(1, 0), (2, 0), (2, 1)]
    assert named == [f"seen jobs/numbers: txid {txid}, attempt {attempt}" for txid, attempt in batches]


@spark_test
def test_a_query_is_named_by_topology_and_component_and_a_second_one_by_its_run_too(
    spark: Any, spark_cluster: Any, tmp_path: Path
) -> None:
    runs = []
    for folder in ("one", "two"):
        topology = copy_topology(tmp_path / folder, numbers(2).setCycle(True))
        runs.append(spark_cluster(tmp_path / f"checkpoints {folder}").submitTopology("named", {}, topology))
        committed = threading.Event()
        runs[-1].addListener(lambda event, progress, seen=committed: event.kind == "committed" and seen.set())
        assert committed.wait(60)
    assert sorted(query.name for query in spark.streams.active) == ["named/numbers", f"named/numbers {runs[1].run[:8]}"]
    for running in runs:
        running.stop()


LOGGING = """
import logging, os, sys
from pathlib import Path
from trident_py import SparkCluster
from spark.folder import copy_topology, numbers

def told(n):
    if os.environ.get("USERS"):
        logging.basicConfig(format="users: %(name)s %(message)s")
    logging.getLogger("states.sql").warning("row %d is odd", n)
    logging.getLogger("trident_py.kafka").warning("never seen %d", n)
    return [n]

logging.getLogger("trident_py.kafka").setLevel(logging.ERROR)
with SparkCluster() as cluster:
    cluster.submitTopology("logging", {}, copy_topology(Path("out"), numbers(2), told)).awaitTermination(100)
"""


def logged(folder: Path, **environment: str) -> list[str]:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    given = {**os.environ, "PYTHONPATH": paths, **environment}
    done = subprocess.run([sys.executable, "-c", LOGGING], cwd=folder, env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "never seen" not in done.stderr, "the driver's level holds in the workers"
    return [line for line in done.stderr.splitlines() if "is odd" in line]


@spark_test
def test_warnings_of_executors_tell_host_batch_and_partition(tmp_path: Path) -> None:
    lines = logged(tmp_path)
    place = r"\[host \S+, logging/numbers, txid 1, attempt 0, partition 0\]"
    assert len(lines) == 2 and all(re.search(rf" WARNING states\.sql {place}: row \d is odd$", line) for line in lines)


@spark_test
@pytest.mark.whole("test_warnings_of_executors_tell_host_batch_and_partition")
def test_logging_that_the_user_set_up_in_the_workers_is_left_alone(tmp_path: Path) -> None:
    assert logged(tmp_path, USERS="1") == ["users: states.sql row 0 is odd", "users: states.sql row 1 is odd"]


def test_a_level_of_the_worker_itself_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = logging.getLogger("states.mine"), logging.getLogger("trident_py.other")
    monkeypatch.setattr(mine, "level", logging.DEBUG)
    monkeypatch.setattr(other, "level", logging.NOTSET)
    handlers = {name: [*logging.getLogger(name).handlers] for name in worker_logs.ROOTS}
    try:
        worker_logs.enter_task('{"states.mine": 40, "trident_py.other": 40}', "txid 1")
    finally:
        for name, before in handlers.items():
            logging.getLogger(name).handlers[:] = before
    assert (mine.level, other.level) == (logging.DEBUG, logging.ERROR)
