"""What the page of a run costs batches of 1,000 sentences on LocalCluster: what it is told of each batch, and what it
answers to a browser and to Prometheus each second. In processor time, so that other load counts little."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from trident_py import LocalCluster, TridentTopology
from trident_py.config import Config
from trident_py.extras.monitor.metrics import text_of
from trident_py.extras.monitor.monitor import Monitor
from trident_py.extras.monitor.run_record import RunRecord
from trident_py.extras.monitor.timeline import Timeline
from trident_py.extras.monitor.views import live
from trident_py.operations.builtin import Count
from trident_py.testing import FixedBatchSpout, MemoryMapState, Split

from .measure import measure
from .report import Figure, at_most, median

GROUP = "page"
SIZE = 1_000
BATCHES = 400
WARM_UP = 50
BAR = 1.01


class Timed:
    """A function, and the processor time of its calls since it was last asked."""

    seconds = 0.0

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __get__(self, owner: Any, kind: type) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            began = time.thread_time()
            try:
                return self._function(owner, *args)
            finally:
                Timed.seconds += time.thread_time() - began

        return call


def costs() -> dict[str, float]:
    """Seconds: of a batch, of what the page is told in it, of an answer to the browser, and to Prometheus."""
    Timeline.at, RunRecord._record = Timed(Timeline.at), Timed(RunRecord._record)  # type: ignore[method-assign, assignment]
    laps: list[tuple[float, float]] = []
    records: list[RunRecord] = []
    begin = Monitor.begin

    def begin_and_count(monitor: Monitor, running: Any) -> None:
        begin(monitor, running)
        records.append(monitor.record)
        running.addListener(lambda event, progress: laps.append((time.process_time(), Timed.seconds)))

    Monitor.begin = begin_and_count  # type: ignore[method-assign, assignment]
    with LocalCluster() as cluster:
        cluster.submitTopology("bench", {Config.TOPOLOGY_HTTP: 0}, _word_count().build()).awaitTermination()
    lasted = [(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(laps)]
    batches, told = zip(*lasted[WARM_UP:-1], strict=True)
    reads = {"browser": lambda: json.dumps(live(records[0]), default=str), "prometheus": lambda: text_of(records[0])}
    return {"batch": median(batches), "told": median(told), **{name: _time(read) for name, read in reads.items()}}


def _word_count() -> TridentTopology:
    generator = random.Random(SIZE)
    vocabulary = [f"word{number:05d}" for number in range(10_000)]
    rows = [(" ".join(generator.choices(vocabulary, k=6)),) for _ in range(BATCHES * SIZE)]
    topology = TridentTopology()
    words = topology.newStream("in", FixedBatchSpout("sentence", SIZE, *rows)).each("sentence", Split(), "word")
    words.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count").parallelismHint(2)
    return topology


def _time(read: Callable[[], Any]) -> float:
    found = []
    for _ in range(20):
        began = time.thread_time()
        read()
        found.append(time.thread_time() - began)
    return median(found)


def figures() -> Iterator[Figure]:
    found = measure("page.costs")
    whole, told = found["batch"], found["told"]
    yield Figure(GROUP, f"{SIZE:,} sentences, with a page", 1000 * whole, "ms")
    more: Any = at_most(whole / (whole - told), BAR)
    yield Figure(GROUP, "of it: what the page is told", 1e6 * told, "us", "no page", whole / (whole - told), **more)
    for name in ("browser", "prometheus"):
        yield Figure(GROUP, f"an answer to {name}, once a second", 1000 * found[name], "ms")
