"""Records written to a topic, at least once: Storm's TridentKafkaState."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from trident_py.errors import StateError
from trident_py.state import BatchParticipant, State, StateClass
from trident_py.tuples import TridentTuple

from ..advice import kafka_errors
from ..ledger import AppendedTopic, UnfencedLedger
from ..marks import MarkPlace
from ..sender import Sender
from ..settings import DELIVERED, for_producers
from ..topic_admin import check_there
from .records import RecordFactory


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
        """Connect at the first batch and after a failure. Raises StateError if the topic is missing."""
        self.rows = 0
        if self._sender is not None:
            return
        admin = self.factory.cluster.admin()
        check_there(self._place, admin, self.factory.partitions)
        self._sender = Sender(self.factory.cluster, for_producers(self.factory.settings), DELIVERED)

    def insert(self, tuples: Sequence[TridentTuple], tell: bool) -> Sequence[TridentTuple]:
        """Send the records without waiting for their delivery; with ``tell`` returns the tuples."""
        with kafka_errors(self.factory.cluster, f"write to topic {self.factory.topic!r}"):
            for block in self.factory.form.blocks(tuples):
                block.send_to(self._open_sender, self.factory.topic)
        self.rows += len(tuples)
        return tuples if tell else []

    def commit(self, txid: int | None) -> Any:
        """Wait until the brokers have confirmed every record. If one was not delivered, raises FailedException if a
        replay may help, else StateError."""
        with kafka_errors(self.factory.cluster, f"write to topic {self.factory.topic!r}"):
            self._open_sender.confirm(self._place.label)
        return {"rows": self.rows}

    def rollback(self, txid: int | None) -> None:
        """Drop the queued records; record already sent stay."""
        self.close()

    def close(self) -> None:
        if self._sender is not None:
            self._sender.close()
        self._sender = None

    @property
    def _open_sender(self) -> Sender:
        if self._sender is None:
            raise StateError(f"{self._place.label}: call beginCommit() first")
        return self._sender


@dataclass(frozen=True, repr=False)
class TopicState(RecordFactory):
    """Writes each tuple as a record, at least once, like Storm's TridentKafkaState. Written by `states.RowUpdater`.

    The options have the same meaning as in `TransactionalTopicState`. A value of None is a tombstone (Storm drops it);
    if the selector returns None, the record goes to ``topic`` (Storm drops the record). A batch is committed only when
    all in-sync replicas have confirmed every record. A retry within librdkafka doubles nothing.

    On replay: the records are written again, so readers may see them twice. Raises DefinitionError for options that
    contradict each other; opens nothing.
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
        """Return the driver's side for one run: it waits for the brokers, checks or creates the topic, and records its
        owner. It stores no txids, so it cannot detect a topic restored from a backup."""
        return UnfencedLedger(AppendedTopic(self.cluster, self.topic, self.partitions), self.location)
