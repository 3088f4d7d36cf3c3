"""Pieces that ported topologies are made of, from spout to result: chains of filters, grouped streams in a merge, both
shapes of partitioned emitters, spouts with messages, and what shows tuples as they pass."""

from __future__ import annotations

from typing import Any

import pytest

from trident_py import FailedException, TridentTopology
from trident_py.operations import Assembly, BaseAggregator, BaseFilter, BaseFunction, Consumer
from trident_py.operations.builtin import Count, Debug, FilterNull, Negate, Sum
from trident_py.spouts import IOpaquePartitionedTridentSpout, IPartitionedTridentSpout, IRichSpout, ITridentSpout
from trident_py.testing import MemoryMapState, collect, failing, stored

from .support import Batches, bag, both, run, through


class AtLeast(BaseFilter):
    def __init__(self, least: int) -> None:
        self.least = least

    def isKeep(self, tuple: Any) -> bool:
        return tuple.getInteger(0) >= self.least


class Listed(BaseAggregator):
    """The values of a partition, in one tuple."""

    def init(self, batchId: Any, collector: Any) -> list:
        return []

    def aggregate(self, value: list, tuple: Any, collector: Any) -> None:
        value.append(tuple[0])

    def complete(self, value: list, collector: Any) -> None:
        collector.emit([sorted(value), len(value)])


@both
def test_a_chain_of_filters_in_front_of_a_partition_aggregate(cluster: Any) -> None:
    """Filters that class, callable and Negate make one after the other; the aggregate sees what all of them keep."""

    def build(stream: Any) -> Any:
        kept = stream.each("n", FilterNull()).each("n", AtLeast(3)).filter(["n"], lambda n: n % 2 == 1)
        return kept.each("n", Negate(AtLeast(9))).partitionAggregate("n", Listed(), ["all", "count"])

    batch = [(n,) for n in (1, 2, 3, None, 4, 5, 7, 9, 11)]
    assert through(cluster, "n", [batch, [(2,)]], build) == {1: bag([([3, 5, 7], 3)]), 2: bag([([], 0)])}


@both
def test_each_partition_aggregates_what_its_own_filters_keep(cluster: Any) -> None:
    def build(stream: Any) -> Any:
        moved = stream.partitionBy("n").each("n", AtLeast(2)).parallelismHint(2)
        return moved.partitionAggregate("n", Sum(), "sum").aggregate("sum", Listed(), ["sums", "partitions"])

    # A long's hash is itself: 2 and 4 are in partition 31 % 2, 3 and 5 in the other one.
    assert through(cluster, "n", [[(1,), (2,), (3,), (4,), (5,)]], build) == {1: bag([([6, 8], 2)])}


@both
def test_grouped_streams_are_merged_as_the_streams_they_are(cluster: Any) -> None:
    topology = TridentTopology()
    one = topology.newStream("one", Batches(["k", "v"], [[("a", 1), ("b", 2)]])).groupBy("k")
    two = topology.newStream("two", Batches(["key", "n"], [[("a", 3), ("c", 4)]])).groupBy("key")
    collect(topology.merge(one, two), "merged")
    collect(topology.merge(["word", "x"], [one, two]).groupBy("word").aggregate("x", Sum(), "sum"), "sums")
    running = run(cluster, topology)
    assert bag(running.collected("merged")[1]) == bag([("a", 1), ("b", 2), ("a", 3), ("c", 4)])
    assert bag(running.collected("sums")[1]) == bag([("a", 4), ("b", 2), ("c", 4)])


@both
def test_an_assembly_may_branch_and_merge_again(cluster: Any) -> None:
    class BothEnds(Assembly):
        """The smallest and the largest of each partition."""

        def apply(self, stream: Any) -> Any:
            return stream.topology.merge(stream.minBy("n"), stream.maxBy("n"))

    assert through(cluster, "n", [[(3,), (1,), (2,)]], lambda s: s.applyAssembly(BothEnds())) == {1: bag([(1,), (3,)])}


def test_debug_and_peek_show_each_tuple_as_it_passes(cluster: Any, capsys: Any) -> None:
    seen = []

    class Seen(Consumer):
        def prepare(self, conf: dict, context: Any) -> None:
            self.index = context.getPartitionIndex()

        def accept(self, tuple: Any) -> None:
            seen.append((self.index, tuple.getFields().toList(), list(tuple)))

    def build(stream: Any) -> Any:
        return stream.each(["a"], Debug("first")).each(["b", "a"], Debug()).peek(Seen()).project("b")

    assert through(cluster, ["a", "b"], [[(1, "x"), (2, None)]], build) == {1: bag([("x",), (None,)])}
    assert seen == [(0, ["a", "b"], [1, "x"]), (0, ["a", "b"], [2, None])]
    lines = [line.partition("DEBUG")[2] for line in capsys.readouterr().out.splitlines()]
    assert sorted(lines) == sorted(["(first): [1]", "(first): [2]", ": [x, 1]", ": [None, 2]"])


# -- spouts -------------------------------------------------------------------------------------------------------

SOURCE = {"p": list("ABCDE"), "q": list("xyz")}


class Listing:
    """Ends when each partition has been read in steps of two: after three batches."""

    def getPartitionsForBatch(self) -> list[str]:
        return list(SOURCE)

    def isReady(self, txid: int) -> bool:
        return True

    def isExhaustedAt(self, txid: int) -> bool:
        return txid > 3


class Reading:
    def getOrderedPartitions(self, info: Any) -> list[str]:
        return sorted(info)

    def read(self, collector: Any, partition: str, start: int) -> int:
        for value in SOURCE[partition][start : start + 2]:
            collector.emit([value])
        return start + 2


class AtOnce(Reading):
    """Storm 2.7: a task's partitions in one call."""

    def emitBatchNew(self, tx: Any, collector: Any, partitions: Any, last: Any) -> dict:
        return {each: self.read(collector, each, last[each] or 0) for each in partitions}

    def reEmitPartitionBatch(self, tx: Any, collector: Any, partition: str, meta: int) -> None:
        self.read(collector, partition, meta - 2)


class OneByOne(Reading):
    """Storm up to 2.6, transactional: a call for each partition."""

    def emitPartitionBatchNew(self, tx: Any, collector: Any, partition: str, last: Any) -> int:
        return self.read(collector, partition, last or 0)

    def emitPartitionBatch(self, tx: Any, collector: Any, partition: str, meta: int) -> None:
        self.read(collector, partition, meta - 2)


class OpaqueOneByOne(Reading):
    """Storm up to 2.6, opaque."""

    def emitPartitionBatch(self, tx: Any, collector: Any, partition: str, last: Any) -> int:
        return self.read(collector, partition, last or 0)


class Transactional(IPartitionedTridentSpout):
    def __init__(self, emitter: type) -> None:
        self.emitter = emitter

    def getOutputFields(self) -> str:
        return "v"

    def getCoordinator(self, conf: dict, context: Any) -> Any:
        return Listing()

    def getEmitter(self, conf: dict, context: Any) -> Any:
        return self.emitter()


class Opaque(IOpaquePartitionedTridentSpout):
    def __init__(self, emitter: type) -> None:
        self.emitter = emitter

    def getOutputFields(self) -> str:
        return "v"

    def getCoordinator(self, conf: dict, context: Any) -> Any:
        return Listing()

    def getEmitter(self, conf: dict, context: Any) -> Any:
        return self.emitter()


SHAPES = [Transactional(AtOnce), Transactional(OneByOne), Opaque(AtOnce), Opaque(OpaqueOneByOne)]


@pytest.mark.parametrize("spout", SHAPES, ids=lambda spout: f"{type(spout).__name__}-{spout.emitter.__name__}")
def test_both_shapes_of_partitioned_emitters_give_each_value_once_under_replays(cluster: Any, spout: Any) -> None:
    topology, factory = TridentTopology(), MemoryMapState.Factory()
    stream = topology.newStream("s", spout).parallelismHint(2)
    twice = failing(lambda v: [v], when={(1, 0), (2, 0), (2, 1)})
    collect(stream.each("v", twice, "w").project("w"), "out").groupBy("w").persistentAggregate(factory, Count(), "n")
    running = run(cluster, topology)
    assert {txid: bag(rows) for txid, rows in running.collected("out").items()} == {
        1: bag([("A",), ("B",), ("x",), ("y",)]),
        2: bag([("C",), ("D",), ("z",)]),
        3: bag([("E",)]),
    }
    assert {key: value.curr for key, value in stored(factory).items()} == {(v,): 1 for v in "ABCDExyz"}
    assert running.attempts == {1: 1, 2: 2, 3: 0}


def test_a_coordinator_that_ends_ends_the_run_after_its_last_batch(cluster: Any) -> None:
    """`isExhausted` of the coordinator alone: asked before each batch."""

    class Countdown(ITridentSpout):
        kind = "transactional"

        def getOutputFields(self) -> str:
            return "n"

        def getCoordinator(self, txStateId: str, conf: dict, context: Any) -> Any:
            return self.Counter()

        def getEmitter(self, txStateId: str, conf: dict, context: Any) -> Any:
            return self.Emitter()

        class Counter(ITridentSpout.BatchCoordinator):
            left = 3

            def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> int:
                if currMetadata is None:
                    self.left -= 1
                return self.left if currMetadata is None else currMetadata

            def isReady(self, txid: int) -> bool:
                return self.left > 0

            def isExhausted(self) -> bool:
                return self.left == 0

        class Emitter(ITridentSpout.Emitter):
            def emitBatch(self, tx: Any, coordinatorMeta: Any, collector: Any) -> None:
                collector.emit([coordinatorMeta])

    topology = TridentTopology()
    collect(topology.newStream("s", Countdown()), "out")
    assert run(cluster, topology).collected("out") == {1: [(2,)], 2: [(1,)], 3: [(0,)]}


CALLS: list[tuple[str, Any]] = []


class Messages(IRichSpout):
    """A queue; a failed message goes back to its end. Ends when every message is acked."""

    def __init__(self) -> None:
        self.waiting = ["a", "b", "c"]
        self.acked = 0

    def declareOutputFields(self, declarer: Any) -> None:
        declarer.declare("m")

    def open(self, conf: dict, context: Any, collector: Any) -> None:
        self.collector = collector

    def nextTuple(self) -> None:
        if self.waiting:
            message = self.waiting.pop(0)
            self.collector.emit([message], message)

    def ack(self, msgId: Any) -> None:
        CALLS.append(("ack", msgId))
        self.acked += 1

    def fail(self, msgId: Any) -> None:
        CALLS.append(("fail", msgId))
        self.waiting.append(msgId)

    def isExhausted(self) -> bool:
        return self.acked == 3


def test_a_failed_batch_fails_its_messages_and_a_committed_one_acks_them(cluster: Any) -> None:
    class FailsOnce(BaseFunction):
        def prepare(self, conf: dict, context: Any) -> None:
            self.context = context

        def execute(self, tuple: Any, collector: Any) -> None:
            if tuple[0] == "b" and self.context.transaction == (1, 0):
                raise FailedException("b is not ready")
            collector.emit([tuple[0].upper()])

    CALLS.clear()
    topology = TridentTopology()
    collect(topology.newStream("s", Messages()).each("m", FailsOnce(), "M").project("M"), "out")
    running = run(cluster, topology, {"topology.spout.max.batch.size": 2})
    assert running.collected("out") == {1: [("C",), ("A",)], 2: [("B",)]}
    assert CALLS == [("fail", "a"), ("fail", "b"), ("ack", "c"), ("ack", "a"), ("ack", "b")]
