"""The spread of a batch over the partitions of a state that recognizes a replay by partition number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from trident_py.errors import StateError
from trident_py.model.context import RunContext


class Layout(NamedTuple):
    """The number of partitions, and their routing (`trident_py.engine.program`; "" without a cluster)."""

    partitions: int
    way: str = ""

    @classmethod
    def of(cls, partitions: int, conf: dict) -> Layout:
        """Return the spread of a run; ``conf``: as passed to a state or a participant."""
        return cls(partitions, RunContext.of(conf).way)

    @property
    def words(self) -> str:
        """The way for display: spouts, groupings, partitions."""
        return self.way.partition(" ")[2] or "an unrecorded way"


def check_whole(
    place: str, txid: int, then: Layout, now: Layout, written: Sequence[int], receipts: Sequence[Any]
) -> None:
    """Called on the driver when a batch begun under ``then`` was replayed under ``now`` and only counted. ``written``:
    the row counts of the written partitions. Raises StateError unless they are the whole batch."""
    counted = sum(receipt["rows"] for receipt in receipts)
    if len(written) == then.partitions or sum(written) == counted:
        return
    then_layout, now_layout = f"parallelismHint({then.partitions}) for this state", f"{now.partitions} partitions"
    if then.partitions == now.partitions:
        then_layout, now_layout = "its previous spouts, groupings and parallelismHints", "the new ones"
    raise StateError(
        f"{place}: batch {txid} was begun with {then.partitions} partitions, and {len(written)} of them have written "
        f"{sum(written)} rows; it is replayed with {now.partitions} partitions and {counted} rows, and nothing tells "
        f"which of them are stored. The rows came by [{then.words}] then, and by [{now.words}] now. Nothing more is "
        f"written. Start the topology once with {then_layout}; when batch {txid} is committed, return to {now_layout}"
    )
