"""Group 1: word count over 2M sentences of 6 words from Parquet, on 2 cores, steady state."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from . import data
from .measure import measure
from .report import Figure, at_least, median

GROUP = "word count"
BATCHES = 6
WARM_UP = 2
SIZE = data.SENTENCES


def rate(seconds: list[float]) -> float:
    """Sentences per second of the median batch once everything is warm."""
    return SIZE / median(seconds[WARM_UP:])


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="trident-bench-") as folder:
        paths = [str(path) for path in data.sentences(Path(folder))]
        native = rate(measure("by_hand.word_count_native", paths, BATCHES))
        yield Figure(GROUP, "Spark's own split + count", native, "sentences/s")
        rows = rate(measure("by_hand.word_count_rows", paths, BATCHES))
        yield Figure(GROUP, "by hand: a call per sentence, emit per word", rows, "sentences/s")
        lists = rate(measure("by_hand.word_count", paths, BATCHES))
        yield Figure(GROUP, "by hand: a comprehension per record batch", lists, "sentences/s")
        for name, kind, bar, against, other in (
            ("Function with a collector", "function", 800_000, "by hand, per sentence", rows),
            ("plain callable", "callable", 1_600_000, "by hand, comprehension", lists),
            ("built-in Split and Count, typed", "builtin", 3_000_000, "Spark's own", native),
        ):
            ours = rate(measure("ours.word_count", paths, BATCHES, kind))
            ratio = ours / other
            yield Figure(GROUP, name, ours, "sentences/s", **at_least(ours, bar))  # type: ignore[arg-type]
            yield Figure(GROUP, f"{name}, ratio", ratio, "", against, ratio, **at_least(ratio, 1.0))  # type: ignore[arg-type]
