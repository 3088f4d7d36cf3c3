"""KafkaSpout: reads topics in batches of fixed offset ranges, as columns in the tasks."""

from __future__ import annotations

from ..model.requirements import Needs, needs_of, together
from ..spouts.interfaces import ITridentSpout, SpoutContext
from ..tuples import Fields
from .coordinator import KafkaCoordinator
from .emitter import KafkaEmitter
from .options import KafkaOptions


class KafkaSpout(KafkaOptions, ITridentSpout):
    """Reads Kafka topics: ``KafkaSpout("localhost:9092", "words", value="string", fields="value")``.

    For each batch the driver fixes an offset range of every partition and stores it before the batch runs; tasks read
    exactly these ranges. On replay: the same ranges again. For ``kind="transactional"`` these are the same records: a
    compacted topic, lost or truncated data, or a topic deleted and created anew ends the run with a SpoutError.
    ``kind="opaque"`` goes on from what exists and reports the loss; each record succeeds in one batch only.

    ``topics``: one name or several; ``pattern``: instead, a regular expression that matches whole names. New
    partitions, and new topics of a pattern, are read from their beginning. ``fields``: any of topic, partition, offset,
    key, value (the default), headers, timestamp. ``key``, ``value``: "bytes", "string", `Json`, `Avro` or a `Format`.
    ``onBadRecord``: "fail" or "skip". ``translator``: a function of a `KafkaRecord` that returns the values of
    ``fields``, or None for no tuple; or a dict of such functions by topic, with the key None for all other topics.

    ``firstPollOffsetStrategy`` applies to a new checkpoint only: EARLIEST, LATEST, TIMESTAMP (``startTimestamp``, in ms
    since 1970), or UNCOMMITTED_EARLIEST / UNCOMMITTED_LATEST: the committed offsets of group ``groupId``, else the
    earliest / latest. ``isolationLevel``: "read_committed" or "read_uncommitted". ``maxRecordsPerBatch`` and
    ``maxRecordsPerSecond`` count offsets, over all partitions. ``endingOffsets="latest"``: the spout ends where the
    topics ended when the run began. ``shareOffsets``: see `trident_py.kafka.consumed`. ``settings`` go to librdkafka
    (``security.protocol`` ...) and are never shown.

    Raises DefinitionError for options that contradict each other, and if the client is missing (pip install
    'trident-py[kafka]').
    Source in Storm: KafkaTridentSpoutConfig, KafkaTridentSpoutTransactional, KafkaTridentSpoutOpaque.
    """

    def getOutputFields(self) -> Fields:
        return self.output

    @property
    def needs(self) -> Needs:
        return together(self.cluster.needs, needs_of(self.keyFormat), needs_of(self.valueFormat))

    def getCoordinator(self, txStateId: str, conf: dict, context: SpoutContext) -> KafkaCoordinator:
        return KafkaCoordinator(self, txStateId, conf)

    def getEmitter(self, txStateId: str, conf: dict, context: SpoutContext) -> KafkaEmitter:
        return KafkaEmitter(self, txStateId)
