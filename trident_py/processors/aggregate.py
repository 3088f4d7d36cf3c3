"""Aggregations over the tuples of a batch in one partition: whole, by group, and in chains.

Every aggregator becomes an `Aggregator` (folds.py); chains give the cross product of what their parts emit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from ..canonical import key_of
from ..chunks import Chunk
from ..errors import TridentError
from ..operations.base import TridentCollector
from ..tuples import Fields, TransactionAttempt
from .base import NodeContext, Processor, name_of
from .folds import as_aggregator
from .kernels import KernelProcessor, kernels_for

Phase = Literal["full", "partial", "merge"]
Single = Literal["batch", "global"] | None


@dataclass(frozen=True)
class Part:
    """One aggregator with its input and output fields."""

    aggregator: Any
    inputs: Fields
    outputs: Fields


@dataclass(frozen=True)
class Aggregate:
    """The parts of one aggregation, over the whole partition (``group`` is None) or for each group.

    ``phase``: "partial" folds tuples into values that "merge" folds further, "full" does it at once.
    ``single``: of all partitions without tuples only one runs the aggregators, the batch's own ("batch":
    txid modulo their number) or the first ("global"). ``inits``: in Storm each combiner's init is a node of its own.
    """

    parts: tuple[Part, ...]
    group: Fields | None = None
    phase: Phase = "full"
    single: Single = None
    inits: int = 0
    passes = False

    @property
    def steps(self) -> int:
        return 1 + self.inits

    @property
    def operation(self) -> str:
        names = ", ".join(name_of(part.aggregator) for part in self.parts)
        by = f" by {self.group}" if self.group is not None else ""
        return f"aggregate {names}{by}{'' if self.phase == 'full' else ' (' + self.phase + ')'}"

    def reads(self, port: int) -> Iterable[str]:
        return [*(self.group or ()), *(name for part in self.parts for name in self.inputs_of(part))]

    def inputs_of(self, part: Part) -> Fields:
        return part.outputs if self.phase == "merge" else part.inputs

    def make(self, context: NodeContext) -> Processor:
        if self.group is None:
            return WholeProcessor(self, context)
        kernels = kernels_for(self.parts, self.group)
        general = GroupedProcessor(self, context)
        return KernelProcessor(self, context, kernels, general) if kernels is not None else general


class _Run:
    """The parts' aggregators at work on one group, or on the whole partition."""

    __slots__ = ("collectors", "emitted", "values")

    def __init__(self, owner: AggregateProcessor, prefix: tuple) -> None:
        if len(owner.aggregators) == 1:
            rows = owner.rows
            emit = rows.append if not prefix else lambda values: rows.append((*prefix, *values))
            self.emitted: list[list[Any]] = []
            self.collectors = [TridentCollector(emit, owner.context.report_error)]
        else:
            self.emitted = [[] for _ in owner.aggregators]
            self.collectors = [TridentCollector(e.append, owner.context.report_error) for e in self.emitted]
        pairs = zip(owner.aggregators, self.collectors, strict=True)
        self.values = [aggregator.init(owner.attempt, collector) for aggregator, collector in pairs]


class AggregateProcessor(Processor):
    """What grouped and whole aggregations share: the aggregators, the rows they emit, the end of a run."""

    def __init__(self, spec: Aggregate, context: NodeContext) -> None:
        super().__init__(context)
        self.spec = spec
        self.aggregators = [
            context.prepare(as_aggregator(part.aggregator, merge=spec.phase == "merge")) for part in spec.parts
        ]
        self.inputs = [spec.inputs_of(part) for part in spec.parts]
        self.attempt = TransactionAttempt(0, 0)
        self.rows: list[Any] = []

    def start(self, attempt: TransactionAttempt) -> None:
        self.attempt = attempt
        self.rows = []

    def complete(self, run: _Run, prefix: tuple) -> None:
        for aggregator, value, collector in zip(self.aggregators, run.values, run.collectors, strict=True):
            aggregator.complete(value, collector)
        if run.emitted:
            self._cross(run, prefix)

    def _cross(self, run: _Run, prefix: tuple) -> None:
        for part, emitted in zip(self.spec.parts, run.emitted, strict=True):
            if not emitted:
                raise TridentError(
                    f"in a chain of aggregators each must emit; {name_of(part.aggregator)} -> {part.outputs} "
                    "emitted nothing. Emit a value for nothing, or aggregate in a stream of its own"
                )
        widths = [len(part.outputs) for part in self.spec.parts]
        for combination in itertools.product(*run.emitted):
            pairs = zip(combination, widths, strict=True)
            self.rows.append((*prefix, *(v for values, width in pairs for v in tuple(values)[:width])))

    def flush(self) -> None:
        if self.rows:
            fields = self.context.fields
            chunk = Chunk.of_rows(fields, self.rows, self.context.kept(fields))
            self.rows.clear()
            self.emit(chunk)

    def close(self) -> None:
        for aggregator in self.aggregators:
            aggregator.cleanup()


class WholeProcessor(AggregateProcessor):
    """One run over all tuples of the partition."""

    def __init__(self, spec: Aggregate, context: NodeContext) -> None:
        super().__init__(spec, context)
        self.run: _Run | None = None

    def start(self, attempt: TransactionAttempt) -> None:
        super().start(attempt)
        self.run = None if self.spec.single else self._open()

    def _open(self) -> _Run:
        return _Run(self, ())

    def execute(self, port: int, chunk: Chunk) -> None:
        self.run = run = self.run or self._open()
        inputs = [chunk.tuples(fields) for fields in self.inputs]
        values = run.values
        for i, aggregator in enumerate(self.aggregators):
            aggregate, collector, value = aggregator.aggregate, run.collectors[i], values[i]
            for tuple_ in inputs[i]:
                changed = aggregate(value, tuple_, collector)
                if changed is not None:
                    value = changed
            values[i] = value
        self.flush()

    def finish(self) -> None:
        if self.run is None and self._designated():
            self.run = self._open()
        if self.run is not None:
            self.complete(self.run, ())
        self.run = None
        self.flush()

    def _designated(self) -> bool:
        index, count = self.context.operations.getPartitionIndex(), self.context.operations.numPartitions()
        return index == (self.attempt.txid % count if self.spec.single == "batch" else 0)


class GroupedProcessor(AggregateProcessor):
    """One run for each group, begun at the group's first tuple."""

    def __init__(self, spec: Aggregate, context: NodeContext) -> None:
        super().__init__(spec, context)
        self.group: Fields = spec.group or Fields()
        self.groups: dict[tuple, tuple[tuple, _Run]] = {}

    def start(self, attempt: TransactionAttempt) -> None:
        super().start(attempt)
        self.groups = {}

    def execute(self, port: int, chunk: Chunk) -> None:
        inputs = [chunk.tuples(fields) for fields in self.inputs]
        aggregates = [aggregator.aggregate for aggregator in self.aggregators]
        groups = self.groups
        for i, values in enumerate(chunk.rows(self.group)):
            key = key_of(values)
            entry = groups.get(key)
            if entry is None:
                entry = groups[key] = (values, _Run(self, values))
            run = entry[1]
            for j, aggregate in enumerate(aggregates):
                changed = aggregate(run.values[j], inputs[j][i], run.collectors[j])
                if changed is not None:
                    run.values[j] = changed
        self.flush()

    def absorb(self, partials: Iterable[tuple[tuple, tuple]]) -> None:
        """Folds partial values of combiners into their groups: pairs of group values and a value for each part."""
        for values, folded in partials:
            key = key_of(values)
            if key not in self.groups:
                self.groups[key] = (values, _Run(self, values))
            run = self.groups[key][1]
            for aggregator, value, partial in zip(self.aggregators, run.values, folded, strict=True):
                aggregator.fold(value, partial)

    def finish(self) -> None:
        for values, run in self.groups.values():
            self.complete(run, values)
        self.groups = {}
        self.flush()
