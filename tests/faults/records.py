"""The table in docs/reliability.md, of the records of a campaign: python -m faults.records build/faults.jsonl"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from .homes import STORES
from .injections import KINDS

Record = dict[str, Any]
COUNTED = ("replays", "rows", "answered", "failed", "lost", "doubled", "undecided")
NAMES = {
    "replays": "batches replayed", "rows": "rows compared",
    "answered": "DRPC requests answered", "failed": "DRPC requests failed",
    "lost": "**lost**", "doubled": "**doubled**",
    "undecided": "**undecided**",
}  # fmt: skip


def main(files: list[str]) -> None:
    records = [json.loads(line) for file in files for line in Path(file).read_text().splitlines()]
    print("\n".join(table(records)))


def table(records: list[Record]) -> list[str]:
    """Markdown: a row for each kind of fault, a column for each store; below, what became of the rounds."""
    stores = [store for store in STORES if any(record["store"] == store for record in records)]
    reached = [(record["store"], fault) for record in records for fault in record["faults"] if fault["reached"]]
    faults = Counter((fault["kind"], store) for store, fault in reached)
    rows = [("fault", *stores, "all"), ("---",) * (len(stores) + 2)]
    for kind in KINDS:
        rows.append(_row(kind, [faults[kind, store] for store in stores]))
    rows.append(_row("**faults**", [sum(n for (_, at), n in faults.items() if at == store) for store in stores]))
    rows.append(_row("rounds", [sum(record["store"] == store for record in records) for store in stores]))
    for name in COUNTED:
        counts = [sum(record.get(name, 0) for record in records if record["store"] == store) for store in stores]
        rows.append(_row(NAMES[name], counts))
    rows.append(("seeds", *(seeds([each["seed"] for each in records if each["store"] == at]) for at in stores), ""))
    return ["| " + " | ".join(row) + " |" for row in rows]


def _row(name: str, counts: list[int]) -> tuple[str, ...]:
    shown = [f"{count:,}" if count else "" for count in (*counts, sum(counts))]
    return (name, *(each or "0" for each in shown)) if name.startswith("**") else (name, *shown)


def seeds(found: list[int]) -> str:
    """Their runs: "1-20, 25"."""
    runs: list[list[int]] = []
    for seed in sorted(set(found)):
        if runs and runs[-1][1] == seed - 1:
            runs[-1][1] = seed
        else:
            runs.append([seed, seed])
    return ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)


if __name__ == "__main__":
    main(sys.argv[1:])
