"""What a batch of Kafka records is, as JSON metadata, and how records are shared among partitions and tasks.

The metadata of a batch: for each topic its id, the next offset of every partition, and where this batch's ranges start:

    {"words": ["<topic id>", [next of partition 0, next of 1, ...], [[partition, start], ...]], ...}

A range goes from its start to the partition's next offset; a partition that is not read in this batch has no start.
A next offset is None while the partition has never answered.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

Place = tuple[str, int]
BURST = 1.0
SIP = 0.1
NO_LIMIT = 1 << 62


class TopicPosition(NamedTuple):
    """Where the spout stands in one topic: its id, and the next offset of each partition."""

    id: str
    next: list[int | None]


Positions = dict[str, TopicPosition]


class Range(NamedTuple):
    """Offsets of one partition: from ``start`` up to and without ``end``. Not every offset is a record."""

    topic: str
    id: str
    partition: int
    start: int
    end: int

    @property
    def place(self) -> Place:
        return self.topic, self.partition


def positions_of(metadata: Mapping[str, Any]) -> Positions:
    """Where the spout stands behind this batch."""
    return {name: TopicPosition(entry[0], list(entry[1])) for name, entry in metadata.items()}


def metadata_of(positions: Positions, starts: Mapping[Place, int]) -> dict[str, Any]:
    """The metadata of the batch that ends at ``positions`` and began at ``starts``."""
    return {
        name: [topic.id, topic.next, [[p, starts[name, p]] for p in range(len(topic.next)) if (name, p) in starts]]
        for name, topic in sorted(positions.items())
    }


def places_of(metadata: Mapping[str, Any]) -> list[Place]:
    """All partitions that the batch knows, in the order in which they are dealt to tasks."""
    return [(name, p) for name in sorted(metadata) for p in range(len(metadata[name][1]))]


def ranges_of(metadata: Mapping[str, Any]) -> list[Range]:
    """The ranges of a batch, in order."""
    return [
        Range(name, metadata[name][0], p, start, metadata[name][1][p])
        for name in sorted(metadata)
        for p, start in metadata[name][2]
    ]


def dealt(places: list[Place], index: int, tasks: int) -> list[Place]:
    """The partitions of one task."""
    return places[index::tasks]


def shares(backlog: Mapping[Place, int], limit: int, turn: int = 0) -> dict[Place, int]:
    """How many offsets of each partition fit into a batch: in proportion to what waits there, ``limit`` at most.

    What rounding leaves goes round; ``turn`` says who begins.
    """
    waiting = {place: count for place, count in sorted(backlog.items()) if count > 0}
    total = sum(waiting.values())
    if total <= limit:
        return waiting
    given = {place: count * limit // total for place, count in waiting.items()}
    left = limit - sum(given.values())
    order = list(waiting)
    for at in range(len(order)):
        place = order[(at + turn) % len(order)]
        if left and given[place] < waiting[place]:
            given[place] += 1
            left -= 1
    return {place: count for place, count in given.items() if count}


class Rate:
    """At most so many records per second, over batches; after a pause no more than one second's worth at once."""

    def __init__(self, per_second: int | None) -> None:
        self._per_second = per_second
        self._saved = 0.0
        self._at = time.monotonic()

    def worth(self, waiting: int) -> bool:
        """Whether to make a batch of so many records now: not while waiting a moment makes a better one."""
        return waiting > 0 and self.room() >= min(waiting, max(1, int(SIP * (self._per_second or 0))))

    def room(self) -> int:
        """How many records a batch may have now."""
        if self._per_second is None:
            return NO_LIMIT
        now = time.monotonic()
        self._saved = min(self._saved + (now - self._at) * self._per_second, BURST * self._per_second)
        self._at = now
        return int(self._saved)

    def taken(self, count: int) -> None:
        self._saved -= count
