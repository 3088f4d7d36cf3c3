"""KafkaSpout: topics as batches of fixed offset ranges, read by columns in the tasks."""

from __future__ import annotations

from ..spouts.interfaces import ITridentSpout, SpoutContext
from ..tuples import Fields
from .coordinator import KafkaCoordinator
from .emitter import KafkaEmitter
from .options import KafkaOptions


class KafkaSpout(KafkaOptions, ITridentSpout):
    """Kafka topics: ``KafkaSpout("localhost:9092", "words", value="string", fields="value")``.

    The driver fixes for each batch an offset range of every partition, and stores it before the batch runs; tasks read
    exactly these ranges. On replay: the same ranges again, which are the same records for ``kind="transactional"``:
    a compacted topic, lost or truncated data and a topic made anew end the run with a SpoutError. ``kind="opaque"``
    goes on from what exists and reports what was lost; each record succeeds in one batch only.

    ``topics``: a name or several; ``pattern``: a regular expression instead, for whole names. New partitions, and new
    topics of a pattern, are read from their beginning. ``fields``: any of topic, partition, offset, key, value (these
    are the default), headers, timestamp. ``key``, ``value``: "bytes", "string", `Json`, `Avro` or a `Format`.
    ``onBadRecord``: "fail" or "skip". ``translator``: a function of a `KafkaRecord` that returns the values of
    ``fields`` or None (no tuple), or a dict of them by topic, where None stands for the others.

    ``firstPollOffsetStrategy`` counts for a new checkpoint only: EARLIEST, LATEST, TIMESTAMP (``startTimestamp``, in
    ms), or UNCOMMITTED_EARLIEST / UNCOMMITTED_LATEST: where the group ``groupId`` stands, if it does.
    ``maxRecordsPerBatch`` and ``maxRecordsPerSecond`` count offsets, over all partitions. ``endingOffsets="latest"``
    ends the spout at what was there when the run began. ``shareOffsets``: see `trident_py.kafka.consumed`.
    ``settings`` go to librdkafka (``security.protocol`` ...) and are never shown.

    Raises DefinitionError for what does not fit together, and without the client (pip install 'trident-py[kafka]').
    Source in Storm: KafkaTridentSpoutConfig, KafkaTridentSpoutTransactional, KafkaTridentSpoutOpaque.
    """

    def getOutputFields(self) -> Fields:
        return self.output

    def getCoordinator(self, txStateId: str, conf: dict, context: SpoutContext) -> KafkaCoordinator:
        return KafkaCoordinator(self, txStateId, conf)

    def getEmitter(self, txStateId: str, conf: dict, context: SpoutContext) -> KafkaEmitter:
        return KafkaEmitter(self, txStateId, context.getPartitionIndex(), context.numPartitions())
