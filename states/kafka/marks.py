"""Who may write a Kafka state, and how far it is: marks kept as the offset metadata of consumer groups.

A mark is committed in the transaction that writes the data (``send_offsets_to_transaction``), so both are there or
neither is. Each state partition has a group of its own, and so has the driver of each state:

    trident/<topology>/<state>/<partition>   the last txid that this partition has written, of how many partitions, and
                                             how many records
    trident/owner-of/<topic>                 whose the topic is, see `states.kafka.owner`
    trident/<topology>/<state>/driver        generation of the driver, lineage of the checkpoint, the attempt it has
                                             let in last, the number of partitions that holds, the way of the tuples to
                                             them, and the last batch that is over of those of which no partition has a
                                             mark; which topic it was, by the id that the brokers gave it; and how many
                                             partitions have had a mark since when (Unix time)

The transactional ids are the same with the topic behind them: whoever calls ``init_transactions`` shuts out the one
before. So a restart shuts out its predecessor, also after a lost checkpoint; a deployment of equal names on another
topic is not touched; one on the same topic is refused by its lineage, before it touches anything.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

from trident_py.context import RunContext
from trident_py.errors import DefinitionError, StateError
from trident_py.kafka.asking import asked, committed
from trident_py.kafka.clients import ASKING, Cluster, is_passing
from trident_py.patience import again_for

from ..spread import Spread
from .advice import kafka_errors

ANSWER = 30.0
DRIVER = "driver"
LONGEST_NAME = 1000
LONGEST_MARK = 4000  # brokers take 4096 bytes (offset.metadata.max.bytes)


class Mark(NamedTuple):
    """What a group's metadata says; all zero where there is none."""

    txid: int = 0
    generation: int = 0
    lineage: str = ""
    attempt: int = 0
    partitions: int = 0
    rows: int = 0
    way: str = ""
    over: int = 0
    marked: int = 0
    since: int = 0
    topic: str = ""

    @property
    def spread(self) -> Spread:
        """How the driver has let the last batch begin, or a partition has written it."""
        return Spread(self.partitions, self.way)

    def text(self) -> str:
        """Raises StateError if no broker would take it."""
        made = json.dumps(self._asdict(), separators=(",", ":"))
        if len(made) > LONGEST_MARK:
            raise StateError(
                f"the name of the lineage has {len(self.lineage)} characters, too many for a mark in Kafka; "
                "give the checkpoint a shorter one"
            )
        return made


@dataclass(frozen=True)
class MarkPlace:
    """The marks of one state of one topology. Their offsets name partition 0 of the state's topic."""

    cluster: Cluster
    topic: str
    topology: str
    state: str

    @classmethod
    def of(cls, cluster: Cluster, topic: str, conf: dict) -> MarkPlace:
        """``conf`` as a state or a participant gets it. Raises DefinitionError for names that are too long."""
        context = RunContext.of(conf)
        found = cls(cluster, topic, context.topology, context.state or topic)
        if len(found.transactional_id(DRIVER)) > LONGEST_NAME:
            raise DefinitionError(
                f"the names of topology {found.topology[:60]!r}... and state {found.state[:60]!r}... make a "
                f"transactional id of more than {LONGEST_NAME} characters; shorten them"
            )
        return found

    def name(self, part: int | str) -> str:
        """The group of a partition, or of the driver."""
        return f"trident/{quote(self.topology, safe='')}/{quote(self.state, safe='')}/{part}"

    def transactional_id(self, part: int | str) -> str:
        """Who writes there: this partition, or the driver, of a state of this name over this topic."""
        return f"{self.name(part)}/{quote(self.topic, safe='')}"

    @property
    def who(self) -> str:
        return f"state {self.state!r} of topology {self.topology!r} in topic {self.topic!r} at {self.cluster.bootstrap}"

    def read(self, part: int | str, settled: bool = True) -> Mark | None:
        """The mark, once every open transaction on it has ended; None if there is none. Raises StateError.

        ``settled=False``: the mark as it is now, whatever an open transaction may still make of it.
        """
        found = committed_in(self, part, settled)
        if found.offset < 0:
            return None
        try:
            return _believed(found)
        except (ValueError, TypeError) as error:
            raise StateError(
                f"{self.who}: group {self.name(part)!r} stands at offset {found.offset} with {found.metadata!r}, which "
                "this library has not written: nobody knows what of the state is in the topic. Has somebody moved the "
                "group's offset? Write the state under another name, or remove the offset (kafka-consumer-groups.sh "
                "--delete-offsets) and start again: the ways on are told then"
            ) from error

    def metadata(self, part: int | str) -> Any:
        """The group's metadata, as ``send_offsets_to_transaction`` wants it; made once for each producer."""
        return group_metadata(self.cluster, self.name(part))

    def offsets(self, mark: Mark) -> list[Any]:
        """The offsets that carry a mark."""
        from confluent_kafka import TopicPartition

        return [TopicPartition(self.topic, 0, mark.txid, metadata=mark.text())]


def committed_in(place: MarkPlace, part: int | str, settled: bool) -> Any:
    """The offset of a group, with its metadata. Raises StateError."""
    with kafka_errors(place.cluster, f"read the mark of {place.who}"):
        found = _committed(place.cluster, place.name(part), place.topic, settled)
        if found.error is not None:
            raise StateError(f"{place.who}: its mark cannot be read: {found.error.str()}")
    return found


def _believed(found: Any) -> Mark:
    """A mark that says who wrote what. Raises ValueError, TypeError for one that does not."""
    told = json.loads(found.metadata or "")
    mark = Mark(**told)
    if not {"txid", "generation", "lineage"} <= told.keys() or mark.txid != found.offset:
        raise ValueError("no txid, generation and lineage, or another offset than the txid")
    return mark


def group_metadata(cluster: Cluster, group: str) -> Any:
    """What stands for a group without members in a transaction."""
    consumer = cluster.consumer({**ASKING, "group.id": group})
    try:
        with kafka_errors(cluster, f"look at group {group!r}"):
            return asked(consumer.consumer_group_metadata)
    finally:
        consumer.close()


def _committed(cluster: Cluster, group: str, topic: str, settled: bool) -> Any:
    """The group's offset of partition 0; asked again while the broker is busy. Raises KafkaException."""
    from confluent_kafka import TopicPartition

    ask = partial(committed, cluster, group, [TopicPartition(topic, 0)], ANSWER, settled)
    return again_for(ANSWER, 0.02, is_passing, ask)[0]
