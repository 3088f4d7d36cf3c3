"""Group small: the same word count by size of the batch, on Storm, on Spark and in one process; where the time goes.

Sentences of 6 words from a uniform vocabulary of 10,000; from memory into a state in memory; rates are those of the
second half of a run. Every run's counts are compared with the right ones.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from testbed.service import ServiceMissing

from . import data, small_runs, storm_runs
from .measure import MeasurementFailed, measure
from .report import Figure, at_least, machine

GROUP = "small"
VOCABULARY = 10_000
TOTAL = 1_000_000
BATCHES = {1_000: 1_200, 10_000: 240, 100_000: 60, 1_000_000: 16}
IN_FLIGHT = (1, 4)
OURS = (("SparkCluster", "function"), ("SparkCluster", "callable"), ("SparkCluster", "builtin"),
        ("LocalCluster", "function"), ("LocalCluster", "builtin"))  # fmt: skip
PROFILES = {
    "word count": ("profile_of_words", (1_000, "function")),
    "Kafka to MariaDB": ("profile_of_kafka", (1_000,)),
    "three states on MariaDB": ("profile_of_states", (1_000,)),
}
SHOWN = 0.01  # of the whole batch


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="trident-bench-") as folder:
        path = str(data.sentences(Path(folder), TOTAL, files=1, vocabulary=VOCABULARY)[0])
        yield from by_size(path)
        for name, (function, arguments) in PROFILES.items():
            for where in ("SparkCluster", small_runs.JOBS, "LocalCluster"):
                yield from profile(f"{name}, {where}", measure(f"small_runs.{function}", path, *arguments, where))


def by_size(path: str) -> Iterator[Figure]:
    rows = []
    storm_is_there = can_run_storm()
    for size, batches in BATCHES.items():
        storm = best_of_storm(path, size, batches) if storm_is_there else None
        if storm is not None:
            yield Figure(GROUP, f"{size:,} sentences: Storm", storm, "sentences/s")
        for where, kind in OURS:
            ours = rate(size, measure("small_runs.words", path, size, batches, kind, where))
            ratio = None if storm is None else ours / storm
            asked: Any = {} if ratio is None else at_least(ratio, 1.0)
            name = f"{size:,} sentences: {where}, {kind}"
            yield Figure(GROUP, name, ours, "sentences/s", "Storm", ratio, **asked)
            rows.append((size, storm, f"{where}, {kind}", ours, ratio))
    print_sizes(rows)


def can_run_storm() -> bool:
    try:
        storm_runs.jars()
    except ServiceMissing as missing:
        print(f"Storm is left out: {missing}", file=sys.stderr)
        return False
    return True


def best_of_storm(path: str, size: int, batches: int) -> float | None:
    """The better of the numbers of batches in flight; None if Storm fails with a batch of this size."""
    found = []
    for pending in IN_FLIGHT:
        try:
            found.append(rate(size, measure("small_runs.on_storm", path, size, batches, pending)))
        except MeasurementFailed as error:
            print(f"Storm, {size:,} sentences, {pending} in flight: {error}", file=sys.stderr)
    return max(found, default=None)


def rate(size: int, measured: dict[str, Any]) -> float:
    """Sentences per second in the second half of a run. Raises MeasurementFailed if it has counted wrong."""
    if not measured["exact"]:
        raise MeasurementFailed(f"the counts are wrong with batches of {size:,}")
    second = measured["seconds"][len(measured["seconds"]) // 2 :]
    return size * len(second) / sum(second)


def profile(name: str, phases: list[dict[str, Any]]) -> Iterator[Figure]:
    """The phases that take a share worth a line, in the order of a batch; the ratio is the share."""
    for row in phases:
        if abs(row["share"]) >= SHOWN:
            phase = f"{row['phase']}: {row['of']}" if row["of"] else row["phase"]
            yield Figure(GROUP, f"{name}: {phase}", 1000 * row["seconds"], "ms", "the batch", row["share"])


def print_sizes(rows: list[tuple[int, float | None, str, float, float | None]]) -> None:
    """Each size, Storm's rate and ours, with the milliseconds of a batch."""
    table = Table(title=f"sentences/s and ms per batch ({machine()})", title_justify="left")
    for heading in ("batch", "Storm", "", "ours", "ratio"):
        table.add_column(heading, justify="left" if heading == "" else "right")
    for size, storm, who, ours, ratio in rows:
        table.add_row(f"{size:,}", shown(size, storm), who, shown(size, ours), "" if ratio is None else f"{ratio:.2f}")
    Console(file=sys.stderr, width=120).print(table)


def shown(size: int, per_second: float | None) -> str:
    return "-" if per_second is None else f"{per_second:,.0f}/s ({1000 * size / per_second:,.0f} ms)"
