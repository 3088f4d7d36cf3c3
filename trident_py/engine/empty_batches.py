"""Notices a spout that is always ready: then batch follows batch without a tuple."""

from __future__ import annotations

from ..checkpoints.metadata_store import KEPT

MOST = 100  # batches in a row
INTERVAL = 0.5  # seconds from batch to batch in Storm: topology.trident.batch.emit.interval.millis


class EmptyBatches:
    """The batches without a tuple, in a row. ``kept``: how many batches a run can be taken back."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._began: float | None = None
        self._count = 0
        self._told = False

    def add(self, tuples: int, spout: str, now: float) -> str | None:
        """Return what to say of the spout that made the last batch; None if it is usual, or was said."""
        if tuples or self._began is None:
            self._began, self._count = now, 0
            return None
        self._count += 1
        seconds = now - self._began
        if self._told or self._count < MOST or seconds > MOST * INTERVAL:
            return None
        self._told = True
        each = seconds / self._count
        return (
            f"spout {spout} was ready {self._count} times in a row without a tuple, in {seconds:.3g} s, so "
            f"`trident txid rewind` reaches back {self._kept * each:.2g} s ({KEPT} is {self._kept}). Storm waits "
            f"{INTERVAL:g} s from batch to batch; here isReady of the coordinator returns False while there is nothing "
            "to emit, and emitBatch of an IBatchSpout waits"
        )
