"""A checkpoint in HDFS and in S3: it outlives its driver, has one driver at a time, and says what is wrong with it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from remotes import Remote

from trident_py.errors import TopologyError, TridentError, ZombieError
from trident_py.spark.checkpoint import DRIVER, Checkpoint, checkpoint_of
from trident_py.spark.hadoop_folder import MANAGER, HadoopFolder

from .driving import Start, exact, kill, until
from .folder import copy_topology, numbers, written

pytestmark = pytest.mark.spark
RENAMING = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
NAME = "a name: 50% ü"


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
    checkpoint = checkpoint_of(spark, remote.uri, NAME, "numbers")
    assert checkpoint.last_batch() == 4
    own = HadoopFolder(spark, f"{checkpoint.where}/trident")
    assert sorted(own.names()) == ["component", "driver", "followed", "given"]
    assert [len(own.names(path)) for path in own.names()] == [1, 1, 1, 1]  # what is old is deleted


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


def test_an_older_driver_that_logs_a_batch_as_its_last_act_does_not_end_the_newer_one(
    spark_cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has planned the batch before it was refused, and logs it when the newer one plans the same."""
    assert run(spark_cluster(), tmp_path / "out", 2).txid == 2
    (folder,) = (tmp_path / "checkpoints").glob("*/numbers/offsets")
    check = Checkpoint.check

    def after_the_older_one(checkpoint: Checkpoint) -> None:
        if not (folder / "2").exists():
            (folder / "2").write_text((folder / "1").read_text().replace('"txid": 2', '"txid": 3'))
        check(checkpoint)

    monkeypatch.setattr(Checkpoint, "check", after_the_older_one)
    assert run(spark_cluster(), tmp_path / "out", 4).txid == 4
    assert written(tmp_path / "out") == exact(4)


def test_a_batch_that_an_older_driver_commits_during_the_start_shifts_no_txid(
    spark_cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state here has no fence, so the older driver's third batch goes through."""
    assert run(spark_cluster(), tmp_path / "out", 2).txid == 2
    (folder,) = (tmp_path / "checkpoints").glob("*/numbers")
    take = Checkpoint.take

    def after_the_older_one(checkpoint: Checkpoint) -> None:
        text = (folder / "offsets" / "1").read_text()
        (folder / "offsets" / "2").write_text(text.replace('"txid": 2', '"txid": 3'))
        (folder / "commits" / "2").write_text((folder / "commits" / "1").read_text())
        take(checkpoint)

    monkeypatch.setattr(Checkpoint, "take", after_the_older_one)
    running = run(spark_cluster(), tmp_path / "out", 4)
    assert list(running.attempts) == [4]
    assert sorted(written(tmp_path / "out")) == [1, 2, 4]


@pytest.mark.parametrize("remote", ["s3"], indirect=True)
def test_offsets_that_another_drivers_have_replaced_are_restored(
    remote: Remote, spark: Any, spark_cluster: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert run(spark_cluster(remote.uri), tmp_path / "out", 3).txid == 3
    folder = HadoopFolder(spark, checkpoint_of(spark, remote.uri, NAME, "numbers").where)
    right = [folder.read(f"offsets/{batch}") or "" for batch in (1, 2)]
    for batch in (1, 2):  # a driver that was stopped before it wrote them, and only now goes on
        folder.replace(f"offsets/{batch}", (folder.read("offsets/0") or "").replace('"txid": 1', '"txid": 9'))
    folder.delete("commits/2")
    assert run(spark_cluster(remote.uri), tmp_path / "out", 4).txid == 4
    assert written(tmp_path / "out") == exact(4)
    assert [folder.read(f"offsets/{batch}") for batch in (1, 2)] == right
    assert "batch 1 has the offsets of another driver; restored" in caplog.text


@pytest.mark.parametrize("remote", ["s3"], indirect=True)
def test_in_s3_the_first_of_two_drivers_cannot_begin_a_batch_either(remote: Remote, spark: Any) -> None:
    """Spark's log does not tell the two apart there; the batch that was planned just before is refused here."""
    first, second = (checkpoint_of(spark, remote.uri, "t", "c") for _ in range(2))
    first.take()
    first.begin(0, lambda: "offsets")
    first.check()
    second.take()
    with pytest.raises(ZombieError, match=r"another driver runs on the checkpoint: it has changed s3a://.*driver/3"):
        first.begin(1, lambda: "others")
    with pytest.raises(ZombieError, match=r"process \d+ on host .* has taken it over since this one started"):
        first.check()
    second.begin(1, lambda: "more")
    second.check()
    assert json.loads(HadoopFolder(spark, second.where).read(f"trident/{DRIVER}/4.json") or "")["entries"]["2"][
        "offsets"
    ] == "more"


@pytest.mark.whole("test_a_topology_goes_on_from_a_checkpoint_that_is_on_no_machine")
@pytest.mark.parametrize("manager", ["installed", "renaming"])
def test_a_driver_killed_again_and_again_loses_nothing(
    remote: Remote, manager: str, spark: Any, spark_cluster: Any, start: Start, tmp_path: Path
) -> None:
    session = {**remote.of_session, **({MANAGER: RENAMING} if manager == "renaming" else {})}
    for _ in range(3):
        process = start(1000, checkpoints=remote.uri, settings=session)
        until(process, "committed", 4)
        kill(process)
    done = max(written(tmp_path / "out"))
    topology = copy_topology(tmp_path / "out", numbers(2 * done + 4))
    running = spark_cluster(remote.uri).submitTopology("t", {}, topology)
    assert running.awaitTermination(120)
    assert running.txid == done + 2
    assert written(tmp_path / "out") == exact(done + 2)


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
