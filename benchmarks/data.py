"""The input: sentences of 6 words in Parquet, the same on every machine (a seed and a fixed vocabulary)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SENTENCES = 2_000_000
WORDS = 6
VOCABULARY = 1_000
FILES = 4
SEED = 20131103


def sentences(
    folder: Path, total: int = SENTENCES, files: int = FILES, vocabulary: int = VOCABULARY
) -> list[Path]:
    """``files`` Parquet files with together ``total`` sentences, one string column ``sentence``."""
    folder.mkdir(parents=True, exist_ok=True)
    words = np.array([f"word{i:04d}" for i in range(vocabulary)], dtype=object)
    random = np.random.default_rng(SEED)
    paths = []
    for number in range(files):
        drawn = words[random.integers(0, vocabulary, size=(total // files, WORDS))]
        column = pa.array([" ".join(row) for row in drawn.tolist()], pa.string())
        paths.append(folder / f"sentences-{number}.parquet")
        pq.write_table(pa.table({"sentence": column}), paths[-1], row_group_size=50_000)
    return paths
