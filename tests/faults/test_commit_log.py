"""The log forgets that a batch is over: what a driver killed right before leaves, for every state and store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from states.files import FileState
from states.sql import BatchState, RowUpdater
from trident_py import TridentTopology
from trident_py.testing.faults.disturbances import forget

from . import story
from .readings import Fold, Readings
from .spouts import ROW, Drifting
from .stores import build, differences, read

pytestmark = pytest.mark.spark
SEED = 11


def run(cluster: Any, name: str, topology: Any) -> Any:
    running = cluster.submitTopology(name, {}, topology)
    assert running.awaitTermination(200)
    return running


def test_a_batch_that_the_log_forgot_is_in_every_state_once(
    spark_cluster: Callable[..., Any], urls: dict[str, str], tmp_path: Path
) -> None:
    checkpoint, readings = tmp_path / "checkpoint", Readings(SEED)
    for last in (3, 4, 5):
        topology = build(urls, readings, last, wrap=lambda _, factory: factory)
        running = run(spark_cluster(checkpoint), "forgetful", topology)
        again = [event.txid for event in running.events if event.kind == "committed"]
        assert again == ([1, 2, 3] if last == 3 else [last - 1, last])  # the forgotten one came again
        assert differences(urls, Fold(readings, last)) == []
        for topology_folder in checkpoint.iterdir():
            forget(topology_folder)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_batch_that_readers_have_seen_is_not_emitted_with_other_tuples(
    spark_cluster: Callable[..., Any], database: str, tmp_path: Path
) -> None:
    """The opaque spout would emit another number of tuples in its next try: the batch was decided before."""
    checkpoint = tmp_path / "checkpoint"
    for last in (3, 5):
        topology = TridentTopology()
        rows = topology.newStream("drifting", Drifting(last, str(tmp_path))).partitionBy("id")
        rows.partitionPersist(BatchState(database, "drift", columns=ROW), ROW.names, RowUpdater()).parallelismHint(2)
        run(spark_cluster(checkpoint), "drifting", topology.build())
        found = Counter(read(database, "SELECT id, word, n FROM drift"))
        counts = [sum(id_.startswith(f"d{partition}-") for id_, _, _ in found) for partition in range(2)]
        assert found == Counter(story.drifted(counts))
        assert all(count >= 8 * last for count in counts)
        for topology_folder in checkpoint.iterdir():
            forget(topology_folder)


def test_a_batch_whose_files_readers_have_seen_is_not_emitted_with_other_tuples(
    spark: Any, spark_cluster: Callable[..., Any], tmp_path: Path
) -> None:
    """The same with files, which Spark reads."""
    checkpoint, factory = tmp_path / "checkpoint", FileState(tmp_path / "drift", columns=ROW)
    for last in (3, 5):
        topology = TridentTopology()
        rows = topology.newStream("drifting", Drifting(last, str(tmp_path))).partitionBy("id")
        rows.partitionPersist(factory, ROW.names).parallelismHint(2)
        run(spark_cluster(checkpoint), "drifting", topology.build())
        found = Counter(map(tuple, spark.read.parquet(factory.uri).select("id", "word", "n").collect()))
        counts = [sum(id_.startswith(f"d{partition}-") for id_, _, _ in found) for partition in range(2)]
        assert found == Counter(story.drifted(counts)) == factory.stored()
        assert all(count >= 8 * last for count in counts)
        for topology_folder in checkpoint.iterdir():
            forget(topology_folder)
