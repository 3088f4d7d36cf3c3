"""A session of Spark Connect is refused at once, with what it lacks and what to use instead."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trident_py import SparkCluster
from trident_py.errors import TridentError
from trident_py.spark.connect import LACKS

from .test_sessions import program

CONNECTED = """
from pyspark.sql import SparkSession
from trident_py import SparkCluster
from trident_py.errors import TridentError
from trident_py.spark.connect import LACKS

spark = SparkSession.builder.remote("local[1]").getOrCreate()
assert spark.range(3).count() == 3
for given, said in ((spark, "this session is one of Spark Connect"), (None, "this process uses Spark Connect")):
    try:
        SparkCluster(given)
    except TridentError as error:
        assert said in str(error) and LACKS in str(error) and "spark-submit --master URL" in str(error), error
    else:
        raise AssertionError("a session of Spark Connect was taken")
assert spark.range(3).count() == 3, "and it goes on"
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.whole("test_an_environment_that_asks_for_spark_connect_is_refused_without_its_token")
def test_a_session_of_spark_connect_is_refused_and_told_what_it_lacks(tmp_path: Path) -> None:
    program(CONNECTED, tmp_path)


def test_an_environment_that_asks_for_spark_connect_is_refused_without_its_token(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://server:15002/;token=secret")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(TridentError, match="SPARK_REMOTE=sc://server:15002/ asks for one") as caught:
        SparkCluster()
    assert LACKS in str(caught.value) and "unset SPARK_REMOTE" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert not list(tmp_path.iterdir()), "nothing was made"


def test_the_command_line_says_so_too(tmp_path: Path) -> None:
    environment = {**os.environ, "SPARK_REMOTE": "sc://server", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "trident_py", "run", "examples.word_count:build"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "SPARK_REMOTE=sc://server asks for one" in done.stderr, done.stderr
