"""The start positions of a new checkpoint."""

from __future__ import annotations

from ..errors import FailedException
from .batches import Place, Positions, TopicPosition
from .options import KafkaOptions
from .settling import View
from .watch import Watch


def starting(options: KafkaOptions, watch: Watch, view: View) -> Positions:
    """Returns the positions that firstPollOffsetStrategy names, for the existing partitions.

    Raises FailedException if any of them does not answer: it would start by another rule than the others.
    """
    places = view.places()
    silent = [place for place in places if place not in view.begins or place not in view.ends]
    if silent:
        raise FailedException(f"KafkaSpout: topic {silent[0][0]}, partition {silent[0][1]} has no leader")
    first = _first(options, watch, view, places)
    return {
        name: TopicPosition(seen.id, [first[name, p] for p in range(seen.partitions)])
        for name, seen in view.topics.items()
    }


def _first(options: KafkaOptions, watch: Watch, view: View, places: list[Place]) -> dict[Place, int]:
    strategy = options.firstPollOffsetStrategy
    if strategy == "TIMESTAMP":
        assert options.startTimestamp is not None
        since = watch.since(places, options.startTimestamp)
        return {place: view.ends[place] if since.get(place, -1) < 0 else since[place] for place in places}
    there = view.ends if strategy.endswith("LATEST") else view.begins
    known = watch.committed(places) if strategy.startswith("UNCOMMITTED") else {}
    return {place: known.get(place, there[place]) for place in places}
