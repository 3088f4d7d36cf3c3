"""A batch replayed under another spread, where a partition's number tells what it has written.

A number stands for the same records only while there are as many partitions and the tuples come to them the same way.
So the driver's mark holds both (`states.spread`), and a batch of which a partition has written under another spread is
not written again: its replay only counts. As many records as the marks say, or all partitions there: the batch was
whole (a partition without tuples writes no mark). Else the replay cannot tell which of its records are there, and the
run ends with the way on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..spread import Spread, check_whole
from .marks import Mark, Place
from .partitions import Partitions


class Layout:
    """The driver's knowledge of the batch at hand. One object for each run."""

    def __init__(self, place: Place, settings: Mapping[str, Any], way: str) -> None:
        self._place = place
        self._settings = settings
        self._way = way
        self._txid = 0
        self._now = self._then = Spread(0)
        self._begun: list[Mark] = []

    def of_batch(self, txid: int, partitions: int, recorded: Spread) -> Spread:
        """The spread to be recorded: the old one while the batch was begun with it."""
        now = Spread(partitions, self._way)
        self._txid, self._now, self._then, self._begun = txid, now, recorded, []
        if now == recorded or recorded.partitions == 0:
            return now
        with Partitions(self._place, self._settings) as old:
            self._begun = [mark for mark in old.open(recorded.partitions) if mark.txid == txid]
        return recorded if self._begun else now

    def check(self, txid: int, receipts: Sequence[Any]) -> None:
        """After all partitions have counted. Raises StateError if a batch half written cannot be told apart."""
        if txid == self._txid and self._begun:
            written = [mark.rows for mark in self._begun]
            check_whole(self._place.who, txid, self._then, self._now, written, receipts)
