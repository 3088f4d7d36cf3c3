"""A checkpoint in HDFS and in S3: it outlives its driver, has one driver at a time, and says what is wrong with it."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from remotes import Remote

from states.sql import SqlMapState
from trident_py import Fields, TridentTopology
from trident_py.checkpoints.append_log import JOURNAL
from trident_py.checkpoints.batch_log import BatchLog
from trident_py.checkpoints.location import inside
from trident_py.checkpoints.metadata_store import LOG
from trident_py.errors import LineageError, TopologyError, TridentError, ZombieError
from trident_py.operations.builtin import Count
from trident_py.spark.checkpoint import checkpoint_of
from trident_py.spark.hadoop_folder import MANAGER, HadoopFolder
from trident_py.testing import FixedBatchSpout

from .driving import Start, exact, kill, until
from .folder import copy_topology, numbers, written
from .test_txids import LONG, one_after_the_other

pytestmark = [pytest.mark.spark, pytest.mark.dear]
RENAMING = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
NAME = "a name: 50% ü"
WHOLE = pytest.mark.whole("test_a_topology_goes_on_from_a_checkpoint_that_is_on_no_machine")


def batch_log(spark: Any, remote: Remote, scratch: Path, name: str = "t") -> BatchLog:
    return checkpoint_of(spark, remote.uri, name, "numbers", scratch, False).batches


def run(cluster: Any, out: Path, batches: int) -> Any:
    running = cluster.submitTopology(NAME, {}, copy_topology(out, numbers(2 * batches)))
    assert running.awaitTermination(120)
    return running


def test_a_topology_goes_on_from_a_checkpoint_that_is_on_no_machine(
    remote: Remote, spark: Any, spark_cluster: Any, tmp_path: Path
) -> None:
    assert run(spark_cluster(remote.uri), tmp_path / "out", 3).txid == 3
    assert run(spark_cluster(remote.uri), tmp_path / "out", 5).txid == 5
    assert written(tmp_path / "out") == exact(5)
    last = batch_log(spark, remote, tmp_path, NAME).last()
    assert last is not None and last.txid == 5
    own = HadoopFolder(spark, f"{remote.uri}/{inside(NAME, 'numbers')}")
    assert sorted(own.names()) == ["component", "given", "log"]  # and nothing of Spark's
    assert [len(own.names(path)) for path in own.names()] == [1, 1, 1]  # what is old is deleted


def test_a_second_driver_takes_a_checkpoint_over_and_the_first_is_told(
    remote: Remote, spark_cluster: Any, tmp_path: Path
) -> None:
    endless = copy_topology(tmp_path / "out", numbers(2).setCycle(True))
    first = spark_cluster(remote.uri).submitTopology("t", {}, endless)
    begun = threading.Event()
    first.addListener(lambda event, progress: event.kind == "committed" and begun.set())
    assert begun.wait(60)
    second = spark_cluster(remote.uri).submitTopology("t", {}, endless)
    with pytest.raises(TopologyError, match="another driver runs on the checkpoint") as caught:
        first.awaitTermination(60)
    assert isinstance(caught.value.__cause__, ZombieError)
    begun.clear()
    second.addListener(lambda event, progress: event.kind == "committed" and begun.set())
    assert begun.wait(60)
    second.stop()
    assert second.awaitTermination(60)


def test_in_s3_the_first_of_two_drivers_cannot_begin_a_batch_either(remote: Remote, spark: Any, tmp_path: Path) -> None:
    first, second = (batch_log(spark, remote, tmp_path) for _ in range(2))
    first.take()
    first.begin(1, {"n": 1})
    first.check()
    second.take()
    with pytest.raises(ZombieError, match=r"the checkpoint (hdfs|s3a)://.*: process \d+ on host .* has taken it over"):
        first.begin(2, {"n": 2})
    with pytest.raises(ZombieError, match=r"process \d+ on host .* has taken it over since this one started"):
        first.check()
    second.begin(1, {"n": 3})
    second.check()
    begun = batch_log(spark, remote, tmp_path).find_begun(1)
    assert begun is not None and begun.metadata == {"n": 3}


@pytest.mark.parametrize("remote", [pytest.param("hdfs"), pytest.param("s3", marks=WHOLE)], indirect=True)
def test_a_local_checkpoint_goes_on_where_it_was_copied_to(
    remote: Remote, spark: Any, spark_cluster: Any, tmp_path: Path
) -> None:
    """In the middle of a batch."""

    def breaks(n: int) -> list[int]:
        if n == 6 and not (tmp_path / "well").exists():
            raise ValueError("broken")
        return [n]

    def go_on(checkpoints: str, batches: int) -> Any:
        topology = copy_topology(tmp_path / "out", numbers(2 * batches), breaks)
        running = spark_cluster(checkpoints).submitTopology("t", {}, topology)
        assert running.awaitTermination(120)
        return running

    with pytest.raises(TopologyError, match="broken"):
        go_on(str(tmp_path / "local"), 6)
    assert sorted(written(tmp_path / "out")) == [1, 2, 3]
    (tmp_path / "well").touch()
    journal = (tmp_path / "local" / "t" / "numbers" / JOURNAL).read_bytes()
    assert HadoopFolder(spark, f"{remote.uri}/t/numbers").create(JOURNAL, journal)
    assert go_on(remote.uri, 6).attempts == {4: 0, 5: 0, 6: 0}
    assert go_on(remote.uri, 8).attempts == {7: 0, 8: 0}
    assert written(tmp_path / "out") == exact(8)


def test_a_checkpoint_that_was_copied_back_is_refused(spark_cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "c" / "t" / "numbers" / LOG).mkdir(parents=True)
    with pytest.raises(LineageError, match=r"was copied from HDFS or S3.*Go on there"):
        spark_cluster(str(tmp_path / "c")).submitTopology("t", {}, copy_topology(tmp_path / "out", numbers(2)))


def loses_nothing_killed_after(batches: int, cluster: Any, start: Start, tmp_path: Path) -> None:
    """Drivers killed one after the other, each after so many batches; the next start goes on behind them."""
    for _ in range(3):
        process = start()
        until(process, "committed", batches)
        kill(process)
    done = max(written(tmp_path / "out"))
    topology = copy_topology(tmp_path / "out", numbers(2 * done + 4))
    running = cluster.submitTopology("t", {}, topology)
    assert running.awaitTermination(120)
    assert running.txid == done + 2
    assert written(tmp_path / "out") == exact(done + 2)


@pytest.mark.whole("test_a_topology_goes_on_from_a_checkpoint_that_is_on_no_machine")
@pytest.mark.parametrize("manager", ["installed", "renaming"])
def test_a_driver_killed_again_and_again_loses_nothing(
    remote: Remote, manager: str, spark: Any, spark_cluster: Any, start: Start, tmp_path: Path
) -> None:
    session = {**remote.of_session, **({MANAGER: RENAMING} if manager == "renaming" else {})}
    loses_nothing_killed_after(4, spark_cluster(remote.uri), partial(start, 1000, "", remote.uri, session), tmp_path)


@pytest.mark.whole("test_a_second_driver_takes_a_checkpoint_over_and_the_first_is_told")
def test_of_two_driver_processes_the_second_goes_on_and_no_batch_changes(
    remote: Remote, start: Start, tmp_path: Path
) -> None:
    first = start(1000, "cycle", checkpoints=remote.uri, settings=remote.of_session)
    until(first, "committed", 2)
    second = start(1000, "cycle", checkpoints=remote.uri, settings=remote.of_session)
    with pytest.raises(AssertionError, match="another driver runs on the checkpoint"):
        until(first, "committed", 1000)
    until(second, "committed", 3)
    kill(second)
    rows = written(tmp_path / "out")
    newest = max(rows)
    right = {txid: [[0], [1]] if txid % 1000 == 1 else exact(txid)[txid] for txid in rows}
    assert all(row in right[newest] for row in rows.pop(newest))  # the kill may have come in the middle of it
    assert rows == {txid: right[txid] for txid in rows}


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("hdfs://127.0.0.1:1/x", r"hdfs://127.0.0.1:1/x/t/numbers.* does not answer .*Connection refused.* start the"),
        ("hdfs://no-such-host.invalid/x", r"its host name is unknown here .*no-such-host"),
        ("s3://bucket/x", r"no file system for s3://. Write s3a://"),
        ("foo://bucket/x", r"no file system for foo://. Correct the address, or add the jar"),
        ("gs://bucket/x", r"no jar for gs://. Start it with --packages com.google.cloud.bigdataoss:gcs-connector"),
        ("abfs://a@b/x", r"no jar for abfs://. Start it with --packages org.apache.hadoop:hadoop-azure:3"),
    ],
)
def test_a_place_that_cannot_be_used_is_refused_at_the_submit(
    uri: str, said: str, spark_cluster: Any, tmp_path: Path
) -> None:
    with pytest.raises(TridentError, match=said):
        spark_cluster(uri).submitTopology("t", {}, copy_topology(tmp_path, numbers(2)))


@pytest.mark.parametrize("remote", ["s3"], indirect=True)
def test_a_wrong_bucket_is_named_at_the_submit(remote: Remote, spark_cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(TridentError, match=r"s3a://no-such-bucket/x/t/numbers.*: the bucket does not exist"):
        spark_cluster("s3a://no-such-bucket/x").submitTopology("t", {}, copy_topology(tmp_path, numbers(2)))


@pytest.mark.whole("test_a_place_that_cannot_be_used_is_refused_at_the_submit")
@pytest.mark.parametrize("remote", ["hdfs"], indirect=True)
def test_who_may_not_write_is_told_so(remote: Remote, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    process = start(2, checkpoints=remote.uri, account="nobody")
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "access is denied" in said and "user=nobody" in said
    assert "\tat " not in said


@pytest.mark.whole("test_drivers_that_die_in_batches_that_follow_others_lose_and_double_nothing")
@pytest.mark.parametrize("remote", ["hdfs", "s3"], indirect=True)
def test_a_driver_killed_in_full_run_loses_and_changes_nothing(
    remote: Remote, spark_cluster: Any, start: Start, tmp_path: Path
) -> None:
    """Its batches run in the driver, one after the other."""
    session = {**remote.of_session, "spark.trident.inline.max.tuples": "10"}
    loses_nothing_killed_after(30, spark_cluster(remote.uri), partial(start, 1000, "", remote.uri, session), tmp_path)


@pytest.mark.whole("test_txids.py::test_each_driver_takes_the_checkpoint_from_the_one_before_in_full_run")
@pytest.mark.parametrize("remote", ["hdfs", "s3"], indirect=True)
def test_each_driver_takes_the_checkpoint_from_the_one_before_in_full_run(
    remote: Remote, spark_cluster: Any, tmp_path: Path
) -> None:
    state = SqlMapState.opaque(f"sqlite:///{tmp_path}/counts.db", "counts", "value bigint", "count bigint")
    spout, topology = FixedBatchSpout(Fields("value bigint"), 2, *([n] for n in range(20))), TridentTopology()
    topology.newStream("in", spout.setCycle(True)).groupBy("value").persistentAggregate(state, Count(), "count")
    last = one_after_the_other(spark_cluster, remote.uri, LONG, topology.build())
    assert sum(value.curr for value in state.stored().values()) == 2 * last.txid
