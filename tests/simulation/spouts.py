"""Simulated sources: two partitions with the same number of positions. A batch is a range of positions of both.

Partition 0 has only tuples of the word "a", partition 1 of "b". The tuple at position p counts 16 ** p: a sum tells how
often each tuple is in it.
"""

from __future__ import annotations

import json
from typing import Any

from trident_py.checkpoints.metadata_store import LOG
from trident_py.model.context import RunContext
from trident_py.spouts import IOpaquePartitionedTridentSpout, ITridentSpout
from trident_py.spouts.opaque_offsets import positions_path

from .world import World

WORDS = ("a", "b")
AGAIN = "again"  # a map has each word under two keys, which one commit updates one after the other
STREAM = "input"
FIELDS = ("word", "part", "at", "weight")
USUAL, POSITIONS = 2, 6


class Here:
    """The world of the schedule that runs in this process."""

    world: World
    positions = POSITIONS
    usual = USUAL  # positions of a batch
    shift = 0  # of the tuples that are emitted: another checkpoint's are behind those of this one


def here() -> World:
    return Here.world


def tuples(partition: int, start: int, end: int) -> list[list[Any]]:
    return [[WORDS[partition], partition, at, 16**at] for at in range(start + Here.shift, end + Here.shift)]


class _Source:
    """What all simulated spouts share."""

    def snapshot(self) -> Any:
        return self

    def getOutputFields(self) -> tuple[str, ...]:
        return FIELDS


def emit(collector: Any, partition: int, start: int, end: int) -> None:
    for values in tuples(partition, start, end):
        collector.emit(values)


def choose_end(start: int, txid: int, name: str) -> int:
    """Ask the world how far a batch of an opaque spout reaches this time. The first time is as usual."""
    world, usual = here(), min(start + Here.usual, Here.positions)
    seen = world.memory.setdefault("described", set())
    options = [("other", usual)]
    if (name, txid) in seen:
        options += [("other", end) for end in (start + 1, min(start + 3, Here.positions)) if end != usual]
    seen.add((name, txid))
    return world.pick("spout", f"end of {txid}", options)[1] if len(options) > 1 else usual


class DescribedSpout(_Source, ITridentSpout):
    """A coordinator describes the batch by its range. ``kind``: "opaque" may describe a replay otherwise,
    "transactional" only if the description was lost; "sparse" has no tuple in batch 2."""

    def __init__(self, kind: str) -> None:
        self.kind, self.sparse = "opaque" if kind == "opaque" else "transactional", kind == "sparse"

    def getCoordinator(self, txStateId: str, conf: dict, context: Any) -> Any:
        return _Describing(self.kind == "opaque", self.sparse)

    def getEmitter(self, txStateId: str, conf: dict, context: Any) -> Any:
        return _DescribedEmitter(context.getPartitionIndex())


class _Describing(ITridentSpout.BatchCoordinator):
    def __init__(self, opaque: bool, sparse: bool) -> None:
        self.opaque, self.sparse = opaque, sparse
        self.ends: dict[int, int] = {}

    def restore(self, txid: int, metadata: Any) -> None:
        self.ends[txid] = metadata["end"] if metadata else 0

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        if currMetadata is not None and not self.opaque:
            described = currMetadata
        else:
            start = prevMetadata["end"] if prevMetadata else 0
            end = start if self.sparse and txid == 2 else choose_end(start, txid, "all")
            described = {"start": start, "end": end}
        self.ends[txid] = described["end"]
        here().memory.setdefault("ends", set()).add((txid, described["end"]))
        return described

    def isReady(self, txid: int) -> bool:
        """Return whether there is input that no batch has. If the log has begun the last one, the spout waits in vain;
        the batch must not wait for it."""
        world = here()
        begun = json.loads(world.log.content.get((LOG, 0), "{}")).get("begun")
        last = begun and begun["txid"] == txid and (begun["metadata"] or {}).get(STREAM, {"end": 0})["end"]
        older = world.running is not world.drivers[-1] or "log back" in world.memory.get("faults", ())
        is_ready = world.look("log read", not last or last < Here.positions or older)
        return is_ready or world.await_nothing()

    def isExhaustedAt(self, txid: int) -> bool:
        return self.ends.get(txid - 1, 0) >= Here.positions


class _DescribedEmitter:
    def __init__(self, partition: int) -> None:
        self.partition = partition

    def emitBatch(self, tx: Any, coordinatorMeta: Any, collector: Any) -> None:
        emit(collector, self.partition, coordinatorMeta["start"], coordinatorMeta["end"])

    def close(self) -> None: ...


class PartitionedSpout(_Source, IOpaquePartitionedTridentSpout):
    """Each partition reads on from the position that was committed last; how far, the world chooses."""

    def getCoordinator(self, conf: dict, context: Any) -> Any:
        return _PartitionList(RunContext.of(conf).metadata)

    def getEmitter(self, conf: dict, context: Any) -> Any:
        return _PartitionEmitter()


class _PartitionList(IOpaquePartitionedTridentSpout.Coordinator):
    def __init__(self, store: Any) -> None:
        self.store = store

    def getPartitionsForBatch(self) -> Any:
        return here().pick("spout", "partitions", [("list", 2), ("list", 3)])[1]

    def isExhaustedAt(self, txid: int) -> bool:
        ends = self.store.previous(positions_path(STREAM), txid) or {}
        return all(ends.get(str(part), 0) >= Here.positions for part in range(len(WORDS)))


class _PartitionEmitter(IOpaquePartitionedTridentSpout.Emitter):
    """``lists``: how many lists the task has got. With each second one, the partitions move to another task. A third
    partition, which may be listed or not, has no tuples."""

    lists = 0

    def getOrderedPartitions(self, allPartitionInfo: Any) -> Any:
        return range(allPartitionInfo)

    def getPartitionsForTask(self, taskId: int, numTasks: int, sortedPartitions: Any) -> Any:
        self.lists += 1
        return [part for part in sortedPartitions if (part + self.lists // 2) % numTasks == taskId]

    def emitBatchNew(self, tx: Any, collector: Any, partitions: Any, lastPartitionMeta: Any) -> Any:
        ends = {}
        for partition in [each for each in partitions if each < len(WORDS)]:
            start = lastPartitionMeta.get(partition) or 0
            end = choose_end(start, tx.txid, WORDS[partition])
            emit(collector, partition, start, end)
            ends[partition] = end
        return ends
