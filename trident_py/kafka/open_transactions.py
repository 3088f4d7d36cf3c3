"""Tells of partitions of which a spout reads nothing more, as a transaction there does not end."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .batches import Place

ASKED = 60.0  # seconds between two questions
LONG = 900.0  # seconds after which brokers end an open transaction (transaction.max.timeout.ms), if they know it


class OpenTransactions:
    """Compares the ends of the logs with the last stable offsets, up to which a spout with ``read_committed`` reads.
    One object for each run, on the driver.

    ``log_ends`` asks the brokers; ``tell`` is called once for each transaction that is open for `LONG` seconds.
    """

    def __init__(self, log_ends: Callable[[list[Place]], Mapping[Place, int]], tell: Callable[[str], object]) -> None:
        self._log_ends = log_ends
        self._tell = tell
        self._asked_at = float("-inf")
        self._since: dict[tuple[Place, int], float] = {}
        self._told: set[tuple[Place, int]] = set()

    def compare(self, stable: Mapping[Place, int], now: float) -> None:
        """Called after each look at the stable offsets; asks once a minute. Raises FailedException while the brokers
        are away."""
        if now - self._asked_at < ASKED:
            return
        ends, self._asked_at = self._log_ends(list(stable)), now
        held = [(place, at) for place, at in stable.items() if ends.get(place, at) > at]
        self._since = {each: self._since.get(each, now) for each in held}
        for (place, at), since in self._since.items():
            if now - since >= LONG and (place, at) not in self._told:
                self._told.add((place, at))
                self._tell(_describe(place, at, ends[place] - at, now - since))


def _describe(place: Place, at: int, behind: int, seconds: float) -> str:
    return (
        f"topic {place[0]}, partition {place[1]}: {behind} offsets from {at} on lie behind a transaction that has been "
        f"open for {seconds / 60:.0f} minutes; nothing of them is read until it ends. If its producer is gone, "
        "kafka-transactions.sh find-hanging finds it, and abort ends it"
    )
