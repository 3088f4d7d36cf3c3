"""A batch that comes again whole: Spark does not know that it was committed, or an attempt of it failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trident_py import Fields, TridentTopology
from trident_py.operations.builtin import Count, Sum
from trident_py.testing import Crashing, FixedBatchSpout, LRUMemoryMapState, MemoryMapState, failing
from trident_py.testing.faults.disturbances import forget

from . import story
from .conftest import Runs
from .evidence import Evidence, counted, drifted_prefix
from .hooks import STATES
from .story import fold
from .topology import Shape

pytestmark = pytest.mark.spark
EXACT = ("trans", "opaque", "rows")


def holds_exactly(seen: Evidence, last: int) -> None:
    """All states but `plain` are those of an undisturbed run over batches 1 to last."""
    counts = drifted_prefix(seen.stored["drift"], last + 1)
    everything = [row for n in range(1, last + 1) for row in story.batch(n)] + story.drifted(counts)
    assert seen.stored["trans"] == fold(range(1, last + 1)).transactional()
    assert seen.stored["opaque"] == fold(range(1, last + 1)).opaque()
    assert seen.stored["rows"].items() >= story.table(everything).items()
    extra = seen.stored["rows"].keys() - story.table(everything).keys()
    assert all(key.startswith("d") for (key,) in extra)  # only of a longer try; its rows come again later


def forget_last_commit(runs: Runs) -> None:
    """The window in which every state has committed and the log does not know."""
    for topology in runs.checkpoint.iterdir():
        forget(topology)


def test_a_batch_whose_end_the_log_forgot_counts_once_again_and_again(runs: Runs) -> None:
    runs(Shape(3))
    before = runs.evidence()
    for _ in range(2):
        forget_last_commit(runs)
        again = runs(Shape(3))
        assert list(again.attempts) == [3]
    seen = runs.evidence()
    holds_exactly(seen, 3)
    for state in EXACT[:2]:
        assert seen.stored[state] == before.stored[state]
    for state in STATES:
        assert len(seen.committed(state, 3)) == 6
    assert seen.stored["plain"] == counted(seen) != counted(before)
    holds_exactly(runs_on(runs), 4)


def runs_on(runs: Runs) -> Evidence:
    runs(Shape(4))
    return runs.evidence()


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.whole), 3])
def test_a_forgotten_batch_may_be_replayed_in_another_number_of_partitions(runs: Runs, partitions: int) -> None:
    runs(Shape(2))
    forget_last_commit(runs)
    runs(Shape(3, state_partitions=partitions, spout_partitions=1))
    seen = runs.evidence()
    holds_exactly(seen, 3)
    assert {of for _, of in seen.committed("opaque", 2)} == {2, partitions}


@pytest.mark.parametrize("at", [pytest.param("beginCommit", marks=pytest.mark.whole), "put",
                                pytest.param("commit", marks=pytest.mark.whole), "afterCommit"])  # fmt: skip
def test_an_attempt_that_failed_in_one_partition_of_each_state_counts_once(runs: Runs, at: str) -> None:
    """States fail one after the other in batch 2: a replay for each, every state before it committed already."""

    def wrap(name: str, factory: Any) -> Any:
        return Crashing(factory, at, {(2, STATES.index(name))}, partition=STATES.index(name) % 2)

    running = runs(Shape(3), wrap)
    assert running.attempts == {1: 0, 2: len(STATES), 3: 0}
    seen = runs.evidence()
    holds_exactly(seen, 3)
    assert seen.stored["plain"] == counted(seen)


@pytest.mark.one_of_each
@pytest.mark.parametrize("how", ["fail", "kill"])
@pytest.mark.parametrize("make", [MemoryMapState.Factory, LRUMemoryMapState.Factory])
def test_a_memory_state_survives_replays_and_dead_workers_of_its_driver(
    spark_cluster: Any, tmp_path: Path, make: Any, how: str
) -> None:
    rows = [row for n in range(1, 5) for row in story.batch(n)]
    state = make()
    crashing = state
    for i, at in enumerate(["beginCommit", "put", "commit", "afterCommit"]):
        crashing = Crashing(crashing, at, {(i + 1, 0)}, how, partition=i % 2)
    topology = TridentTopology()
    stream = topology.newStream("words", FixedBatchSpout(Fields("id", "word", "n"), 16, *rows))
    stream = stream.each("word", failing(lambda word: [word], {(2, 1)}), Fields("same"))
    stream.groupBy("same").persistentAggregate(crashing, "n", Sum(), "total").parallelismHint(2)
    running = spark_cluster().submitTopology("memory", {}, topology.build())
    assert running.awaitTermination(200)
    assert running.attempts == {1: 1, 2: 2, 3: 1, 4: 1}
    assert state.stored() == fold(range(1, 5)).opaque()


def test_a_memory_state_begins_empty_in_another_driver(spark_cluster: Any) -> None:
    """Not guaranteed: two factories stand for two drivers; the second has what came after the first only."""
    found = []
    for last in (16, 32):
        state = MemoryMapState.Factory()
        topology = TridentTopology()
        rows = [row for n in (1, 2) for row in story.batch(n)][:last]
        stream = topology.newStream("words", FixedBatchSpout(Fields("id", "word", "n"), 16, *rows))
        stream.groupBy("word").persistentAggregate(state, Count(), "count")
        assert spark_cluster().submitTopology("memory", {}, topology.build()).awaitTermination(200)
        found.append(state.stored())
    assert {key: (value.curr, value.prev) for key, value in found[1].items()} == {
        (word,): (2, None) for word in story.WORDS
    }
