"""Group word_count: word count over 2M sentences of 6 words from Parquet, on 2 cores, steady state, three rounds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import data
from .measure import interleaved, ratio
from .report import Figure, at_least, median

GROUP = "word count"
BATCHES = 6
WARM_UP = 2
SIZE = data.SENTENCES
TUNED = "by hand: a Counter in each task"
NATIVE = "Spark's own split + count"
BY_HAND = {
    NATIVE: "word_count_native",
    "by hand: a call per sentence, emit per word": "word_count_rows",
    "by hand: a comprehension per record batch": "word_count",
    TUNED: "word_count_tuned",
}
OURS = {
    "Function with a collector": ("function", TUNED),
    "plain callable": ("callable", TUNED),
    "built-in Split and Count, typed": ("builtin", NATIVE),
}


def rate(seconds: list[float]) -> float:
    """Sentences per second of the median batch once everything is warm."""
    return SIZE / median(seconds[WARM_UP:])


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="trident-bench-") as folder:
        paths = [str(path) for path in data.sentences(Path(folder))]
        sides: dict[str, Any] = {name: (f"by_hand.{run}", paths, BATCHES) for name, run in BY_HAND.items()}
        sides |= {name: ("ours.word_count", paths, BATCHES, kind) for name, (kind, _) in OURS.items()}
        rates = interleaved(sides, rate)
    for name in BY_HAND:
        yield Figure(GROUP, name, median(rates[name]), "sentences/s")
    for name, (_, against) in OURS.items():
        found = ratio(rates[name], rates[against])
        asked: Any = at_least(found, 1.0)
        yield Figure(GROUP, name, median(rates[name]), "sentences/s", against, found, **asked)
