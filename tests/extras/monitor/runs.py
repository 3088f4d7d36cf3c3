"""Runs with a page, and what they answer."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from trident_py import Fields, TridentTopology
from trident_py.errors import FailedException
from trident_py.operations import BaseFunction
from trident_py.operations.builtin import Count
from trident_py.testing import FeederBatchSpout, MemoryMapState

FIELDS = Fields("word string")


class Checked(BaseFunction):
    """Fails each batch with "bad" in it once, with the reason that stands behind it; ends the run at "worse"."""

    def execute(self, tuple: Any, collector: Any) -> None:
        word = tuple[0]
        if word.startswith("bad") and self.attempt.attemptId == 0:
            raise FailedException(word)
        if word == "worse":
            raise ValueError("no such word: worse")
        collector.emit([word.upper()])

    def prepare(self, conf: dict, context: Any) -> None:
        self.context = context

    @property
    def attempt(self) -> Any:
        return self.context.transaction


def counting(feeder: FeederBatchSpout, stream: str = "words") -> TridentTopology:
    topology = TridentTopology()
    words = topology.newStream(stream, feeder).each("word", Checked(), "upper")
    words.groupBy("upper").persistentAggregate(MemoryMapState.Factory(), Count(), "count", stateName="counts")
    return topology


def get(url: str, path: str, method: str = "GET", body: str | None = None, **headers: str) -> tuple[int, Any]:
    """The status and the answer: JSON, or text."""
    status, content, text = fetch(url, path, method, body, **headers)
    return status, json.loads(text) if content.startswith("application/json") else text


def fetch(url: str, path: str, method: str = "GET", body: str | None = None, **headers: str) -> tuple[int, str, str]:
    host, port = url.removeprefix("http://").rsplit(":", 1)
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=30)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, response.headers["content-type"], response.read().decode()
    finally:
        connection.close()


def samples(url: str) -> dict[str, float]:
    """The metrics, by name and labels: ``trident_batches_total{component=words,outcome=committed}``."""
    found = {}
    for family in text_string_to_metric_families(get(url, "/metrics")[1]):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def until(condition: Callable[[], Any], seconds: float = 30) -> Any:
    """What the condition returns, once that is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not become true"
        time.sleep(0.02)
    return found
