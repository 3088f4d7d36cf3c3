"""The live oracle: real Storm Trident, asked for fresh cases. Needs shared/oracle, Java and its jars.

``shared`` stands beside the project, or further up: a worktree finds it too.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path
from typing import Any

PLACES = [folder / "shared" / "oracle" for folder in Path(__file__).resolve().parents[2:]]
HOME = next((place for place in PLACES if (place / "oracle.sh").exists()), PLACES[1])


def missing() -> str | None:
    """Why the oracle cannot be asked here, or None."""
    there = (HOME / "oracle.sh").exists()
    return None if there else "the oracle (../shared/oracle or further up) is not on this machine"


def fresh(count: int, seed: str, skip: int = 0) -> list[dict[str, Any]]:
    """Random cases; the same ones for the same seed."""
    spec = importlib.util.spec_from_file_location("oracle_generate", HOME / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [module.make(seed, i) for i in range(skip, skip + count)]


def ask(cases: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """What Storm does with each case. ``folder`` takes the file with the cases."""
    file = folder / "cases.jsonl"
    file.write_text("".join(json.dumps(case) + "\n" for case in cases))
    command = [str(HOME / "oracle.sh"), "--fast", str(file)]
    quick_java = {**os.environ, "ORACLE_OPTS": "-XX:TieredStopAtLevel=1"}  # for a process that lives for seconds
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=quick_java)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
