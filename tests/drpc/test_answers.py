"""What a DRPC function answers: Storm's semantics of a request, on LocalCluster."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from trident_py import DRPCExecutionException, LocalCluster, LocalDRPC, TridentTopology
from trident_py.operations import BaseAggregator, Function
from trident_py.operations.builtin import Count, FilterNull, MapGet, SnapshotGet, Sum
from trident_py.state import CachedMap, Location, MemoryMapState, Reading, StateFactory, TransactionalMap
from trident_py.testing import FeederBatchSpout, FixedBatchSpout, MemoryBackingMap, Split
from trident_py.tuples import RichSpoutBatchId

from .functions import fed_words, word_count, words

Submit = Callable[..., Any]


@pytest.fixture
def drpc() -> Iterator[LocalDRPC]:
    with LocalDRPC() as drpc:
        yield drpc


@pytest.fixture
def submit() -> Iterator[Submit]:
    with LocalCluster() as cluster:
        yield lambda topology, conf=None, name="t": cluster.submitTopology(name, conf, topology.build())


@pytest.mark.parametrize("partitions", [1, 3])
def test_the_word_query_of_storms_example(drpc: LocalDRPC, submit: Submit, partitions: int) -> None:
    topology, feeder = fed_words(drpc, partitions=partitions)
    submit(topology)
    assert drpc.execute("words", "cow man") == [[0]]
    feeder.feed([("the cow jumped over the moon",), ("the man went to the store",)], timeout=30)
    assert drpc.execute("words", "cow the man nobody") == [[6]]
    feeder.feed([("the cow",)], timeout=30)
    assert drpc.execute("words", "cow the") == [[7]]


def test_an_answer_is_a_list_of_rows_with_all_fields(drpc: LocalDRPC, submit: Submit) -> None:
    topology = TridentTopology()
    counts = word_count(topology, FixedBatchSpout("sentence", 9, ("a b a",)))
    asked = topology.newDRPCStream("rows", drpc).each("args", Split(), "w")
    asked.stateQuery(counts, "w", MapGet(), "n")
    submit(topology).awaitTermination(30)
    assert drpc.execute("rows", "a c") == [["a c", "a", 2], ["a c", "c", None]]
    assert drpc.execute("rows", "") == []


def test_a_function_without_a_step_answers_its_args(drpc: LocalDRPC, submit: Submit) -> None:
    topology = TridentTopology()
    topology.newDRPCStream("echo", drpc)
    submit(topology)
    assert drpc.execute("echo", "ä😀") == [["ä😀"]]
    assert drpc.execute("echo", "") == [[""]]


def test_several_functions_of_one_topology(drpc: LocalDRPC, submit: Submit) -> None:
    topology, feeder = TridentTopology(), FeederBatchSpout("sentence")
    counts = word_count(topology, feeder)
    words(topology, counts, drpc, "sum")
    topology.newDRPCStream("one", drpc).stateQuery(counts, "args", MapGet(), "n").project("n")
    topology.newDRPCStream("length", drpc).map(lambda t: [len(t[0])], "n")
    submit(topology)
    feeder.feed([("a b a",)], timeout=30)
    assert drpc.functions() == ["length", "one", "sum"]
    assert [drpc.execute(name, "a b") for name in ("sum", "one", "length")] == [[[3]], [[None]], [[3]]]


def test_joins_and_aggregates_are_per_request(drpc: LocalDRPC, submit: Submit) -> None:
    """The reach of a URL, as storm-starter's TridentReach computes it: two states, a grouping, a global sum."""
    tweeters = {"u": ["ann", "bob"], "v": ["ann"]}
    followers = {"ann": ["x", "y"], "bob": ["y", "z"]}
    topology = TridentTopology()
    asked = topology.newDRPCStream("reach", drpc).each("args", lambda url: tweeters.get(url, ()), "tweeter")
    fans = asked.shuffle().each("tweeter", lambda who: followers[who], "follower").parallelismHint(3)
    ones = fans.groupBy("follower").aggregate(Count(), "tweets").parallelismHint(2)
    ones.aggregate(Count(), "reach")
    submit(topology)
    assert [drpc.execute("reach", url) for url in ("u", "v", "w")] == [[[3]], [[2]], [[0]]]


def test_branches_of_a_request_can_be_joined(drpc: LocalDRPC, submit: Submit) -> None:
    topology = TridentTopology()
    asked = topology.newDRPCStream("f", drpc).each("args", Split(), "w")
    lengths = asked.project("w").each("w", lambda w: [len(w)], "n")
    uppers = asked.project("w").each("w", lambda w: [w.upper()], "up")
    topology.join(lengths, "w", uppers, "w", ["w", "n", "up"])
    submit(topology)
    assert sorted(drpc.execute("f", "a bc")) == [["a", 1, "A"], ["bc", 2, "BC"]]


def test_an_aggregator_gets_the_id_of_the_request_and_no_transaction(drpc: LocalDRPC, submit: Submit) -> None:
    seen: list[Any] = []

    class Looking(BaseAggregator):
        def prepare(self, conf: dict, context: Any) -> None:
            self.context = context

        def init(self, batchId: Any, collector: Any) -> None:
            seen.append((batchId, self.context.transaction))

        def aggregate(self, value: Any, tuple: Any, collector: Any) -> None:
            return None

        def complete(self, value: Any, collector: Any) -> None:
            collector.emit(["done"])

    topology = TridentTopology()
    asked = topology.newDRPCStream("f", drpc).shuffle().each("args", lambda args: [args], "a").parallelismHint(4)
    asked.aggregate("a", Looking(), "end").parallelismHint(3)
    submit(topology)
    assert drpc.execute("f", "x") == [["done"]]
    assert drpc.execute("f", "y") == [["done"]]
    ids = [batch_id for batch_id, _ in seen]
    assert all(type(batch_id) is RichSpoutBatchId and batch_id.getId() == batch_id.id for batch_id in ids)
    assert len(set(ids)) == 2 and {transaction for _, transaction in seen} == {None}


BRANCHES: dict[str, Callable[[Any], Any]] = {
    "query": lambda stream: stream.map(lambda t: [t[1].upper()], "up"),
    "filter": lambda stream: stream.shuffle().each("w", lambda w: w == "a").peek(lambda t: None),
    "other": lambda stream: stream.project("args").each("args", lambda args: [1], "one"),
}


@pytest.mark.parametrize("order", [("query", "filter", "other"), ("filter", "query", "other"), ("query", "other")])
def test_the_answer_is_the_end_of_the_line_that_was_written_first(
    drpc: LocalDRPC, submit: Submit, order: tuple[str, ...]
) -> None:
    """Storm answers with the node created last, wherever it is (S21). A branch that only looks never answers here."""
    topology = TridentTopology()
    asked = topology.newDRPCStream("f", drpc).each("args", Split(), "w")
    for name in order:
        BRANCHES[name](asked)
    submit(topology)
    assert drpc.execute("f", "a b") == [["A"], ["B"]]


def test_of_branches_that_only_look_the_first_answers(drpc: LocalDRPC, submit: Submit) -> None:
    topology = TridentTopology()
    asked = topology.newDRPCStream("f", drpc).each("args", Split(), "w").project("w")
    asked.filter(lambda w: w == "a")
    asked.peek(lambda t: None)
    submit(topology)
    assert drpc.execute("f", "a b") == [["a"]]


def test_the_end_that_answers_is_logged_if_there_are_several(
    drpc: LocalDRPC, submit: Submit, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "trident_py")
    topology = TridentTopology()
    asked = topology.newDRPCStream("f", drpc)
    asked.map(lambda t: [1], "n")
    asked.filter(lambda *values: True)
    submit(topology)
    said = "the DRPC stream f has 2 ends: it answers with that of its line, #1 map"
    assert [line for line in caplog.messages if line.startswith(said)] != []


def test_explain_shows_the_function_and_its_answer(drpc: LocalDRPC) -> None:
    topology = TridentTopology()
    topology.newDRPCStream("f", drpc).filter(lambda args: True)
    lines = topology.build().explain().splitlines()
    assert lines[0] == "#0 DRPC f: [args string]"
    assert lines[3] == "#3 answer of f <- #2: [args string]"


class Caching(StateFactory):
    """A state over a store that it shares with others, behind a cache of its own. Says nothing of its reading."""

    location = Location(frozenset(["this process"]), frozenset(["Caching"]))
    store = MemoryBackingMap()
    made: list[int]

    def __init__(self) -> None:
        type(self).store = MemoryBackingMap()
        self.made = []

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        self.made.append(partitionIndex)
        return TransactionalMap.build(CachedMap(self.store, 100))


def test_a_cache_in_a_state_never_gives_an_old_answer(drpc: LocalDRPC, submit: Submit) -> None:
    topology, feeder = fed_words(drpc, Caching())
    submit(topology)
    for total in (1, 2, 3):
        feeder.feed([("a",)], timeout=30)
        assert drpc.execute("words", "a b") == [[total]]


def test_a_static_state_is_made_once_and_a_current_one_serves_many_requests(drpc: LocalDRPC, submit: Submit) -> None:
    class Current(Caching):
        reading = Reading.CURRENT

    static, current = Caching(), Current()
    topology = TridentTopology()
    state = topology.newStaticState(static)
    topology.newDRPCStream("static", drpc).stateQuery(state, "args", MapGet(), "n")
    state = topology.newStaticState(current)
    topology.newDRPCStream("current", drpc).stateQuery(state, "args", MapGet(), "n")
    submit(topology, {"drpc.worker.threads": 1})
    for _ in range(3):
        assert drpc.execute("static", "a") == [["a", None]] == drpc.execute("current", "a")
    assert static.made == [0] == current.made


def test_a_snapshot_can_be_asked(drpc: LocalDRPC, submit: Submit) -> None:
    topology, feeder = TridentTopology(), FeederBatchSpout("v")
    total = topology.newStream("s", feeder).persistentAggregate(MemoryMapState.Factory(), "v", Sum(), "sum")
    topology.newDRPCStream("total", drpc).stateQuery(total, SnapshotGet(), "sum").project("sum")
    submit(topology)
    assert drpc.execute("total", "") == [[None]]
    feeder.feed([(2,), (3,)], timeout=30)
    assert drpc.execute("total", "") == [[5]]


def test_values_are_those_of_json(drpc: LocalDRPC, submit: Submit) -> None:
    one = uuid.UUID(int=1)
    values = [
        1, 2**70, 1.5, True, None, "\ud800", (1, [2, {"k": (3,)}]), math.nan, [math.inf],
        datetime.date(2026, 1, 2), decimal.Decimal("3"), decimal.Decimal("0.5"), one, np.int64(5),
        (np.float32("nan"), np.bool_(True)),
    ]  # fmt: skip
    topology = TridentTopology()
    topology.newDRPCStream("f", drpc).map(lambda t: [values[int(t[0])]], "v")
    submit(topology)
    plain = [
        1, 2**70, 1.5, True, None, "\ud800", [1, [2, {"k": [3]}]], None, [None],
        "2026-01-02", 3, 0.5, str(one), 5, [None, True],
    ]  # fmt: skip
    assert [drpc.execute("f", str(number))[0][0] for number in range(len(values))] == plain
    assert type(drpc.execute("f", "3")[0][0]) is bool


def test_a_decimal_has_all_its_digits(drpc: LocalDRPC, submit: Submit) -> None:
    amount = decimal.Decimal("12345678901234567.89")
    topology = TridentTopology()
    values = [amount, [amount, {"k": (-amount, math.inf)}], "0.10"]
    topology.newDRPCStream("f", drpc).map(lambda t: values, ["a", "b", "c"])
    submit(topology)
    text = drpc.text("f", "x")
    assert text == f'[[{amount},[{amount},{{"k":[-{amount},null]}}],"0.10"]]'
    assert json.loads(text, parse_float=decimal.Decimal)[0][0] == amount


@pytest.mark.parametrize(
    "value", [b"bytes", {1, 2}, object(), {(1, 2): 3}, np.datetime64(1, "ns"), decimal.Decimal("1E+999999999")]
)
def test_a_value_without_a_form_in_json_is_an_error_that_names_its_field(
    drpc: LocalDRPC, submit: Submit, value: Any
) -> None:
    topology = TridentTopology()
    topology.newDRPCStream("f", drpc).each("args", lambda args: [value], "blob")
    submit(topology)
    with pytest.raises(DRPCExecutionException, match=f"field 'blob' of the answer holds a {type(value).__name__}"):
        drpc.execute("f", "x")


def test_a_function_that_fails_says_why_and_is_not_tried_again(drpc: LocalDRPC, submit: Submit) -> None:
    calls: list[str] = []

    def fail(args: str) -> Any:
        calls.append(args)
        if args == "bad":
            raise KeyError("no such customer")
        return [args]

    topology = TridentTopology()
    topology.newDRPCStream("f", drpc).each("args", fail, "out").aggregate(Count(), "n")
    submit(topology)
    with pytest.raises(DRPCExecutionException, match="KeyError: 'no such customer'") as failed:
        drpc.execute("f", "bad")
    assert "partition 0, of the function 'f'" in str(failed.value) and "test_answers.py" in str(failed.value)
    assert isinstance(failed.value.__cause__, KeyError) and failed.value.get_type() == "FAILED_REQUEST"
    assert drpc.execute("f", "good") == [[1]]
    assert calls == ["bad", "good"]


def test_null_into_sum_fails_the_request_alone(drpc: LocalDRPC, submit: Submit) -> None:
    """In Storm it ends the worker (section 25)."""
    topology, feeder = TridentTopology(), FeederBatchSpout("sentence")
    counts = word_count(topology, feeder)
    asked = topology.newDRPCStream("f", drpc).stateQuery(counts, "args", MapGet(), "n")
    asked.aggregate("n", Sum(), "sum")
    running = submit(topology)
    with pytest.raises(DRPCExecutionException, match="Sum"):
        drpc.execute("f", "nobody")
    feeder.feed([("a",)], timeout=30)
    assert drpc.execute("f", "a") == [[1]] and running.isActive


def test_operations_are_prepared_and_cleaned_up(drpc: LocalDRPC, submit: Submit) -> None:
    seen: list[str] = []

    class Looking(Function):
        def prepare(self, conf: dict, context: Any) -> None:
            seen.append(f"prepare {conf['topology.name']} {context.getPartitionIndex()} of {context.numPartitions()}")

        def execute(self, tuple: Any, collector: Any) -> None:
            collector.emit([1])

        def cleanup(self) -> None:
            seen.append("cleanup")

    topology = TridentTopology()
    topology.newDRPCStream("f", drpc).each("args", Looking(), "n")
    running = submit(topology, name="looked-at")
    assert drpc.execute("f", "x") == [["x", 1]] == drpc.execute("f", "x")
    running.stop()
    assert seen == ["prepare looked-at 0 of 1", "cleanup"]


def test_a_filter_of_null_keeps_the_rows_of_the_words_that_are_there(drpc: LocalDRPC, submit: Submit) -> None:
    topology = TridentTopology()
    counts = word_count(topology, FixedBatchSpout("sentence", 9, ("a b a",)))
    asked = topology.newDRPCStream("f", drpc).each("args", Split(), "w")
    asked.stateQuery(counts, "w", MapGet(), "n").each("n", FilterNull()).project(["w", "n"])
    submit(topology).awaitTermination(30)
    assert drpc.execute("f", "b x a") == [["b", 1], ["a", 2]]
