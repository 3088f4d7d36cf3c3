"""Records written to a topic, at least once: Storm's TridentKafkaState."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from trident_py.errors import FailedException, StateError
from trident_py.kafka.asking import asked
from trident_py.kafka.clients import is_passing
from trident_py.state import BatchParticipant, State, StateClass
from trident_py.tuples import TridentTuple

from ..advice import kafka_errors
from ..ledger import AppendedTopic, UnfencedLedger
from ..marks import MarkPlace
from ..sending import Sender
from ..settings import SETTINGS, UNLIMITED, Room, for_producers
from ..topic_admin import check_there
from .base import RecordFactory

DELIVERED = {"message.timeout.ms": 60_000}


class TopicRecords(State):
    """One partition of a TopicState: an idempotent producer of its own.

    On replay: the records are written again.
    """

    def __init__(self, factory: TopicState, conf: dict) -> None:
        self.factory = factory
        self.rows = 0
        self._place = MarkPlace.of(factory.cluster, factory.topic, conf)
        self._sender: Sender | None = None

    def beginCommit(self, txid: int | None) -> None:
        """Connects the first time, and after a failure. Raises StateError for a topic that is not there."""
        self.rows = 0
        if self._sender is not None:
            return
        admin = self.factory.cluster.admin()
        check_there(self._place, admin, self.factory.partitions)
        given = for_producers(self.factory.settings)
        self._sender = Sender(self.factory.cluster, {**SETTINGS, **DELIVERED, **given, **UNLIMITED}, Room(given))

    def insert(self, tuples: Sequence[TridentTuple], tell: bool) -> Sequence[TridentTuple]:
        """Sends the records and waits for none; with ``tell`` returns the tuples."""
        with kafka_errors(self.factory.cluster, f"write to topic {self.factory.topic!r}"):
            for block in self.factory.form.blocks(tuples):
                block.send_to(self._open_sender, self.factory.topic)
        self.rows += len(tuples)
        return tuples if tell else []

    def commit(self, txid: int | None) -> Any:
        """Waits until the brokers have confirmed every record. Raises FailedException where one was not delivered and
        a replay may help, StateError where none would."""
        sender = self._open_sender
        with kafka_errors(self.factory.cluster, f"write to topic {self.factory.topic!r}"):
            while asked(sender.producer.flush, 1.0) > 0 and sender.failures.count == 0:
                pass
        if sender.failures.count > 0:
            self._tell(sender)
        return {"rows": self.rows}

    def rollback(self, txid: int | None) -> None:
        """What waits is dropped; what was sent stays."""
        self.close()

    def close(self) -> None:
        if self._sender is not None:
            self._sender.close()
        self._sender = None

    @property
    def _open_sender(self) -> Sender:
        if self._sender is None:
            raise StateError(f"{self._place.who}: beginCommit comes first")
        return self._sender

    def _tell(self, sender: Sender) -> None:
        from confluent_kafka import KafkaException

        failures = sender.failures
        text = f"{self._place.who}: {failures.count} of {self.rows} records were not delivered. {failures.text}"
        if is_passing(KafkaException(failures.first)):
            raise FailedException(f"{text}. The batch is tried again")
        raise StateError(text)


@dataclass(frozen=True, repr=False)
class TopicState(RecordFactory):
    """Writes each tuple as a record, at least once, as Storm's TridentKafkaState. Written by `states.RowUpdater`.

    The options are those of `TransactionalTopicState`. A value of None is a tombstone (Storm drops it); a topic of
    None from the selector stands for ``topic`` (Storm drops the record). A batch is not committed before the brokers
    have confirmed every record, in all in-sync replicas; a retry within librdkafka doubles nothing.

    On replay: the records are written again, so readers may see them twice. Raises DefinitionError for what does not
    fit together; opens nothing.
    """

    partitions: int | None = None
    settings: Mapping[str, Any] | tuple[tuple[str, str], ...] | None = None

    kind: ClassVar[str] = "non-transactional"
    guarantees: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "transactional": (
            "at least once", "a replayed batch is written again", "use TransactionalTopicState",
        ),
        "opaque": (
            "at least once", "a replayed batch is written again", "write records under a key (CompactedTopicState)",
        ),
    }  # fmt: skip

    @property
    def state_type(self) -> StateClass:
        return TopicRecords

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> TopicRecords:
        return TopicRecords(self, conf)

    def participant(self) -> BatchParticipant:
        """The driver's side, for one run: waits for the brokers, looks at the topic or makes it, and notes whose it is.
        It remembers no txids: nothing tells it that a topic was put back from a backup."""
        return UnfencedLedger(AppendedTopic(self.cluster, self.topic, self.partitions), self.location)
