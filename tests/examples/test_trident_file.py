"""The port of TridentFileTopology: the lines that Storm writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ported import finished, printed

from examples import trident_file
from trident_py import LocalCluster

LINES = [
    "the cow jumped over the moon,1", "the man went to the store and bought some candy,2",
    "four score and seven years ago,3", "how many apples can you eat,4", "to be or not to be the person,5",
]  # fmt: skip


def lines(folder: Path) -> list[str]:
    return [line for file in sorted(folder.glob("part-*.txt")) for line in file.read_text().splitlines()]


def test_the_files_have_storms_lines(tmp_path: Path) -> None:
    with LocalCluster() as cluster:
        running = finished(cluster, trident_file.build(str(tmp_path / "out"), 2))
    assert lines(tmp_path / "out") == LINES
    assert len(list((tmp_path / "out").glob("part-*.txt"))) == running.txid == 3


def test_the_module_prints_its_lines(tmp_path: Path) -> None:
    assert printed("trident_file", str(tmp_path / "out"), "--local") == sorted(LINES)


@pytest.mark.spark
@pytest.mark.whole("test_the_files_have_storms_lines")
def test_the_files_are_the_same_on_spark(spark_cluster: Any, tmp_path: Path) -> None:
    finished(spark_cluster(), trident_file.build(str(tmp_path / "out"), 2))
    assert lines(tmp_path / "out") == LINES
