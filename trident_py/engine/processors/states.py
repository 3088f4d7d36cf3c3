"""The two processors that use a state: partitionPersist and stateQuery."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...errors import TridentError
from ...model.chunks import Chunk, TupleList
from ...model.fault_points import steps_of
from ...model.rows import emit_into
from ...operations.base import TridentCollector, name_of
from ...state.base import StateUpdater
from ...state.persist import SilentCollector, persist
from ...tuples import BatchId, Fields, TransactionAttempt, TridentTuple
from ..phases import phase
from .base import NodeContext, Processor, Spec, beside


@dataclass(frozen=True)
class PartitionPersist(Spec):
    """Updates a state with the tuples of one partition. The updater emits the new values.

    ``always``: also without tuples.
    """

    updater: Any
    inputs: Fields
    outputs: Fields
    always: ClassVar[bool] = False

    @property
    def operation(self) -> str:
        return f"partitionPersist {name_of(self.updater)}"

    @property
    def operations(self) -> tuple[Any, ...]:
        return (self.updater,)

    @property
    def groups_by(self) -> Fields:
        return self.updater.groupFields if isinstance(self.updater, StateUpdater) else Fields()

    def make(self, context: NodeContext) -> Processor:
        return PersistProcessor(self, context)


class PersistProcessor(Processor[PartitionPersist]):
    """Buffers the batch. At its end it calls beginCommit, updateState and commit, unless there was no tuple."""

    def __init__(self, spec: PartitionPersist, context: NodeContext) -> None:
        super().__init__(spec, context)
        self.updater = context.prepare(spec.updater, spec.inputs)
        self.attempt: BatchId = TransactionAttempt(0, 0)
        self.buffer = TupleList(spec.inputs)
        self.steps = steps_of(context.conf)

    def start(self, attempt: BatchId) -> None:
        self.attempt = attempt
        self.buffer = TupleList(self.spec.inputs)
        self.context.state()

    def execute(self, port: int, chunk: Chunk) -> None:
        self.buffer.append(chunk)

    def finish(self) -> None:
        tuples, self.buffer = self.buffer, TupleList(self.spec.inputs)
        rows: list[Any] = []
        report = self.context.report_error
        emit = emit_into(rows, self.spec.outputs, self.spec.operation)
        collector = TridentCollector(emit, report) if self.context.consumed else SilentCollector(report)
        state = self.context.state()
        assert isinstance(self.attempt, TransactionAttempt)  # a DRPC stream with an update is not built
        updater = _ThenEmit(self, rows)
        began = time.perf_counter()
        with phase("state update", self.context.state_name):
            receipt = persist(state, self.attempt.txid, updater, tuples, collector, self.spec.always, self._step)
        self.context.report("persisted", (len(tuples), len(rows), receipt, time.perf_counter() - began))

    def _step(self, step: str) -> None:
        """Tell the run's watcher."""
        assert isinstance(self.attempt, TransactionAttempt)
        self.steps(step, self.context.state_name, self.context.operations.getPartitionIndex(), self.attempt.txid)


class _ThenEmit(StateUpdater):
    """Wraps the user's updater: the tuples it emits go on before the state commits, as in Storm."""

    def __init__(self, owner: PersistProcessor, rows: list[Any]) -> None:
        self.owner = owner
        self.rows = rows

    def updateState(self, state: Any, tuples: Sequence[TridentTuple], collector: TridentCollector) -> None:
        self.owner.updater.updateState(state, tuples, collector)
        self.owner.emit_rows(self.owner.spec.outputs, list(self.rows))


@dataclass(frozen=True)
class StateQuery(Spec):
    """Queries a state once for the tuples of a partition and appends the answers to the tuples."""

    query: Any
    inputs: Fields
    outputs: Fields
    passes = True

    @property
    def operation(self) -> str:
        return f"stateQuery {name_of(self.query)}"

    @property
    def operations(self) -> tuple[Any, ...]:
        return (self.query,)

    def make(self, context: NodeContext) -> Processor:
        return QueryProcessor(self, context)


class QueryProcessor(Processor[StateQuery]):
    """Buffers the batch. At its end it calls batchRetrieve once, then execute for each tuple."""

    def __init__(self, spec: StateQuery, context: NodeContext) -> None:
        super().__init__(spec, context)
        self.query = context.prepare(spec.query, spec.inputs)
        self.chunks: list[Chunk] = []

    def start(self, attempt: BatchId) -> None:
        self.chunks = []
        self.context.state()

    def execute(self, port: int, chunk: Chunk) -> None:
        self.chunks.append(chunk)

    def finish(self) -> None:
        chunks, self.chunks = self.chunks, []
        tuples = [values for chunk in chunks for values in chunk.tuples(self.spec.inputs)]
        if not tuples:
            return
        results = self.query.batchRetrieve(self.context.state(), tuples)
        if len(results) != len(tuples):
            raise TridentError(
                f"Results size is different than argument size: {len(results)} vs {len(tuples)}; "
                f"{name_of(self.query)}.batchRetrieve must return one result per tuple"
            )
        at = 0
        for chunk in chunks:
            self._answer(chunk, tuples[at : at + chunk.length], results[at : at + chunk.length])
            at += chunk.length

    def _answer(self, chunk: Chunk, tuples: list[TridentTuple], results: list[Any]) -> None:
        rows: list[Any] = []
        emit = emit_into(rows, self.spec.outputs, self.spec.operation)
        collector = TridentCollector(emit, self.context.report_error)
        parents: list[int] = []
        for i, (values, result) in enumerate(zip(tuples, results, strict=True)):
            self.query.execute(values, result, collector)
            parents.extend([i] * (len(rows) - len(parents)))
        if rows:
            carried = chunk.only(self.context.select_read(self.context.inputs[0])).take(parents)
            answers = Chunk.of_rows(self.spec.outputs, rows, self.context.select_read(self.spec.outputs))
            self.emit(beside(carried, answers))
