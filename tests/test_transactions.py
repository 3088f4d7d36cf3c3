"""Attempts, replays, errors and the end of a run, as BatchLoop decides them."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from semantics.support import Batches, run

from trident_py import FailedException, LocalCluster, ReportedFailedException, TopologyError, TridentTopology
from trident_py.errors import DefinitionError
from trident_py.operations import Function
from trident_py.operations.builtin import Count
from trident_py.testing import Crashing, FixedBatchSpout, LoggingBackingMap, failing, stored


def failing_run(function: Any, conf: dict | None = None, batches: int = 1) -> Any:
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [[(i,)] for i in range(batches)]))
    stream.each("v", function, "w").persistentAggregate(LoggingBackingMap.Factory(), Count(), "n")
    with LocalCluster() as cluster:
        return run(cluster, topology, conf)


def test_the_first_txid_is_one_and_the_first_attempt_zero() -> None:
    running = failing_run(lambda v: [v], batches=2)
    assert running.attempts == {1: 0, 2: 0} and running.txid == 2


def test_a_base_moves_the_first_txid() -> None:
    topology = TridentTopology()
    spout = Batches("v", [[(i,)] for i in range(102)])
    topology.newStream("s", spout).persistentAggregate(LoggingBackingMap.Factory(), Count(), "n")
    with LocalCluster() as cluster:
        assert run(cluster, topology, {"topology.txid.base": 100}).attempts == {101: 0, 102: 0}


@pytest.mark.parametrize("base", [-1, "five", True, 1.5])
def test_a_base_is_a_number_from_zero_on(base: Any) -> None:
    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout("v", 1, (1,))).peek(print)
    with LocalCluster() as cluster, pytest.raises(TopologyError, match=r"topology\.txid\.base") as told:
        run(cluster, topology, {"topology.txid.base": base})
    assert isinstance(told.value.__cause__, DefinitionError)


def test_a_failed_exception_replays_the_batch_and_every_replay_is_logged_with_its_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "trident_py"):
        running = failing_run(failing(lambda v: [v], {(1, 0), (1, 1)}))
    assert running.attempts == {1: 2}
    assert [record.message for record in caplog.records] == [
        f"replaying txid 1 after attempt {n}: each _FailingCallable failed in partition 0: asked by the test: "
        f"function in txid 1, attempt {n}"
        for n in (0, 1)
    ]
    assert [e.attempt for e in running.events if e.kind == "replay"] == [0, 1]


def test_the_limit_of_attempts_ends_the_run() -> None:
    with pytest.raises(TopologyError, match=r"after 2 attempts \(topology.max.batch.attempts\)") as error:
        failing_run(failing(lambda v: [v], lambda txid, attempt: True), {"topology.max.batch.attempts": 2})
    assert isinstance(error.value.__cause__, FailedException) and error.value.txid == 1


class Broken(Function):
    def execute(self, tuple: Any, collector: Any) -> None:
        raise ZeroDivisionError("of the user")


def test_another_exception_ends_the_run_and_is_seen_first_with_operation_txid_and_partition() -> None:
    with pytest.raises(TopologyError) as error:
        failing_run(Broken())
    failure = error.value
    assert str(failure).splitlines()[0] == "ZeroDivisionError: of the user"
    assert (failure.operation, failure.txid, failure.partition) == ("each Broken", 1, 0)
    assert isinstance(failure.__cause__, ZeroDivisionError)


def test_an_exception_that_is_no_failed_exception_wins_over_one_that_is() -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [[(1,)]]))
    stream.shuffle().each("v", failing(lambda v: [v], {(1, 0)}), "w").parallelismHint(2)
    stream.shuffle().each("v", Broken(), "w").parallelismHint(2)
    with LocalCluster() as cluster, pytest.raises(TopologyError, match="of the user"):
        run(cluster, topology)


def test_a_reported_failure_replays_and_is_an_event() -> None:
    told: list[bool] = []

    def once(v: Any) -> list:
        if not told:
            told.append(True)
            raise ReportedFailedException("please look")
        return [v]

    running = failing_run(once)
    assert running.attempts == {1: 1}
    assert ("reported", "please look") in [(event.kind, event.reason) for event in running.events]


def test_report_error_is_an_event_and_fails_nothing() -> None:
    class Reports(Function):
        def execute(self, tuple: Any, collector: Any) -> None:
            collector.reportError(ValueError("odd"))
            collector.emit((1,))

    running = failing_run(Reports())
    assert running.attempts == {1: 0}
    assert [event.reason for event in running.events if event.kind == "reported"] == ["ValueError('odd')"]


def test_progress_counts_tuples_of_committed_batches_only() -> None:
    factory = LoggingBackingMap.Factory("transactional")
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [[(1,), (2,)], [], [(1,)]]))
    crashing = Crashing(factory, "commit", {(1, 0), (3, 0)})
    stream.groupBy("v").persistentAggregate(crashing, Count(), "n", stateName="counts").newValuesStream().peek(
        lambda t: None
    )
    with LocalCluster() as cluster:
        running = run(cluster, topology)
    progress = running.progress["s"]
    assert (progress.txid, progress.batches, progress.attempt) == (3, 3, 1)
    assert (progress.emitted, progress.persisted, progress.new_values) == ({"s": 3}, {"counts": 3}, {"counts": 3})
    assert set(progress.seconds) == {"emit", "process", "commit"}
    assert stored(factory) == {(1,): (3, 2), (2,): (1, 1)}
