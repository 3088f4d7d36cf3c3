"""What the page of a run costs: batches of 1,000 sentences on LocalCluster with it, while nobody looks and while it is
open and its metrics are read each second, against the same without it."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

from trident_py import LocalCluster, TridentTopology
from trident_py.config import Config
from trident_py.operations.builtin import Count
from trident_py.report.progress import RunningTopology
from trident_py.testing import FixedBatchSpout, MemoryMapState, Split

from .measure import interleaved, ratio
from .ours import Laps
from .report import Figure, at_most, median

GROUP = "page"
SIZE = 1_000
BATCHES = 400
WARM_UP = 50
BAR = 1.01


def seconds(page: bool, readers: bool) -> list[float]:
    generator = random.Random(SIZE)
    vocabulary = [f"word{number:05d}" for number in range(10_000)]
    rows = [(" ".join(generator.choices(vocabulary, k=6)),) for _ in range(BATCHES * SIZE)]
    topology = TridentTopology()
    words = topology.newStream("in", FixedBatchSpout("sentence", SIZE, *rows)).each("sentence", Split(), "word")
    words.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count").parallelismHint(2)
    with LocalCluster() as cluster:
        running = cluster.submitTopology("bench", {Config.TOPOLOGY_HTTP: 0} if page else {}, topology.build())
        laps = Laps(running)
        for read in (_read_page, _read_metrics) if readers else ():
            threading.Thread(target=read, args=(running,), daemon=True).start()
        running.awaitTermination()
    return laps.seconds[WARM_UP:]


def _ask(running: RunningTopology, path: str) -> Any:
    connection = HTTPConnection(running.http.removeprefix("http://"))
    connection.request("GET", path)
    return connection.getresponse()


def _read_page(running: RunningTopology) -> None:
    for _ in _ask(running, "/api/stream"):
        pass


def _read_metrics(running: RunningTopology) -> None:
    while not running.awaitTermination(1.0):
        _ask(running, "/metrics").read()


def figures() -> Iterator[Figure]:
    sides = {"none": (False, False), "nobody looks": (True, False), "open, metrics read": (True, True)}
    found = interleaved({side: ("page.seconds", *given) for side, given in sides.items()}, median)
    for side, medians in found.items():
        more: Any = {}
        if side != "none":
            more = {"against": "no page", "ratio": ratio(medians, found["none"])}
            more |= at_most(more["ratio"], BAR) if side == "nobody looks" else {}
        yield Figure(GROUP, f"{SIZE:,} sentences, {side}", 1000 * median(medians), "ms", **more)
