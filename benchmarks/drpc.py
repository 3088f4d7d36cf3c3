"""DRPC: milliseconds of the word query of TridentWordCount and requests/s, while batches run on Spark.

Four words a request, over a memory state and a SQLite state of two partitions each. The batches have 100 sentences. The
clients in process are threads of the driver; those over HTTP are coroutines of another process, each with a connection
that stays open. Every client waits for its answer before it asks again.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from states.sql import SqlMapState
from trident_py import LocalDRPC, SparkCluster, TridentTopology
from trident_py.operations.builtin import Count, FilterNull, MapGet, Sum
from trident_py.testing import FeederBatchSpout, MemoryMapState, Split

from .measure import measure
from .report import Figure, at_most

GROUP = "drpc"
CLIENTS = (1, 16)
SECONDS = 5.0
WARM_UP = 1.0
SENTENCES = 100
WORDS = [f"word{number}" for number in range(200)]
STATES = ("memory", "SQLite")


def asked() -> str:
    return " ".join(random.choices(WORDS, k=4))


@contextmanager
def running(state: str) -> Iterator[tuple[LocalDRPC, int, Any]]:
    """A word count on Spark with batches without end: its LocalDRPC, the port of its server, its run."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        factory: Any = MemoryMapState.Factory()
        if state == "SQLite":
            factory = SqlMapState.opaque(f"sqlite:///{folder}/counts.db", "counts", "word string", "n bigint")
        drpc, topology, feeder = LocalDRPC(), TridentTopology(), FeederBatchSpout("sentence")
        words = topology.newStream("sentences", feeder).each("sentence", Split(), "word").groupBy("word")
        counts = words.persistentAggregate(factory, Count(), "n").parallelismHint(2)
        query = topology.newDRPCStream("words", drpc).each("args", Split(), "word").groupBy("word")
        found = query.stateQuery(counts, "word", MapGet(), "n").each("n", FilterNull())
        found.aggregate("n", Sum(), "sum")
        cluster = stack.enter_context(SparkCluster(checkpoints=str(Path(folder) / "checkpoints")))
        run = cluster.submitTopology("words", {"drpc.http.port": 0}, topology.build())
        over = threading.Event()
        feeding = threading.Thread(target=_feed, args=(feeder, over))
        feeding.start()
        try:
            yield drpc, int(run.requests.url.split(":")[2].split("/")[0]), run  # type: ignore[union-attr]
        finally:
            over.set()
            feeding.join()


def _feed(feeder: FeederBatchSpout, over: threading.Event) -> None:
    while not over.is_set():
        feeder.feed([(asked(),) for _ in range(SENTENCES)], timeout=120)


def figures_of(took: list[tuple[float, float]], start: float) -> dict[str, float]:
    seconds = sorted(lasted for began, lasted in took if began >= start)
    last = max(began + lasted for began, lasted in took)
    return {
        "rate": len(seconds) / (last - start), "p50": 1000 * seconds[len(seconds) // 2],
        "p99": 1000 * seconds[min(len(seconds) - 1, int(len(seconds) * 0.99))],
    }  # fmt: skip


def in_process(drpc: LocalDRPC, count: int) -> dict[str, float]:
    took: list[tuple[float, float]] = []
    start = time.perf_counter() + WARM_UP

    def client() -> None:
        while (began := time.perf_counter()) < start + SECONDS:
            drpc.execute("words", asked())
            took.append((began, time.perf_counter() - began))

    threads = [threading.Thread(target=client) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return figures_of(took, start)


def over_http(port: int, count: int) -> dict[str, float]:
    """Runs in a process of its own."""
    return asyncio.run(_clients(port, count))


async def _clients(port: int, count: int) -> dict[str, float]:
    took: list[tuple[float, float]] = []
    start = time.perf_counter() + WARM_UP
    await asyncio.gather(*(_client(port, start + SECONDS, took) for _ in range(count)))
    return figures_of(took, start)


async def _client(port: int, end: float, took: list[tuple[float, float]]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (began := time.perf_counter()) < end:
        body = asked().encode()
        writer.write(b"POST /drpc/words HTTP/1.1\r\nHost: drpc\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        answer = json.loads(await reader.readexactly(length))
        if not head.startswith(b"HTTP/1.1 200"):
            raise AssertionError(answer)
        took.append((began, time.perf_counter() - began))
    writer.close()
    await writer.wait_closed()


def loads(state: str) -> list[list[Any]]:
    """[way, clients, figures, batches meanwhile] for each load, on one run."""
    with running(state) as (drpc, port, run):
        while not run.txid:
            time.sleep(0.05)
        found = []
        for count in CLIENTS:
            for way in ("in process", "HTTP"):
                before = run.txid
                figures = in_process(drpc, count) if way == "in process" else measure("drpc.over_http", port, count)
                found.append([way, count, figures, run.txid - before])
        return found


def figures() -> Iterator[Figure]:
    for state in STATES:
        for way, count, found, batches in measure("drpc.loads", state):
            who = f"{state}, {way}, {count} client{'s' if count > 1 else ''}"
            note = f"{batches} batches meanwhile"
            bar: dict[str, Any] = at_most(found["p50"], 5 if way == "in process" else 15, " ms")
            yield Figure(GROUP, f"{who}: median", found["p50"], "ms", note=note, **bar)
            yield Figure(GROUP, f"{who}: 99th percentile", found["p99"], "ms")
            yield Figure(GROUP, f"{who}: requests", found["rate"], "requests/s")
