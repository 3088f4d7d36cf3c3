"""Subtle behaviours of transactions: S6 to S12 and S28."""

from __future__ import annotations

from typing import Any

import pytest

from trident_py import FailedException, TridentTopology
from trident_py.errors import ZombieError
from trident_py.operations.builtin import Count, MapGet, Sum
from trident_py.state import (
    BaseStateUpdater,
    MemoryBackingMap,
    OpaqueMap,
    OpaqueValue,
    State,
    StateFactory,
    TransactionalMap,
    TransactionalValue,
)
from trident_py.state.updates import ReplaceUpdater
from trident_py.testing import Crashing, LoggingBackingMap, collect, failing, stored

from .support import Batches, Joined, Partition, bag, bags, both, both_always, run, through

NONE, TXID, OPAQUE = "nontransactional", "transactional", "opaque"
GLOBAL = ("$GLOBAL$",)


class Journal(StateFactory, BaseStateUpdater):
    """A state that writes down, in this process, what is called; its updater emits what it gets."""

    stateName = "journal"

    def __init__(self) -> None:
        self.lines: list[Any] = []

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        self.lines.append(("make", partitionIndex, numPartitions))
        return _JournalState(self.lines)

    def prepare(self, conf: dict, context: Any) -> None:
        pass

    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        state.lines.append(("update", len(tuples)))
        for each in tuples:
            collector.emit(each)
        state.lines.append(("updated", len(tuples)))


class _JournalState(State):
    def __init__(self, lines: list[Any]) -> None:
        self.lines = lines

    def beginCommit(self, txid: int | None) -> None:
        self.lines.append(("beginCommit", txid))

    def commit(self, txid: int | None) -> None:
        self.lines.append(("commit", txid))


def commits(factory: Any) -> list[int]:
    return [call[1] for call in factory.calls if call[0] == "commit"]


# -- S6: empty batches and states ---------------------------------------------------------------------------------


@both
def test_s06_a_state_is_not_called_for_a_batch_without_tuples_and_the_txid_goes_on(cluster: Any) -> None:
    factory = LoggingBackingMap.Factory(TXID)
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("w", [[("a",)], [], [("a",)], []]))
    stream.groupBy("w").persistentAggregate(factory, Count(), "n")
    running = run(cluster, topology)
    assert commits(factory) == [1, 3]
    assert stored(factory) == {("a",): TransactionalValue(3, 2)}
    assert running.txid == 4


@both_always
def test_s06_a_global_combiner_commits_on_every_empty_batch(cluster: Any) -> None:
    factory = LoggingBackingMap.Factory(TXID)
    topology = TridentTopology()
    topology.newStream("s", Batches("v", [[], [(5,)], []])).persistentAggregate(factory, "v", Sum(), "n")
    run(cluster, topology)
    assert commits(factory) == [1, 2, 3]
    assert stored(factory) == {GLOBAL: TransactionalValue(3, 5)}


def test_s06_a_global_reducer_does_nothing_on_an_empty_batch(cluster: Any) -> None:
    factory = LoggingBackingMap.Factory(TXID)
    topology = TridentTopology()
    topology.newStream("s", Batches("v", [[], [(5,)], []])).persistentAggregate(factory, "v", Joined(), "n")
    run(cluster, topology)
    assert commits(factory) == [2]


def test_s06_a_partition_without_tuples_is_not_called(cluster: Any) -> None:
    journal = Journal()
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [[(1,), (2,)]])).global_()
    stream.partitionPersist(journal, "v", journal).parallelismHint(3)
    run(cluster, topology)
    assert [line for line in journal.lines if line[0] == "beginCommit"] == [("beginCommit", 1)]


# -- S7: where a whole batch goes ---------------------------------------------------------------------------------


@both
def test_s07_a_global_persist_is_always_in_partition_0_an_aggregate_where_its_txid_says(cluster: Any) -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [[(1,)]] * 4)).parallelismHint(2)
    values = stream.persistentAggregate(LoggingBackingMap.Factory(), Count(), "n").parallelismHint(3).newValuesStream()
    collect(values.each(Partition(True), "p").project("p"), "persisted")
    collect(stream.aggregate(Count(), "n").each(Partition(True), "p").parallelismHint(3).project("p"), "aggregated")
    running = run(cluster, topology)
    assert bags(running.collected("persisted")) == {txid: bag([("0 of 3",)]) for txid in (1, 2, 3, 4)}
    assert bags(running.collected("aggregated")) == {txid: bag([(f"{txid % 3} of 3",)]) for txid in (1, 2, 3, 4)}


def test_s07_the_partitions_without_tuples_make_their_states_too(cluster: Any) -> None:
    journal = Journal()
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [[(1,)]])).global_()
    stream.partitionPersist(journal, "v", journal).parallelismHint(3)
    run(cluster, topology)
    assert [line for line in journal.lines if line[0] == "make"] == [("make", i, 3) for i in range(3)]


# -- S8, S9: order and phases -------------------------------------------------------------------------------------


@both_always
def test_s08_commits_run_in_txid_order_and_a_failed_batch_holds_up_the_later_ones(cluster: Any) -> None:
    factory = LoggingBackingMap.Factory(NONE)
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [[(i,)] for i in range(5)]))
    slow = failing(lambda v: [v], {(2, 0), (2, 1), (4, 0)})
    stream.each("v", slow, "w").persistentAggregate(factory, Count(), "n")
    running = run(cluster, topology)
    assert commits(factory) == [1, 2, 3, 4, 5]
    assert running.attempts == {1: 0, 2: 2, 3: 0, 4: 1, 5: 0}
    happened = [
        (event.kind, event.txid, event.attempt) for event in running.events if event.txid and event.kind != "started"
    ]
    replayed = {2: 2, 4: 1}
    assert happened == [
        line
        for txid in range(1, 6)
        for line in [
            *(("replay", txid, attempt) for attempt in range(replayed.get(txid, 0))),
            ("committed", txid, replayed.get(txid, 0)),
        ]
    ]


@both_always
def test_s09_a_function_that_fails_anywhere_fails_the_batch_before_any_state_commits(cluster: Any) -> None:
    factory = LoggingBackingMap.Factory(NONE)
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [[(1,), (2,)]])).parallelismHint(2)
    stream.persistentAggregate(factory, "v", Sum(), "n")
    stream.partitionBy("v").each("v", lambda v: [v], "w").parallelismHint(2).partitionBy("w").each(
        "w", failing(lambda w: [w], {(1, 0)}), "x"
    ).parallelismHint(2)
    run(cluster, topology)
    assert commits(factory) == [1]
    assert stored(factory) == {GLOBAL: 3}


def test_s09_side_effects_of_functions_and_peeks_are_repeated_on_a_replay(cluster: Any) -> None:
    seen: list[Any] = []
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [[(1,)]]))
    stream = stream.each("v", lambda v: seen.append(("function", v)) or [v], "w").peek(lambda t: seen.append("peek"))
    stream.persistentAggregate(Crashing(LoggingBackingMap.Factory(OPAQUE), "commit", {(1, 0)}), Count(), "n")
    run(cluster, topology)
    assert seen == [("function", 1), "peek"] * 2


# -- S10: new values ----------------------------------------------------------------------------------------------


def test_s10_new_values_flow_on_before_the_state_commits(cluster: Any) -> None:
    journal = Journal()
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [[(1,), (2,)]]))
    new = stream.partitionPersist(journal, "v", journal, "v").newValuesStream()
    new.peek(lambda t: journal.lines.append(("downstream", t[0])))
    run(cluster, topology)
    order = [line for line in journal.lines if line[0] in ("beginCommit", "update", "downstream", "commit")]
    assert order == [("beginCommit", 1), ("update", 2), ("downstream", 1), ("downstream", 2), ("commit", 1)]


@both
def test_s10_new_values_are_full_values_and_a_replay_of_a_transactional_state_emits_the_stored_one(
    cluster: Any,
) -> None:
    factory = LoggingBackingMap.Factory(TXID)
    spout = Batches("w", [[("a",)], [("a",), ("a",)]], replays={2: [("a",)] * 5})
    topology = TridentTopology()
    crashing = Crashing(factory, "afterCommit", {(2, 0)})
    state = topology.newStream("s", spout).groupBy("w").persistentAggregate(crashing, Count(), "n")
    collect(state.newValuesStream(), "new")
    running = run(cluster, topology)
    assert running.attempts == {1: 0, 2: 1}
    assert bags(running.collected("new")) == {1: bag([("a", 1)]), 2: bag([("a", 3)])}


def test_s10_every_call_of_new_values_stream_is_the_same_stream(cluster: Any) -> None:
    topology = TridentTopology()
    state = topology.newStream("s", Batches("v", [[(1,)]])).persistentAggregate(
        LoggingBackingMap.Factory(), Count(), "n"
    )
    assert state.newValuesStream().node_id == state.newValuesStream().node_id
    collect(state.newValuesStream(), "one")
    collect(state.newValuesStream(), "two")
    running = run(cluster, topology)
    assert running.collected("one") == running.collected("two") == {1: [(1,)]}


# -- S11, S12: older txids, other content -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
def test_s11_an_older_txid_is_refused_and_nothing_is_written(kind: Any) -> None:
    """Storm's TransactionalMap applies it, only its OpaqueMap refuses (docs/differences.md)."""
    backing = MemoryBackingMap()
    state = kind.build(backing)
    state.beginCommit(5)
    state.multiPut([("k",)], ["new"])
    state.commit(5)
    before = backing.items()
    state.beginCommit(4)
    with pytest.raises(ZombieError, match="4"):
        state.multiUpdate([("k",)], [ReplaceUpdater("old")])
    assert backing.items() == before


@both_always
def test_s12_an_opaque_state_is_exact_but_for_keys_that_only_the_failed_attempt_touched(cluster: Any) -> None:
    factory = LoggingBackingMap.Factory(OPAQUE)
    spout = Batches("w", [[("a",), ("b",), ("a",)], [("a",), ("b",)]], replays={1: [("a",), ("c",)]})
    topology = TridentTopology()
    crashing = Crashing(factory, "commit", {(1, 0)})
    topology.newStream("s", spout).groupBy("w").persistentAggregate(crashing, Count(), "n")
    run(cluster, topology)
    assert stored(factory) == {
        ("a",): OpaqueValue(2, 2, 1),
        ("b",): OpaqueValue(2, 2, 1),  # counted in the failed attempt too, and the replay does not have it
        ("c",): OpaqueValue(1, 1, None),
    }


# -- S28: failing states ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", ["beginCommit", "update", "put", "commit", "afterCommit"])
def test_s28_when_a_state_fails_everything_is_replayed_also_the_states_that_committed(at: str, cluster: Any) -> None:
    _fails(at, cluster)


@pytest.mark.spark
def test_s28_on_spark_too(spark_in_module: Any) -> None:
    _fails("afterCommit", spark_in_module)


def _fails(at: str, cluster: Any) -> None:
    plain, exact, second = (LoggingBackingMap.Factory(kind) for kind in (NONE, OPAQUE, TXID))
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("v", [[(1,)], [(1,), (1,)], [(1,)]]))
    first = stream.persistentAggregate(exact, "v", Sum(), "n").newValuesStream()
    stream.groupBy("v").persistentAggregate(plain, Count(), "n")
    first.groupBy("n").persistentAggregate(Crashing(second, at, {(2, 0)}), Count(), "m")
    running = run(cluster, topology)
    assert running.attempts == {1: 0, 2: 1, 3: 0}
    assert stored(exact) == {GLOBAL: OpaqueValue(3, 4, 3)}
    assert stored(second) == {(n,): TransactionalValue(txid, 1) for txid, n in ((1, 1), (2, 3), (3, 4))}
    assert set(commits(plain)) == {1, 2, 3}
    assert stored(plain) == {(1,): 1 + 2 * commits(plain).count(2) + 1}
    assert commits(exact) == [1, 2, 2, 3]


def test_s28_an_updater_that_fails_replays_the_batch(cluster: Any) -> None:
    topology, journal, failed = TridentTopology(), Journal(), []

    class Once(Journal):
        def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
            if not failed:
                failed.append(True)
                raise FailedException("once")
            super().updateState(state, tuples, collector)

    topology.newStream("s", Batches("v", [[(1,)]])).partitionPersist(journal, "v", Once())
    assert run(cluster, topology).attempts == {1: 1}
    assert [line[0] for line in journal.lines if line[0] != "make"] == [
        "beginCommit", "beginCommit", "update", "updated", "commit"
    ]  # fmt: skip


def test_a_query_in_the_batch_reads_before_the_update_and_on_a_replay_the_failed_attempts_value(cluster: Any) -> None:
    """Surprise 6 of the oracle (state_query_same_topology)."""
    factory = LoggingBackingMap.Factory(TXID)
    topology = TridentTopology()
    stream = topology.newStream("s", Batches("w", [[("a",)], [("a",)], [("a",)]]))
    state = stream.groupBy("w").persistentAggregate(Crashing(factory, "afterCommit", {(2, 0)}), Count(), "n")
    collect(stream.stateQuery(state, "w", MapGet(), "seen"), "seen")
    assert run(cluster, topology).collected("seen") == {1: [("a", None)], 2: [("a", 2)], 3: [("a", 2)]}


def test_a_query_sees_its_own_partition_of_the_state(cluster: Any) -> None:
    """S23: grouped, the tuples go where the state's keys are; ungrouped they stay where they are."""
    factory, words = LoggingBackingMap.Factory(OPAQUE), [(word,) for word in "abcdefgh"]

    class Where(Partition, BaseStateUpdater):
        def batchRetrieve(self, state: Any, tuples: Any) -> list:
            return list(tuples)

        def execute(self, tuple: Any, result: Any, collector: Any) -> None:
            collector.emit((self.shown,))

    def build(stream: Any) -> Any:
        state = stream.groupBy("w").persistentAggregate(factory, Count(), "n").parallelismHint(2)
        where = state.newValuesStream().each(Partition(), "p").project(["w", "p"])
        asked = stream.groupBy("w").stateQuery(state, "w", Where(), "q")
        return stream.topology.join(where, "w", asked, "w", ["w", "p", "q"])

    found = through(cluster, "w", [words], build)[1]
    assert len(found) == len(words) and {eval(row)[1] for row in found} == {0, 1}
    assert all(eval(row)[1] == eval(row)[2] for row in found)
