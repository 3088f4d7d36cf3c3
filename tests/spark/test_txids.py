"""Which txids a micro-batch of Spark runs: several in a turn of the clock, one, or those of a source of Spark."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from linked_files import LinkedFiles

from states.sql import BatchState, RowUpdater, SqlMapState
from trident_py import Config, Fields, TopologyError, TridentTopology
from trident_py.checkpoints.batch_log import BatchLog
from trident_py.checkpoints.hash_seed import own_order
from trident_py.checkpoints.metadata_store import LOG, MemoryMetadataStore
from trident_py.checkpoints.versioned_store import VersionedStore
from trident_py.errors import LineageError, ZombieError
from trident_py.operations import builtin
from trident_py.spark.driver_execution import HERE
from trident_py.spark.txids import MicroBatch, Txids
from trident_py.spouts import FeederBatchSpout, SparkSpout
from trident_py.testing import FixedBatchSpout, MemoryMapState, collect

from .test_driver_execution import inline, places

pytestmark = pytest.mark.spark
Cluster = Callable[..., Any]
LONG, NONE = ({Config.TOPOLOGY_INLINE_FOLLOW_MILLIS: millis} for millis in (60_000, 0))


def micro_batches(checkpoints: Path) -> dict[int, tuple[str, int]]:
    """The query and the micro-batch in which each txid ran last, by the log."""
    ran = {}
    for journal in checkpoints.glob("*/*/journal"):
        for line in journal.read_text().splitlines()[1:]:
            _, path, number, *value = json.loads(line.partition(" ")[2])
            begun = value[0]["begun"] if (path, number) == (LOG, 0) else None
            if begun is not None:
                ran[begun["txid"]] = (begun["micro_batch"]["query"], begun["micro_batch"]["number"])
    return ran


def numbers_of(checkpoints: Path) -> list[int]:
    """The micro-batches, in the order of the txids."""
    return [number for _, (_, number) in sorted(micro_batches(checkpoints).items())]


def counted(cluster: Any, conf: dict[str, Any], batches: int) -> tuple[Any, dict[Any, int]]:
    state, topology = MemoryMapState.Factory(), TridentTopology()
    spout = FixedBatchSpout(Fields("value"), 2, *([n] for n in range(2 * batches)))
    topology.newStream("in", spout).each("value", lambda n: [n % 3], Fields("key")).groupBy("key").persistentAggregate(
        state, builtin.Count(), "count"
    )
    running = cluster.submitTopology("counted", conf, topology.build())
    assert running.awaitTermination(200)
    return running, {key[0]: value.curr for key, value in state.stored().items()}


def test_small_batches_share_a_micro_batch(spark_cluster: Cluster, tmp_path: Path) -> None:
    running, counts = counted(spark_cluster(str(tmp_path)), inline(10) | LONG, 9)
    assert numbers_of(tmp_path) == [0] * 9
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
    turns = Counter(numbers_of(tmp_path))
    assert turns[0] > 1, "batches followed"
    assert len(turns) > 1 and max(turns.values()) <= 8, "one, and 200 ms of 30 ms each"


@pytest.mark.parametrize("most", [10, 0], ids=["in the driver", "jobs"])
def test_a_txid_is_the_base_plus_the_batch_id_plus_one_if_none_may_follow(
    spark_cluster: Cluster, tmp_path: Path, most: int
) -> None:
    for base, batches in ((0, 4), (4, 7)):
        counted(spark_cluster(str(tmp_path)), inline(most) | NONE, batches)
        ran = {txid: number for txid, (_, number) in micro_batches(tmp_path).items() if txid > base}
        assert ran == {txid: txid - base - 1 for txid in range(base + 1, batches + 1)}


def test_jobs_follow_one_another_too(spark_cluster: Cluster, tmp_path: Path) -> None:
    running, counts = counted(spark_cluster(str(tmp_path)), inline(0) | LONG, 4)
    assert numbers_of(tmp_path) == [0] * 4
    assert set(places(running).values()) == {""}
    assert sum(counts.values()) == 8


def test_a_micro_batch_that_spark_repeats_runs_none_of_its_txids_again(
    spark_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, turn = [], Txids.run_turn

    def twice(txids: Txids, micro_batch: MicroBatch, execute: Any) -> None:
        for _ in range(2):
            turn(txids, micro_batch, execute)
            calls.append(micro_batch.number)

    monkeypatch.setattr(Txids, "run_turn", twice)
    _, counts = counted(spark_cluster(str(tmp_path)), inline(10) | NONE, 4)
    assert calls[:4] == [0, 0, 1, 1]
    assert counts == {0: 3, 1: 3, 2: 2}
    assert numbers_of(tmp_path) == [0, 0, 1, 1]


@pytest.mark.parametrize("conf", [LONG, NONE, {Config.TOPOLOGY_INLINE_MAX_TUPLES: 0}])
def test_nothing_that_spark_keeps_is_needed_to_go_on(
    spark_cluster: Cluster, tmp_path: Path, conf: dict[str, Any]
) -> None:
    counted(spark_cluster(str(tmp_path)), inline(10) | conf, 3)
    (folder,) = tmp_path.glob("*/*")
    assert {file.name for file in folder.iterdir()} == {"journal", "lock"}


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


def test_a_large_batch_among_small_ones_is_a_job(spark_cluster: Cluster, tmp_path: Path) -> None:
    feeder, state, topology = FeederBatchSpout(Fields("value")), MemoryMapState.Factory(), TridentTopology()
    topology.newStream("in", feeder).groupBy("value").persistentAggregate(state, builtin.Count(), "count")
    for size in (3, 3, 40, 3, 3):
        feeder.feed([[n] for n in range(size)], wait=False)
    feeder.close()
    running = spark_cluster(str(tmp_path)).submitTopology("mixed", inline(10) | LONG, topology.build())
    assert running.awaitTermination(200)
    assert places(running) == {1: HERE, 2: HERE, 3: "", 4: HERE, 5: HERE}
    assert numbers_of(tmp_path) == [0] * 5
    assert {key[0]: value.curr for key, value in state.stored().items()} == {n: 5 if n < 3 else 1 for n in range(40)}


def test_a_batch_that_comes_while_the_call_lasts_needs_no_micro_batch(spark_cluster: Cluster, tmp_path: Path) -> None:
    feeder, topology = FeederBatchSpout(Fields("value")), TridentTopology()
    topology.newStream("in", feeder).each("value", lambda n: [n], Fields("same"))
    running = spark_cluster(str(tmp_path)).submitTopology("fed", inline(10) | LONG, topology.build())
    for n in range(3):
        feeder.feed([[n]])
        time.sleep(0.2)
    assert numbers_of(tmp_path) == [0] * 3
    stopper = threading.Thread(target=running.stop)
    stopper.start()
    stopper.join(20)
    assert not stopper.is_alive()


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
    topology.newStream("in", spout.setCycle(True)).groupBy("value").persistentAggregate(state, builtin.Count(), "count")
    last = one_after_the_other(spark_cluster, str(tmp_path / "checkpoints"), conf, topology.build())
    assert sum(value.curr for value in state.stored().values()) == 2 * last.txid


def test_so_does_each_driver_whose_state_decides_batches(spark_cluster: Cluster, tmp_path: Path) -> None:
    """The older one decides a batch between two readings of the checkpoint."""
    state, topology = BatchState(f"sqlite:///{tmp_path}/rows.db", "rows", "value bigint"), TridentTopology()
    spout = FixedBatchSpout(Fields("value bigint"), 2, *([n] for n in range(20))).setCycle(True)
    topology.newStream("in", spout).partitionPersist(state, "value", RowUpdater())
    last = one_after_the_other(spark_cluster, str(tmp_path / "checkpoints"), LONG, topology.build())
    assert sum(state.stored().values()) == 2 * last.txid


def test_a_run_that_does_not_wait_for_more_ends_when_nothing_is_there(spark_cluster: Cluster, tmp_path: Path) -> None:
    feeder, topology = FeederBatchSpout(Fields("value")), TridentTopology()
    topology.newStream("in", feeder).each("value", lambda n: [n], Fields("same"))
    for n in range(3):
        feeder.feed([[n]], wait=False)
    running = spark_cluster(str(tmp_path)).submitTopology("now", inline(10) | LONG, topology.build(), availableNow=True)
    assert running.awaitTermination(30)  # batches may follow for a minute
    assert running.txid >= 3


# -- sources of Spark -------------------------------------------------------------------------------------------------


def files(folder: Path, *numbers: int) -> SparkSpout:
    folder.mkdir(exist_ok=True)
    for n in numbers:
        (folder / f"{n}.json").write_text(f'{{"n": {n}}}\n')
    return SparkSpout("json", {"path": str(folder), "maxFilesPerTrigger": 1}, schema="n bigint")


def read(cluster: Any, folder: Path, *numbers: int) -> Any:
    topology = TridentTopology()
    collect(topology.newStream("files", files(folder, *numbers)), "rows")
    return cluster.submitTopology("t", {}, topology.build(), availableNow=True)


def test_a_micro_batch_of_a_source_of_spark_is_one_txid_and_the_log_has_it(
    spark_cluster: Cluster, tmp_path: Path
) -> None:
    running = read(spark_cluster(str(tmp_path / "c")), tmp_path / "in", 1, 2, 3)
    assert running.awaitTermination(100)
    assert sorted(n for rows in running.collected("rows").values() for (n,) in rows) == [1, 2, 3]
    assert numbers_of(tmp_path / "c") == [0, 1, 2]
    running = read(spark_cluster(str(tmp_path / "c")), tmp_path / "in", 4)
    assert running.awaitTermination(100)
    assert running.collected("rows") == {4: [(4,)]}
    assert len({query for query, _ in micro_batches(tmp_path / "c").values()}) == 1


def test_a_micro_batch_that_spark_repeats_after_its_commit_is_over(spark_cluster: Cluster, tmp_path: Path) -> None:
    """Killed behind the commit of the txid, and before Spark wrote its own."""
    assert read(spark_cluster(str(tmp_path / "c")), tmp_path / "in", 1, 2).awaitTermination(100)
    (commit,) = (tmp_path / "c").glob("*/*/spark/commits/1")
    commit.unlink()
    running = read(spark_cluster(str(tmp_path / "c")), tmp_path / "in", 3)
    assert running.awaitTermination(100)
    assert running.collected("rows") == {3: [(3,)]}


@pytest.mark.parametrize("lost", ["spark", "log", "older"])
def test_a_log_and_a_checkpoint_of_spark_that_do_not_belong_together_are_refused(
    spark_cluster: Cluster, tmp_path: Path, lost: str
) -> None:
    """Each of them alone would lose rows or repeat them."""
    assert read(spark_cluster(str(tmp_path / "c")), tmp_path / "in", 1, 2, 3).awaitTermination(100)
    (folder,) = (tmp_path / "c").glob("*/*")
    if lost == "spark":
        shutil.rmtree(folder / "spark")
    elif lost == "log":
        (folder / "journal").unlink()
    else:
        for log in ("commits", "offsets", "sources/0"):
            for number in (1, 2):
                (folder / "spark" / log / str(number)).unlink(missing_ok=True)
    running = read(spark_cluster(str(tmp_path / "c")), tmp_path / "in", 7, 8, 9)
    with pytest.raises(TopologyError, match=r"do not belong together.*Restore both from one copy"):
        running.awaitTermination(100)
    assert running.collected("rows") == {}


@pytest.mark.parametrize(
    ("micro_batch", "is_over"),
    [
        (MicroBatch("q", 4, ["7"], ["9"]), True), (MicroBatch("q", 5, ["9"], ["11"]), False),
        (MicroBatch("q", 7, ["9"], ["9"]), False), (MicroBatch("q", 4, ["7"], ["8"]), None),
        (MicroBatch("q", 5, ["8"], ["11"]), None), (MicroBatch("q", 3, ["5"], ["7"]), None),
        (MicroBatch("other", 4, ["7"], ["9"]), None), (MicroBatch("q", 5, None, ["11"]), None),
    ],
)  # fmt: skip
def test_a_micro_batch_is_the_last_one_or_begins_where_that_ended(
    micro_batch: MicroBatch, is_over: bool | None
) -> None:
    log = BatchLog(MemoryMetadataStore(), "here", "t", own_order)
    log.enter(MicroBatch("q", 4, ["7"], ["9"]).to_json())
    log.begin(3, {})
    log.end(3, {})
    made: Any = SimpleNamespace(log=log, txid=3, program=SimpleNamespace(conf={}))
    txids = Txids(made, False, True, threading.Event())
    if is_over is None:
        with pytest.raises(LineageError, match="do not belong together"):
            txids._is_over(micro_batch)
    else:
        assert txids._is_over(micro_batch) is is_over


def test_a_newer_driver_goes_on_when_the_older_one_waits_for_a_source_of_spark(
    spark_cluster: Cluster, tmp_path: Path
) -> None:
    def start() -> Any:
        topology = TridentTopology()
        collect(topology.newStream("files", files(tmp_path / "in", 1)), "rows")
        return spark_cluster(str(tmp_path / "c")).submitTopology("t", {}, topology.build())

    def wait_for(running: Any, txid: int, rows: list[Any]) -> None:
        """Wait for a batch; the newer driver also replays the first if its end was not yet recorded."""
        end = time.monotonic() + 60
        while txid not in running.collected("rows") and running.isActive and time.monotonic() < end:
            time.sleep(0.05)
        assert running.collected("rows").get(txid) == rows, running.exception

    older = start()
    wait_for(older, 1, [(1,)])
    newer = start()
    with pytest.raises(TopologyError, match="another driver runs on the checkpoint"):
        older.awaitTermination(60)
    files(tmp_path / "in", 2)
    wait_for(newer, 2, [(2,)])
    newer.stop()


def test_a_log_that_knows_no_source_of_spark_takes_one_that_begins(tmp_path: Path) -> None:
    """One that has read on already belongs to another log."""
    log = BatchLog(MemoryMetadataStore(), "here", "t", own_order)
    log.enter(MicroBatch("a query of Python spouts", 4).to_json())
    log.begin(3, {})
    log.end(3, {})
    made: Any = SimpleNamespace(log=log, txid=3, program=SimpleNamespace(conf={}))
    txids = Txids(made, False, True, threading.Event())
    assert not txids._is_over(MicroBatch("q", 0, None, ["9"]))
    with pytest.raises(LineageError, match="the log has no micro-batch"):
        txids._is_over(MicroBatch("q", 57, ["7"], ["9"]))


def test_the_end_of_a_txid_of_a_source_of_spark_is_durable_before_sparks_own(tmp_path: Path) -> None:
    """Spark's is on the disk when it is killed while it is idle; a note of ours, in HDFS and S3, would not be."""
    log = BatchLog(VersionedStore(LinkedFiles(tmp_path)), "here", "t", own_order)
    log.take()
    log.enter(MicroBatch("q", 4, ["7"], ["9"]).to_json())
    log.begin(3, {})
    log.end(3, {})
    found = BatchLog(VersionedStore(LinkedFiles(tmp_path)), "here", "t", own_order)
    assert (found.last() or pytest.fail()).txid == 3 and found.find_begun(3) is None


def test_a_source_of_spark_that_reads_on_without_rows_beside_python_spouts_is_a_txid_too(
    spark_cluster: Cluster, tmp_path: Path
) -> None:
    feeder, topology = FeederBatchSpout(Fields("n bigint")), TridentTopology()
    spout = files(tmp_path / "in", 101)
    (tmp_path / "in" / "empty.json").write_text("")
    collect(topology.merge(topology.newStream("ours", feeder), topology.newStream("files", spout)), "rows")
    running = spark_cluster(str(tmp_path / "c")).submitTopology("t", {}, topology.build())
    end = time.monotonic() + 40
    while len(numbers_of(tmp_path / "c")) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    feeder.feed([[1]])
    running.stop()
    assert running.exception is None
    assert running.collected("rows") == {txid: rows for txid, rows in running.collected("rows").items() if rows}
    assert sorted(n for rows in running.collected("rows").values() for (n,) in rows) == [1, 101]


def test_python_spouts_beside_a_source_of_spark_wait_neither_for_it_nor_without_end(
    spark_cluster: Cluster, tmp_path: Path
) -> None:
    feeder, topology = FeederBatchSpout(Fields("n bigint")), TridentTopology()
    ours = topology.newStream("ours", feeder)
    collect(topology.merge(ours, topology.newStream("files", files(tmp_path / "in"))), "rows")
    running = spark_cluster(str(tmp_path / "c")).submitTopology("t", {}, topology.build())
    feeder.feed([[1]])
    files(tmp_path / "in", 101)
    end = time.monotonic() + 30
    while len(running.collected("rows")) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    feeder.feed([[2]])
    running.stop()
    assert sorted(n for rows in running.collected("rows").values() for (n,) in rows) == [1, 2, 101]
    assert sorted(running.collected("rows")) == [1, 2, 3], "a micro-batch without rows is no txid"
