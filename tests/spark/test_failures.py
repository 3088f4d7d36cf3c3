"""What Spark says when a process died, held against the words in the Spark that is installed."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pyspark
import pytest

from trident_py.spark import failures

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
    failure = failures.worker_loss_failure([text], "py3")
    assert "died" in str(failure)
    assert ("Spark starts Python as 'py3'" in str(failure)) is ("exited" not in text)


@pytest.mark.parametrize(
    "text", ["java.lang.OutOfMemoryError", "AnalysisException: no column", "ModuleNotFoundError: No module named 'x'"]
)
def test_other_errors_of_spark_end_the_run(text: str) -> None:
    assert not failures.is_lost_task([text])
