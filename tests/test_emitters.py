"""Every way to emit, given everything that is not the values of a tuple: each names it, and none takes it for a row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from trident_py import LocalCluster, TopologyError, TridentTopology
from trident_py.operations import BaseAggregator, BaseFunction, GroupedMultiReducer, MultiReducer
from trident_py.operations.builtin import Count, Sum
from trident_py.spouts import IBatchSpout, IRichSpout, ITridentSpout
from trident_py.state import BaseQueryFunction, BaseStateUpdater
from trident_py.testing import FixedBatchSpout, MemoryMapState, collect
from trident_py.windowing import TumblingCountWindow

OUT = ["x", "y"]


def said(what: str) -> Iterator[Any]:
    """Yield what is emitted for the two fields."""
    if what == "a list that is filled again":
        row = [0, 0]
        for number in (1, 2):
            row[0] = number
            yield row
        return
    yield {**NO_ROWS, "too few": [1], "too many": [1, 2, 3], "a generator": (n for n in (1, 2))}[what]


NO_ROWS: dict[str, Any] = {
    "a text": "ab",
    "bytes": b"ab",
    "a bytearray": bytearray(b"ab"),
    "a dict": {0: 1, 1: 2},
    "a dict of names": {"x": 1, "y": 2},
    "a set": {1, 2},
    "a number": 5,
    "nothing": None,
    "a generator": None,
}


class Saying:
    """An operation that emits what is said."""

    def __init__(self, what: str) -> None:
        self.what = what

    def prepare(self, conf: Any, context: Any) -> None: ...

    def cleanup(self) -> None: ...

    def say(self, collector: Any) -> None:
        for row in said(self.what):
            collector.emit(row)


class Says(Saying, BaseFunction):
    def execute(self, tuple: Any, collector: Any) -> None:
        self.say(collector)


class Gathers(Saying, BaseAggregator):
    def init(self, batchId: Any, collector: Any) -> Any: ...

    def aggregate(self, value: Any, tuple: Any, collector: Any) -> Any: ...

    def complete(self, value: Any, collector: Any) -> None:
        self.say(collector)


class Reduces(Saying, MultiReducer):
    def init(self, collector: Any) -> Any: ...

    def execute(self, state: Any, streamIndex: int, input: Any, collector: Any) -> Any: ...

    def complete(self, state: Any, collector: Any) -> None:
        self.say(collector)


class ReducesGroups(Saying, GroupedMultiReducer):
    def init(self, collector: Any, group: Any) -> Any: ...

    def execute(self, state: Any, streamIndex: int, group: Any, input: Any, collector: Any) -> Any: ...

    def complete(self, state: Any, group: Any, collector: Any) -> None:
        self.say(collector)


class Asks(Saying, BaseQueryFunction):
    def batchRetrieve(self, state: Any, tuples: Any) -> Any:
        return [1] * len(tuples)

    def execute(self, tuple: Any, result: Any, collector: Any) -> None:
        self.say(collector)


class Updates(Saying, BaseStateUpdater):
    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        self.say(collector)


class BatchSpout(Saying, IBatchSpout):
    kind = "transactional"

    def emitBatch(self, batchId: int, collector: Any) -> None:
        self.say(collector)

    def isExhaustedAt(self, txid: int) -> bool:
        return txid > 1

    def getOutputFields(self) -> Any:
        return OUT


class RichSpout(Saying, IRichSpout):
    def open(self, conf: dict, context: Any, collector: Any) -> None:
        self.collector = collector

    def nextTuple(self) -> None:
        self.say(self.collector)

    def declareOutputFields(self, declarer: Any) -> None:
        declarer.declare(OUT)


class TaskSpout(Saying, ITridentSpout):
    """Emits in the tasks: its emitter is the spout itself, and so is its coordinator."""

    kind = "transactional"

    def getCoordinator(self, *context: Any) -> Any:
        return _Coordinator()

    def getEmitter(self, *context: Any) -> Any:
        return _Emitter(self)

    def isExhaustedAt(self, txid: int) -> bool:
        return txid > 1

    def getOutputFields(self) -> Any:
        return OUT


class _Coordinator(ITridentSpout.BatchCoordinator):
    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        return txid


class _Emitter(ITridentSpout.Emitter):
    def __init__(self, spout: TaskSpout) -> None:
        self.spout = spout

    def emitBatch(self, tx: Any, coordinatorMeta: Any, collector: Any) -> None:
        self.spout.say(collector)


def asked(s: Any, what: str) -> Any:
    return s.stateQuery(s.topology.newStaticState(MemoryMapState.Factory()), "n", Asks(what), OUT)


def windowed(s: Any, what: str, **ends: Any) -> Any:
    return s.window(TumblingCountWindow.of(1), ["n"], Gathers(what), OUT, **ends)


def chained(s: Any, what: str) -> Any:
    return s.chainedAgg().aggregate("n", Gathers(what), OUT).aggregate("n", Sum(), "total").chainEnd()


EMITTERS: dict[str, Any] = {
    "a function": lambda s, what: s.each("n", Says(what), OUT),
    "a callable": lambda s, what: s.each("n", lambda n: said(what), OUT),
    "map": lambda s, what: s.map(lambda tuple: next(said(what)), OUT),
    "flatMap": lambda s, what: s.flatMap(lambda tuple: said(what), OUT),
    "flatMap of a list": lambda s, what: s.flatMap(lambda tuple: [[7, 7], *map(copied, said(what))], OUT),
    "aggregate": lambda s, what: s.aggregate("n", Gathers(what), OUT),
    "partitionAggregate": lambda s, what: s.partitionAggregate("n", Gathers(what), OUT),
    "a grouped aggregate": lambda s, what: s.groupBy("n").aggregate("n", Gathers(what), OUT),
    "a chain": chained,
    "a grouped chain": lambda s, what: chained(s.groupBy("n"), what),
    "a window": windowed,
    "a window with its ends": lambda s, what: windowed(s, what, windowFields=["start", "end"]),
    "multiReduce": lambda s, what: s.topology.multiReduce([["n"], ["n"]], [s, s], Reduces(what), OUT),
    "multiReduce of groups": lambda s, what: s.topology.multiReduce(
        [["n"], ["n"]], [s.groupBy("n"), s.groupBy("n")], ReducesGroups(what), OUT
    ),
    "a query": asked,
    "an updater": lambda s, what: s.partitionPersist(
        MemoryMapState.Factory(), "n", Updates(what), OUT
    ).newValuesStream(),
    "a batch spout": lambda s, what: s.topology.newStream("t", BatchSpout(what)),
    "a spout in tasks": lambda s, what: s.topology.newStream("t", TaskSpout(what)),
    "a plain spout": lambda s, what: s.topology.newStream("t", RichSpout(what)),
}


def copied(row: Any) -> Any:
    return list(row) if isinstance(row, list) else row


def run(place: str, what: str) -> Any:
    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout("n", 1, (3,)))
    collect(EMITTERS[place](stream, what).project(OUT), "seen")
    with LocalCluster() as cluster:
        running = cluster.submitTopology("t", {}, topology.build())
        assert running.awaitTermination(30)
    return running.collected("seen")


def refused(place: str, what: str) -> str:
    with pytest.raises(TopologyError) as caught:
        run(place, what)
    return str(caught.value)


@pytest.mark.parametrize("what", NO_ROWS)
@pytest.mark.parametrize("place", EMITTERS)
def test_what_is_no_row_is_refused_in_words(place: str, what: str) -> None:
    words = r"(Trident|WrongNumberOfValues)\w*: .*(emitted .*; emit the values of one tuple|yielded .*has 2 values)"
    assert re.search(words, refused(place, what), re.S)


@pytest.mark.parametrize("place", EMITTERS)
def test_too_many_values_are_refused(place: str) -> None:
    assert re.search(r"emitted 3 values for|Expected 2 fields but got 3|has 2 values", refused(place, "too many"))


@pytest.mark.parametrize("place", EMITTERS)
def test_too_few_values_are_refused_at_the_latest_where_the_missing_one_is_read(place: str) -> None:
    words = r"emitted 1 values for|Expected 2 fields but got 1|has 2 values|none for field 'y'"
    assert re.search(words, refused(place, "too few"))


UNLIKE = {"a function", "map", "flatMap of a list", "a plain spout"}
"""They keep no list, or repeat it."""


@pytest.mark.parametrize("place", [p for p in EMITTERS if p not in UNLIKE])
def test_a_list_may_be_filled_again(place: str) -> None:
    assert sorted(run(place, "a list that is filled again")[1]) == [(1, 0), (2, 0)]


def test_a_function_may_not_fill_its_list_again() -> None:
    """The price of a collector without a call (docs/differences.md)."""
    assert run("a function", "a list that is filled again") == {1: [(2, 0), (2, 0)]}


CHAINED = ["a chain", "a grouped chain", "a grouped aggregate"]


@pytest.mark.parametrize("place", CHAINED)
def test_a_chain_and_a_group_take_neither_fewer_nor_more_values_even_if_nobody_reads_them(place: str) -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout("n", 1, (3,)))
    collect(EMITTERS[place](stream, "too few").project("x"), "seen")
    with LocalCluster() as cluster, pytest.raises(TopologyError, match="Gathers emitted 1 values for the 2 fields"):
        cluster.submitTopology("t", {}, topology.build()).awaitTermination(30)


@pytest.mark.parametrize("aggregator", [Count(), Sum()], ids=["Count", "Sum"])
def test_a_grouped_combiner_has_one_field(aggregator: Any) -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", FixedBatchSpout("n", 1, (3,)))
    collect(stream.groupBy("n").aggregate("n", aggregator, OUT).project("x"), "seen")
    with LocalCluster() as cluster, pytest.raises(TopologyError, match=r"emitted 1 values for the 2 fields \[x, y\]"):
        cluster.submitTopology("t", {}, topology.build()).awaitTermination(30)


class Grouping:
    def __init__(self, chosen: Any) -> None:
        self.chosen = chosen

    def prepare(self, context: Any, stream: Any, targets: Any) -> None: ...

    def chooseTasks(self, taskId: Any, values: Any) -> Any:
        return self.chosen


def failed(build: Any) -> str:
    topology = TridentTopology()
    collect(build(topology.newStream("s", FixedBatchSpout("n", 2, (3,), (4,)))), "seen")
    with LocalCluster() as cluster, pytest.raises(TopologyError) as caught:
        cluster.submitTopology("t", {}, topology.build()).awaitTermination(30)
    return str(caught.value)


ANSWERS: dict[str, tuple[Any, str]] = {
    "chooseTasks none": (lambda s: s.partition(Grouping(None)), "Grouping.*chooseTasks returned None; return a list"),
    "chooseTasks text": (lambda s: s.partition(Grouping("0")), "Grouping.*chooseTasks returned '0'; return a list"),
    "chooseTasks int": (lambda s: s.partition(Grouping(1)), "Grouping.*chooseTasks returned 1; return a list"),
    "chooseTasks float": (lambda s: s.partition(Grouping([0.0])), "Grouping.* chose partition 0.0; return a whole"),
    "grouping none": (lambda s: s.partition(lambda t: None), "lambda.* chose partition None; return a whole number"),
    "grouping float": (lambda s: s.partition(lambda t: 0.5), "lambda.* chose partition 0.5; return a whole number"),
    "flatMap int": (lambda s: s.flatMap(lambda t: 5), "flatMap .*lambda.* returned 5; return an iterable of tuples"),
    "flatMap dict": (lambda s: s.flatMap(lambda t: {(1,): 2}), "flatMap .* returned .*; return an iterable of tuples"),
    "min": (lambda s: s.minBy("n", lambda a, b: None), "comparator .*lambda.* returned None; return a number"),
    "max": (lambda s: s.maxBy("n", lambda a, b: None), "comparator .*lambda.* returned None; return a number"),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_of_a_wrong_type_is_told(answer: str) -> None:
    build, words = ANSWERS[answer]
    assert re.search(f"TridentError: .*{words}", failed(lambda s: build(s).map(lambda t: t).parallelismHint(2)))
