"""Sessions: whose they are, who ends them, and what a hostile one does to a checkpoint."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from trident_py.spark.session import SCRATCH

from .driving import PATIENCE, Start, exact, kill, until
from .folder import written

pytestmark = pytest.mark.spark

TWO_CLUSTERS = """
from pathlib import Path
from trident_py import SparkCluster
from trident_py.spark.session import OwnSession
from spark.folder import copy_topology, numbers

def run(cluster, name):
    running = cluster.submitTopology(name, {}, copy_topology(Path(name), numbers(2)))
    assert running.awaitTermination(120)

own = OwnSession()
with SparkCluster() as guest:
    run(guest, "guest")
assert own.spark.range(3).count() == 3, "a guest does not end the session of its maker"
own.stop()
with SparkCluster() as outer:
    with SparkCluster() as inner:
        run(inner, "inner")
        assert inner.spark.sparkContext is outer.spark.sparkContext
        inner.shutdown()  # and a second time at the end of the block, which must not end the session of the outer one
    run(outer, "outer")
"""
GIVEN = """
from pathlib import Path
from pyspark.sql import SparkSession
from trident_py import SparkCluster
from trident_py.spark.launcher import SILENCED
from spark.folder import copy_topology, numbers

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
jvm = spark.sparkContext._jvm

def seen():
    settings = {row.key: row.value for row in spark.sql("SET").collect()}
    levels = [str(jvm.org.apache.logging.log4j.LogManager.getLogger(name).getLevel()) for name in SILENCED]
    return settings, levels, len(list(spark.streams.active))

before = seen()
for given in (spark, None):  # without one it is the session of the process that is taken
    with SparkCluster(given) as cluster:
        assert cluster.spark.sparkContext is spark.sparkContext
        running = cluster.submitTopology("t", {}, copy_topology(Path(f"out-{given is None}"), numbers(2)))
        assert running.awaitTermination(120)
    assert seen() == before, [a for a in zip(seen(), before) if a[0] != a[1]]
spark.stop()
"""


def program(text: str, folder: Path) -> None:
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root), str(root / "tests")])
    environment = {**os.environ, "PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run([sys.executable, "-c", text], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.whole("test_a_session_that_is_not_ours_stays_as_it_is")
def test_two_clusters_of_a_process_share_a_session_and_the_last_one_ends_it(tmp_path: Path) -> None:
    program(TWO_CLUSTERS, tmp_path)


def test_a_session_that_is_not_ours_stays_as_it_is(tmp_path: Path) -> None:
    program(GIVEN, tmp_path)


@pytest.mark.whole("test_a_restart_under_other_settings_of_the_session_goes_on")
@pytest.mark.parametrize("first", ["hostile", ""])
def test_a_killed_driver_is_followed_by_one_under_other_settings(start: Start, tmp_path: Path, first: str) -> None:
    """Every streaming, shuffle, codegen, ANSI and time zone setting at its other value, before or after the kill."""
    process = start(1000, first)
    until(process, "committed", 3)
    kill(process)
    (left,) = (tmp_path / "scratch").iterdir()
    done = max(written(tmp_path / "out"))
    process = start(done + 3, "" if first else "hostile")
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert written(tmp_path / "out") == exact(done + 3)
    assert not left.exists(), "the next driver sweeps what a killed one leaves"


def test_a_session_whose_java_was_killed_says_so(start: Start, tmp_path: Path) -> None:
    process = start(1000, "cycle")
    until(process, "committed", 2)
    java = next(child for child in psutil.Process(process.pid).children(recursive=True) if child.name() == "java")
    java.send_signal(signal.SIGKILL)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "Spark's Java process is gone" in said and "continues where it stopped" in said
    assert "Errno 111" not in said.splitlines()[-1]


@pytest.mark.whole("test_a_session_whose_java_was_killed_says_so")
def test_a_run_whose_java_has_a_full_heap_ends_and_goes_on_after_a_restart(start: Start, tmp_path: Path) -> None:
    """Without our option for Java it would depend on which of its threads fails first: a run could wait for ever."""
    process = start(1000, "full")
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "Spark's Java process is gone: it was killed, or ran out of memory (spark.driver.memory)" in said
    done = max(written(tmp_path / "out"))
    process = start(done + 1)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert written(tmp_path / "out") == exact(done + 1)


@pytest.mark.whole("test_a_restart_under_other_settings_of_the_session_goes_on")
def test_what_a_killed_driver_leaves_is_swept_by_the_next_one(start: Start, tmp_path: Path) -> None:
    folders = tmp_path / "scratch"
    process = start(1000, "cycle")
    until(process, "committed", 1)
    kill(process)
    left = list(folders.iterdir())
    assert [each.name.startswith(SCRATCH) for each in left] == [True]
    living = start(1000, "cycle")
    until(living, "committed", 1)
    assert not left[0].exists()
    (own,) = folders.iterdir()
    other = start(2, "divide", str(tmp_path / "other checkpoints"))  # on the same one it would end the living driver
    other.communicate(timeout=PATIENCE)
    assert living.poll() is None
    assert own.exists(), "the folder of a process that lives"
    kill(living)
