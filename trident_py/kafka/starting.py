"""Where a new checkpoint begins to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import FailedException
from .batches import Place, Positions, Topic
from .settling import View
from .watch import Watch

if TYPE_CHECKING:
    from .spout import KafkaSpout


def starting(spout: KafkaSpout, watch: Watch, view: View) -> Positions:
    """The positions that firstPollOffsetStrategy names, for the partitions there are.

    Raises FailedException while one of them does not answer: it would begin somewhere else than the others.
    """
    places = view.places()
    silent = [place for place in places if place not in view.begins or place not in view.ends]
    if silent:
        raise FailedException(f"KafkaSpout: topic {silent[0][0]}, partition {silent[0][1]} has no leader")
    first = _first(spout, watch, view, places)
    return {
        name: Topic(seen.id, [first[name, p] for p in range(seen.partitions)]) for name, seen in view.topics.items()
    }


def _first(spout: KafkaSpout, watch: Watch, view: View, places: list[Place]) -> dict[Place, int]:
    strategy = spout.firstPollOffsetStrategy
    if strategy == "TIMESTAMP":
        assert spout.startTimestamp is not None
        since = watch.since(places, spout.startTimestamp)
        return {place: view.ends[place] if since.get(place, -1) < 0 else since[place] for place in places}
    there = view.ends if strategy.endswith("LATEST") else view.begins
    known = watch.committed(places) if strategy.startswith("UNCOMMITTED") else {}
    return {place: known.get(place, there[place]) for place in places}
