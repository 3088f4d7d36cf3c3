"""Marks in the offset metadata of consumer groups: which driver may write a state, and which batches are written.

A mark is committed in the transaction that writes the data (``send_offsets_to_transaction``), so either both exist or
neither does. Each state partition has a group of its own, and so has the driver of each state:

    trident/<topology>/<state>/<partition>   the last txid that this partition has written, the number of partitions,
                                             and the number of records
    trident/owner-of/<topic>                 the owner of the topic, see `states.kafka.owner`
    trident/<topology>/<state>/driver        generation of the driver; lineage of the checkpoint; the latest attempt let
                                             in, its number of partitions and the way of its tuples; the last complete
                                             batch that no partition's mark shows; the topic's id from the brokers; how
                                             many partitions have marks, and since when (Unix time); the token of
                                             the run that wrote last

A transactional id is the group's name followed by the topic, and ``init_transactions`` shuts out its previous user. So
a restart shuts out its predecessor, even after the checkpoint was lost. A deployment with the same names on another
topic is not affected; on the same topic it is refused by its lineage, before it changes anything.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from trident_py.errors import DefinitionError, FailedException, StateError
from trident_py.kafka import confluent
from trident_py.kafka.blocking_calls import call_client, fetch_committed
from trident_py.kafka.clients import ASKING, Cluster, is_passing
from trident_py.model.context import RunContext
from trident_py.model.json_text import parse_json
from trident_py.model.retry import again_for

from ..ledger.fence import LedgerRow
from ..ledger.format import NAME, check_format
from ..ledger.partition_layout import Layout
from .advice import kafka_errors

ANSWER = 30.0
PENDING = 1.0  # seconds after which a mark that is not settled counts as one of a transaction
HELD = 10.0  # ... and as one whose transaction does not end, after it was waited for
DRIVER = "driver"
LONGEST_NAME = 1000
LONGEST_MARK = 4000  # brokers accept 4096 bytes by default (offset.metadata.max.bytes)


class HeldMark(FailedException):
    """A mark cannot be read: a transaction that has not ended may replace it."""


class GroupNote(Protocol):
    """What a group's offset carries: a txid, which is the offset, and a text, which is its metadata."""

    @property
    def txid(self) -> int: ...
    def text(self) -> str: ...


class Mark(NamedTuple):
    """The content of a group's metadata; all zero if there is none. For the fields, see the module's docstring."""

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
    run: str = ""

    @property
    def row(self) -> LedgerRow:
        """The driver's mark as the fence compares it: it names the attempt let in last, and no complete batch."""
        return LedgerRow(self.generation, self.lineage, 0, self.txid, self.attempt, self.run)

    @property
    def spread(self) -> Layout:
        """The spread under which the driver began the last batch, or the partition wrote it."""
        return Layout(self.partitions, self.way)

    def text(self) -> str:
        """Return the mark as metadata. Raises StateError if it is too long for brokers."""
        text = json.dumps(self._asdict(), separators=(",", ":"))
        if len(text) > LONGEST_MARK:
            raise StateError(
                f"the name of the lineage has {len(self.lineage)} characters, too many for a mark in Kafka; "
                "give the checkpoint a shorter name"
            )
        return text


@dataclass(frozen=True)
class MarkPlace:
    """The marks of one state of one topology, as offsets of partition 0 of the state's topic."""

    cluster: Cluster
    topic: str
    topology: str
    state: str

    @classmethod
    def of(cls, cluster: Cluster, topic: str, conf: dict) -> MarkPlace:
        """Build from the conf of a state or a participant. Raises DefinitionError for names that are too long."""
        context = RunContext.of(conf)
        place = cls(cluster, topic, context.topology, context.state or topic)
        if len(place.transactional_id(DRIVER)) > LONGEST_NAME:
            raise DefinitionError(
                f"the names of topology {place.topology[:60]!r}... and state {place.state[:60]!r}... make a "
                f"transactional id of more than {LONGEST_NAME} characters; shorten them"
            )
        return place

    def name(self, part: int | str) -> str:
        """Return the group of a partition, or of the driver."""
        return f"trident/{quote(self.topology, safe='')}/{quote(self.state, safe='')}/{part}"

    def transactional_id(self, part: int | str) -> str:
        """Return the transactional id of this partition, or of the driver, for this topic."""
        return f"{self.name(part)}/{quote(self.topic, safe='')}"

    @property
    def label(self) -> str:
        """The state, as errors name it."""
        return f"state {self.state!r} of topology {self.topology!r} in topic {self.topic!r} at {self.cluster.bootstrap}"

    def read(self, part: int | str, settled: bool = True) -> Mark | None:
        """Return the mark, or None. Waits until every open transaction on it has ended, and raises HeldMark if that
        takes too long. Raises StateError if it cannot be read.

        ``settled=False``: returns the mark as it is now, which an open transaction may still replace.
        """
        return self._mark_of(part, self._fetch_settled(part) if settled else self.fetch_committed(part, False))

    def _mark_of(self, part: int | str, position: Any) -> Mark | None:
        """Return the mark in a group's committed offset, or None. Raises StateError if it cannot be read."""
        if position.offset < 0:
            return None
        try:
            return _parse_mark(position, self.label)
        except (ValueError, TypeError) as error:
            raise StateError(
                f"{self.label}: group {self.name(part)!r} is at offset {position.offset} with {position.metadata!r}, "
                "which this library has not written, so it is unknown what the topic holds of the state. Was the "
                "group's offset moved? Write the state under another name, or remove the offset "
                "(kafka-consumer-groups.sh --delete-offsets) and start again; the start then lists your options"
            ) from error

    def read_after_open(self, part: int | str) -> Mark | None:
        """Return the mark, or None. Called after ``init_transactions``, which ends the partition's transactions. Raises
        StateError if one still holds the mark: the brokers have lost its end."""
        try:
            return self.read(part)
        except HeldMark as error:
            raise StateError(
                f"{self.label}: the brokers have ended a transaction of group {self.name(part)!r}, but not told their "
                "partitions, so nobody sees its records and its mark. Kafka 4.3 does that if a partition has no leader "
                "when a transaction ends. Abort it in the topic and in __consumer_offsets (kafka-transactions.sh "
                "find-hanging --max-transaction-timeout 0, then abort), and start again: the start replays the batch, "
                "or tells that the topic is behind the checkpoint"
            ) from error

    def _fetch_settled(self, part: int | str) -> Any:
        try:
            return self.fetch_committed(part, True)
        except FailedException as error:
            if not self.is_pending(part, HELD):
                raise
            raise HeldMark(
                f"{self.label}: a transaction that has not ended holds the mark in group {self.name(part)!r}. A task "
                "of an older run may have it open, for at most transaction.timeout.ms; if it stays, the brokers have "
                "lost its end, and kafka-transactions.sh finds it (find-hanging)"
            ) from error

    def has(self, part: int | str, txid: int) -> bool:
        """Return whether the brokers have a mark of this txid or a later one. A broker that has just restarted may not
        show a mark whose transaction was committed, until the producer's next one."""
        return self.is_pending(part) or (self.read(part, settled=False) or Mark()).txid >= txid

    def is_told(self, part: int | str, txid: int, consumer: Any) -> bool:
        """Return whether this consumer of the group is told such a mark. A tenth of the time of `has`, which makes
        consumers of its own."""
        with contextlib.suppress(confluent.KafkaException):
            (position,) = call_client(consumer.committed, [confluent.TopicPartition(self.topic, 0)], PENDING)
            return position.error is None and (self._mark_of(part, position) or Mark()).txid >= txid
        return False

    def is_pending(self, part: int | str, patience: float = PENDING) -> bool:
        """Return whether a transaction that has not ended may replace the mark. Raises FailedException while the
        brokers are away: they must answer before and after, or it was not the transaction that was waited for."""
        self.fetch_committed(part, False, PENDING)
        try:
            self.fetch_committed(part, True, patience)
        except FailedException:
            self.fetch_committed(part, False, PENDING)
            return True
        return False

    def fetch_committed(self, part: int | str, settled: bool, patience: float = ANSWER) -> Any:
        """Return the group's offset with its metadata; repeats while the broker is busy. Raises StateError."""
        asked = [confluent.TopicPartition(self.topic, 0)]
        ask = partial(fetch_committed, self.cluster, self.name(part), asked, patience, settled)
        with kafka_errors(self.cluster, f"read the mark of {self.label}"):
            position = again_for(patience, 0.02, is_passing, ask)[0]
            if position.error is not None:
                raise StateError(f"{self.label}: its mark cannot be read: {position.error.str()}")
        return position

    def write(self, part: int | str, note: GroupNote, doing: str) -> None:
        """Write a note without a transaction. ``doing`` names the work in errors."""
        with _group_client(self.cluster, self.name(part), doing) as consumer:
            call_client(consumer.commit, offsets=self.offsets(note), asynchronous=False)

    def metadata(self, part: int | str) -> Any:
        """Return the group's metadata for ``send_offsets_to_transaction``; read once for each producer."""
        return group_metadata(self.cluster, self.name(part))

    def consumer(self, part: int | str) -> Any:
        """Return a consumer that names the group and does not join it; it waits for open transactions."""
        return _consumer(self.cluster, self.name(part))

    def offsets(self, note: GroupNote) -> list[Any]:
        """Return the offsets that carry a note."""
        return [confluent.TopicPartition(self.topic, 0, note.txid, metadata=note.text())]


def _parse_mark(position: Any, label: str) -> Mark:
    """Parse a mark. Raises ValueError or TypeError for metadata that this library has not written, StateError for a
    later format."""
    values = dict(parse_json(position.metadata or ""))
    check_format(label, values.pop(NAME, None))
    mark = Mark(**values)
    if not {"txid", "generation", "lineage"} <= values.keys() or mark.txid != position.offset:
        raise ValueError("no txid, generation and lineage, or another offset than the txid")
    return mark


def group_metadata(cluster: Cluster, group: str) -> Any:
    """Return the metadata that names a group without members in a transaction."""
    with _group_client(cluster, group, f"look up group {group!r}") as consumer:
        return call_client(consumer.consumer_group_metadata)


@contextlib.contextmanager
def _group_client(cluster: Cluster, group: str, doing: str) -> Iterator[Any]:
    """A consumer that names a group and does not join it."""
    consumer = _consumer(cluster, group)
    try:
        with kafka_errors(cluster, doing):
            yield consumer
    finally:
        consumer.close()


def _consumer(cluster: Cluster, group: str) -> Any:
    return cluster.consumer({**ASKING, "group.id": group, "isolation.level": "read_committed"})
