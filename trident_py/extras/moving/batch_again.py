"""A batch that is over, emitted again from what the checkpoint keeps of it. Writes neither there nor to the source."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from ...checkpoints.batch_log import BatchLog, Logged
from ...checkpoints.metadata_store import MemoryMetadataStore
from ...engine.startup import AGREEMENT
from ...errors import TridentError
from ...model.context import with_context
from ...operations.base import TridentCollector
from ...spouts import SpoutNodeInfo, make_emitter
from ...spouts.coordination import Coordination, Descriptor
from ...spouts.opaque_offsets import positions_path
from ...spouts.partitioned import IOpaquePartitionedTridentSpout
from ...tuples import TransactionAttempt
from ..txid.components import Component
from ..txid.rewind import why_not_again
from .checkpoint import entries_in

Report = dict[str, Any]


class Unknown(TridentError):
    """The tuples of a batch cannot be told; the text says why."""


class Emitted(NamedTuple):
    """A tuple of a batch. ``spout``: its number in the program."""

    spout: int
    partition: int
    values: tuple[Any, ...]


class BatchAgain(NamedTuple):
    """The tuples of a batch, and what their sources have told: records that are lost or were skipped."""

    tuples: list[Emitted]
    told: list[str]


class _Copy(MemoryMetadataStore):
    """A copy of a checkpoint's metadata, in which a batch that is over gets nothing new."""

    def record(self, attempt: TransactionAttempt, values: dict[str, Any]) -> None:
        new = [path for path, value in values.items() if value is not None and self.get(path, attempt.txid) is None]
        if new:
            raise Unknown(f"{new[0]} has no metadata of it, so what it emits now may be of a later batch")
        super().record(attempt, values)


def emit_again(component: Component, txid: int) -> BatchAgain:
    """Emit a batch of a component again. Raises Unknown if what comes is not that batch, and what spouts raise."""
    assert component.program is not None
    log, spouts = component.read(), component.program.spouts
    over, before = _find(component, log, txid), log.find_over(txid - 1)
    for info in spouts:
        if (why := why_not_again(info.spout)) is not None:
            raise Unknown(f"spout {info.id!r}: {why}")
    store, previous = _Copy(entries_in(log.store)), before and before.metadata
    conf = with_context(component.program.conf, metadata=store, reads_only=True)
    with closing(Coordination(spouts, conf, store)) as coordination:
        coordination.restore(txid - 1, previous, over.metadata)
        now = coordination.initialize(txid, 1, previous, over.metadata)
        for info in spouts:
            if not _is_opaque(info) and now[info.id] != (over.metadata or {}).get(info.id):
                raise Unknown(f"spout {info.id!r}: its source no longer has all of it")
        emitting = _Emitting(spouts, conf, TransactionAttempt(txid, 1))
        for descriptor in coordination.descriptors(txid, 1, over.metadata or {}):
            emitting.emit(descriptor)
    emitting.check_positions(store)
    return BatchAgain(emitting.tuples, [str(error) for error in emitting.told])


def _find(component: Component, log: BatchLog, txid: int) -> Logged:
    """Return what the log keeps of a batch. Raises Unknown."""
    if (found := log.find_over(txid) or log.find_begun(txid)) is not None:
        return found
    record, last = log.store.get(AGREEMENT, 0), log.last()
    if record is None or last is None:
        raise Unknown(f"{component.shown} has no batch in the checkpoint {log.where}")
    if txid > last.txid:
        raise Unknown(f"{component.shown} is at batch {last.txid}")
    if txid <= record["base"]:
        raise Unknown(f"{component.shown} began behind batch {record['base']}")
    raise Unknown(f"the log of {component.shown} reaches back to batch {log.list_kept()[-1].txid} (topology.txid.kept)")


def _is_opaque(info: SpoutNodeInfo) -> bool:
    """Return whether the positions of its partitions, and not its coordinator's metadata, say what a batch has."""
    return isinstance(info.spout, IOpaquePartitionedTridentSpout)


class _Emitting:
    """Collects what the emitters of all spouts emit, and what they report."""

    def __init__(self, spouts: Sequence[SpoutNodeInfo], conf: dict, attempt: TransactionAttempt) -> None:
        self._spouts, self._conf, self._attempt = spouts, conf, attempt
        self.tuples: list[Emitted] = []
        self.told: list[BaseException] = []
        self._reports: list[Report] = []

    def emit(self, descriptor: Descriptor) -> None:
        """Emit one partition of a spout."""
        spout, partition, payload = descriptor
        info = self._spouts[spout]
        take: Callable[[Any], None] = lambda row: self.tuples.append(Emitted(spout, partition, tuple(row)))  # noqa: E731
        with closing(make_emitter(info, partition, self._conf)) as emitter:
            emitter.report_to(self.told.append)
            chunks = emitter.chunks(self._attempt, payload)
            if chunks is None:
                report = emitter.emit(self._attempt, payload, TridentCollector(take, self.told.append))
                self._reports += [] if report is None else [report]
            for chunk in chunks or ():
                for row in chunk.rows(info.fields):
                    take(row)

    def check_positions(self, store: MemoryMetadataStore) -> None:
        """Raise Unknown if an opaque spout did not come to the positions that it had behind the batch."""
        for info in filter(_is_opaque, self._spouts):
            path, txid = positions_path(info.id), self._attempt.txid
            parts = [report["metadata"] for report in self._reports if report["spout"] == info.id]
            moved = {name: position for part in parts for name, position in part.items()}
            behind = json.loads(json.dumps((store.previous(path, txid) or {}) | moved)) if moved else None
            if behind != store.get(path, txid):
                raise Unknown(f"spout {info.id!r} is opaque, and emits another batch now")
