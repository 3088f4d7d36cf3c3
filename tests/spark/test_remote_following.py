"""Batches that follow one another where the checkpoint is in HDFS or in S3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from remotes import Remote

from states.sql import SqlMapState
from trident_py import Fields, TopologyError, TridentTopology
from trident_py.errors import LineageError
from trident_py.operations.builtin import Count
from trident_py.spark.checkpoint import Checkpoint, checkpoint_of
from trident_py.spark.hadoop_folder import HadoopFolder
from trident_py.spark.inline import HERE
from trident_py.testing import FixedBatchSpout

from .driving import Start, exact, kill, until
from .folder import attempts, copy_topology, numbers, written
from .test_following import LONG, Broken, one_after_the_other
from .test_inline import inline, places

pytestmark = pytest.mark.spark
WHOLE = pytest.mark.whole("test_a_driver_killed_in_full_run_loses_and_changes_nothing")


def run(cluster: Any, out: Path, batches: int, function: Any = None) -> Any:
    running = cluster.submitTopology("t", inline(10) | LONG, copy_topology(out, numbers(2 * batches), function))
    assert running.awaitTermination(120)
    return running


def micro_batches(checkpoint: Checkpoint) -> int:
    last = checkpoint.last_batch()
    return 0 if last is None else last + 1


def test_batches_share_a_micro_batch_and_the_next_start_goes_on_behind_them(
    remote: Remote, spark: Any, spark_cluster: Any, tmp_path: Path
) -> None:
    checkpoint = checkpoint_of(spark, remote.uri, "t", "numbers")
    for batches, of_spark in ((3, 1), (4, 2), (9, 3)):
        running = run(spark_cluster(remote.uri), tmp_path / "out", batches)
        assert (running.txid, set(places(running).values())) == (batches, {HERE})
        assert micro_batches(checkpoint) == of_spark
    assert written(tmp_path / "out") == exact(9)
    assert set().union(*attempts(tmp_path / "out").values()) == {0}
    assert len(HadoopFolder(spark, f"{checkpoint.where}/trident").names("followed")) == 1


@pytest.mark.parametrize("remote", [pytest.param("hdfs"), pytest.param("s3", marks=WHOLE)], indirect=True)
def test_a_local_checkpoint_goes_on_where_it_was_copied_to(
    remote: Remote, spark: Any, spark_cluster: Any, tmp_path: Path
) -> None:
    """It ended in a batch that follows, which only its journal has."""

    def breaks(n: int) -> list[int]:
        if n == 6 and not (tmp_path / "well").exists():
            raise Broken
        return [n]

    local, out = tmp_path / "local", tmp_path / "out"
    with pytest.raises(TopologyError, match="Broken"):
        run(spark_cluster(str(local)), out, 6, breaks)
    assert sorted(written(out)) == [1, 2, 3]
    (tmp_path / "well").touch()
    place = HadoopFolder(spark, f"{remote.uri}/t/numbers")
    for file in local.rglob("*"):
        if file.is_file() and not file.name.startswith(".") and file.name not in ("lock", "running"):
            assert place.create(str(file.relative_to(local / "t" / "numbers")), file.read_text())
    for batches in (6, 8):
        assert run(spark_cluster(remote.uri), out, batches, breaks).txid == batches
    assert written(out) == exact(8)
    assert micro_batches(checkpoint_of(spark, remote.uri, "t", "numbers")) == 2


def test_a_checkpoint_that_was_copied_back_is_refused(spark_cluster: Any, tmp_path: Path) -> None:
    """Its old local files are beside the newer ones."""
    assert run(spark_cluster(str(tmp_path)), tmp_path / "out", 2).txid == 2
    newer = tmp_path / "t" / "numbers" / "trident" / "driver" / "3.json"
    newer.parent.mkdir()
    newer.write_text("{}")
    with pytest.raises(LineageError, match=r"was copied from HDFS or S3.*Go on there"):
        run(spark_cluster(str(tmp_path)), tmp_path / "out", 3)


@pytest.mark.parametrize("remote", [pytest.param("hdfs"), pytest.param("s3", marks=WHOLE)], indirect=True)
def test_a_driver_killed_in_full_run_loses_and_changes_nothing(
    remote: Remote, spark_cluster: Any, start: Start, tmp_path: Path
) -> None:
    session = {**remote.of_session, "spark.trident.inline.max.tuples": "10"}
    for _ in range(3):
        process = start(1000, checkpoints=remote.uri, settings=session)
        until(process, "committed", 30)
        kill(process)
    done = max(written(tmp_path / "out"))
    running = run(spark_cluster(remote.uri), tmp_path / "out", done + 2)
    assert running.txid == done + 2
    assert written(tmp_path / "out") == exact(done + 2)


@pytest.mark.parametrize("remote", [pytest.param("hdfs"), pytest.param("s3", marks=WHOLE)], indirect=True)
def test_each_driver_takes_the_checkpoint_from_the_one_before_in_full_run(
    remote: Remote, spark_cluster: Any, tmp_path: Path
) -> None:
    state = SqlMapState.opaque(f"sqlite:///{tmp_path}/counts.db", "counts", "value bigint", "count bigint")
    spout, topology = FixedBatchSpout(Fields("value bigint"), 2, *([n] for n in range(20))), TridentTopology()
    topology.newStream("in", spout.setCycle(True)).groupBy("value").persistentAggregate(state, Count(), "count")
    last = one_after_the_other(spark_cluster, remote.uri, LONG, topology.build())
    assert sum(value.curr for value in state.stored().values()) == 2 * last.txid
