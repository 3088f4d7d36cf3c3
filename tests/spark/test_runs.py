"""Runs on Spark: txids, replays, restarts, ends."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from trident_py import FailedException, Fields, TopologyError, TridentTopology
from trident_py.checkpoints.append_log import AppendLogStore
from trident_py.checkpoints.metadata_store import LOG
from trident_py.engine.component import PAUSE
from trident_py.errors import ZombieError
from trident_py.spark.txids import READY_WAIT
from trident_py.spouts import ITridentSpout, SparkSpout
from trident_py.testing import Crashing, FixedBatchSpout, collect, failing
from trident_py.testing.faults.disturbances import forget

from .folder import FolderFactory, WriteRows, attempts, copy_topology, numbers, written
from .hostile import HOSTILE

pytestmark = pytest.mark.spark
FIVE = {txid: [[2 * txid - 2], [2 * txid - 1]] for txid in range(1, 6)}


def over(checkpoints: Path) -> int:
    """The last txid that is over, by the log."""
    (folder,) = checkpoints.glob("*/*")
    store = AppendLogStore(folder)
    last = store.get(LOG, 0)["over"]
    store.close()
    return 0 if last is None else int(last["txid"])


@pytest.mark.parametrize("available_now", [True, False])
def test_five_fixed_batches_are_txids_1_to_5_and_end_the_run(
    spark_cluster: Any, tmp_path: Path, available_now: bool
) -> None:
    topology = copy_topology(tmp_path / "out", numbers(10))
    running = spark_cluster().submitTopology("five", {}, topology, availableNow=available_now)
    assert running.awaitTermination(60)
    assert running.txid == 5
    assert running.attempts == dict.fromkeys(range(1, 6), 0)
    assert written(tmp_path / "out") == FIVE
    assert over(tmp_path / "checkpoints") == 5


def test_a_restart_goes_on_with_the_next_txid(spark_cluster: Any, tmp_path: Path) -> None:
    cluster, out = spark_cluster(), tmp_path / "out"
    assert cluster.submitTopology("t", {}, copy_topology(out, numbers(4))).awaitTermination(60)
    running = cluster.submitTopology("t", {}, copy_topology(out, numbers(10)))
    assert running.awaitTermination(60)
    assert list(running.attempts) == [3, 4, 5]
    assert written(out) == FIVE


def test_a_restart_under_other_settings_of_the_session_goes_on(spark: Any, spark_cluster: Any, tmp_path: Path) -> None:
    """Every SQL setting at its other value for one start, and back for the next. Some batches are replayed."""
    out = tmp_path / "out"
    settings = {key: value for key, value in HOSTILE.items() if spark.conf.isModifiable(key)}
    assert len(settings) > 35
    before = {key: spark.conf.get(key, None) for key in settings}
    for last, hostile in ((1, False), (3, True), (5, False)):
        for key, value in before.items():
            wanted = settings[key] if hostile else value
            spark.conf.unset(key) if wanted is None else spark.conf.set(key, wanted)
        topology = copy_topology(out, numbers(2 * last), failing(lambda n: [n], {(2, 0), (3, 0), (4, 0)}))
        assert spark_cluster().submitTopology("t", {}, topology).awaitTermination(60)
    assert written(out) == FIVE
    assert attempts(out) == {1: {0}, 2: {1}, 3: {1}, 4: {1}, 5: {0}}


def test_a_batch_that_the_log_does_not_know_to_be_over_comes_again(spark_cluster: Any, tmp_path: Path) -> None:
    cluster, out = spark_cluster(), tmp_path / "out"
    assert cluster.submitTopology("t", {}, copy_topology(out, numbers(6))).awaitTermination(60)
    forget(tmp_path / "checkpoints" / "t")
    for file in out.glob("000003-*"):
        file.unlink()
    running = cluster.submitTopology("t", {}, copy_topology(out, numbers(10)))
    assert running.awaitTermination(60)
    assert list(running.attempts) == [3, 4, 5]
    assert written(out) == FIVE


def test_a_replay_runs_every_stage_again_under_the_same_txid(spark_cluster: Any, tmp_path: Path) -> None:
    calls = tmp_path / "calls"

    def told(n: int) -> list[int]:
        with calls.open("a") as file:
            file.write(f"{n} ")
        return [n]

    out = tmp_path / "out"
    topology = TridentTopology()
    out.mkdir()
    stream = topology.newStream("numbers", numbers(4)).each("n", told, Fields("m")).partitionBy("m")
    stream = stream.each("m", failing(lambda m: [m], {(1, 0), (2, 0), (2, 1)}), Fields("k"))
    stream.partitionPersist(FolderFactory(str(out)), "k", WriteRows()).parallelismHint(2)
    running = spark_cluster().submitTopology("t", {}, topology.build())
    assert running.awaitTermination(60)
    assert running.attempts == {1: 1, 2: 2}
    assert sorted(calls.read_text().split()) == sorted(["0", "1", "0", "1", "2", "3", "2", "3", "2", "3"])
    assert attempts(out) == {1: {1}, 2: {2}}
    assert [event.txid for event in running.events if event.kind == "replay"] == [1, 2, 2]


def test_a_spout_that_fails_in_the_driver_is_asked_again(spark_cluster: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    spout = failing(numbers(4), {(1, 0), (2, 0), (2, 1)})
    running = spark_cluster().submitTopology("t", {}, copy_topology(out, spout))
    assert running.awaitTermination(60)
    assert running.attempts == {1: 1, 2: 2}
    assert written(out) == {1: FIVE[1], 2: FIVE[2]}


def test_an_error_of_the_user_ends_the_run_and_is_told_first(spark_cluster: Any, tmp_path: Path) -> None:
    def divide(n: int) -> list[float]:
        return [1 / (n - 3)]

    running = spark_cluster().submitTopology("t", {}, copy_topology(tmp_path / "out", numbers(10), divide))
    with pytest.raises(TopologyError, match="division by zero") as caught:
        running.awaitTermination(60)
    assert caught.value.txid == 2
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert running.exception is caught.value
    assert over(tmp_path / "checkpoints") == 1


def test_a_batch_is_given_up_after_the_number_of_attempts_that_is_set(spark_cluster: Any, tmp_path: Path) -> None:
    def refuse(n: int) -> list[int]:
        raise FailedException(f"no {n}")

    topology = copy_topology(tmp_path / "out", numbers(10), refuse)
    running = spark_cluster().submitTopology("t", {"topology.max.batch.attempts": 3}, topology)
    with pytest.raises(TopologyError, match="no 0"):
        running.awaitTermination(60)
    assert running.attempts == {1: 2}


def test_a_worker_that_dies_is_a_replay(spark_cluster: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    topology = TridentTopology()
    state = Crashing(FolderFactory(str(out)), at="put", when={(2, 0)}, how="kill")
    topology.newStream("numbers", numbers(6)).partitionPersist(state, "n", WriteRows())
    running = spark_cluster().submitTopology("t", {}, topology.build())
    assert running.awaitTermination(60)
    assert running.attempts == {1: 0, 2: 1, 3: 0}
    assert written(out) == {txid: FIVE[txid] for txid in (1, 2, 3)}


def test_stop_in_the_middle_of_a_batch_lets_it_end_and_leaves_no_thread(spark_cluster: Any, tmp_path: Path) -> None:
    out, cluster = tmp_path / "out", spark_cluster()
    before = {thread.name for thread in threading.enumerate() if thread.name.startswith("trident")}
    reached = threading.Event()
    running = cluster.submitTopology("t", {}, copy_topology(out, numbers(2).setCycle(True)))
    running.addListener(lambda event, progress: reached.set() if event.txid == 2 else None)
    assert reached.wait(60)
    running.stop()
    assert running.awaitTermination(0)
    assert running.exception is None
    assert {thread.name for thread in threading.enumerate() if thread.name.startswith("trident")} - before <= {
        "trident-home-call"
    }
    done = running.txid
    assert done is not None and done >= 2
    assert list(written(out)) == list(range(1, done + 1))
    assert over(tmp_path / "checkpoints") == done


def test_stop_does_not_wait_for_a_batch_that_hangs(spark_cluster: Any, tmp_path: Path) -> None:
    started = tmp_path / "started"

    def hang(n: int) -> list[int]:
        started.touch()
        threading.Event().wait(120)
        return [n]

    conf = {"topology.stop.grace.secs": 0}
    running = spark_cluster().submitTopology("t", conf, copy_topology(tmp_path / "out", numbers(2), hang))
    pause = threading.Event()
    while not started.exists():
        pause.wait(0.02)
    running.stop()
    assert running.awaitTermination(0)
    assert running.exception is None
    assert over(tmp_path / "checkpoints") == 0


def test_a_stop_may_give_the_batch_all_time(spark_cluster: Any, tmp_path: Path) -> None:
    topology = copy_topology(tmp_path / "out", numbers(2))
    running = spark_cluster().submitTopology("t", {"topology.stop.grace.secs": float("inf")}, topology)
    assert running.awaitTermination(60) and running.exception is None


class Blocks(FixedBatchSpout):
    """Emits in the driver, and never comes back."""

    def __init__(self, reached: Path) -> None:
        super().__init__(Fields("n bigint"), 1, [1])
        self.reached = reached

    def emitBatch(self, batchId: int, collector: Any) -> None:
        self.reached.touch()
        threading.Event().wait(60)


def test_stop_does_not_wait_for_a_spout_that_blocks_in_the_driver(spark_cluster: Any, tmp_path: Path) -> None:
    reached, topology = tmp_path / "reached", TridentTopology()
    collect(topology.newStream("s", Blocks(reached)), "rows")
    running = spark_cluster().submitTopology("t", {"topology.stop.grace.secs": 0.2}, topology.build())
    while not reached.exists():
        time.sleep(0.02)
    begun = time.monotonic()
    running.stop()
    assert time.monotonic() - begun < 30 and running.exception is None


def test_a_second_driver_on_a_checkpoint_is_found_out(spark_cluster: Any, tmp_path: Path) -> None:
    endless = copy_topology(tmp_path / "out", numbers(2).setCycle(True))
    runs = [spark_cluster().submitTopology("t", {}, endless) for _ in range(2)]
    with pytest.raises(TopologyError, match="another driver") as caught:
        while not any(running.awaitTermination(0.2) for running in runs):
            pass
    assert isinstance(caught.value.__cause__, ZombieError)
    for running in runs:
        running.stop()


def test_two_spouts_of_one_component_share_the_txids(spark_cluster: Any) -> None:
    topology = TridentTopology()
    one, other = topology.newStream("a", numbers(6)), topology.newStream("b", numbers(2))
    collect(topology.merge(one, other).partitionBy("n"), "all")
    running = spark_cluster().submitTopology("t", {}, topology.build())
    assert running.awaitTermination(60)
    rows = {txid: sorted(rows) for txid, rows in running.collected("all").items()}
    assert rows == {1: [(0,), (0,), (1,), (1,)], 2: [(2,), (3,)], 3: [(4,), (5,)]}


def test_a_source_of_spark_streams_its_rows(spark_cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, lines in {"a.json": [1, 2, 3], "b.json": [4, 5]}.items():
        (tmp_path / "in" / name).write_text("".join(json.dumps({"v": v, "w": f"x{v}"}) + "\n" for v in lines))
    spout = SparkSpout("json", {"path": str(tmp_path / "in"), "maxFilesPerTrigger": 1}, schema="v bigint, w string")
    topology = TridentTopology()
    collect(topology.newStream("files", spout).parallelismHint(2).partitionBy("v"), "rows")
    running = spark_cluster().submitTopology("t", {}, topology.build(), availableNow=True)
    assert running.awaitTermination(60)
    collected = running.collected("rows")
    assert sorted(collected) == [1, 2]
    assert sorted(row for rows in collected.values() for row in rows) == [(v, f"x{v}") for v in range(1, 6)]


def test_a_source_of_spark_and_a_spout_of_ours_meet_in_one_query(spark_cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"n": 100}\n')
    files = SparkSpout("json", {"path": str(tmp_path / "in")}, schema="n bigint")
    topology = TridentTopology()
    ours = topology.newStream("ours", numbers(4))
    collect(topology.merge(ours, topology.newStream("files", files)), "rows")
    running = spark_cluster().submitTopology("t", {}, topology.build(), availableNow=True)
    assert running.awaitTermination(60)
    assert running.txid == 2
    rows = running.collected("rows")
    assert sorted(row for each in rows.values() for row in each) == [(0,), (1,), (2,), (3,), (100,)]


@pytest.mark.parametrize("mixed", [False, True])
def test_a_replay_reads_the_sources_of_spark_again(spark_cluster: Any, tmp_path: Path, mixed: bool) -> None:
    (tmp_path / "in").mkdir()
    for name, lines in {"a.json": range(100, 105), "b.json": range(105, 108)}.items():
        (tmp_path / "in" / name).write_text("".join(json.dumps({"n": n}) + "\n" for n in lines))
    files = SparkSpout("json", {"path": str(tmp_path / "in"), "maxFilesPerTrigger": 1}, schema="n bigint")
    topology = TridentTopology()
    stream = topology.newStream("files", files)
    if mixed:
        stream = topology.merge(topology.newStream("ours", numbers(4)), stream)
    kept = stream.parallelismHint(2).each("n", failing(lambda n: True, {(1, 0), (2, 0)})).partitionBy("n")
    collect(kept.parallelismHint(2), "rows")
    running = spark_cluster().submitTopology("t", {}, topology.build(), availableNow=True)
    assert running.awaitTermination(60)
    assert running.attempts == {1: 1, 2: 1}
    rows = [row[0] for rows in running.collected("rows").values() for row in rows]
    assert sorted(rows) == [*(range(4) if mixed else ()), *range(100, 108)]


class RefusesOnce(ITridentSpout):
    """Its coordinator cannot say at first what txid 2 is."""

    kind = "transactional"

    def getOutputFields(self) -> Fields:
        return Fields("n")

    def getCoordinator(self, txStateId: str, conf: dict, context: Any) -> Any:
        return _Refusing()

    def getEmitter(self, txStateId: str, conf: dict, context: Any) -> Any:
        return _Numbers()

    def isExhaustedAt(self, txid: int) -> bool:
        return txid > 3

    def isExhausted(self) -> bool:
        return False


class _Refusing(ITridentSpout.BatchCoordinator):
    refused = False

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        if txid == 2 and not self.refused:
            self.refused = True
            raise FailedException("the source is away for a moment")
        return {"n": (prevMetadata or {"n": 0})["n"] + 10}


class _Numbers(ITridentSpout.Emitter):
    def emitBatch(self, tx: Any, coordinatorMeta: Any, collector: Any) -> None:
        collector.emit([coordinatorMeta["n"]])


def test_a_coordinator_that_fails_before_the_batch_began_is_asked_again(spark_cluster: Any) -> None:
    topology = TridentTopology()
    collect(topology.newStream("s", RefusesOnce()), "rows")
    running = spark_cluster().submitTopology("t", {}, topology.build())
    assert running.awaitTermination(60)
    assert running.collected("rows") == {1: [(10,)], 2: [(20,)], 3: [(30,)]}
    refused = [event for event in running.events if event.kind == "replay"]
    assert [event.txid for event in refused] == [2] and "away for a moment" in refused[0].reason


class Late(ITridentSpout):
    """1, 2, 3, one for each batch: each number follows that of the batch before. Not ready when Spark asks first."""

    kind = "transactional"

    def getOutputFields(self) -> Fields:
        return Fields("n")

    def getCoordinator(self, txStateId: str, conf: dict, context: Any) -> Any:
        return _NotYetReady()

    def getEmitter(self, txStateId: str, conf: dict, context: Any) -> Any:
        return _Numbers()


class _NotYetReady(ITridentSpout.BatchCoordinator):
    asked = 0
    last = 0

    def isReady(self, txid: int) -> bool:
        self.asked += 1
        return self.asked > READY_WAIT / PAUSE + 1

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        self.last = currMetadata["n"] if currMetadata else (prevMetadata or {"n": 0})["n"] + 1
        return {"n": self.last}

    def isExhausted(self) -> bool:
        return self.last == 3


def test_the_batch_that_spark_begins_with_before_a_spout_is_ready_is_empty(spark_cluster: Any, tmp_path: Path) -> None:
    """Spark runs its first batch with or without data. What that one emitted, no offset would know of."""
    cluster, out = spark_cluster(), tmp_path / "out"
    running = cluster.submitTopology("t", {}, copy_topology(out, Late()))
    assert running.awaitTermination(60)
    assert [row for rows in written(out).values() for row in rows] == [[1], [2], [3]]
