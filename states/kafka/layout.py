"""A batch replayed in another number of partitions, where a partition's number tells what it has written.

A number stands for the same records only while there are as many partitions. So the driver's mark holds the number of
partitions, and a batch of which a partition has written under another number is not written again: its replay only
counts. As many records as the marks say, or all partitions there: the batch was whole (a partition without tuples
writes no mark). Else the replay cannot tell which of its records are there, and the run ends with the way on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trident_py.errors import StateError

from .marks import Mark, Place
from .partitions import Partitions


class Layout:
    """The driver's knowledge of the batch at hand. One object for each run."""

    def __init__(self, place: Place, settings: Mapping[str, Any]) -> None:
        self._place = place
        self._settings = settings
        self._txid = 0
        self._now = 0
        self._begun: list[Mark] = []
        self._then = 0

    def of_batch(self, txid: int, partitions: int, recorded: int) -> int:
        """The number of partitions to be recorded: the old one while the batch was begun with it."""
        self._txid, self._now, self._then, self._begun = txid, partitions, recorded, []
        if partitions == recorded or recorded == 0:
            return partitions
        with Partitions(self._place, self._settings) as old:
            self._begun = [mark for mark in old.open(recorded) if mark.txid == txid]
        return recorded if self._begun else partitions

    def check(self, txid: int, receipts: Sequence[Any]) -> None:
        """After all partitions have counted. Raises StateError if a batch half written cannot be told apart."""
        if txid != self._txid or not self._begun:
            return
        counted = sum(receipt["rows"] for receipt in receipts)
        written = sum(mark.rows for mark in self._begun)
        if len(self._begun) == self._then or written == counted:
            return
        raise StateError(
            f"{self._place.who}: batch {txid} was begun with {self._then} partitions, and {len(self._begun)} of them "
            f"have written {written} records; it is replayed with {self._now} partitions and {counted} tuples, which "
            "may not be told from those. Nothing more is written. Start the topology once with "
            f"parallelismHint({self._then}) for this state; when batch {txid} is committed, {self._now} will do"
        )
