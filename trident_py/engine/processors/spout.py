"""The first processor of every component: makes a spout's emitter emit the batch that a descriptor defines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...model.chunks import CHUNK_ROWS, Chunk
from ...operations.base import TridentCollector
from ...spouts import SpoutNodeInfo, make_emitter
from ...tuples import BatchId, TransactionAttempt
from ..phases import measure_calls
from .base import NodeContext, Processor, no_collection
from .dead_letters import ChangedBatch, Share, as_json, digest_of, values_of


class SpoutProcessor(Processor[SpoutNodeInfo]):
    """Emits the tuples of one spout partition, chunk by chunk."""

    def __init__(
        self,
        info: SpoutNodeInfo,
        context: NodeContext,
        partition: int,
        conf: Callable[[], dict],
        share: Callable[[], Share],
    ) -> None:
        super().__init__(info, context)
        self.partition = partition
        self.conf = conf
        self.share_of_batch = share
        self.share = Share()
        self.emitter: Any = None
        self.attempt: Any = TransactionAttempt(0, 0)
        self.rows: list[Any] = []
        self.emitted = 0
        self.broken: BaseException | None = None

    def start(self, attempt: BatchId) -> None:
        self.attempt = attempt
        self.share = self.share_of_batch()
        self.rows = []
        self.emitted = 0
        self.broken = None

    def emit_batch(self, payload: Any) -> None:
        before = self.emitted
        if self.emitter is None:
            self.emitter = make_emitter(self.spec, self.partition, self.conf())
            self.emitter.report_to(self.context.report_error)
            self.context.metrics.extend(self.emitter.contexts)
        chunks = self.emitter.chunks(self.attempt, payload, self._read())
        if chunks is not None:
            for chunk in chunks:
                self._pass_on(chunk)
        else:
            collector = TridentCollector(self._take, self.context.report_error)
            try:
                report = self.emitter.emit(self.attempt, payload, collector)
            finally:
                if self.broken is not None:
                    raise self.broken
            self._flush()
            if report is not None:
                self.context.report("spout", (self.spec.id, self.partition, report))
        self.context.report("emitted", self.emitted - before)

    def _take(self, values: Any) -> None:
        """Take a tuple from the spout. If the user's spout catches an exception of a later step, the failure stays."""
        if self.broken is not None:
            raise self.broken
        self.rows.append(values)
        if len(self.rows) >= CHUNK_ROWS:
            try:
                self._flush()
            except BaseException as error:
                self.broken = error
                raise

    def _flush(self) -> None:
        rows, self.rows = self.rows, []
        if rows:
            self._pass_on(Chunk.of_rows(self.spec.fields, rows, self._read()))

    def _read(self) -> list[str]:
        """Return the fields to read: what a later node needs, or all if a tuple is looked at."""
        whole = self.share.excluded or self.share.asked
        return list(self.spec.fields) if whole else self.context.select_read(self.spec.fields)

    def _pass_on(self, chunk: Chunk) -> None:
        at = self.emitted
        self.emitted += chunk.length
        with no_collection():
            for part in [chunk] if self.share.whole else self._parts(chunk, at):
                self.emit(part.only(self.context.select_read(self.spec.fields)))

    def _parts(self, chunk: Chunk, at: int) -> Iterator[Chunk]:
        """Return what takes part of a chunk whose first tuple has this number."""
        for index in self.share.select_inspected(at, at + chunk.length):
            values = values_of(chunk, self.spec.fields, index - at)
            digest = digest_of(values)
            if index in self.share.asked:
                self.context.report("content", (self.spec.id, self.partition, index, digest, as_json(values)))
            if self.share.excluded.get(index, digest) != digest:
                raise self._check_unchanged(index)
        for start, end in self.share.of(at, at + chunk.length):
            yield chunk.between(start - at, end - at)

    def finish(self) -> None:
        missing = [index for index in self.share.excluded if index >= self.emitted]
        if missing:
            raise self._check_unchanged(min(missing))

    def _check_unchanged(self, index: int) -> ChangedBatch:
        return ChangedBatch(
            f"spout {self.spec.id!r} no longer emits tuple {index} of partition {self.partition} as it did when that "
            "tuple was excluded from this batch as poison. An earlier attempt may have committed the rest, so no other "
            "tuple may be excluded now. Let the source give the same tuples again and start again, or restore the "
            "stores and the checkpoint from before this batch"
        )

    def watch(self, name: str) -> None:
        self.emit_batch = measure_calls(self.emit_batch, "emit", name)  # type: ignore[method-assign]

    def close(self) -> None:
        if self.emitter is not None:
            self.emitter.close()
