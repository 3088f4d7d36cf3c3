"""A batch of which a part has failed: nothing stands on the rest, and what asks for a replay gets one."""

from __future__ import annotations

from typing import Any

import pytest

from trident_py import FailedException, TopologyError, TridentTopology
from trident_py.engine.batch_loop import decisive_failure
from trident_py.engine.program import Failure, failure_of
from trident_py.operations import Aggregator, Function
from trident_py.operations.builtin import Count, Sum
from trident_py.testing import LoggingBackingMap, collect, failing, stored

from .support import Batches, bag, bags, both_always, run, through


class Greatest(Aggregator):
    """The greatest value, or null for none."""

    def init(self, batchId: Any, collector: Any) -> list:
        return [None]

    def aggregate(self, value: list, tuple: Any, collector: Any) -> None:
        value[0] = tuple[0] if value[0] is None else max(value[0], tuple[0])

    def complete(self, value: list, collector: Any) -> None:
        collector.emit((value[0],))


class Same(Function):
    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit((tuple[0],))


@both_always
def test_a_failure_that_asks_for_a_replay_wins_over_what_followed_from_it(cluster: Any) -> None:
    """Without the tuples that failed the sum gets a null, which is an error of its own."""
    fails = failing(Same(), {(1, 0)})
    found = through(
        cluster, "v", [[(1,), (2,)], [(3,)]],
        lambda s: s.each("v", fails, "w").aggregate("w", Greatest(), "m").aggregate("m", Sum(), "sum"),
        partitions=2,
    )  # fmt: skip
    assert found == {1: bag([(2,)]), 2: bag([(3,)])}


class Fussy(Function):
    """Fails for good unless all of the batch has come."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted

    def execute(self, tuple: Any, collector: Any) -> None:
        if tuple[0] != self.wanted:
            raise ValueError(f"{tuple[0]} of {self.wanted}")


def test_nothing_aggregates_asks_or_commits_on_a_batch_that_lacks_a_part(cluster: Any) -> None:
    topology, counted, factory = TridentTopology(), [], LoggingBackingMap.Factory("opaque")
    stream = topology.newStream("s", Batches("v", [[(1,), (2,), (3,)]])).parallelismHint(2)
    whole = stream.each("v", failing(Same(), {(1, 0), (1, 1)}), "w").shuffle().aggregate("w", Count(), "n")
    whole.map(lambda row: counted.append(row[0]) or row).each("n", Fussy(3), [])
    whole.persistentAggregate(factory, "n", Sum(), "sum")
    running = run(cluster, topology)
    assert counted == [3] and running.attempts == {1: 2}
    assert [call for call in factory.calls if call[0] == "beginCommit"] == [["beginCommit", 1]]
    assert stored(factory)[("$GLOBAL$",)].curr == 3


def test_an_error_of_the_same_level_does_not_hide_a_failure_that_asks_for_a_replay(cluster: Any) -> None:
    """One partition fails for a replay, the other for good, once: the replay succeeds."""
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [[(1,), (2,)]])).parallelismHint(2)
    collect(stream.each("v", Both(), []), "out")
    running = run(cluster, topology)
    assert bags(running.collected("out")) == {1: bag([(1,), (2,)])} and running.attempts == {1: 1}


class Both(Function):
    def prepare(self, conf: dict, context: Any) -> None:
        self.context = context

    def execute(self, tuple: Any, collector: Any) -> None:
        if self.context.transaction.attemptId == 0:
            raise FailedException("again") if tuple[0] == 1 else ValueError("for good")
        collector.emit(())


def test_an_error_of_the_same_level_ends_the_run_when_it_comes_again(cluster: Any) -> None:
    with pytest.raises(TopologyError, match="2 is a bad number"):
        through(cluster, "v", [[(1,), (2,)]], lambda s: s.each("v", FailsOnce(), []), partitions=2)


class FailsOnce(Both):
    def execute(self, tuple: Any, collector: Any) -> None:
        if tuple[0] == 2:
            raise ValueError("2 is a bad number")
        super().execute(tuple, collector)


@pytest.mark.parametrize(
    ("failed", "decides"),
    [
        ([("x", 0, True), ("y", 1, False)], "x"),
        ([("y", 1, False), ("x", 0, True)], "x"),
        ([("x", 0, False), ("y", 1, True)], "x"),
        ([("x", 0, False), ("y", 0, True)], "y"),
        ([("x", 2, False), ("y", 1, False), ("z", 1, True)], "z"),
    ],
)
def test_what_failed_first_decides_and_of_one_level_what_asks_for_a_replay(failed: Any, decides: str) -> None:
    failures: list[Failure] = [
        failure_of(name, 0, FailedException(name) if replay else ValueError(name))._replace(level=level)
        for name, level, replay in failed
    ]
    assert decisive_failure(failures).operation == decides
