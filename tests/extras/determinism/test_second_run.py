"""The check at run time: a batch runs a second time in another process, and the operation that differs is named."""

from __future__ import annotations

import datetime
import functools
import os
import random
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trident_py import Fields, LocalCluster, TridentTopology
from trident_py.errors import DefinitionError
from trident_py.extras.determinism import shadow_run
from trident_py.operations import Aggregator, Function, ReducerAggregator, deterministic
from trident_py.operations.builtin import Count, FilterNull, Sum
from trident_py.testing import FixedBatchSpout, MemoryMapState, stored

WORDS = ("the", "cow", "jumped", "over", "moon", "and", "four", "score", "seven", "years", "ago")
CONF = {"topology.determinism.check": 1}


class Numbers(Function):
    """A counter: it goes on from batch to batch, and begins at 1 in each new process."""

    def __init__(self) -> None:
        self.n = 0

    def execute(self, tuple: Any, collector: Any) -> None:
        self.n += 1
        collector.emit([self.n])


class Attempts(Aggregator):
    def init(self, batchId: Any, collector: Any) -> Any:
        return batchId

    def aggregate(self, value: Any, tuple: Any, collector: Any) -> Any:
        return value

    def complete(self, value: Any, collector: Any) -> None:
        collector.emit([value.attemptId])


class Draws(ReducerAggregator):
    def init(self) -> float:
        return 0.0

    def reduce(self, curr: float, tuple: Any) -> float:
        return curr + random.random()


class Dies(Function):
    def execute(self, tuple: Any, collector: Any) -> None:
        if os.environ["PYTHONHASHSEED"] in ("4711", "1742"):
            os._exit(3)
        collector.emit([1])


def build(*steps: Any, batches: int = 3) -> TridentTopology:
    """Words, each step a function that makes the next field, counted into a state."""
    topology = TridentTopology()
    spout = FixedBatchSpout(Fields("w0"), len(WORDS), *[(word,) for _ in range(batches) for word in WORDS])
    stream = topology.newStream("words", spout)
    for number, step in enumerate(steps):
        stream = stream.each(f"w{number}", step, f"w{number + 1}")
    stream.groupBy(f"w{len(steps)}").persistentAggregate(MemoryMapState.Factory(), Count(), "count", stateName="counts")
    return topology


def found(topology: TridentTopology, conf: dict | None = None) -> list[tuple[int | None, str]]:
    """What the check told, with the txid."""
    with LocalCluster() as cluster:
        running = cluster.submitTopology("checked", conf or CONF, topology.build())
        assert running.awaitTermination(60)
        return [(event.txid, event.reason) for event in running.events if event.kind == "unsteady"]


CHANGING: dict[str, Any] = {
    "random": lambda word: [random.random()],
    "uuid": lambda word: [uuid.uuid4().hex],
    "clock": lambda word: [time.time()],
    "day": lambda word: [datetime.date.today().isoformat()],
    "weekday": lambda word: [datetime.datetime.now(datetime.UTC).weekday()],
    "hour": lambda word: [time.strftime("%H")],
    "year": lambda word: [time.localtime().tm_year, datetime.datetime.utcnow().year],
    "hash": lambda word: [hash(word) % 1000],
    "order of a set": lambda word: ["".join({*WORDS, word})],
    "process": lambda word: [os.getpid()],
    "declared deterministic by mistake": deterministic(lambda word: [random.random()]),
    "number of rows": lambda word: [word] * random.SystemRandom().randrange(1, 50),
}


@pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning")
def test_what_differs_in_another_process_is_named() -> None:
    """One stream for each, all in one run: they share the second process."""
    topology = TridentTopology()
    for name, function in CHANGING.items():
        step = functools.partial(function)
        step.__qualname__ = name  # type: ignore[attr-defined]
        stream = topology.newStream(name, FixedBatchSpout(Fields("w"), len(WORDS), *[(word,) for word in WORDS * 3]))
        stream = stream.each("w", str.split, "word").each("word", step, "out")
        stream.groupBy("out").persistentAggregate(MemoryMapState.Factory(), Count(), "count", stateName=name)
    told = found(topology)
    for name in CHANGING:
        mine = [(txid, reason) for txid, reason in told if reason.startswith(f"each {name} in partition 0 returned ")]
        assert [txid for txid, _ in mine] == [1, 2, 3], (name, told)
    assert len(told) == 3 * len(CHANGING)


def test_the_values_of_a_row_are_left_out_where_errors_leave_them_out() -> None:
    conf = {**CONF, "topology.error.values": False}
    assert {reason for _, reason in found(build(Numbers()), conf)} == {
        "each Numbers in partition 0 returned a different row 1 in a second run"
    }


def test_the_first_operation_that_differs_is_named_with_its_row() -> None:
    told = found(build(lambda word: [word.lower()], Numbers(), lambda n: [random.random()]))
    assert [txid for txid, _ in told] == [1, 2, 3]
    assert told[0][1].startswith("each test_the_first_operation_that_differs_is_named_with_its_row.<locals>.<lambda>")
    assert told[1][1] == (
        "each Numbers in partition 0 returned a different row 1 in a second run: first (w2=12), then (w2=1) "
        "(also: each test_the_first_operation_that_differs_is_named_with_its_row.<locals>.<lambda>)"
    )


def test_a_steady_topology_is_told_nothing_and_stores_the_same() -> None:
    state = MemoryMapState.Factory()
    topology = TridentTopology()
    spout = FixedBatchSpout(Fields("word", "n"), 2, ("a", 1), ("b", 2), (None, 3), ("a", 4))
    stream = topology.newStream("words", spout).each("word", FilterNull())
    day = datetime.date(2026, 1, 1)
    stream = stream.map(lambda tuple: [tuple[0] * 2, tuple[1], day, {"a", "b"}], ["word", "n", "day", "set"])
    stream = stream.filter("n", lambda n: n > 0).groupBy("word").aggregate("n", Sum(), "total")
    stream.groupBy("word").persistentAggregate(state, "total", Sum(), "sum")
    assert found(topology) == []
    assert {key: value.curr for key, value in stored(state).items()} == {("aa",): 5, ("bb",): 2}


@pytest.mark.parametrize("aggregator", [Attempts(), Draws()], ids=["attempt", "random"])
def test_an_aggregate_that_differs_is_named(aggregator: Any) -> None:
    topology = TridentTopology()
    spout = FixedBatchSpout(Fields("word"), 3, *[(word,) for word in WORDS])
    stream = topology.newStream("words", spout).aggregate("word", aggregator, "found")
    stream.groupBy("found").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    told = found(topology)
    assert told
    assert all("aggregate" in reason and "returned a different row 1" in reason for _, reason in told), told


def test_only_the_sampled_batches_run_twice(tmp_path: Path) -> None:
    def touch(word: str) -> list:
        (tmp_path / f"{os.getpid()}-{uuid.uuid4()}").touch()
        return [random.random()]

    told = found(build(touch, batches=5), {"topology.determinism.check": 2})
    assert [txid for txid, _ in told] == [2, 4]
    by_process = [path.name.partition("-")[0] for path in tmp_path.iterdir()]
    assert sorted(map(by_process.count, set(by_process))) == [2 * len(WORDS), 5 * len(WORDS)]


def test_without_the_setting_nothing_runs_twice() -> None:
    assert found(build(CHANGING["random"]), {"other": 1}) == []


def test_what_cannot_travel_is_told_once() -> None:
    generator = (n for n in range(9))
    told = found(build(lambda word: [next(generator, 0)]))
    assert len(told) == 1
    assert "cannot be sent to another process" in told[0][1]


def test_a_second_process_that_dies_does_not_end_the_run(monkeypatch: Any) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    told = found(build(Dies()))
    assert len(told) == 3
    assert all("could not be run a second time" in reason for _, reason in told)


def test_a_second_run_without_end_holds_up_no_batch(monkeypatch: Any) -> None:
    """As one that waits for a lock that only the first process gives back."""
    monkeypatch.setattr(shadow_run, "LONGEST", 1.0)

    def waits(word: str) -> list:
        if os.environ.get("PYTHONHASHSEED") in ("4711", "1742"):
            threading.Event().wait()
        return [word]

    told = found(build(waits, batches=1))
    assert [(txid, "took longer than 1 s" in reason) for txid, reason in told] == [(1, True)]


def test_after_a_second_process_has_died_another_one_runs_the_next_batch(tmp_path: Path) -> None:
    def dies_once(word: str) -> list:
        if os.environ.get("PYTHONHASHSEED") in ("4711", "1742") and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os._exit(3)
        return [word]

    assert [txid for txid, _ in found(build(dies_once))] == [1]


@pytest.mark.parametrize("every", [0, -1, "often", True, 1.5])
def test_a_sample_that_is_no_number_is_refused(every: Any) -> None:
    with pytest.raises(DefinitionError, match=r"topology\.determinism\.check is"):
        found(build(str.split), {"topology.determinism.check": every})


@pytest.fixture
def children() -> Iterator[Any]:
    psutil = pytest.importorskip("psutil")
    before = {each.pid for each in psutil.Process().children(recursive=True)}
    yield lambda: [each for each in psutil.Process().children(recursive=True) if each.pid not in before]


def test_the_second_process_ends_with_the_run(children: Any) -> None:
    assert found(build(CHANGING["random"]))
    assert children() == []


@pytest.mark.spark
def test_on_spark_it_is_named_too(spark_cluster: Any) -> None:
    topology = build(lambda word: [word.lower()], lambda word: [hash(word), random.random()])
    with spark_cluster() as cluster:
        running = cluster.submitTopology("checked", CONF, topology.build())
        assert running.awaitTermination(120)
        told = [event.reason for event in running.events if event.kind == "unsteady"]
    assert len(told) == 3
    assert all("<lambda>" in reason and "returned a different row 1" in reason for reason in told)
