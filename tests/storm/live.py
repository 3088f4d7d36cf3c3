"""Runs fresh random cases through real Storm Trident and through trident_py and prints those that differ.

    python -m tests.storm.live 1000 some-seed [--spark]

from the project's root. Needs the oracle in ../shared/oracle. Cases with windows or DRPC are left out as long
as those are not there.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from . import oracle
from .cases import later
from .compare import diff
from .interpreter import run


def differing(count: int, seed: str, cluster: Any, folder: Path) -> tuple[int, dict[str, Any]]:
    """How many cases ran, and of those that differ the case and what differs."""
    cases = [case for case in oracle.fresh(count, seed) if later(case) is None]
    wrong = {}
    for case, storm in zip(cases, oracle.ask(cases, folder), strict=True):
        ours = run(case, cluster)
        if found := diff(case, storm, ours):
            wrong[case["name"]] = {"case": case, "differs": found, "error": ours["error"]}
    return len(cases), wrong


def main(count: int, seed: str, on_spark: bool) -> int:
    if on_spark:
        from trident_py import SparkCluster as Cluster
    else:
        from trident_py import LocalCluster as Cluster
    with tempfile.TemporaryDirectory() as folder, Cluster() as cluster:
        ran, wrong = differing(count, seed, cluster, Path(folder))
    for name, found in wrong.items():
        print(name, json.dumps(found["case"]))
        print("   error here:", found["error"])
        for part, (storm, ours) in found["differs"].items():
            print(f"   {part}\n      Storm {json.dumps(storm)[:700]}\n      here  {json.dumps(ours)[:700]}")
    print(f"{ran} cases of {count} with seed {seed!r}: {len(wrong)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    sys.exit(main(int(arguments[0]), arguments[1], "--spark" in sys.argv))
