"""Metrics of a run for Prometheus. They are read from what is recorded when somebody asks; a batch pays nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from .operations import oldest_of
from .run_record import RunRecord
from .timeline import SECONDS, Buckets, Timeline


class RunCollector(Collector):
    """The metrics of one run."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record

    def collect(self) -> Iterator[Metric]:
        lines = list(self._record.timelines.values())
        for line in lines:
            line.lock.acquire()
        try:
            metrics = [*_batches(lines), *_tuples(lines), *_states(lines), _users(lines)]
        finally:
            for line in lines:
                line.lock.release()
        return iter(metrics)


def text_of(record: RunRecord) -> bytes:
    """Return the text of /metrics."""
    registry = CollectorRegistry()
    registry.register(RunCollector(record))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


def _batches(lines: Iterable[Timeline]) -> Iterator[Metric]:
    label = ["component"]
    txid = GaugeMetricFamily("trident_txid", "The last committed txid", labels=label)
    attempts = CounterMetricFamily("trident_attempts", "Attempts of batches", labels=label)
    outcomes = CounterMetricFamily("trident_batches", "Attempts by their outcome", labels=[*label, "outcome"])
    last = GaugeMetricFamily("trident_last_commit_timestamp_seconds", "When a batch was last committed", labels=label)
    letters = CounterMetricFamily("trident_dead_letters", "Tuples excluded from their batches", labels=label)
    seconds = HistogramMetricFamily("trident_batch_seconds", "Of committed batches", labels=[*label, "phase"])
    for line in lines:
        of = [line.component]
        txid.add_metric(of, line.progress.txid or 0)
        attempts.add_metric(of, line.attempts)
        letters.add_metric(of, line.progress.dead_letters)
        for outcome in sorted({"committed", "replay", *line.outcomes}):
            outcomes.add_metric([*of, outcome], line.outcomes[outcome])
        if line.committed is not None:
            last.add_metric(of, line.committed)
        for phase, buckets in line.buckets.items():
            seconds.add_metric([*of, phase], _cumulate(buckets), sum_value=buckets.sum)
    yield from (txid, attempts, outcomes, last, letters, seconds)


def _cumulate(buckets: Buckets) -> list[tuple[str, float]]:
    bounds = [*map(floatToGoString, SECONDS), "+Inf"]
    return [(bound, sum(buckets.counts[: at + 1])) for at, bound in enumerate(bounds)]


def _tuples(lines: Iterable[Timeline]) -> Iterator[Metric]:
    emitted = CounterMetricFamily("trident_tuples", "Tuples in committed batches", labels=["spout"])
    backlog = GaugeMetricFamily("trident_backlog", "Records behind the last batch, if it can be told", labels=["spout"])
    oldest = GaugeMetricFamily("trident_oldest_seconds", "How long the oldest of them waits", labels=["spout"])
    for line in lines:
        for spout, number in dict(line.progress.emitted).items():
            emitted.add_metric([spout], number)
        for spout, waiting in line.progress.backlog.items():
            backlog.add_metric([spout], sum(waiting.values()))
            oldest.add_metric([spout], oldest_of(line.batches, spout, line.now()) or 0.0)
    yield from (emitted, backlog, oldest)


def _states(lines: Iterable[Timeline]) -> Iterator[Metric]:
    rows = CounterMetricFamily("trident_rows", "Tuples that reached a state", labels=["state", "outcome"])
    generation = GaugeMetricFamily("trident_generation", "The fencing token of this driver", labels=["state"])
    for line in lines:
        for outcome, counts in (("persisted", line.progress.persisted), ("new_values", line.progress.new_values)):
            for state, number in dict(counts).items():
                rows.add_metric([state, outcome], number)
        for state, number in line.progress.generations.items():
            generation.add_metric([state], number)
    yield from (rows, generation)


def _users(lines: Iterable[Timeline]) -> Metric:
    """Return the metrics of user code, each number of them with the way to it."""
    found = GaugeMetricFamily("trident_user", "Metrics of user code", labels=["component", "name", "field"])
    for line in lines:
        for name, value in line.progress.metrics.items():
            for field, number in dict(_numbers(value)).items():
                labels = (each.encode("utf-8", "backslashreplace").decode() for each in (line.component, name, field))
                found.add_metric(list(labels), number)
    return found


def _numbers(value: Any, way: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _numbers(each, f"{way}.{key}".lstrip("."))
    elif isinstance(value, int | float):
        with suppress(OverflowError):  # of a whole number: it has no sample
            yield way, float(value)
