"""Runs fresh random cases through real Storm Trident and through trident_py and prints those that differ.

    python -m tests.storm.live 1000 some-seed [--shapes] [--spark]

from the project's root. The cases are the oracle's own, or with --shapes those of `wider`. Needs the oracle in
../shared/oracle. What Storm cannot do at all is left out (`unanswered`).
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import oracle, wider
from .compare import diff
from .interpreter import run


def own_shapes(count: int, seed: str) -> list[dict[str, Any]]:
    return [wider.make(seed, number) for number in range(count)]


def unanswered(storm: dict[str, Any]) -> bool:
    """Storm waits for ever, or cannot build what it lets define: both are in docs/differences.md."""
    error = storm["error"] or {"class": "", "message": ""}
    return error["class"] == "timeout" or error["message"] == "no such vertex in graph"


def differing(
    count: int, seed: str, cluster: Any, folder: Path, draw: Callable[[int, str], list[dict[str, Any]]] = oracle.fresh
) -> tuple[int, dict[str, Any]]:
    """How many cases were compared, and of those that differ the case and what differs."""
    cases = draw(count, seed)
    wrong, compared = {}, 0
    for case, storm in zip(cases, oracle.ask(cases, folder), strict=True):
        if unanswered(storm):
            continue
        compared += 1
        ours = run(case, cluster)
        if found := diff(case, storm, ours):
            wrong[case["name"]] = {"case": case, "differs": found, "error": ours["error"]}
    return compared, wrong


def main(count: int, seed: str, on_spark: bool, shapes: bool) -> int:
    if on_spark:
        from trident_py import SparkCluster as Cluster
    else:
        from trident_py import LocalCluster as Cluster
    with tempfile.TemporaryDirectory() as folder, Cluster() as cluster:
        ran, wrong = differing(count, seed, cluster, Path(folder), own_shapes if shapes else oracle.fresh)
    for name, found in wrong.items():
        print(name, json.dumps(found["case"]))
        print("   error here:", found["error"])
        for part, (storm, ours) in found["differs"].items():
            print(f"   {part}\n      Storm {json.dumps(storm)[:700]}\n      here  {json.dumps(ours)[:700]}")
    print(f"{ran} cases of {count} with seed {seed!r} compared: {len(wrong)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    sys.exit(main(int(arguments[0]), arguments[1], "--spark" in sys.argv, "--shapes" in sys.argv))
