"""What a person is told of their own code when it fails: lines, values, and never a success."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trident_py import Fields, LocalCluster, TopologyError, TridentTopology
from trident_py.blame import LONGEST, notes_of
from trident_py.operations import BaseAggregator, BaseFilter, BaseFunction, CombinerAggregator, ReducerAggregator
from trident_py.spouts import IBatchSpout
from trident_py.state import BaseStateUpdater, State, StateFactory
from trident_py.testing import FixedBatchSpout, MemoryMapState

HERE = Path(__file__)


def line_of(text: str) -> int:
    return next(i for i, line in enumerate(HERE.read_text().splitlines(), 1) if line.strip() == text)


def fail(divisor: int) -> Any:
    return 1 // divisor


class Halve(BaseFunction):
    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([fail(tuple.getLong(0))])


class Keep(BaseFilter):
    def isKeep(self, tuple: Any) -> bool:
        return bool(fail(tuple[0]))


class Add(CombinerAggregator):
    def init(self, tuple: Any) -> Any:
        return fail(tuple[0])

    def combine(self, a: Any, b: Any) -> Any:
        return a + b

    def zero(self) -> Any:
        return 0


class Reduce(ReducerAggregator):
    def init(self) -> Any:
        return 0

    def reduce(self, curr: Any, tuple: Any) -> Any:
        return fail(tuple[0])


class Gather(BaseAggregator):
    def init(self, batchId: Any, collector: Any) -> Any:
        return []

    def aggregate(self, value: Any, tuple: Any, collector: Any) -> Any:
        fail(tuple[0])

    def complete(self, value: Any, collector: Any) -> None:
        raise AssertionError("not reached")


class Refusing(State):
    def beginCommit(self, txid: int | None) -> None:
        fail(0)

    def commit(self, txid: int | None) -> None: ...


class RefusingFactory(StateFactory):
    def makeState(self, conf: Any, metrics: Any, partitionIndex: int, numPartitions: int) -> State:
        return Refusing()


class Update(BaseStateUpdater):
    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        for tuple in tuples:
            fail(tuple[0])


class Emit(IBatchSpout):
    def open(self, conf: Any, context: Any) -> None: ...

    def emitBatch(self, batchId: int, collector: Any) -> None:
        fail(0)

    def ack(self, batchId: int) -> None: ...

    def close(self) -> None: ...

    def getOutputFields(self) -> Fields:
        return Fields("n")


def numbers(topology: TridentTopology) -> Any:
    return topology.newStream("numbers", FixedBatchSpout("n", 5, (3,), (0,)))


PLACES: dict[str, Callable[[TridentTopology], Any]] = {
    "function": lambda t: numbers(t).each("n", Halve(), "half"),
    "callable": lambda t: numbers(t).each("n", lambda n: [fail(n)], "half"),
    "generator": lambda t: numbers(t).each("n", lambda n: (fail(each) for each in [n]), "half"),
    "filter": lambda t: numbers(t).filter("n", Keep()),
    "map": lambda t: numbers(t).map(lambda tuple: [fail(tuple[0])]),
    "flatMap": lambda t: numbers(t).flatMap(lambda tuple: [[fail(tuple[0])]]),
    "peek": lambda t: numbers(t).peek(lambda tuple: fail(tuple[0])),
    "combiner": lambda t: numbers(t).aggregate("n", Add(), "sum"),
    "reducer": lambda t: numbers(t).aggregate("n", Reduce(), "sum"),
    "aggregator": lambda t: numbers(t).aggregate("n", Gather(), "sum"),
    "grouped aggregator": lambda t: numbers(t).groupBy("n").aggregate("n", Gather(), "sum"),
    "grouping": lambda t: numbers(t).partition(lambda values: fail(values[0])).peek(print).parallelismHint(2),
    "updater": lambda t: numbers(t).partitionPersist(MemoryMapState.Factory(), "n", Update()),
    "state": lambda t: numbers(t).partitionPersist(RefusingFactory(), "n", Update()),
    "spout": lambda t: t.newStream("numbers", Emit()),
}
WITH_THE_TUPLE = set(PLACES) - {"updater", "state", "spout"}


def ended(place: str, conf: dict | None = None, cluster: Any = None) -> TopologyError:
    topology = TridentTopology()
    PLACES[place](topology)
    with cluster or LocalCluster() as running:
        with pytest.raises(TopologyError) as caught:
            running.submitTopology(f"failing {place}", conf or {}, topology.build()).awaitTermination(60)
    return caught.value


@pytest.mark.parametrize("place", PLACES)
def test_an_exception_of_the_users_code_is_told_with_its_line(place: str) -> None:
    error = ended(place)
    assert "ZeroDivisionError: integer division or modulo by zero\n" in str(error)
    assert f"at {HERE}:{line_of('return 1 // divisor')} in fail: return 1 // divisor\n" in str(error)
    assert any("return 1 // divisor" in note for note in notes_of(error.__cause__))
    assert "return 1 // divisor" in error.trace and "Traceback" in error.trace
    assert "/trident_py/" not in error.trace
    assert bool(re.search(r"  with .*\bn=0\n", str(error))) == (place in WITH_THE_TUPLE), str(error)


@pytest.mark.spark
@pytest.mark.parametrize("place", ["function", "callable", "combiner", "updater", "spout"])
def test_the_users_line_comes_back_from_sparks_workers(place: str, spark_cluster: Any) -> None:
    error = ended(place, cluster=spark_cluster())
    assert "ZeroDivisionError: integer division or modulo by zero\n" in str(error)
    assert f"at {HERE}:{line_of('return 1 // divisor')} in fail: return 1 // divisor\n" in str(error)
    assert any("return 1 // divisor" in note for note in notes_of(error.__cause__))


def test_a_function_without_python_frames_is_told_with_its_values() -> None:
    topology = TridentTopology()
    topology.newStream("texts", FixedBatchSpout(["a", "b"], 5, ("1", 10), ("x", 16))).each(["a", "b"], int, "number")
    with LocalCluster() as cluster, pytest.raises(TopologyError, match=r"with a='x', b=16\n"):
        cluster.submitTopology("t", {}, topology.build()).awaitTermination(30)


def test_the_values_can_be_left_out() -> None:
    assert "with " not in str(ended("function", {"topology.error.values": False}))


def test_values_are_shortened_and_secrets_hidden() -> None:
    def login(user: str, password: str, document: dict) -> None:
        raise ValueError("refused")

    shown = values_shown(login, "ann" * 1000, "hunter2", dict.fromkeys(range(1000), "x" * 1000))
    assert "user='annann" in shown and "password=***" in shown and "hunter2" not in shown
    assert len(shown) <= LONGEST + len("with ")


def values_shown(function: Callable[..., Any], *values: Any) -> str:
    fields = [f"f{i}" for i in range(len(values))]
    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout(fields, 5, values)).each(fields, function, "out")
    with LocalCluster() as cluster, pytest.raises(TopologyError) as caught:
        cluster.submitTopology("t", {}, topology.build()).awaitTermination(30)
    return next(line for line in notes_of(caught.value.__cause__) if line.startswith("with "))


class Strange(int):
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def test_a_value_that_cannot_be_shown_does_not_hide_the_error() -> None:
    assert "divisor=<Strange instance at" in values_shown(fail, Strange(0))


def test_an_exception_that_cannot_be_pickled_keeps_the_users_lines() -> None:
    from trident_py.program import encode_failure, failure_of

    class Held(Exception):
        def __init__(self) -> None:
            super().__init__("held")
            self.lock = __import__("threading").Lock()

    try:
        raise Held
    except Held as error:
        back = pickle.loads(encode_failure(failure_of("each", 0, error)))
    assert "Held: held" in str(back.error)
    assert any(f"at {HERE}:" in note for note in notes_of(back.error))


def leave(*_: Any) -> Any:
    raise SystemExit("bad configuration")


def interrupt(*_: Any) -> Any:
    raise KeyboardInterrupt


class Cancelled(BaseException):
    pass


def cancel(*_: Any) -> Any:
    raise Cancelled("cancelled")


@pytest.mark.parametrize("raising", [leave, interrupt, cancel])
@pytest.mark.parametrize("place", PLACES)
def test_whatever_the_users_code_raises_the_run_is_no_success(
    place: str, raising: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "fail", raising)
    error = ended(place)
    assert type(error.__cause__) in (SystemExit, KeyboardInterrupt, Cancelled)
    assert str(error.__cause__) in str(error)


@pytest.mark.parametrize("raising", [leave, interrupt, cancel])
def test_a_factory_that_leaves_the_process_fails_the_run(raising: Callable[..., Any]) -> None:
    class Factory(RefusingFactory):
        def makeState(self, *_: Any) -> State:
            return raising()

    topology = TridentTopology()
    numbers(topology).partitionPersist(Factory(), "n", Update())
    with LocalCluster() as cluster, pytest.raises(TopologyError):
        cluster.submitTopology("t", {}, topology.build()).awaitTermination(30)


class Leave(BaseStateUpdater):
    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        leave()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (lambda stream: stream.each("n", leave, "out"), SystemExit),
        (lambda stream: stream.each("n", interrupt, "out"), KeyboardInterrupt),
        (lambda stream: stream.partitionPersist(MemoryMapState.Factory(), "n", Leave()), SystemExit),
    ],
    ids=["function leaves", "function interrupts", "updater leaves"],
)
def test_leaving_the_process_is_a_failure_on_spark_too(made: Any, kind: type, spark_cluster: Any) -> None:
    topology = TridentTopology()
    made(numbers(topology))
    with spark_cluster() as cluster, pytest.raises(TopologyError) as caught:
        cluster.submitTopology("leaving", {}, topology.build()).awaitTermination(60)
    assert type(caught.value.__cause__) is kind
