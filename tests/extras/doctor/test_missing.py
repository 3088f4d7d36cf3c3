"""SparkCluster with the extra, and without it."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from trident_py import DefinitionError, SparkCluster, TridentTopology, entry_points
from trident_py.extras.doctor import probe
from trident_py.spouts import FixedBatchSpout

TOLD = "the machines are not checked before the start: the extra 'doctor' of trident-py is missing"


@pytest.fixture
def topology() -> Any:
    topology = TridentTopology()
    topology.newStream("numbers", FixedBatchSpout("n int", 1, [1]))
    return topology.build()


def cluster(master: str) -> Any:
    """A SparkCluster without Spark behind it."""
    made: Any = SparkCluster.__new__(SparkCluster)
    made.spark, made.checkpoints = SimpleNamespace(sparkContext=SimpleNamespace(master=master)), "/checkpoints"
    return made


def test_a_cluster_is_checked_before_a_start(topology: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple] = []
    monkeypatch.setattr(probe, "check_cluster", lambda *arguments: asked.append(arguments))
    cluster("local[2]")._check_machines(topology.plan, {})
    far = cluster("spark://master:7077")
    far._check_machines(topology.plan, {"topology.probe": True})
    assert asked == [(far.spark, topology.plan, {"topology.probe": True}, "/checkpoints")]


def test_without_the_extra_nothing_is_checked_and_the_log_says_so(
    topology: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(entry_points, "_points", lambda group: {})
    caplog.set_level(logging.INFO, "trident_py")
    cluster("local[2]")._check_machines(topology.plan, {})
    cluster("spark://master:7077")._check_machines(topology.plan, {})
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [("INFO", TOLD)]
    with pytest.raises(DefinitionError, match=r"^SparkCluster.examine needs doctor, which this installation lacks"):
        cluster("local[2]").examine({}, topology)
