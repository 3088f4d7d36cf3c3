"""Group join: two streams of 500k tuples a batch joined by key, against spark.read and join in a foreachBatch.

Both sides read the same Parquet files, one of each stream for each batch, and end with the sum of one field of either
side, so that each joined tuple is made and read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .measure import interleaved, ratio
from .report import Figure, at_least, median

GROUP = "join"
TUPLES = 500_000
BATCHES = 8
WARM_UP = 3


def files(folder: Path) -> None:
    """Every key comes once on each side, in another order."""
    generator = np.random.default_rng(11)
    for side in ("left", "right"):
        (folder / side).mkdir()
        for batch in range(BATCHES):
            keys, values = generator.permutation(TUPLES), generator.integers(0, 1_000, TUPLES)
            table = pa.table({"key": pa.array(keys), side: pa.array(values)})
            pq.write_table(table, folder / side / f"{batch:02d}.parquet", row_group_size=50_000)


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="trident-bench-") as folder:
        files(Path(folder))
        sides = {way: (f"{way}.joined", folder, BATCHES) for way in ("by_hand", "ours")}
        rates = interleaved(sides, lambda seconds: 2 * TUPLES / median(seconds[WARM_UP:]))
        by_hand, ours = map(median, rates.values())
        ours_by_hand = ratio(rates["ours"], rates["by_hand"])
        asked: Any = at_least(ours_by_hand, 0.9)
        yield Figure(GROUP, "by hand: spark.read and join in a foreachBatch", by_hand, "tuples/s")
        yield Figure(GROUP, "two streams of 500k tuples a batch", ours, "tuples/s", "by hand", ours_by_hand, **asked)
