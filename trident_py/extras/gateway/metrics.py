"""Counters and times for Prometheus, over all workers of a gateway.

With several workers each one keeps its numbers in files of a shared folder (prometheus_client's multiprocess mode;
`serve` makes the folder and sets PROMETHEUS_MULTIPROC_DIR). So any worker answers /metrics for all, and the numbers of
a dead worker stay.
"""

from __future__ import annotations

import os
from collections import Counter as Counts
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from .answers import EventAnswer

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
_ANSWERS = {
    "received": "Events received",
    "accepted": "Events accepted: they are in Kafka now",
    "duplicate": "Events that were in Kafka already",
    "conflict": "Events whose fingerprint belongs to another event",
    "invalid": "Events refused as invalid",
    "retry": "Events that their sender must send again",
}


class Metrics:
    """The numbers of one worker."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._answers = {
            status: Counter(f"trident_events_{status}", text, registry=self._registry)
            for status, text in _ANSWERS.items()
        }
        self._taken = Counter(
            "trident_events_taken_over", "Claims taken over after their lease had ended", registry=self._registry
        )
        self._errors = Counter(
            "trident_events_errors", "Events or calls that failed", ["where"], registry=self._registry
        )
        for where in ("kafka", "store", "internal"):
            self._errors.labels(where)
        steps = ("request", "claim", "kafka", "status")
        seconds = Histogram(
            "trident_events_seconds", "Time of a request, and of its steps", ["step"], buckets=SECONDS,
            registry=self._registry,
        )  # fmt: skip
        self._seconds = {step: seconds.labels(step) for step in steps}

    def count_answers(self, answers: Sequence[EventAnswer]) -> None:
        self._answers["received"].inc(len(answers))
        for status, count in Counts(answer.status for answer in answers).items():
            self._answers[status].inc(count)

    def count_taken_over(self, count: int) -> None:
        self._taken.inc(count)

    def count_failure(self, where: str, count: int = 1) -> None:
        self._errors.labels(where).inc(count)

    def took(self, step: str, seconds: float) -> None:
        self._seconds[step].observe(seconds)

    def text(self) -> bytes:
        """Return the text of /metrics."""
        if FOLDER not in os.environ:
            return generate_latest(self._registry)
        all_workers = CollectorRegistry()
        MultiProcessCollector(all_workers)
        return generate_latest(all_workers)
