"""The batches of Kafka records: their JSON metadata, and how records are shared among partitions and tasks.

The metadata has for each topic its id, the next offset of every partition, and the starts of this batch's ranges:

    {"words": ["<topic id>", [next of partition 0, next of 1, ...], [[partition, start], ...]], ...}

A range goes from its start to the partition's next offset; a partition without a range in this batch has no start.
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
    """The spout's position in one topic: the topic's id, and the next offset of each partition."""

    id: str
    next: list[int | None]


Positions = dict[str, TopicPosition]


class Range(NamedTuple):
    """Offsets of one partition from ``start`` to ``end``, which is excluded. Not every offset has a record."""

    topic: str
    id: str
    partition: int
    start: int
    end: int

    @property
    def place(self) -> Place:
        return self.topic, self.partition


def positions_of(metadata: Mapping[str, Any]) -> Positions:
    """Return the positions after this batch."""
    return {name: TopicPosition(entry[0], list(entry[1])) for name, entry in metadata.items()}


def metadata_of(positions: Positions, starts: Mapping[Place, int]) -> dict[str, Any]:
    """Return the metadata of the batch from ``starts`` to ``positions``."""
    return {
        name: [topic.id, topic.next, [[p, starts[name, p]] for p in range(len(topic.next)) if (name, p) in starts]]
        for name, topic in sorted(positions.items())
    }


def places_of(metadata: Mapping[str, Any]) -> list[Place]:
    """Return all partitions in the metadata, in the order in which they are dealt to tasks."""
    return [(name, p) for name in sorted(metadata) for p in range(len(metadata[name][1]))]


def ranges_of(metadata: Mapping[str, Any]) -> list[Range]:
    """Return the ranges of a batch, in order."""
    return [
        Range(name, metadata[name][0], p, start, metadata[name][1][p])
        for name in sorted(metadata)
        for p, start in metadata[name][2]
    ]


def task_metadata(metadata: Mapping[str, Any], tasks: int) -> list[dict[str, Any]]:
    """Return what each task needs, as JSON values: its partitions, and the ranges of the batch in them."""
    places, ranges = places_of(metadata), {r.place: list(r) for r in ranges_of(metadata)}
    of_tasks = [dealt(places, index, tasks) for index in range(tasks)]
    return [{"places": own, "ranges": [ranges[place] for place in own if place in ranges]} for own in of_tasks]


def dealt(places: list[Place], index: int, tasks: int) -> list[Place]:
    """Return the partitions of one task."""
    return places[index::tasks]


def shares(backlog: Mapping[Place, int], limit: int, turn: int = 0) -> dict[Place, int]:
    """Return how many offsets of each partition a batch takes: in proportion to the waiting ones, ``limit`` in total.

    The remainder from rounding goes round robin; ``turn`` sets the first partition.
    """
    waiting = {place: count for place, count in sorted(backlog.items()) if count > 0}
    total = sum(waiting.values())
    if total <= limit:
        return waiting
    counts = {place: count * limit // total for place, count in waiting.items()}
    rest = limit - sum(counts.values())
    order = list(waiting)
    for at in range(len(order)):
        place = order[(at + turn) % len(order)]
        if rest and counts[place] < waiting[place]:
            counts[place] += 1
            rest -= 1
    return {place: count for place, count in counts.items() if count}


class RateLimit:
    """Limits records per second, over batches. After a pause at most one second's worth is available at once."""

    def __init__(self, per_second: int | None) -> None:
        self._per_second = per_second
        self._saved = 0.0
        self._at = time.monotonic()

    def worth(self, waiting: int) -> bool:
        """Return whether to make a batch of the waiting records now, rather than wait a moment for a larger one."""
        return waiting > 0 and self.room() >= min(waiting, max(1, int(SIP * (self._per_second or 0))))

    def room(self) -> int:
        """Return how many records a batch may have now."""
        if self._per_second is None:
            return NO_LIMIT
        now = time.monotonic()
        self._saved = min(self._saved + (now - self._at) * self._per_second, BURST * self._per_second)
        self._at = now
        return int(self._saved)

    def take(self, count: int) -> None:
        self._saved -= count
