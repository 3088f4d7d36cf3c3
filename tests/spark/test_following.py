"""Batches that follow one another in one micro-batch of Spark: fewer micro-batches, the same txids and results."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from states.sql import BatchState, RowUpdater, SqlMapState
from trident_py import Config, Fields, TopologyError, TridentTopology
from trident_py.checkpoints.following import FILE
from trident_py.errors import ZombieError
from trident_py.operations.builtin import Count
from trident_py.spark.inline import HERE
from trident_py.spouts import FeederBatchSpout
from trident_py.testing import FixedBatchSpout, MemoryMapState

from .driving import exact
from .folder import copy_topology, numbers, written
from .test_inline import inline, places

pytestmark = pytest.mark.spark
Cluster = Callable[..., Any]
LONG, NONE = ({Config.TOPOLOGY_INLINE_FOLLOW_MILLIS: millis} for millis in (60_000, 0))


class Broken(Exception):
    """What a function raises."""


def micro_batches(checkpoints: Path) -> list[int]:
    """The txid in each offset of Spark's log."""
    files = sorted(checkpoints.glob("*/*/offsets/*"), key=lambda file: int(file.name))
    return [json.loads(file.read_text().splitlines()[2])["txid"] for file in files if file.name.isdigit()]


def counted(cluster: Any, conf: dict[str, Any], batches: int) -> tuple[Any, dict[Any, int]]:
    state, topology = MemoryMapState.Factory(), TridentTopology()
    spout = FixedBatchSpout(Fields("value"), 2, *([n] for n in range(2 * batches)))
    topology.newStream("in", spout).each("value", lambda n: [n % 3], Fields("key")).groupBy("key").persistentAggregate(
        state, Count(), "count"
    )
    running = cluster.submitTopology("counted", conf, topology.build())
    assert running.awaitTermination(200)
    return running, {key[0]: value.curr for key, value in state.stored().items()}


def test_small_batches_share_a_micro_batch(spark_cluster: Cluster, tmp_path: Path) -> None:
    running, counts = counted(spark_cluster(str(tmp_path)), inline(10) | LONG, 9)
    assert micro_batches(tmp_path) == [1]
    assert places(running) == dict.fromkeys(range(1, 10), HERE)
    assert counts == {0: 6, 1: 6, 2: 6}


def test_spark_has_its_turn_when_the_time_is_over_though_more_is_there(spark_cluster: Cluster, tmp_path: Path) -> None:
    def slow(value: Any) -> list[Any]:
        time.sleep(0.03)
        return [value]

    feeder, topology = FeederBatchSpout(Fields("value")), TridentTopology()
    topology.newStream("in", feeder).each("value", slow, Fields("same"))
    for n in range(20):
        feeder.feed([[n]], wait=False)
    feeder.close()
    conf = inline(10) | {Config.TOPOLOGY_INLINE_FOLLOW_MILLIS: 200}
    running = spark_cluster(str(tmp_path)).submitTopology("slow", conf, topology.build())
    assert running.awaitTermination(200)
    assert set(places(running).values()) == {HERE}
    firsts = micro_batches(tmp_path)
    assert firsts[1] > 2, "batches followed"
    assert all(later - earlier <= 8 for earlier, later in itertools.pairwise(firsts)), "one, and 200 ms of 30 ms each"


def test_each_has_a_micro_batch_of_its_own_if_none_may_follow(spark_cluster: Cluster, tmp_path: Path) -> None:
    running, _ = counted(spark_cluster(str(tmp_path)), inline(10) | NONE, 4)
    assert micro_batches(tmp_path) == [1, 2, 3, 4]
    assert set(places(running).values()) == {HERE}


@pytest.mark.parametrize("conf", [LONG, NONE, {Config.TOPOLOGY_INLINE_MAX_TUPLES: 0}])
def test_a_later_start_goes_on_behind_the_last_one_that_followed(
    spark_cluster: Cluster, tmp_path: Path, conf: dict[str, Any]
) -> None:
    """Whether its batches follow too, or not, or are jobs; and the start behind that one."""
    cluster = spark_cluster(str(tmp_path))
    counted(cluster, inline(10) | LONG, 4)
    running, counts = counted(cluster, inline(10) | conf, 7)
    assert list(places(running)) == [5, 6, 7]
    assert sum(counts.values()) == 6
    running, _ = counted(cluster, inline(10) | LONG, 9)
    assert list(places(running)) == [8, 9]
    assert running.attempts == {8: 0, 9: 0}


def test_a_large_batch_among_small_ones_is_a_job_and_sparks_turn_comes(spark_cluster: Cluster, tmp_path: Path) -> None:
    feeder, state, topology = FeederBatchSpout(Fields("value")), MemoryMapState.Factory(), TridentTopology()
    topology.newStream("in", feeder).groupBy("value").persistentAggregate(state, Count(), "count")
    for size in (3, 3, 40, 3, 3):
        feeder.feed([[n] for n in range(size)], wait=False)
    feeder.close()
    running = spark_cluster(str(tmp_path)).submitTopology("mixed", inline(10) | LONG, topology.build())
    assert running.awaitTermination(200)
    assert places(running) == {1: HERE, 2: HERE, 3: "", 4: HERE, 5: HERE}
    assert micro_batches(tmp_path) == [1, 4]
    assert {key[0]: value.curr for key, value in state.stored().items()} == {n: 5 if n < 3 else 1 for n in range(40)}


def test_a_batch_that_comes_while_the_call_lasts_needs_no_micro_batch(spark_cluster: Cluster, tmp_path: Path) -> None:
    feeder, topology = FeederBatchSpout(Fields("value")), TridentTopology()
    topology.newStream("in", feeder).each("value", lambda n: [n], Fields("same"))
    running = spark_cluster(str(tmp_path)).submitTopology("fed", inline(10) | LONG, topology.build())
    for n in range(3):
        feeder.feed([[n]])
        time.sleep(0.2)
    assert len(micro_batches(tmp_path)) == 1 + (running.txid > 3)  # Spark may have begun with an empty batch
    stopper = threading.Thread(target=running.stop)
    stopper.start()
    stopper.join(20)
    assert not stopper.is_alive()
    assert len(list(tmp_path.glob("*/*/commits/*"))) == len(micro_batches(tmp_path))  # a stop lets Spark have its turn


def in_full_run(cluster: Any, conf: dict[str, Any], topology: Any) -> Any:
    """A run that has committed some batches and goes on."""
    running, some = cluster.submitTopology("endless", conf, topology), threading.Event()

    def heard(event: Any, progress: Any) -> None:
        if event.kind == "committed" and progress.batches > 10:
            some.set()

    running.addListener(heard)
    assert some.wait(60), running.exception
    return running


def one_after_the_other(spark_cluster: Cluster, checkpoints: str, conf: dict[str, Any], endless: Any) -> Any:
    """Three drivers that each take the checkpoint from the one before in full run; returns the last, stopped."""
    older = in_full_run(spark_cluster(checkpoints), inline(10) | conf, endless)
    for _ in range(3):
        newer = in_full_run(spark_cluster(checkpoints), inline(10) | conf, endless)
        with pytest.raises(TopologyError) as caught:
            older.awaitTermination(60)
        assert isinstance(caught.value.__cause__, ZombieError)
        older = newer
    older.stop()
    assert older.awaitTermination(60)
    return older


@pytest.mark.parametrize("conf", [LONG, NONE], ids=["following", "not following"])
def test_each_driver_takes_the_checkpoint_from_the_one_before_in_full_run(
    spark_cluster: Cluster, tmp_path: Path, conf: dict[str, Any]
) -> None:
    """The stores are ahead of what the newer one reads of the checkpoint."""
    state = SqlMapState.opaque(f"sqlite:///{tmp_path}/counts.db", "counts", "value bigint", "count bigint")
    spout, topology = FixedBatchSpout(Fields("value bigint"), 2, *([n] for n in range(20))), TridentTopology()
    topology.newStream("in", spout.setCycle(True)).groupBy("value").persistentAggregate(state, Count(), "count")
    last = one_after_the_other(spark_cluster, str(tmp_path / "checkpoints"), conf, topology.build())
    assert sum(value.curr for value in state.stored().values()) == 2 * last.txid


def test_so_does_each_driver_whose_state_decides_batches(spark_cluster: Cluster, tmp_path: Path) -> None:
    """The older one decides a batch between two readings of the checkpoint."""
    state, topology = BatchState(f"sqlite:///{tmp_path}/rows.db", "rows", "value bigint"), TridentTopology()
    spout = FixedBatchSpout(Fields("value bigint"), 2, *([n] for n in range(20))).setCycle(True)
    topology.newStream("in", spout).partitionPersist(state, "value", RowUpdater())
    last = one_after_the_other(spark_cluster, str(tmp_path / "checkpoints"), LONG, topology.build())
    assert sum(state.stored().values()) == 2 * last.txid


@pytest.mark.parametrize("begun", [True, False], ids=["a batch has begun", "none has begun"])
def test_offsets_that_spark_had_not_synced_when_the_power_failed_are_not_missed(
    spark_cluster: Cluster, tmp_path: Path, begun: bool
) -> None:
    """The journal is synced and has the batches that followed; the files of Spark's micro-batch are lost."""

    def breaks(n: int) -> list[int]:
        if n == 6 and not (tmp_path / "well").exists():
            raise Broken
        return [n]

    def run(batches: int, conf: dict[str, Any]) -> Any:
        topology = copy_topology(tmp_path / "out", numbers(2 * batches), breaks)
        return spark_cluster(str(tmp_path / "checkpoints")).submitTopology("t", inline(10) | conf, topology)

    with pytest.raises(TopologyError, match="Broken"):
        run(6, LONG).awaitTermination(60)
    (tmp_path / "well").touch()
    (folder,) = (tmp_path / "checkpoints").glob("*/*")
    (folder / "offsets" / "0").unlink()
    if not begun:
        journal = folder / FILE
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(line for line in lines if b'"begun",4' not in line))
    for batches, conf in ((6, LONG), (8, NONE), (9, LONG)):
        running = run(batches, conf)
        assert running.awaitTermination(100)
        assert running.txid == batches
    assert written(tmp_path / "out") == exact(9)


def test_a_run_that_does_not_wait_for_more_ends_when_nothing_is_there(spark_cluster: Cluster, tmp_path: Path) -> None:
    feeder, topology = FeederBatchSpout(Fields("value")), TridentTopology()
    topology.newStream("in", feeder).each("value", lambda n: [n], Fields("same"))
    for n in range(3):
        feeder.feed([[n]], wait=False)
    running = spark_cluster(str(tmp_path)).submitTopology("now", inline(10) | LONG, topology.build(), availableNow=True)
    assert running.awaitTermination(30)  # batches may follow for a minute
    assert running.txid >= 3
