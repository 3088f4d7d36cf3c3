"""The offsets that a batch has consumed, for a state that commits them in its own Kafka transaction.

A `KafkaSpout` with ``groupId`` and ``shareOffsets=True`` writes them into the driver's metadata store before each
attempt, where tasks read them. This is read-process-write as in Kafka Streams: the offsets become visible together with
the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..context import RunContext
from ..errors import SpoutError
from .batches import Positions, dealt


class Consumed(NamedTuple):
    """The group, and by topic and partition the next offset after the batch; None if nothing was ever read."""

    group: str
    offsets: dict[str, dict[int, int | None]]


def path(spout_id: str) -> str:
    """Returns the path in the metadata store, which keeps the offsets by txid."""
    return f"{spout_id}/kafka-offsets"


def share(conf: Mapping[str, Any], spout_id: str, txid: int, group: str, positions: Positions) -> None:
    """Writes the offsets. Called on the driver before each attempt; a replay writes the same again."""
    offsets = {name: dict(enumerate(topic.next)) for name, topic in positions.items()}
    store = RunContext.of(conf).metadata
    store.put(path(spout_id), txid, {"group": group, "offsets": offsets})
    store.cleanup_before(path(spout_id), txid)


def consumed(conf: Mapping[str, Any], spout_id: str, txid: int) -> Consumed:
    """Returns the offsets that the batch has consumed; the same on replay.

    Called on the driver or in a task, during the batch. ``spout_id`` is the stream's name in ``newStream``. Raises
    SpoutError if the spout shares no offsets.
    """
    stored = RunContext.of(conf).metadata.get(path(spout_id), txid)
    if stored is None:
        raise SpoutError(
            f"spout {spout_id!r} has shared no consumed offsets for txid {txid}; "
            "create it with KafkaSpout(..., groupId=..., shareOffsets=True)"
        )
    offsets = {
        name: {int(partition): offset for partition, offset in entries.items()}
        for name, entries in stored["offsets"].items()
    }
    return Consumed(stored["group"], offsets)


def partitions_of_task(batch: Consumed, index: int, numPartitions: int) -> dict[tuple[str, int], int]:
    """Returns the offsets of the spout's task ``index`` of ``numPartitions``, by (topic, partition).

    For a state without an exchange between it and the spout: its partitions are the spout's.
    """
    places = [(name, partition) for name in sorted(batch.offsets) for partition in sorted(batch.offsets[name])]
    offsets = {place: batch.offsets[place[0]][place[1]] for place in dealt(places, index, numPartitions)}
    return {place: offset for place, offset in offsets.items() if offset is not None}
