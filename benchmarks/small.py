"""Group small: the same word count by size of the batch, on Storm, on Spark and in one process; where the time goes.

Sentences of 6 words from a uniform vocabulary of 10,000; from memory into a state in memory; rates are those of the
second half of a run. Every run's counts are compared with the right ones.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from testbed.service import ServiceMissing

from . import data, ours, storm_runs
from .measure import MeasurementFailed, interleaved, measure, ratio
from .report import Figure, at_least, machine, median

GROUP = "small"
VOCABULARY = 10_000
TOTAL = 1_000_000
BATCHES = {1: 2_000, 100: 1_600, 1_000: 1_200, 10_000: 240, 100_000: 60, 1_000_000: 16}
IN_FLIGHT = (1, 4)
TASKS = (1, 2)
STORM = "Storm"
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
            for where in ("SparkCluster", ours.JOBS, "LocalCluster"):
                yield from profile(f"{name}, {where}", measure(f"small_runs.{function}", path, *arguments, where))


def by_size(path: str) -> Iterator[Figure]:
    rows = []
    storm_is_there = can_run_storm()
    for size, batches in BATCHES.items():
        sides: dict[str, Any] = {
            f"{where}, {kind}": ("small_runs.words", path, size, batches, kind, where) for where, kind in OURS
        }
        if storm_is_there:
            sides |= best_of_storm(path, size, batches)
        rates = interleaved(sides, partial(rate, size))
        storm = rates.pop(STORM, None)
        if storm is not None:
            yield Figure(GROUP, f"{size:,} sentences: Storm", median(storm), "sentences/s")
        for side, found in rates.items():
            to_storm = None if storm is None else ratio(found, storm)
            asked: Any = {} if to_storm is None else at_least(to_storm, 1.0)
            yield Figure(GROUP, f"{size:,} sentences: {side}", median(found), "sentences/s", "Storm", to_storm, **asked)
            rows.append((size, None if storm is None else median(storm), side, median(found), to_storm))
    print_sizes(rows)


def can_run_storm() -> bool:
    try:
        storm_runs.jars()
    except ServiceMissing as missing:
        print(f"Storm is left out: {missing}", file=sys.stderr)
        return False
    return True


def best_of_storm(path: str, size: int, batches: int) -> dict[str, Any]:
    """Storm's call with the batches in flight and the tasks that are quickest for this size; empty if all of them
    fail."""
    found = {}
    for pending, tasks in product(IN_FLIGHT, TASKS):
        call = ("small_runs.on_storm", path, size, batches, pending, tasks)
        try:
            found[call] = rate(size, measure(*call))
        except MeasurementFailed as error:
            print(f"Storm, {size:,} sentences, {pending} in flight, {tasks} tasks: {error}", file=sys.stderr)
    return {STORM: max(found, key=found.__getitem__)} if found else {}


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
    for size, storm, side, per_second, to_storm in rows:
        times = "" if to_storm is None else f"{to_storm:.2f}"
        table.add_row(f"{size:,}", shown(size, storm), side, shown(size, per_second), times)
    Console(file=sys.stderr, width=120).print(table)


def shown(size: int, per_second: float | None) -> str:
    return "-" if per_second is None else f"{per_second:,.0f}/s ({1000 * size / per_second:,.1f} ms)"
