"""Which batches may run in the driver process of a run on Spark, and how large they are known to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trident_py import Config, DefinitionError, Fields, LocalCluster, TridentTopology
from trident_py.checkpoints.metadata_store import MemoryMetadataStore
from trident_py.engine.execution_mode import (
    MAX_MILLIS,
    Durations,
    check_execution_mode,
    max_seconds,
    max_tuples,
    needs_driver,
    needs_executors,
)
from trident_py.operations import BaseFilter
from trident_py.operations.builtin import Count, MapGet
from trident_py.spouts import FeederBatchSpout, FileSpout, SparkSpout, SpoutNodeInfo
from trident_py.spouts.coordination import Coordination
from trident_py.state import MemoryBackingMap, Needs, NonTransactionalMap, StateFactory
from trident_py.testing import FixedBatchSpout, MemoryMapState
from trident_py.testing.faults.feed import FedSpout

GPU = "the model needs a GPU"


class Large(FixedBatchSpout):
    needs = Needs(executors=GPU)


class Model(BaseFilter):
    needs = Needs(executors=GPU)

    def isKeep(self, tuple: Any) -> bool:
        return True


class Placed(MemoryMapState.Factory):
    needs = Needs(executors=GPU)


def spout(kind: type = FixedBatchSpout) -> Any:
    return kind(Fields("word"), 2, ("a",), ("b",), ("c",))


def plan_of(topology: TridentTopology) -> Any:
    (component,) = topology.build().plan.components()
    return component


def counting(source: Any, state: Any, keep: Any = None) -> Any:
    topology = TridentTopology()
    stream = topology.newStream("words", source)
    stream = stream if keep is None else stream.filter("word", keep)
    stream.groupBy("word").persistentAggregate(state, Count(), "count")
    return plan_of(topology)


@pytest.mark.parametrize(
    "plan",
    [
        counting(spout(Large), MemoryMapState.Factory()),
        counting(spout(), Placed()),
        counting(spout(), MemoryMapState.Factory(), Model()),
    ],
    ids=["spout", "state", "operation"],
)
def test_a_spout_a_state_and_an_operation_may_need_executors(plan: Any) -> None:
    assert needs_executors(plan) == GPU
    assert needs_executors(plan, {}) == GPU


def test_a_source_of_spark_does() -> None:
    topology = TridentTopology()
    topology.newStream("rates", SparkSpout("rate", schema="value bigint")).filter("value", lambda value: True)
    assert needs_executors(plan_of(topology)) == "Spark reads spout 'rates'"
    assert topology.explain().endswith("\non Spark, every batch of rates is a job: Spark reads spout 'rates'")


def by_order(word: str) -> bool:
    return next(iter({word, "x"})) == "x"


def test_what_depends_on_the_hash_seed_does_unless_it_is_that_of_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = counting(spout(), MemoryMapState.Factory(), by_order)
    for seed, reason in (("7", "by_order"), ("random", "by_order"), ("0", "")):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        assert needs_executors(plan, {}).startswith(reason) and bool(needs_executors(plan, {})) == bool(reason)
    assert needs_executors(counting(spout(), MemoryMapState.Factory()), {}) == ""


def test_the_settings_are_checked() -> None:
    assert max_tuples({}, 7) == 7
    assert max_tuples({Config.TOPOLOGY_INLINE_MAX_TUPLES: 0}, 7) == 0
    assert max_seconds({}) == MAX_MILLIS / 1000
    assert max_seconds({Config.TOPOLOGY_INLINE_MAX_MILLIS: 0}) == 0
    topology = TridentTopology()
    topology.newStream("words", spout()).filter("word", lambda word: True)
    with LocalCluster() as cluster:
        for key, value in ((Config.TOPOLOGY_INLINE_MAX_TUPLES, -1), (Config.TOPOLOGY_INLINE_MAX_MILLIS, "1 s")):
            with pytest.raises(DefinitionError, match=key):
                cluster.submitTopology("settings", {key: value}, topology.build())


def durations(here: float | None = None, job: float | None = None, fixed: float = 0.1) -> Durations:
    """After batches of 100 and 200 tuples, of which each took so many seconds, and the batch some more; behind a slow
    first one on each side."""
    found = Durations()
    for on_driver, seconds in ((True, here), (False, job)):
        for tuples, each in () if seconds is None else ((100, 100.0), (100, seconds), (200, seconds), (100, seconds)):
            found.saw(on_driver, tuples, fixed + tuples * each)
    return found


@pytest.mark.parametrize(
    "found, tuples, driver",
    [
        (durations(), 10_000, True),  # nobody knows better
        (durations(here=0.001), 190, True),
        (durations(here=0.001), 700, True),  # a job without work takes longer than what it would save
        (durations(here=0.001), 900, False),
        (durations(here=0.0), 1_000_000, True),  # the time does not follow the size
        (durations(here=0.001, job=0.002), 210, True),
        (durations(here=0.002, job=0.001), 210, False),
        (durations(here=0.001, job=0.0005), 150, True),  # soon over, though a job takes less
    ],
)
def test_a_batch_runs_where_it_is_soon_over_or_over_sooner(found: Durations, tuples: int, driver: bool) -> None:
    assert found.prefer_driver(tuples, 0.3) is driver


def test_batches_of_one_size_say_nothing_of_others() -> None:
    found = Durations()
    for seconds in (9.0, 0.2, 0.2):
        found.saw(True, 100, seconds)
    assert found.prefer_driver(100_000, 0.3)
    found.saw(True, 100_000, 20.0)
    found.saw(False, 100_000, 9.0)
    found.saw(False, 100_000, 9.0)
    assert not found.prefer_driver(100_000, 0.3) and found.prefer_driver(100, 0.3)


def test_what_was_seen_long_ago_weighs_less() -> None:
    found = durations(here=0.01, job=0.001)
    assert not found.prefer_driver(200, 0.3)
    for _ in range(50):
        found.saw(True, 100, 0.05)
        found.saw(True, 200, 0.05)
    assert found.prefer_driver(200, 0.3)


@pytest.mark.parametrize("here, job, driver", [(0.013, 0.01, False), (0.01, 0.013, True)])
def test_the_slower_side_is_tried_again(here: float, job: float, driver: bool) -> None:
    found = durations(here, job)
    tries = [found.prefer_driver(100, 0.3) for _ in range(40)]
    assert tries[0] is driver and (not driver) in tries
    far = durations(5 * here, job) if here > job else durations(here, 5 * job)
    assert {far.prefer_driver(100, 0.3) for _ in range(400)} == {driver}, "what is far slower is not"
    found.saw(not driver, 100, 0.1 + 100 * (here if not driver else job))  # it is as slow as before
    assert found.prefer_driver(100, 0.3) is driver


def tuples_of(*spouts: Any) -> int | None:
    """How many tuples the first batch of these spouts is known to have at most."""
    infos = [SpoutNodeInfo(f"s{n}", spout, 2, spout.getOutputFields()) for n, spout in enumerate(spouts)]
    coordination = Coordination(infos, {}, MemoryMetadataStore())
    try:
        metadata = coordination.initialize(1, 0)
        coordination.descriptors(1, 0, metadata)
        return coordination.tuples(metadata)
    finally:
        coordination.close()


def test_spouts_that_emit_in_the_driver_know_how_many() -> None:
    feeder = FeederBatchSpout(Fields("word"))
    feeder.feed([["a"]] * 5, wait=False)
    assert tuples_of(spout(), feeder) == 2 + 5


def test_a_file_spout_knows_the_most(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a\nb\nc\n")
    assert tuples_of(FileSpout(tmp_path, Fields("word string"), batchSize=2)) == 2


def test_one_spout_that_cannot_tell_is_enough() -> None:
    fed = FedSpout(Fields("word string"), ((("a",),),))
    assert tuples_of(fed) is None
    assert tuples_of(spout(), fed) is None


class Heap(StateFactory):
    """Does not say where the data is."""

    stateName = "heap"

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        return NonTransactionalMap.build(MemoryBackingMap())


UNSAID = "the factory of state 'heap' does not say where the data is (location), "


def test_a_state_that_does_not_say_where_its_data_is_keeps_every_batch_in_the_driver() -> None:
    plan = counting(spout(), Heap())
    assert needs_driver(plan) == f"{UNSAID}and one object has to serve all batches"
    assert needs_driver(counting(spout(), MemoryMapState.Factory())) == ""
    check_execution_mode(plan, {})
    topology = TridentTopology()
    grouped = topology.newStream("words", spout()).groupBy("word")
    grouped.persistentAggregate(Heap(), Count(), "count")
    said = f"\non Spark, every batch of words runs in the driver process: {needs_driver(plan)}"
    assert topology.explain().endswith(said)
    (row,) = topology.guarantees()
    assert row.reason.endswith("so it counts as kept in the state's object, and ends with the process")


@pytest.mark.parametrize(
    ("source", "keep", "reason"),
    [
        (SparkSpout("rate", schema="word bigint"), None, "Spark reads spout 'words'. "),
        (spout(Large), None, f"{GPU}. "),
        (spout(), Model(), f"{GPU}. "),
        (spout(), by_order, "by_order "),
    ],
    ids=["Spark reads", "spout", "operation", "hash seed"],
)
def test_it_is_refused_where_not_every_batch_can_run_in_the_driver(
    source: Any, keep: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    with pytest.raises(DefinitionError) as told:
        check_execution_mode(counting(source, Heap(), keep), {})
    text, must = str(told.value), "so on Spark one object in the driver process has to serve all batches; but "
    assert text.startswith(f"{UNSAID}{must}{reason}")
    assert "Say in the factory where the data is" in text
    assert text.endswith("start the driver with PYTHONHASHSEED=0" if keep is by_order else "(docs/states.md)")
    check_execution_mode(counting(source, MemoryMapState.Factory(), keep), {})


def test_it_is_refused_if_another_stream_asks_it() -> None:
    topology = TridentTopology()
    counts = topology.newStream("words", spout()).groupBy("word").persistentAggregate(Heap(), Count(), "count")
    topology.newStream("asking", spout()).stateQuery(counts, "word", MapGet(), "n")
    with pytest.raises(DefinitionError, match="another stream, whose batches run apart, asks it too"):
        check_execution_mode(topology.build().plan, {})
