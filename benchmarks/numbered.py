"""What spouts of the benchmarks share."""

from __future__ import annotations

from typing import Any

from trident_py.spouts import ITridentSpout


class Numbered(ITridentSpout.BatchCoordinator):
    """Numbers so many batches, from 1; their emitters know the rest."""

    def __init__(self, batches: int) -> None:
        self.batches = batches
        self.defined = 0

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        self.defined = txid
        return {"batch": txid}

    def isExhausted(self) -> bool:
        return self.defined >= self.batches
