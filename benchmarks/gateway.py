"""The events gateway: events/s and the 99th percentile of a request, with SQLite and MariaDB as stores.

Clients, gateway (one worker), broker and database share the machine. Every event is new, every client waits for its ACK
before it sends the next request, on one connection that stays open. A single post waits for two commits of the store,
so the disk alone (4 KB made durable) is measured beside them: no gateway is faster than twice that.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from testbed.kafka_broker import KafkaBroker
from testbed.service import free_port
from testbed.sql_servers import MariaDb

from .measure import measure
from .report import Figure, at_least, at_most

GROUP = "gateway"
CLIENTS = (1, 16, 64)
BATCH = 100
SECONDS = 4.0
WARM_UP = 1.0
PATIENCE = 30.0
WRITES = 500
STORES = ("SQLite", "MariaDB")


@contextmanager
def gateway(store: str, folder: Path) -> Iterator[int]:
    """The port of a gateway with a broker of its own."""
    with ExitStack() as stack:
        broker = stack.enter_context(KafkaBroker())
        url = f"sqlite:///{folder}/events.db"
        if store == "MariaDB":
            url = stack.enter_context(MariaDb(innodb_buffer_pool_size="256M")).url
        port = free_port()
        settings = {
            "kafka": {"bootstrap": broker.bootstrap, "topic": broker.create_topic("events", 2)}, "store": url,
            "port": port, "fingerprint": {"fields": ["sensor", "number"]},
            "event": {"required": {"sensor": "string", "number": "integer", "celsius": "number"}},
        }  # fmt: skip
        (folder / "events.yaml").write_text(json.dumps(settings))
        command = [sys.executable, "-m", "trident_py", "events", "serve", "--config", str(folder / "events.yaml")]
        running = subprocess.Popen(command, stdout=sys.stderr, stderr=sys.stderr)
        try:
            _until_healthy(port)
            yield port
        finally:
            running.terminate()
            running.wait(PATIENCE)


def _until_healthy(port: int) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
                return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


class Client:
    """One sensor hub: sends, waits for the ACK, sends the next."""

    def __init__(self, name: str, port: int, batch: int) -> None:
        self.name, self.port, self.batch = name, port, batch
        self.sent = 0
        self.took: list[tuple[float, float]] = []

    def body(self) -> bytes:
        events = [
            {"sensor": self.name, "number": self.sent + each, "celsius": 20.5, "time": "2013-07-01T12:00:00Z",
             "station": "EWR", "humidity": 57.1} for each in range(self.batch)
        ]  # fmt: skip
        self.sent += self.batch
        return json.dumps(events[0] if self.batch == 1 else events).encode()

    async def run(self, end: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        while (began := time.perf_counter()) < end:
            body = self.body()
            writer.write(b"POST /events HTTP/1.1\r\nHost: gateway\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            answer = json.loads(await reader.readexactly(length))
            accepted = answer.get("accepted", 0) if self.batch > 1 else int(answer["status"] == "accepted")
            if accepted != self.batch:
                raise AssertionError(f"not all were accepted: {str(answer)[:300]}")
            self.took.append((began, time.perf_counter() - began))
        writer.close()
        await writer.wait_closed()


async def _load(port: int, count: int, batch: int) -> dict[str, float]:
    run = f"{time.time_ns():x}"
    clients = [Client(f"{run}-{number}", port, batch) for number in range(count)]
    start = time.perf_counter() + WARM_UP
    await asyncio.gather(*(client.run(start + SECONDS) for client in clients))
    took = sorted(seconds for client in clients for began, seconds in client.took if began >= start)
    last = max(began + seconds for client in clients for began, seconds in client.took)
    return {
        "rate": len(took) * batch / (last - start), "p50": 1000 * took[len(took) // 2],
        "p99": 1000 * took[min(len(took) - 1, int(len(took) * 0.99))],
    }  # fmt: skip


def loads(store: str) -> list[list[Any]]:
    """[clients, events in a request, figures] for each load, on one gateway."""
    os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)
    with tempfile.TemporaryDirectory() as folder, gateway(store, Path(folder)) as port:
        return [[count, batch, asyncio.run(_load(port, count, batch))] for batch in (1, BATCH) for count in CLIENTS]


def disk() -> list[float]:
    """Milliseconds of each of many small writes that are made durable, in order of size."""
    took = []
    with tempfile.TemporaryFile(buffering=0) as file:
        for _ in range(WRITES):
            file.write(b"x" * 4096)
            began = time.perf_counter()
            os.fsync(file.fileno())
            took.append(1000 * (time.perf_counter() - began))
    return sorted(took)


def figures() -> Iterator[Figure]:
    for store in STORES:
        alone = measure("gateway.disk")
        note = f"median {alone[WRITES // 2]:.1f} ms; load average {os.getloadavg()[0]:.1f}"
        yield Figure(GROUP, f"the disk alone, before {store}: 99th percentile", alone[-WRITES // 100], "ms", note=note)
        for count, batch, found in measure("gateway.loads", store):
            what = "single posts" if batch == 1 else f"batches of {batch}"
            who = f"{store}, {count} client{'s' if count > 1 else ''}, {what}"
            rate: dict[str, Any] = at_least(found["rate"], 5_000) if batch > 1 and count == 16 else {}
            slow: dict[str, Any] = at_most(found["p99"], 50, " ms") if batch == 1 and count == 16 else {}
            yield Figure(GROUP, f"{who}: events", found["rate"], "events/s", **rate)
            note = f"median {found['p50']:.1f} ms"
            yield Figure(GROUP, f"{who}: 99th percentile", found["p99"], "ms", note=note, **slow)
