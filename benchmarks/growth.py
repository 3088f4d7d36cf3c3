"""Group 4: does batch 1,000 take longer than batch 100, and what has been left behind by then?"""

from __future__ import annotations

from collections.abc import Iterator

from .measure import measure
from .report import Figure, at_most, median

GROUP = "growth"
BATCHES = 1_000


def figures() -> Iterator[Figure]:
    seen = measure("ours.growth", BATCHES, timeout=1800)
    early, late = median(seen["seconds"][20:120]), median(seen["seconds"][-100:])
    yield Figure(GROUP, "batches 20 to 120", 1000 * early, "ms/batch")
    yield Figure(
        GROUP,
        "last 100 batches",
        1000 * late,
        "ms/batch",
        "batches 20 to 120",
        late / early,
        **at_most(late / early, 1.1),  # type: ignore[arg-type]
    )
    for what in ("checkpoint files", "ledger rows", "driver MB"):
        yield Figure(GROUP, f"{what} after batch 120", seen["early"][what], "")
        yield Figure(GROUP, f"{what} after batch {BATCHES}", seen["late"][what], "")
