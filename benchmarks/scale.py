"""Group scale: what a batch sends, asks and costs with 2 to 128 partitions, and after 400 batches; the cost model.

Spout and state have so many partitions each, one exchange between them, the state is on MariaDB. On two cores no number
of partitions is faster than another: the figures are what more partitions cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from .measure import measure
from .report import Figure, at_most, median

GROUP = "scale"
SMALL = ((2, 12), (8, 12), (32, 10), (128, 8))
LARGE = ((8, 1_000_000, 9), (32, 1_000_000, 8), (128, 1_000_000, 7))
BATCHES, PARTITIONS = 400, 8
Values = dict[str, float]
Run = tuple[int, int, Values]


def figures() -> Iterator[Figure]:
    sizes = [(partitions, partitions) for partitions, _ in SMALL] + [(p, tuples) for p, tuples, _ in LARGE]
    counts = [(p, tuples, measure("scale_counts.counted", p, tuples)) for p, tuples in sizes]
    for run in counts:
        yield from _of_a_batch(*run)
    yield from _counts_model(counts[: len(SMALL)])
    yield from _over_batches()
    runs: list[Run] = []
    for partitions, tuples, batches in [*((p, p, n) for p, n in SMALL), *LARGE]:
        runs.append((partitions, tuples, measure("scale_runs.one", partitions, tuples, batches)))
        yield from _of_a_batch(*runs[-1])
    yield from _cost_model(runs)
    yield from _over_time()


def _of_a_batch(partitions: int, tuples: int, values: Values) -> Iterator[Figure]:
    for name, value in values.items():
        yield Figure(GROUP, f"{name}: {partitions} partitions, {tuples:,} tuples", value, "per batch")


def _counts_model(runs: Sequence[Run]) -> Iterator[Figure]:
    """Fixed + each partition, over the batches of a tuple for each partition. ``note``: how far a value is off."""
    for name in runs[0][2]:
        (fixed, each), error = fitted([[1, p] for p, _, _ in runs], [values[name] for _, _, values in runs])
        yield Figure(GROUP, f"model: {name}, fixed", fixed, "per batch", note=f"off by at most {error:.0%}")
        yield Figure(GROUP, f"model: {name}, each partition", each, "per batch")


def _cost_model(runs: Sequence[Run]) -> Iterator[Figure]:
    """Fixed + each partition + each tuple, over all runs."""
    terms = ("fixed", "each partition", "each million tuples")
    for name in (name for name in runs[0][2] if name.endswith(" ms")):
        rows, values = [[1, p, t / 1e6] for p, t, _ in runs], [run[name] for _, _, run in runs]
        found, error = fitted(rows, values)
        for of, value in zip(terms, found, strict=True):
            yield Figure(GROUP, f"model: {name}, {of}", value, "ms/batch", note=f"off by at most {error:.0%}")


def fitted(rows: Sequence[Sequence[float]], values: Sequence[float]) -> tuple[list[float], float]:
    """The coefficients by least squares of the relative errors, and the largest of these errors."""
    matrix, wanted = np.array(rows, float), np.array(values, float)
    weights = 1 / np.maximum(np.abs(wanted), 1e-9 + np.abs(wanted).max() / 1000)
    terms = np.linalg.lstsq(matrix * weights[:, None], wanted * weights, rcond=None)[0]
    return terms.tolist(), float(np.max(np.abs(matrix @ terms - wanted) * weights))


def _over_batches() -> Iterator[Figure]:
    yield from _first_and_last(measure("scale_counts.over_batches", BATCHES, PARTITIONS))


def _over_time() -> Iterator[Figure]:
    seen = measure("scale_runs.over_time", BATCHES, 2, timeout=3600)
    sent = {name: [batch[name] for batch in seen["sent"]] for name in seen["sent"][0]}
    yield from _first_and_last({**sent, "seconds on Spark": seen["seconds"]})
    for after, left in seen["left"].items():
        for name, value in left.items():
            yield Figure(GROUP, f"{name} after batch {after}", value, "")


def _first_and_last(values: Mapping[str, Sequence[float]]) -> Iterator[Figure]:
    """The last 50 batches against those from 10 to 50."""
    for name, taken in values.items():
        early, late = median(taken[10:50]), median(taken[-50:])
        ratio = late / early if early else 1.0 + late
        met = at_most(ratio, 1.1)
        yield Figure(GROUP, f"{name}, last 50 of {BATCHES}", late, "per batch", "10 to 50", ratio, **met)  # type: ignore[arg-type]
