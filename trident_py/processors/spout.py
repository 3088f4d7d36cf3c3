"""The first processor of every component: makes a spout's emitter emit the batch that a descriptor defines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..chunks import CHUNK_ROWS, Chunk
from ..operations.base import TridentCollector
from ..spouts import SpoutNodeInfo, make_emitter
from ..tuples import BatchId, TransactionAttempt
from .base import NodeContext, Processor, no_collection


class SpoutProcessor(Processor):
    """Emits the tuples of one spout partition, chunk by chunk."""

    def __init__(self, info: SpoutNodeInfo, context: NodeContext, partition: int, conf: Callable[[], dict]) -> None:
        super().__init__(context)
        self.info = info
        self.partition = partition
        self.conf = conf
        self.emitter: Any = None
        self.attempt: Any = TransactionAttempt(0, 0)
        self.rows: list[Any] = []
        self.emitted = 0
        self.broken: BaseException | None = None

    def start(self, attempt: BatchId) -> None:
        self.attempt = attempt
        self.rows = []
        self.emitted = 0
        self.broken = None

    def emit_batch(self, payload: Any) -> None:
        before = self.emitted
        if self.emitter is None:
            self.emitter = make_emitter(self.info, self.partition, self.conf())
            self.emitter.report_to(self.context.report_error)
            self.context.metrics.extend(self.emitter.contexts)
        chunks = self.emitter.chunks(self.attempt, payload, self.context.kept(self.info.fields))
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
                self.context.report("spout", (self.info.id, self.partition, report))
        self.context.report("emitted", self.emitted - before)

    def _take(self, values: Any) -> None:
        """Takes a tuple from the spout. If the user's spout catches an exception of a later step, the failure stays."""
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
            self._pass_on(Chunk.of_rows(self.info.fields, rows, self.context.kept(self.info.fields)))

    def _pass_on(self, chunk: Chunk) -> None:
        self.emitted += chunk.length
        with no_collection():
            self.emit(chunk.only(self.context.kept(self.info.fields)))

    def close(self) -> None:
        if self.emitter is not None:
            self.emitter.close()
