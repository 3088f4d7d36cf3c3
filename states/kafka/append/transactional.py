"""Records appended to a topic: each batch once (one Kafka transaction per batch and partition), or at least once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from trident_py.errors import DefinitionError, StateError
from trident_py.kafka import confluent
from trident_py.kafka.clients import Cluster
from trident_py.kafka.consumed_offsets import consumed, partitions_of_task
from trident_py.state import BatchParticipant, State, StatePlace
from trident_py.tuples import TridentTuple

from ...ledger.partition_layout import Layout
from ..advice import kafka_errors
from ..fence import TopicFence
from ..ledger import TopicLedger, UnfencedLedger
from ..marks import Mark, MarkPlace, group_metadata
from ..producer import TransactionalProducer
from ..sender import Sender
from ..settings import DELIVERED, for_producers
from ..topic_admin import check_there
from .records import Headers, RecordBlock, RecordFactory


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
    state_type = TopicRecords

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> TopicRecords:
        return TopicRecords(self, conf)

    def participant(self) -> BatchParticipant:
        """Return the driver's side for one run: it waits for the brokers, checks or creates the topic, and records its
        owner. It stores no txids, so it cannot detect a topic restored from a backup."""
        return UnfencedLedger(self.cluster, self.location, self.partitions)


class Consuming:
    """Finds the consumed offsets of one spout, in one task."""

    def __init__(self, cluster: Cluster, spout: str, conf: dict) -> None:
        self._cluster = cluster
        self._spout = spout
        self._conf = conf
        self._groups: dict[str, Any] = {}

    @staticmethod
    def check(spout: str, place: StatePlace) -> None:
        """Raise DefinitionError if a state partition cannot know which offsets its tuples come from."""
        if spout not in place.spouts:
            raise DefinitionError(
                f"state {place.state}: consumed names the stream {spout!r}, which does not feed it; the streams "
                f"before it: {', '.join(place.spouts)}"
            )
        if place.partitions > 1 and spout not in place.beside:
            raise DefinitionError(
                f"state {place.state}: consumed={spout!r} needs each transaction to hold the results of exactly the "
                f"offsets that it commits, but between the spout and these {place.partitions} partitions tuples change "
                "their partition. Give the state one partition (oneTransaction=True), or leave out the repartitioning"
            )

    def offsets(self, txid: int, partition: int, partitions: int) -> list[tuple[list[Any], Any]]:
        """Return pairs of offsets and group metadata: of the whole batch or, with several partitions, of this task's
        share."""
        batch = consumed(self._conf, self._spout, txid)
        offsets = partitions_of_task(batch, partition, partitions)
        if not offsets:
            return []
        if batch.group not in self._groups:
            self._groups[batch.group] = group_metadata(self._cluster, batch.group)
        positions = [confluent.TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
        return [(positions, self._groups[batch.group])]


TXID_HEADER = "trident-txid"


class TransactionalTopicRecords(State):
    """One partition of a TransactionalTopicState.

    On replay: nothing is written, because the mark committed with the records shows that they are there. The mark is
    read whenever the producer is opened: in each new process, after each failure, in each attempt but the first.
    """

    def __init__(self, factory: TransactionalTopicState, conf: dict, partition: int, partitions: int) -> None:
        place = MarkPlace.of(factory.cluster, factory.topic, conf)
        self.factory = factory
        self.partition = partition
        self.partitions = partitions
        self.rows = self.written = 0
        self._fence = TopicFence.at(place, conf)
        self._spread = Layout.of(partitions, conf)
        self._producer = TransactionalProducer(place, partition, for_producers(factory.settings))
        self._consuming = Consuming(factory.cluster, factory.consumed, conf) if factory.consumed else None
        self._own = Mark()
        self._counts_only = False
        self._txid: int | None = None

    def beginCommit(self, txid: int | None) -> None:
        """Open the producer and read the marks where needed."""
        self.rows = self.written = 0
        self._txid = txid
        goes_on = txid is None or (txid > self._own.txid and self._fence.attempt == 0)
        stays = self._producer.is_open and goes_on and not self._counts_only
        if not stays or not self._producer.shows(self._own.txid):
            self._take_over(txid)

    def insert(self, tuples: Sequence[TridentTuple], tell: bool) -> Sequence[TridentTuple]:
        """Send the records; with ``tell`` returns the tuples written now. Raises StateError for a bad tuple."""
        self.rows += len(tuples)
        if len(tuples) == 0 or not self._must_write:
            return []
        self._producer.begin()
        for block in self.factory.form.blocks(tuples):
            block._replace(headers=self._headers(block)).send_to(self._producer, self.factory.topic)
        self.written += len(tuples)
        return tuples if tell else []

    def commit(self, txid: int | None) -> Any:
        """Commit records, mark and consumed offsets in one transaction; return the receipt: the counts of tuples
        received (``rows``) and written."""
        if self._must_write:
            mark = self._fence.mark(self._own, txid, self.partitions, self.rows)
            self._producer.commit(mark, self._others(txid))
            self._own = mark
        return {"partition": self.partition, "rows": self.rows, "written": self.written}

    def rollback(self, txid: int | None) -> None:
        self._producer.abort()

    def close(self) -> None:
        """Called when the run is over in this process, or another process now runs the partition."""
        self._producer.close()

    @property
    def _must_write(self) -> bool:
        """Whether this partition has not written its part of the batch yet."""
        return self._txid is None or (self._own.txid < self._txid and not self._counts_only)

    def _take_over(self, txid: int | None) -> None:
        if self._fence.generation == 0:  # no driver has checked it
            check_there(self._fence.place, self.factory.cluster.admin(), self.factory.partitions)
        driver, self._own = self._fence.take_over(self._producer, self.partition, txid, self._own)
        if driver.generation > 0 and driver.partitions == 0:
            self._producer.close()
            raise StateError(
                f"{self._fence.place.label}: batch {txid} runs before the driver's prepare(), which records the number "
                "of partitions. Run the topology on a cluster of trident_py"
            )
        self._counts_only = driver.generation > 0 and driver.spread != self._spread

    def _headers(self, block: RecordBlock) -> list[Headers] | None:
        if not self.factory.txidHeader or self._txid is None:
            return block.headers
        txid = (TXID_HEADER, str(self._txid).encode())
        return [[*headers, txid] for headers in block.headers or [[]] * len(block.values)]

    def _others(self, txid: int | None) -> list[tuple[list[Any], Any]]:
        if self._consuming is None or txid is None:
            return []
        return self._consuming.offsets(txid, self.partition, self.partitions)


@dataclass(frozen=True, repr=False)
class TransactionalTopicState(RecordFactory):
    """Appends each tuple as a record, exactly once for readers with ``isolation.level=read_committed``. Written by
    `states.RowUpdater`.

    ``value``, ``key``, ``headers``: fields, see `states.kafka.append.records`; without ``value``, all fields but the
    key's. ``mapper``, (tuple) -> (key, value[, headers]), replaces all three. ``topicSelector``, a field or (tuple) ->
    topic, chooses a topic for each record; the marks stay with ``topic``. ``asJson`` writes a single field as an
    object, too.
    ``partitions``: a missing topic is created with so many partitions; without it, a missing topic is an error.
    ``txidHeader`` adds the header trident-txid. ``settings``: librdkafka's settings. ``consumed``: the name of a stream
    of a KafkaSpout with shareOffsets; its consumed offsets are committed in the same transaction.

    The records of a batch become visible one state partition after the other; with ``oneTransaction``, the state has
    one partition and they become visible at once.

    On replay: a partition that has written its part of the batch writes nothing. Exact for sources that repeat a batch
    unchanged. Raises DefinitionError for options that contradict each other; opens nothing.
    """

    oneTransaction: bool = False
    consumed: str | None = None
    partitions: int | None = None
    txidHeader: bool = False
    settings: Mapping[str, Any] | tuple[tuple[str, str], ...] | None = None

    kind: ClassVar[str] = "append"
    shown: ClassVar[tuple[str, ...]] = (*RecordFactory.shown, "oneTransaction", "consumed")
    guarantees: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "transactional": (
            "exactly once",
            "the records of a partition and their txid share one Kafka transaction, for read_committed readers",
        ),
        "opaque": (
            "wrong",
            "a replay may hold other tuples, but skips the partitions that a failed attempt committed",
            "write rows under a key (an upsert or insert-ignore state), or use a batch state in a database",
        ),
    }
    state_type = TransactionalTopicRecords

    @property
    def requiredNumPartitions(self) -> int | None:
        return 1 if self.oneTransaction else None

    def check_place(self, place: StatePlace) -> None:
        if self.oneTransaction and place.partitions != 1:
            raise DefinitionError(
                f"state {place.state}: oneTransaction needs one partition, but a StateSpec sets {place.partitions}"
            )
        if self.consumed is not None:
            Consuming.check(self.consumed, place)

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> TransactionalTopicRecords:
        return TransactionalTopicRecords(self, conf, partitionIndex, numPartitions)

    def participant(self) -> BatchParticipant:
        return TopicLedger(self.cluster, self.location, for_producers(self.settings), True, self.partitions)
