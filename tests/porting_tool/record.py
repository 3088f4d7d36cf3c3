"""Runs the Java topologies, or those named, on real Storm, and writes what they give into ``expected``.

    python -m tests.porting_tool.record [NAME...]

from the project's root. Needs a JDK and Maven.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from . import on_storm
from .cases import EXPECTED, NAMES, case, text


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        results = on_storm.run([case(name) for name in names or NAMES], Path(folder))
    for name, result in results.items():
        rows = ",\n".join(f'"{part}": {text(value)}' for part, value in result.items())
        (EXPECTED / f"{name}.json").write_text(f"{{{rows}}}\n")
        print(name, {stream: sum(map(len, batches.values())) for stream, batches in result["rows"].items()})


if __name__ == "__main__":
    main(sys.argv[1:])
