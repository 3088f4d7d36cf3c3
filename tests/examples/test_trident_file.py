"""The port of TridentFileTopology: the lines that Storm writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from examples import trident_file
from trident_py import LocalCluster

ROOT = Path(__file__).parents[2]
LINES = [
    "the cow jumped over the moon,1", "the man went to the store and bought some candy,2",
    "four score and seven years ago,3", "how many apples can you eat,4", "to be or not to be the person,5",
]  # fmt: skip


def lines(folder: Path) -> list[str]:
    return [line for file in sorted(folder.glob("part-*.txt")) for line in file.read_text().splitlines()]


def test_the_files_have_storms_lines(tmp_path: Path) -> None:
    with LocalCluster() as cluster:
        running = cluster.submitTopology("files", {}, trident_file.build(str(tmp_path / "out"), 2).build())
        assert running.awaitTermination(timeout=30)
    assert lines(tmp_path / "out") == LINES
    assert len(list((tmp_path / "out").glob("part-*.txt"))) == running.txid == 3


def test_the_module_prints_its_lines(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", "examples.trident_file", str(tmp_path / "out"), "--local"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.splitlines() == sorted(LINES)
    assert done.stderr == ""


@pytest.mark.spark
def test_the_files_are_the_same_on_spark(spark_cluster: object, tmp_path: Path) -> None:
    running = spark_cluster().submitTopology("files", {}, trident_file.build(str(tmp_path / "out"), 2).build())  # type: ignore[operator]
    assert running.awaitTermination(timeout=120)
    assert lines(tmp_path / "out") == LINES
