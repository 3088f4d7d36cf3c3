"""One measurement in a process of its own, so that no session, cache or warm JVM is shared.

python -m benchmarks.measure by_hand.tiny_batches '[80, 1]'   prints the result as JSON on the last line
"""

from __future__ import annotations

import importlib
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parent.parent
ROUNDS = 3


class MeasurementFailed(Exception):
    """A measurement ended with an error; the message ends with the last lines it wrote."""


def measure(name: str, *args: Any, timeout: float = 900) -> Any:
    """The result of ``benchmarks.<module>.<function>(*args)``, run in a process of its own.

    Spark's log goes to a file and is shown only when the measurement fails.
    """
    with tempfile.TemporaryFile("w+") as log:
        done = subprocess.run(
            command(name, *args),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode != 0 or not done.stdout.strip():
            raise MeasurementFailed(f"{name}{args} ended with {done.returncode}; {end_of(log)}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def interleaved(sides: Mapping[str, Sequence[Any]], figure: Callable[[Any], float]) -> dict[str, list[float]]:
    """The figure of each side in each round. A side is what `measure` is called with. They run one after the other in
    every round, so what else the machine does meanwhile disturbs all of them."""
    found: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(ROUNDS):
        for side, call in sides.items():
            found[side].append(figure(measure(*call)))
    return found


def ratio(these: Sequence[float], those: Sequence[float]) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(this / that for this, that in zip(these, those, strict=True))


def command(name: str, *args: Any) -> list[str]:
    """What starts ``benchmarks.<module>.<function>(*args)`` in a process of its own, in `ROOT`."""
    return [sys.executable, "-m", "benchmarks.measure", name, json.dumps(args, default=str)]


def end_of(log: IO[str]) -> str:
    log.seek(0)
    return f"the end of its log:\n{''.join(log.readlines()[-30:])}"


def main() -> None:
    module, function = sys.argv[1].rsplit(".", 1)
    result = getattr(importlib.import_module(f"benchmarks.{module}"), function)(*json.loads(sys.argv[2]))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
