"""The planner of Spark's batches, called as Spark's planner process does."""

from __future__ import annotations

import threading

import pytest

from trident_py import TridentTopology
from trident_py.run.program import compile_plan
from trident_py.spark.planner import BatchPlanner
from trident_py.spouts import Coordination, FeederBatchSpout, MemoryMetadataStore
from trident_py.testing import collect


@pytest.fixture
def feeder() -> FeederBatchSpout:
    return FeederBatchSpout("n bigint")


@pytest.fixture
def planner(feeder: FeederBatchSpout) -> BatchPlanner:
    topology = TridentTopology()
    collect(topology.newStream("fed", feeder), "rows")
    store = MemoryMetadataStore()
    (program,) = compile_plan(topology.plan(), {"trident.metadata": store})
    return BatchPlanner(program, Coordination(program.spouts, program.conf, store), 0, 0, threading.Event())


def test_a_batch_that_ends_where_it_starts_takes_nothing_from_a_spout(
    planner: BatchPlanner, feeder: FeederBatchSpout
) -> None:
    start = planner.initial()
    assert planner.next_batch(start) == ([], start)
    feeder.feed([(1,)], wait=False)
    assert planner.again(start, start) == []
    planner.begun(1)
    rows, end = planner.next_batch(start)
    assert len(rows) == 1 and end["txid"] == 2


def test_a_planner_process_that_died_with_the_answer_is_answered_again(
    planner: BatchPlanner, feeder: FeederBatchSpout
) -> None:
    """The fed batch has left the queue, so its spout would not be ready for any other txid."""
    feeder.feed([(1,)], wait=False)
    start = planner.initial()
    answer = planner.next_batch(start)
    assert len(answer[0]) == 1
    assert planner.next_batch(start) == answer


def test_a_batch_that_spark_begins_without_the_lost_answer_is_described_again(
    planner: BatchPlanner, feeder: FeederBatchSpout
) -> None:
    """Spark has rows of its own for it, and did not wait for the answer. Without a described batch there is none."""
    planner.begun_without(1)
    assert planner.planned_again(1) is None
    feeder.feed([(1,)], wait=False)
    rows, _ = planner.next_batch(planner.initial())
    planner.forget()
    planner.begun_without(1)
    again = planner.planned_again(1)
    assert again is not None and again.rows == rows
