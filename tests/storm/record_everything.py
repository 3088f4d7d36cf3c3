"""Records random cases of `everything` with what Storm gave, and for a disturbed one what it gave undisturbed.

    python -m tests.storm.record_everything 200 some-seed

Writes ``tests/data/storm/everything.jsonl.gz``. A case that Storm cannot answer is left out. Needs the oracle.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from trident_py import LocalCluster

from . import everything, oracle, replays
from .cases import DATA
from .interpreter import run
from .live import unanswered


def main(count: int, seed: str) -> None:
    cases = [everything.make(seed, number) for number in range(count)]
    with tempfile.TemporaryDirectory() as folder, LocalCluster() as cluster:
        asked = zip(cases, oracle.ask(cases, Path(folder)), strict=True)
        entries: list[dict[str, Any]] = [
            {"case": case, "result": storm, "undisturbed": None} for case, storm in asked if not unanswered(storm)
        ]
        disturbed = []
        for entry in entries:
            ours = run(entry["case"], cluster)
            if replays.disturbed(entry["case"], entry["result"], ours):
                disturbed.append((entry, replays.calm(entry["case"], ours)))
        quiet = oracle.ask([case for _, case in disturbed], Path(folder))
        for (entry, _), storm in zip(disturbed, quiet, strict=True):
            entry["undisturbed"] = storm
    with gzip.open(DATA / "everything.jsonl.gz", "wt") as lines:
        lines.writelines(json.dumps(entry) + "\n" for entry in entries)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
