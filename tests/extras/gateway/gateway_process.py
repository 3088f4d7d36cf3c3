"""A real gateway in a process of its own, sensors that send until they see an ACK, and what Kafka holds then."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from testbed.service import free_port
from trident_py.kafka.clients import Cluster

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PATIENCE = 60
PAUSE = 0.05
FIELDS = ["sensor", "number"]


STARTED = "Application startup complete"


def event(number: int, **more: Any) -> dict[str, Any]:
    return {"sensor": f"sensor {number % 3}", "number": number, "celsius": number / 2, **more}


NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # httpx would read all certificates of the system for each client


def client() -> httpx.Client:
    return httpx.Client(timeout=20, verify=NO_TLS)


class Gateway:
    """``python -m trident_py events serve`` with a file of settings; ``kill_at`` runs the one that kills itself."""

    def __init__(self, folder: Path, broker: Any, store: str, topic: str | None = None, **settings: Any) -> None:
        self.port = free_port()
        self.bootstrap = broker.bootstrap
        self.topic = broker.create_topic() if topic is None else topic
        given = {
            "kafka": {"bootstrap": self.bootstrap, "topic": self.topic, "deliverySeconds": 1}, "store": store,
            "port": self.port, "fingerprint": {"fields": FIELDS}, "leaseSeconds": 1.5,
            "event": {"required": {"sensor": "string", "number": "integer"}, "optional": {"celsius": "number"}},
        }  # fmt: skip
        for name, value in settings.items():
            given[name] = {**given[name], **value} if isinstance(given.get(name), dict) else value
        self.file = folder / f"events-{self.port}.yaml"
        self.file.write_text(json.dumps(given))
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = self.file.with_suffix(".log")
        self.process: subprocess.Popen[bytes] | None = None
        self.workers: int = given.get("workers", 1)

    def start(self, kill_at: str = "", call: int = 0, healthy: bool = True) -> Gateway:
        command = [sys.executable, "-m", "trident_py", "events", "serve", "--config", str(self.file)]
        environment = {**os.environ, "PYTHONPATH": f"{HERE}{os.pathsep}{ROOT}"}
        if kill_at:
            command = [sys.executable, str(HERE / "gateway_killing.py"), str(self.file)]
            environment |= {"GATEWAY_KILL_AT": kill_at, "GATEWAY_KILL_CALL": str(call)}
        started = self.log.count(STARTED)
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT, env=environment)
        until(lambda: self.answers(healthy), self)
        if self.workers > 1:  # the first one answers for all
            until(lambda: self.log.count(STARTED) == started + self.workers, self)
        return self

    def answers(self, healthy: bool = True) -> bool:
        try:
            return self.get("/healthz").status_code == 200 or not healthy
        except httpx.TransportError:
            assert self.process is not None
            if self.process.poll() not in (None, -signal.SIGKILL):
                raise AssertionError(f"the gateway ended:\n{self.log[-3000:]}") from None
            return False

    def get(self, path: str) -> httpx.Response:
        with client() as http:
            return http.get(f"{self.url}{path}")

    def post(self, body: Any, **more: Any) -> httpx.Response:
        with client() as http:
            return http.post(f"{self.url}/events", **{"json": body, **more})

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def dead(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def stop(self) -> int:
        """In order, as SIGTERM does it; the exit code."""
        if self.process is None:
            return 0
        self.process.terminate()
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            self.process = None

    def __enter__(self) -> Gateway:
        return self if self.process is not None else self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def until(holds: Callable[[], Any], about: Any = "") -> Any:
    end = time.monotonic() + PATIENCE
    pause = threading.Event()
    while time.monotonic() < end:
        if found := holds():
            return found
        pause.wait(PAUSE)
    raise AssertionError(f"it never came to be: {getattr(about, 'log', about)}")


class Sent(NamedTuple):
    """What a sensor saw: the codes of all answers, None for a connection that broke."""

    codes: list[int | None]
    last: Any


def send(urls: Sequence[str], body: Any, tries: int = 10_000) -> Sent:
    """Sends one request until it is acknowledged, to each of the gateways in turn."""
    codes: list[int | None] = []
    pause = threading.Event()
    end = time.monotonic() + PATIENCE
    with client() as http:
        while len(codes) < tries and time.monotonic() < end:
            try:
                answer = http.post(f"{urls[len(codes) % len(urls)]}/events", json=body)
                codes.append(answer.status_code)
                if answer.status_code in (200, 201):
                    return Sent(codes, answer.json())
                assert answer.status_code == 503, answer.text
                assert int(answer.headers["Retry-After"]) >= 1
            except httpx.TransportError:
                codes.append(None)
            pause.wait(PAUSE)
    raise AssertionError(f"never acknowledged: {Counter(codes)}")


class Record(NamedTuple):
    key: str
    value: dict[str, Any]
    headers: dict[str, str]
    text: bytes


def records(bootstrap: str, topic: str) -> list[Record]:
    """Everything that the topic holds now."""
    from confluent_kafka import TopicPartition

    consumer = Cluster.of(bootstrap).consumer({"group.id": "reader", "enable.auto.commit": False})
    found: list[Record] = []
    try:
        partitions = consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
        all_of_it = [TopicPartition(topic, each, 0) for each in partitions]
        count = sum(consumer.get_watermark_offsets(each, timeout=PATIENCE)[1] for each in all_of_it)
        consumer.assign(all_of_it)
        while len(found) < count:
            for each in consumer.consume(500, 0.1):
                assert each.error() is None, each.error()
                headers = {name: value.decode() for name, value in each.headers()}
                found.append(Record(each.key().decode(), json.loads(each.value()), headers, each.value()))
    finally:
        consumer.close()
    return found
