"""Group 3: map-state updates per second into SQLite, opaque, against an executemany upsert by hand."""

from __future__ import annotations

import random
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .measure import measure
from .report import Figure, at_least, median

GROUP = "SQLite"
KEYS = 100_000
PER_BATCH = 10_000
BATCHES = 30
WARM_UP = 5

# For SQLite and PostgreSQL, which takes no column here without its table.
UPSERT = """INSERT INTO counts (word, count, txid, prev_count) VALUES (?, ?, ?, NULL)
ON CONFLICT (word) DO UPDATE SET
  prev_count = CASE WHEN counts.txid = excluded.txid THEN counts.prev_count ELSE counts.count END,
  count = CASE WHEN counts.txid = excluded.txid THEN coalesce(counts.prev_count, 0) ELSE counts.count END
    + excluded.count,
  txid = excluded.txid"""


def batches() -> Iterator[list[tuple[str, int]]]:
    """Distinct keys with a count each, the same for both sides."""
    draw = random.Random(7)
    for _ in range(BATCHES):
        yield [(f"word{key:06d}", 1 + key % 5) for key in draw.sample(range(KEYS), PER_BATCH)]


def by_hand() -> list[float]:
    """What a person writes: one transaction per batch, opaque by one upsert statement."""
    with tempfile.TemporaryDirectory() as folder:
        db = sqlite3.connect(Path(folder) / "counts.sqlite", isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE counts (word TEXT PRIMARY KEY, count INTEGER, txid INTEGER, prev_count INTEGER)")
        seconds = []
        for txid, rows in enumerate(batches(), 1):
            began = time.perf_counter()
            db.execute("BEGIN IMMEDIATE")
            db.executemany(UPSERT, [(word, count, txid) for word, count in rows])
            db.execute("COMMIT")
            seconds.append(time.perf_counter() - began)
        db.close()
    return seconds


def figures() -> Iterator[Figure]:
    hand = PER_BATCH / median(measure("sqlite_updates.by_hand")[WARM_UP:])
    yield Figure(GROUP, "executemany upsert by hand", hand, "updates/s")
    ours = PER_BATCH / median(measure("ours.sqlite_updates")[WARM_UP:])
    yield Figure(GROUP, "SqlMapState.opaque", ours, "updates/s", "by hand", ours / hand, **at_least(ours / hand, 0.8))  # type: ignore[arg-type]
    whole = PER_BATCH / median(measure("ours.sqlite_topology")[WARM_UP:])
    yield Figure(GROUP, "the same through a LocalCluster topology", whole, "updates/s", "by hand", whole / hand)
