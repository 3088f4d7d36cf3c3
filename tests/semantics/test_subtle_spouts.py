"""Subtle behaviours of spouts: S26 and S27, and several spouts in one sequence of txids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.operations.builtin import Count
from trident_py.spouts import IBatchSpout, IOpaquePartitionedTridentSpout, IPartitionedTridentSpout, ISpoutPartition
from trident_py.testing import Crashing, FixedBatchSpout, LoggingBackingMap, collect, failing, stored

from .support import Batches, bag, bags, both, both_always, run

LAST = 3


class Part(ISpoutPartition):
    def __init__(self, name: str) -> None:
        self.name = name

    def getId(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class Growing:
    """A coordinator whose source has one partition more each time it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def getPartitionsForBatch(self) -> list[str]:
        self.asked += 1
        return [f"p{i}" for i in range(self.asked)]

    def isReady(self, txid: int) -> bool:
        return txid <= LAST

    def isExhaustedAt(self, txid: int) -> bool:
        return txid > LAST

    def close(self) -> None: ...


class Positions:
    """Emits (partition, position); the metadata is the next position."""

    def getOrderedPartitions(self, allPartitionInfo: Any) -> list[Part]:
        return [Part(name) for name in allPartitionInfo]

    def emitBatchNew(self, tx: Any, collector: Any, partitions: Any, lastPartitionMeta: Any) -> dict:
        made = {}
        for part in partitions:
            at = lastPartitionMeta.get(part) or 0
            collector.emit((part.name, at))
            made[part] = at + 1
        return made

    def reEmitPartitionBatch(self, tx: Any, collector: Any, partition: Any, partitionMeta: Any) -> None:
        if partitionMeta is not None:
            collector.emit((partition.name, partitionMeta - 1))


class TransactionalGrowing(IPartitionedTridentSpout):
    def getOutputFields(self) -> Any:
        return ["p", "at"]

    def getCoordinator(self, conf: dict, context: Any) -> Any:
        return Growing()

    def getEmitter(self, conf: dict, context: Any) -> Any:
        return type("Emitter", (Positions, IPartitionedTridentSpout.Emitter), {})()


class OpaqueGrowing(IOpaquePartitionedTridentSpout):
    getOutputFields = TransactionalGrowing.getOutputFields
    getCoordinator = TransactionalGrowing.getCoordinator

    def getEmitter(self, conf: dict, context: Any) -> Any:
        return type("Emitter", (Positions, IOpaquePartitionedTridentSpout.Emitter), {})()


def _grow(cluster: Any, spout: Any) -> dict[int, list[str]]:
    topology = TridentTopology()
    stream = collect(topology.newStream("s", spout), "out")
    stream.each(["p", "at"], failing(lambda p, at: [p], {(2, 0), (2, 1)}), "q")
    return bags(run(cluster, topology).collected("out"))


@both
def test_s26_the_partitions_of_a_transactional_spout_are_frozen_for_each_txid(cluster: Any) -> None:
    assert _grow(cluster, TransactionalGrowing()) == {
        1: bag([("p0", 0)]),
        2: bag([("p0", 1), ("p1", 0)]),
        3: bag([("p0", 2), ("p1", 1), ("p2", 0)]),
    }


@both_always
def test_s26_an_opaque_spout_asks_again_on_a_replay_and_metadata_counts_once_committed(cluster: Any) -> None:
    assert _grow(cluster, OpaqueGrowing()) == {
        1: bag([("p0", 0)]),
        2: bag([("p0", 1), ("p1", 0), ("p2", 0), ("p3", 0)]),
        3: bag([("p0", 2), ("p1", 1), ("p2", 1), ("p3", 1), ("p4", 0)]),
    }


class Acked(IBatchSpout):
    """Writes down what it is told; one tuple a batch."""

    kind = "transactional"

    def __init__(self, lines: list) -> None:
        self.lines = lines

    def snapshot(self) -> Any:
        return self

    def getOutputFields(self) -> str:
        return "v"

    def emitBatch(self, batchId: int, collector: Any) -> None:
        self.lines.append(("emit", batchId))
        collector.emit((batchId,))

    def isExhaustedAt(self, txid: int) -> bool:
        return txid > LAST

    def ack(self, batchId: int) -> None:
        self.lines.append(("ack", batchId))


def test_s27_success_reaches_a_spout_after_the_commit_and_never_for_a_failed_attempt(cluster: Any) -> None:
    lines: list[Any] = []
    factory = LoggingBackingMap.Factory(onCall=lambda call, attempt: lines.append(tuple(call[:2])))
    topology = TridentTopology()
    stream = topology.newStream("s", Acked(lines))
    stream.persistentAggregate(Crashing(factory, "commit", {(2, 0)}), Count(), "n")
    run(cluster, topology)
    told = [line for line in lines if line[0] in ("emit", "commit", "ack")]
    assert told == [
        ("emit", 1), ("commit", 1), ("ack", 1),
        ("emit", 2), ("emit", 2), ("commit", 2), ("ack", 2),
        ("emit", 3), ("commit", 3), ("ack", 3),
    ]  # fmt: skip


def test_s27_what_is_kept_of_old_txids_does_not_grow(tmp_path: Path) -> None:
    def kept(batches: int) -> int:
        folder = tmp_path / str(batches)
        with LocalCluster(checkpoints=str(folder)) as cluster:
            topology = TridentTopology()
            topology.newStream("s", Batches("v", [[(1,)]] * batches)).persistentAggregate(
                LoggingBackingMap.Factory(), Count(), "n"
            )
            run(cluster, topology)
        return len([path for path in folder.rglob("*") if path.is_file()])

    assert kept(40) == kept(4)


# -- several spouts -----------------------------------------------------------------------------------------------


@both_always
def test_several_spouts_in_one_component_share_one_sequence_of_txids(cluster: Any) -> None:
    factory = LoggingBackingMap.Factory("transactional")
    topology = TridentTopology()
    one = topology.newStream("one", FixedBatchSpout("v", 1, ("a",), ("b",), ("c",)))
    two = topology.newStream("two", FixedBatchSpout("v", 2, ("x",), ("y",), ("z",)))
    merged = collect(topology.merge(one, two), "out")
    merged.each("v", failing(lambda v: [v], {(2, 0)}), "w").persistentAggregate(factory, Count(), "n")
    running = run(cluster, topology)
    assert bags(running.collected("out")) == {
        1: bag([("a",), ("x",), ("y",)]),
        2: bag([("b",), ("z",)]),
        3: bag([("c",)]),
    }
    assert running.txid == 3 and len(running.txids) == 1 and running.attempts == {1: 0, 2: 1, 3: 0}
    assert [value.txid for value in stored(factory).values()] == [3]


@both_always
def test_several_components_have_txids_and_attempts_of_their_own(cluster: Any) -> None:
    slow, quick = LoggingBackingMap.Factory("transactional"), LoggingBackingMap.Factory("transactional")
    topology = TridentTopology()
    one = collect(topology.newStream("one", FixedBatchSpout("v", 1, (1,), (2,))), "one")
    two = collect(topology.newStream("two", FixedBatchSpout("v", 1, (3,))), "two")
    one.each("v", failing(lambda v: [v], {(1, 0), (2, 0)}), "w").persistentAggregate(slow, Count(), "n")
    two.persistentAggregate(quick, Count(), "n")
    running = run(cluster, topology)
    assert running.txids == {"one": 2, "two": 1}
    assert (running.collected("one"), running.collected("two")) == ({1: [(1,)], 2: [(2,)]}, {1: [(3,)]})
    assert [next(iter(stored(state).values())) for state in (slow, quick)] == [(2, 2), (1, 1)]


def test_a_component_that_fails_ends_the_run_of_all(cluster: Any) -> None:
    topology = TridentTopology()
    topology.newStream("one", FixedBatchSpout("v", 1, (1,))).each("v", failing(lambda v: [v], {(1, 0)}, "error"), "w")
    topology.newStream("two", FixedBatchSpout("v", 1, (1,)).setCycle(True)).peek(lambda t: None)
    with pytest.raises(Exception, match="asked by the test"):
        run(cluster, topology)


@both
def test_a_spout_may_have_no_fields(cluster: Any) -> None:
    topology = TridentTopology()
    stream = topology.newStream("ticks", FixedBatchSpout(Fields(), 2, (), (), ()))
    collect(stream.shuffle().each(Fields(), lambda: ["x"], "y").parallelismHint(2), "each")
    collect(stream.aggregate(Count(), "n"), "count")
    running = run(cluster, topology)
    assert running.collected("each") == {1: [("x",), ("x",)], 2: [("x",)]}
    assert running.collected("count") == {1: [(2,)], 2: [(1,)]}
