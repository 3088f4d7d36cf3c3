"""Group 5: LocalCluster, and the memory of a worker for a batch of 1M tuples."""

from __future__ import annotations

from collections.abc import Iterator

from .measure import measure
from .report import Figure

GROUP = "LocalCluster"


def figures() -> Iterator[Figure]:
    yield Figure(GROUP, "tiny batches", measure("ours.local_batches", 2_000), "batches/s")
    yield Figure(GROUP, "each, groupBy, count", measure("ours.local_tuples", 1_000_000), "tuples/s")
    empty, full = measure("ours.worker_memory", 1_000), measure("ours.worker_memory", 1_000_000)
    yield Figure("Spark", "worker, batch of 1,000 tuples", empty, "MB")
    yield Figure("Spark", "worker, batch of 1,000,000 tuples", full, "MB")
