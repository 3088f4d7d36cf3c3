"""A profile on Spark: every phase of a batch is known, the tasks report theirs, and the sum is the whole batch."""

from __future__ import annotations

from typing import Any

import pytest

from trident_py import Fields, TridentTopology
from trident_py.extras.profile.cli import ON, measure
from trident_py.extras.profile.phases import PHASES
from trident_py.operations.builtin import Count
from trident_py.testing import FixedBatchSpout, MemoryMapState

AS_JOBS = {**ON, "topology.inline.max.tuples": 0}
INLINE = {**ON, "topology.inline.max.tuples": 100, "topology.inline.max.millis": 60_000}
ON_THE_DRIVER = {"source planner", "waiting", "checkpoint", "ledger prepare", "receipts", "driver rest"}
OF_SPARK = {"offset", "planning", "offset log", "foreachBatch", "job submit", "job scheduling", "task launch",
            "task start", "task end", "commit log"}  # fmt: skip
IN_A_TASK = {"program", "exchange read", "emit", "operation", "state begin", "state read", "state update",
             "state write", "state commit", "home call", "exchange write", "reports", "task rest"}  # fmt: skip


def topology() -> Any:
    made = TridentTopology()
    spout = FixedBatchSpout(Fields("word string"), 20, *((f"word{n}",) for n in range(20))).setCycle(True)
    words = made.newStream("words", spout).each("word", lambda word: [[word, word]], Fields("one string", "two string"))
    counts = words.groupBy("one").persistentAggregate(MemoryMapState.Factory(), Count(), "count", stateName="counts")
    counts.parallelismHint(2)
    return made.build()


@pytest.mark.spark
def test_a_batch_on_spark_is_explained_to_its_end(spark_cluster: Any) -> None:
    running = spark_cluster().submitTopology("profiled", AS_JOBS, topology())
    (profile,) = measure(running, 4, 2)
    assert [batch.txid for batch in profile.batches] == [3, 4, 5, 6]
    for batch in profile.batches:
        found = {name for name, _ in batch.seconds}
        assert found <= set(PHASES)
        assert found >= OF_SPARK | IN_A_TASK
        assert sum(batch.seconds.values()) == pytest.approx(batch.whole)
        assert abs(batch.seconds["unexplained", ""]) < batch.whole / 2
    asked = {of for name, of in profile.batches[0].seconds if name == "home call"}
    assert {"begin", "get", "put"} <= asked


@pytest.mark.spark
def test_a_batch_that_needs_no_job_is_explained_too(spark_cluster: Any) -> None:
    (profile,) = measure(spark_cluster().submitTopology("small", INLINE, topology()), 4, 2)
    assert [batch.txid for batch in profile.batches] == [3, 4, 5, 6]
    for batch in profile.batches:
        found = {name for name, _ in batch.seconds}
        assert {"inline", "foreachBatch", "operation", "state write", "offset log", "commit log"} <= found
        assert not found & {"task start", "job submit", "home call"}
        assert sum(batch.seconds.values()) == pytest.approx(batch.whole)


@pytest.mark.spark
def test_a_batch_has_sparks_report_of_its_own_micro_batch_where_others_followed_before(spark_cluster: Any) -> None:
    """Without a profile the first run's batches share one; txids are ahead of Spark's batch ids from then on."""
    cluster, made = spark_cluster(), topology()
    before = cluster.submitTopology("again", {**INLINE, "topology.profile": False}, made)
    while (before.txid or 0) < 10 and not before.awaitTermination(0.1):
        pass
    before.stop()
    assert before.awaitTermination(60)
    (profile,) = measure(cluster.submitTopology("again", INLINE, made), 4, 2)
    first = profile.batches[0].txid
    assert first > before.txid + 2
    assert [batch.txid for batch in profile.batches] == list(range(first, first + 4))
    assert all(sum(batch.seconds.values()) == pytest.approx(batch.whole) for batch in profile.batches)


@pytest.mark.spark
def test_every_task_of_every_level_reports_its_phases(spark_cluster: Any) -> None:
    running = spark_cluster().submitTopology("reported", AS_JOBS, topology())
    measure(running, 2, 1)
    for seen in list(running.progress["words"].profiled)[:3]:
        assert {(task.level, task.partition) for task in seen.tasks} == {(0, 0), (1, 0), (1, 1)}
        assert all(abs(sum(task.taken.seconds.values()) - task.taken.whole) < 0.1 for task in seen.tasks)


@pytest.mark.spark
def test_without_the_setting_no_task_reports(spark_cluster: Any) -> None:
    running = spark_cluster().submitTopology("plain", {}, topology(), availableNow=True)
    while running.txid is None or running.txid < 2:
        running.awaitTermination(0.05)
    running.stop()
    assert not running.progress["words"].profiled and running.phases_of("words", []) == []
