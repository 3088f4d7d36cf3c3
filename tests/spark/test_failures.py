"""What Spark says when a process died, held against the words in the Spark that is installed."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import pyspark
import pytest

from trident_py import TridentTopology
from trident_py.operations.builtin import Count
from trident_py.spark import failures
from trident_py.testing import FixedBatchSpout, MemoryMapState, collect

from .driving import planner_processes

WORKER = re.compile(rb"[ -~]*(?:connect back|exited unexpectedly|failed to launch worker|launch worker with)[ -~]*")


def words_of_spark() -> set[str]:
    """What its classes for Python workers may say of one that died or never came."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-core_*.jar")
    with zipfile.ZipFile(jar) as classes:
        names = [name for name in classes.namelist() if name.startswith("org/apache/spark/api/python/")]
        said = [found.group() for name in names for found in WORKER.finditer(classes.read(name))]
    return {text.decode().lstrip("+-.,%&*1;=@HW ") for text in said}


SAID = sorted(words_of_spark())


def test_spark_says_what_we_look_for() -> None:
    assert len(SAID) >= 6
    assert "Timed out while waiting for the Python worker to connect back" in SAID


@pytest.mark.parametrize("text", SAID)
def test_a_worker_that_died_or_never_came_is_a_lost_task(text: str) -> None:
    """The batch is replayed, a few times; it does not end the run."""
    assert failures.is_lost_task(["Job aborted due to stage failure", f"org.apache.spark.SparkException: {text} 10 s"])
    for failure in (failures.lost_task([text], "py3"), failures.lost_planner([text], "py3")):
        assert "died" in str(failure)
        assert ("Spark starts Python as 'py3'" in str(failure)) is ("exited" not in text)
    assert failures.is_lost_planner([f"org.apache.spark.SparkException: {text} 10 s"])


def test_descriptors_that_a_task_cannot_read_again_are_sent_anew() -> None:
    """Spark lets the task ask the driver's loopback, which answers on the driver's machine only."""
    refused = "HomeError: the driver process does not answer at 127.0.0.1:1 (Connection refused)"
    text = f'Traceback (most recent call last):\n  File "s.py", line 53, in readBetweenOffsets\n{refused}'
    assert failures.is_lost_task(["Job aborted due to stage failure", text])
    assert str(failures.lost_task([text], "python3")) == f"Spark has lost the batch's descriptors: {refused}"


@pytest.mark.parametrize(
    "text", ["java.lang.OutOfMemoryError", "AnalysisException: no column", "ModuleNotFoundError: No module named 'x'"]
)
def test_other_errors_of_spark_end_the_run(text: str) -> None:
    assert not failures.is_lost_task([text]) and not failures.is_lost_planner([text])


@pytest.mark.spark
def test_the_death_of_the_process_that_asks_for_batches_does_not_end_the_run(spark_cluster: Any) -> None:
    killed = []

    def kill(event: Any, progress: Any) -> None:
        if event.kind == "committed" and event.txid in (1, 3) and event.txid not in killed:
            killed.append(event.txid)
            for each in planner_processes():
                each.kill()

    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout("n", 1, *((n,) for n in range(5))))
    counts = stream.groupBy("n").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    collect(counts.newValuesStream(), "counts")
    with spark_cluster() as cluster:
        running = cluster.submitTopology("planner", {}, topology.build())
        running.addListener(kill)
        assert running.awaitTermination(180)
    assert killed == [1, 3]
    assert running.collected("counts") == {n + 1: [(n, 1)] for n in range(5)}
    replays = [event for event in running.events if event.kind == "replay"]
    assert [event.txid for event in replays] == [2, 4] and "plans batches died" in replays[0].reason
