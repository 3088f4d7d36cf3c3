"""The order of sets in the process that began a batch: another one may emit the batch otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from ..canonical import SET_ORDER, WORKERS_SEED
from ..run.placement import by_hash_seed
from ..run.program import Program
from ..run.standing import Seeded

ORDER = "order"  # the checkpoint's path: on LocalCluster under 0, on Spark under the txid of the batch


def own_order() -> dict[str, str]:
    """The record of this process."""
    seed = os.environ.get("PYTHONHASHSEED", "")
    return {"order": SET_ORDER, "seed": seed if seed.isdigit() else ""}


@cache
def order_of_workers() -> dict[str, str]:
    """The record of Spark's workers. Asks another process, as this one's seed cannot change."""
    environment = {**os.environ, "PYTHONHASHSEED": WORKERS_SEED}
    command = [sys.executable, "-c", "print(f\"{hash('trident'):x}\")"]  # canonical.SET_ORDER
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return {"order": printed.strip(), "seed": WORKERS_SEED}


def seeded(program: Program, record: Mapping[str, Any] | None, own: str) -> Seeded | None:
    """What is known if another order than our ``own`` began the next batch, and an operation depends on it."""
    if record is None or record["order"] == own:
        return None
    operation = by_hash_seed(program.lowered.plan, program.conf)
    return Seeded(operation, record["seed"]) if operation else None
