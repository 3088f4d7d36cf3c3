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
    the one under way, if every emitter has recorded it. ``unknown``: what must be said of a partition, by its place;
    ``begins``: the offsets at which the batch under way may begin there."""

    next: Mapping[Place, int] = field(default_factory=dict)
    after: Mapping[Place, int] = field(default_factory=dict)
    unknown: Mapping[Place, str] = field(default_factory=dict)
    begins: Mapping[Place, Collection[int]] = field(default_factory=dict)

    def check_repeatable(self, topics: Collection[str]) -> None:
        """Raise DefinitionError unless the batch under way begins where it did in Storm, in all partitions of topics
        that our spout reads."""
        for (name, p), begins in sorted(self.begins.items()):
            if name not in topics:
                continue
            at = self.next.get((name, p))
            if at is None:
                raise DefinitionError(
                    f"nothing in Storm says whether the record at offset {min(begins)} of {name}@{p} is in the batch "
                    f"under way, which is repeated: if it is, say --start {name}@{p}={min(begins)}, else say "
                    f"--start {name}@{p}={max(begins)}. Nothing was changed"
                )
            if at not in begins:
                raise DefinitionError(
                    f"--start {name}@{p}={at}: the batch under way begins at offset {' or '.join(map(str, begins))} "
                    "there, and is repeated as it was. Nothing was changed"
                )


def read_progress(
    stream: StormStream, committed: int, topics: Collection[str], starts: Mapping[Place, int] | None = None
) -> KafkaProgress:
    """Return the progress of a stream after the txid. ``topics``: those of our spout, for metadata without a topic;
    ``starts``: the next offsets that the person says. Raises DefinitionError for metadata of another spout."""
    ends = dict(starts or {})
    after: dict[Place, int] = {}
    unknown: dict[Place, str] = {}
    begins: dict[Place, Collection[int]] = {}
    for partition, by_txid in stream.partitions.items():
        metas = {txid: meta for txid, meta in by_txid.items() if meta is not None}
        if not metas:
            continue
        place = _place(stream.name, partition, metas, topics)
        before = max((txid for txid in metas if txid <= committed), default=None)
        begun = metas.get(committed + 1)
        at = _starts(stream.name, partition, None if before is None else metas[before], begun)
        if len(at) == 1:
            ends.setdefault(place, at[0])
        elif place not in ends:
            unknown[place] = "was read in no committed batch"
        if begun is not None:
            begins[place] = at
            if place in ends:
                after[place] = max(ends[place], _next(stream.name, partition, begun))
    return KafkaProgress(ends, after, unknown, begins)


def _place(stream: str, partition: str, metas: ByTxid, topics: Collection[str]) -> Place:
    """Return the topic and partition that a node's name or its metadata tells."""
    topic, at, number = partition.rpartition("@")
    if not at:  # storm-kafka: partition_0, or topic/partition_0
        folder, _, number = partition.rpartition("partition_")
        meta = metas[max(metas)]
        told = meta.get("topic") if isinstance(meta, dict) else None
        topic = (
            (told if isinstance(told, str) else "")
            or folder.strip("/")
            or (next(iter(topics)) if len(topics) == 1 else "")
        )
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
    raise _foreign(stream, partition, meta)


def _foreign(stream: str, partition: str, meta: Any) -> DefinitionError:
    return DefinitionError(
        f"stream {stream}, partition {partition}: {str(meta)[:80]!r} has neither lastOffset nor nextOffset: no Kafka "
        "spout of Storm wrote it"
    )


def _starts(stream: str, partition: str, before: Any, meta: Any) -> tuple[int, ...]:
    """Return where the batch after the committed one begins: behind that one; without it, at the first offset of the
    batch under way. With one offset twice, that is either the only record's, or the one before the first, which is -1
    in a batch at the beginning."""
    if before is not None:
        return (_next(stream, partition, before),)
    if meta is None:
        return ()
    known = meta if isinstance(meta, dict) else {}
    if isinstance(start := known.get("offset"), int):
        return (start,)
    first, last = known.get("firstOffset"), known.get("lastOffset")
    if not isinstance(first, int) or not isinstance(last, int):
        raise _foreign(stream, partition, meta)
    if first == last > 0:
        return (last, last + 1)
    return (max(first, 0),)
