"""The offsets of Storm's Kafka spouts, in both forms that they have had, as the next offset and the begun range.

    {"firstOffset": 5, "lastOffset": 9, ...}     storm-kafka-client: the last one is in the batch
    {"offset": 5, "nextOffset": 10, ...}         storm-kafka: the next one is not

A batch without records of a partition has the offset before the next one twice in the first form. Source in Storm:
KafkaTridentSpoutEmitter, KafkaTridentSpoutBatchMetadata; up to 1.2 TridentKafkaEmitter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import DefinitionError
from ...filesystems.base import is_number
from .storm_stream import ByTxid, StormStream

Place = tuple[str, int]


@dataclass(frozen=True)
class KafkaProgress:
    """Where a stream is. ``next``: the next offset of each partition after the last committed batch; ``after``: after
    the one under way, if every emitter has recorded it. ``unknown``: what must be said of a partition, by its place."""

    next: Mapping[Place, int] = field(default_factory=dict)
    after: Mapping[Place, int] = field(default_factory=dict)
    unknown: Mapping[Place, str] = field(default_factory=dict)


def read_progress(stream: StormStream, committed: int, topics: Collection[str]) -> KafkaProgress:
    """Return the progress of a stream after the txid. ``topics``: those of our spout, for metadata without a topic.
    Raises DefinitionError for metadata of another spout."""
    ends: dict[Place, int] = {}
    after: dict[Place, int] = {}
    unknown: dict[Place, str] = {}
    for partition, by_txid in stream.partitions.items():
        metas = {txid: meta for txid, meta in by_txid.items() if meta is not None}
        if not metas:
            continue
        place = _place(stream.name, partition, metas, topics)
        before = max((txid for txid in metas if txid <= committed), default=None)
        begun = metas.get(committed + 1)
        if before is not None:
            ends[place] = _next(stream.name, partition, metas[before])
        elif begun is not None and (start := _start(begun)) is not None:
            ends[place] = start
        else:
            unknown[place] = "was read in no committed batch"
        if begun is not None and place in ends:
            after[place] = max(ends[place], _next(stream.name, partition, begun))
    return KafkaProgress(ends, after, unknown)


def _place(stream: str, partition: str, metas: ByTxid, topics: Collection[str]) -> Place:
    """Return the topic and partition that a node's name or its metadata tells."""
    topic, at, number = partition.rpartition("@")
    if not at:  # storm-kafka: partition_0, or topic/partition_0
        folder, _, number = partition.rpartition("partition_")
        meta = metas[max(metas)]
        told = meta.get("topic") if isinstance(meta, dict) else None
        topic = told or folder.strip("/") or (next(iter(topics)) if len(topics) == 1 else "")
    if not topic or not is_number(number):
        raise DefinitionError(
            f"stream {stream}: partition {partition!r} in ZooKeeper is not one of Kafka, and our spout there reads "
            "Kafka; check which stream is which with --stream OURS=STORMS"
        )
    return topic, int(number)


def _next(stream: str, partition: str, meta: Any) -> int:
    """Return the offset after a batch."""
    known = meta if isinstance(meta, dict) else {}
    if isinstance(last := known.get("lastOffset"), int):
        return last + 1
    if isinstance(after := known.get("nextOffset"), int):
        return after
    raise DefinitionError(
        f"stream {stream}, partition {partition}: {str(meta)[:80]!r} has neither lastOffset nor nextOffset: no Kafka "
        "spout of Storm wrote it"
    )


def _start(meta: Mapping[str, Any]) -> int | None:
    """Return the first offset of the batch under way, which no batch comes before; None if it cannot be told: with one
    offset twice, it is either that of the only record, or the one before the first."""
    first, last = meta.get("firstOffset"), meta.get("lastOffset")
    if first is not None and last is not None:
        return first if first < last else 0 if last < 0 else None
    start = meta.get("offset")
    return start if isinstance(start, int) else None
