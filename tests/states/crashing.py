"""A driver in one process: runs batches through `persist`, and kills itself where the plan says.

Reads a pickled Plan from stdin. ``checkpoint`` stands for Spark's: the lineage and the last finished txid.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trident_py.state import SILENT, persist
from trident_py.tuples import TridentTuple

POINTS = [
    "before the batch", "before beginCommit", "after beginCommit", "after updateState", "after one of two",
    "after all commits", "after publish",
]  # fmt: skip


@dataclass
class Plan:
    factory: Any
    updater: Any
    fields: Any
    batches: list[list[tuple]]
    checkpoint: Path
    point: str = ""
    at: int = 0
    partitions: int = 2
    only: int | None = None
    fenced: bool = True


class Dying:
    """A state that kills this process around its own calls; everything else passes through."""

    def __init__(self, inner: Any, point: str) -> None:
        self.inner = inner
        self.point = point

    def beginCommit(self, txid: int | None) -> None:
        die_if(self.point == "before beginCommit")
        self.inner.beginCommit(txid)
        die_if(self.point == "after beginCommit")

    def commit(self, txid: int | None) -> Any:
        die_if(self.point == "after updateState")
        return self.inner.commit(txid)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def die_if(now: bool) -> None:
    if now:
        os.kill(os.getpid(), signal.SIGKILL)


def conf_of(lineage: str, **more: Any) -> dict:
    return {"topology.name": "contract", "trident.state.name": "s", "trident.lineage": lineage, **more}


def partition_of(row: TridentTuple, of: int) -> int:
    return zlib.crc32(str(row[0]).encode()) % of


def run_batch(
    factory: Any, updater: Any, rows: list, txid: int | None, of: int, conf: dict, only: Any = None, point: str = ""
) -> list:
    """One attempt of one batch over all its partitions, the receipts."""
    receipts = []
    for partition in range(of) if only is None else sorted(only):
        mine = [row for row in rows if partition_of(row, of) == partition]
        state = Dying(factory.makeState(conf, None, partition, of), point if partition == of - 1 else "")
        receipts.append(persist(state, txid, updater, mine, SILENT))  # type: ignore[arg-type]
        die_if(point == "after one of two" and partition == 0)
    die_if(point == "after all commits")
    return receipts


def main(plan: Plan) -> None:
    participant, conf = plan.factory.participant(), conf_of(str(plan.checkpoint))
    if plan.fenced:
        conf["trident.generation"] = participant.open(conf)
    done = int(plan.checkpoint.read_text()) if plan.checkpoint.exists() else 0
    for txid in range(done + 1, len(plan.batches) + 1):
        point = plan.point if txid == plan.at else ""
        die_if(point == "before the batch")
        rows = [TridentTuple.of(plan.fields, row) for row in plan.batches[txid - 1]]
        only = None if plan.only is None else {plan.only}
        receipts = run_batch(plan.factory, plan.updater, rows, txid, plan.partitions, conf, only, point)
        if plan.fenced:
            participant.publish(txid, 0, receipts)
        die_if(point == "after publish")
        plan.checkpoint.write_text(str(txid))


if __name__ == "__main__":
    main(pickle.load(sys.stdin.buffer))
