"""Read-process-write: the offsets that a batch has consumed, for the transaction that writes what was made of them."""

from __future__ import annotations

from typing import Any

from trident_py.errors import DefinitionError
from trident_py.kafka.clients import Cluster
from trident_py.kafka.consumed import consumed, partitions_of_task
from trident_py.state import StatePlace

from .marks import group_metadata


class Consuming:
    """The consumed offsets of one spout, in one task."""

    def __init__(self, cluster: Cluster, spout: str, conf: dict) -> None:
        self._cluster = cluster
        self._spout = spout
        self._conf = conf
        self._groups: dict[str, Any] = {}

    @staticmethod
    def check(spout: str, place: StatePlace) -> None:
        """Raises DefinitionError where a state partition cannot know what was consumed for it."""
        if spout not in place.spouts:
            raise DefinitionError(
                f"state {place.state}: consumed names the stream {spout!r}, which does not feed it; the streams "
                f"before it: {', '.join(place.spouts)}"
            )
        if place.partitions > 1 and spout not in place.beside:
            raise DefinitionError(
                f"state {place.state}: consumed={spout!r} needs each transaction to hold what was made of the offsets "
                f"it commits; between the spout and these {place.partitions} partitions tuples change their partition. "
                "Give the state one partition (oneTransaction=True), or leave out the repartitioning"
            )

    def offsets(self, txid: int, partition: int, partitions: int) -> list[tuple[list[Any], Any]]:
        """Pairs of offsets and group metadata: of all that was read, or by this task where there are several."""
        from confluent_kafka import TopicPartition

        batch = consumed(self._conf, self._spout, txid)
        mine = partitions_of_task(batch, partition, partitions)
        if not mine:
            return []
        if batch.group not in self._groups:
            self._groups[batch.group] = group_metadata(self._cluster, batch.group)
        places = [TopicPartition(topic, number, offset) for (topic, number), offset in mine.items()]
        return [(places, self._groups[batch.group])]
