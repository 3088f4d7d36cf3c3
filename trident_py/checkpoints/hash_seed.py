"""Record PYTHONHASHSEED: the order of a set may change what a replayed batch emits."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from ..engine.execution_mode import by_hash_seed
from ..engine.program import Program
from ..engine.store_position import Seeded
from ..model.canonical import SET_ORDER, WORKERS_SEED


def own_order() -> dict[str, str]:
    """Return the order of sets in this process, which `LocalCluster` runs batches in."""
    seed = os.environ.get("PYTHONHASHSEED", "")
    return {"order": SET_ORDER, "seed": seed if seed.isdigit() else ""}


@cache
def order_of_workers() -> dict[str, str]:
    """Return the order of sets in Spark's workers. Asks another process, as the seed of this one cannot change."""
    if os.environ.get("PYTHONHASHSEED") == WORKERS_SEED:
        return own_order()
    environment = {**os.environ, "PYTHONHASHSEED": WORKERS_SEED}
    command = [sys.executable, "-S", "-c", "print(f\"{hash('trident'):x}\")"]  # canonical.SET_ORDER
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return {"order": printed.strip(), "seed": WORKERS_SEED}


def find_other_seed(program: Program, record: Mapping[str, Any] | None, own: str) -> Seeded | None:
    """Return what is known if another order than our ``own`` began the next batch, and an operation depends on it."""
    if record is None or record["order"] == own:
        return None
    operation = by_hash_seed(program.lowered.plan, program.conf)
    return Seeded(operation, record["seed"]) if operation else None
