"""The offsets that a batch has consumed, for a state that commits them in its own Kafka transaction.

A `KafkaSpout` with ``groupId`` and ``shareOffsets=True`` shares them with the tasks: they travel with the job. This is
read-process-write as in Kafka Streams: the offsets become visible together with the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import SpoutError
from ..model.context import RunContext
from .batches import Positions, dealt


class Consumed(NamedTuple):
    """The group, and by topic and partition the next offset after the batch; None if nothing was ever read."""

    group: str
    offsets: dict[str, dict[int, int | None]]


def share(group: str, positions: Positions) -> dict[str, Any]:
    """Return the offsets as a JSON value. Called on the driver before each attempt; a replay shares the same."""
    return {"group": group, "offsets": {name: dict(enumerate(topic.next)) for name, topic in positions.items()}}


def consumed(conf: Mapping[str, Any], spout_id: str, txid: int) -> Consumed:
    """Return the offsets that the batch has consumed; the same on replay.

    Called by a state in a task, during the batch, with the conf of ``makeState``. ``spout_id`` is the stream's name in
    ``newStream``. Raises SpoutError if the spout shares no offsets.
    """
    current = RunContext.of(conf).running
    if current is None or current.transaction.txid != txid or spout_id not in current.shared:
        raise SpoutError(
            f"spout {spout_id!r} has shared no consumed offsets for txid {txid}; "
            "create it with KafkaSpout(..., groupId=..., shareOffsets=True)"
        )
    value = current.shared[spout_id]
    offsets = {
        name: {int(partition): offset for partition, offset in entries.items()}
        for name, entries in value["offsets"].items()
    }
    return Consumed(value["group"], offsets)


def partitions_of_task(batch: Consumed, index: int, numPartitions: int) -> dict[tuple[str, int], int]:
    """Return the offsets of the spout's task ``index`` of ``numPartitions``, by (topic, partition).

    For a state without an exchange between it and the spout: its partitions are the spout's.
    """
    places = [(name, partition) for name in sorted(batch.offsets) for partition in sorted(batch.offsets[name])]
    offsets = {place: batch.offsets[place[0]][place[1]] for place in dealt(places, index, numPartitions)}
    return {place: offset for place, offset in offsets.items() if offset is not None}
