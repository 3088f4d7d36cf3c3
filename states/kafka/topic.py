"""Records written to a topic, at least once: Storm's TridentKafkaState."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from trident_py.errors import FailedException, StateError
from trident_py.kafka.clients import Cluster, is_passing
from trident_py.state import State
from trident_py.tuples import FieldsLike, TridentTuple

from .advice import kafka_errors
from .marks import Place
from .producing import SETTINGS, UNLIMITED, Room, for_producers
from .records import Block, RecordForm
from .recordstate import RecordFactory
from .sending import Sender
from .topics import check_there

DELIVERED = {"message.timeout.ms": 60_000}


class Topic(State):
    """One partition of a TopicState: an idempotent producer of its own.

    On replay: the records are written again.
    """

    def __init__(self, factory: TopicState, conf: dict) -> None:
        self.factory = factory
        self.rows = 0
        self._place = Place.of(factory.cluster, factory.topic, conf)
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
                self._send(self._open_sender, block)
        self.rows += len(tuples)
        return tuples if tell else []

    def commit(self, txid: int | None) -> Any:
        """Waits until the brokers have confirmed every record. Raises FailedException where one was not delivered and
        a replay may help, StateError where none would."""
        sender = self._open_sender
        while sender.producer.flush(1.0) > 0 and sender.failures.count == 0:
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

    def _send(self, sender: Sender, block: Block) -> None:
        if block.headers is None and block.topics is None:
            sender.send(self.factory.topic, block.values, block.keys)
            return
        for row, value in enumerate(block.values):
            topic = self.factory.topic if block.topics is None else block.topics[row]
            more = {} if block.headers is None else {"headers": block.headers[row]}
            sender.produce(topic, value, None if block.keys is None else block.keys[row], **more)

    def _tell(self, sender: Sender) -> None:
        failures = sender.failures
        text = f"{self._place.who}: {failures.count} of {self.rows} records were not delivered. {failures.text}"
        if is_passing(_Failed(failures.first)):
            raise FailedException(f"{text}. The batch is tried again")
        raise StateError(text)


class _Failed(Exception):
    """A delivery's error, as the exceptions of the client hold it."""


@dataclass(frozen=True, repr=False)
class TopicState(RecordFactory):
    """Writes each tuple as a record, at least once, as Storm's TridentKafkaState. Written by `states.RowUpdater`.

    The options are those of `TransactionalTopicState`. A value of None is a tombstone (Storm drops it); a topic of
    None from the selector stands for ``topic`` (Storm drops the record). A batch is not committed before the brokers
    have confirmed every record, in all in-sync replicas; a retry within librdkafka doubles nothing.

    On replay: the records are written again, so readers may see them twice. Raises DefinitionError for what does not
    fit together; opens nothing.
    """

    bootstrap: str
    topic: str
    value: FieldsLike | None = None
    key: FieldsLike | None = None
    headers: FieldsLike | None = None
    mapper: Any = None
    topicSelector: Any = None
    asJson: bool = False
    partitions: int | None = None
    settings: Mapping[str, Any] | tuple[tuple[str, str], ...] | None = None
    cluster: Cluster = field(init=False, compare=False)
    form: RecordForm = field(init=False, compare=False)

    kind: ClassVar[str] = "non-transactional"
    guarantees: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "transactional": (
            "at least once", "a replayed batch is written again", "use TransactionalTopicState",
        ),
        "opaque": (
            "at least once", "a replayed batch is written again", "write records under a key (CompactedTopicState)",
        ),
    }  # fmt: skip

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Topic:
        return Topic(self, conf)
