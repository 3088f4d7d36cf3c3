"""Aggregations over the tuples of a batch in one partition: whole, by group, and in chains.

Every aggregator becomes an `Aggregator` (folds.py). A chain emits the cross product of the results of its parts.

Counts and sums need no Python call for each tuple: Arrow kernels compute them on columns, a C loop on lists. A
combiner declares ``kernel = "count"`` or ``kernel = "sum"``. A kernel distinguishes groups as Storm does only if they
are texts or whole numbers; all others take the general way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import TridentError
from ...model.canonical import key_of
from ...model.chunks import Chunk, Column, as_arrow, single, to_list
from ...model.rows import Emit, emit_behind, emit_into
from ...operations.base import CombinerAggregator, TridentCollector, name_of
from ...tuples import BatchId, Fields, TransactionAttempt
from .base import NodeContext, Processor, Spec
from .columns import ColumnCounter, tells_groups_apart
from .folds import as_aggregator

Phase = Literal["full", "partial", "merge"]
Single = Literal["batch", "global"] | None

_SAFE_SUM = 2**62
_MERGE_ROWS = 1_000_000


@dataclass(frozen=True)
class Part:
    """One aggregator with its input and output fields."""

    aggregator: Any
    inputs: Fields
    outputs: Fields


@dataclass(frozen=True)
class Aggregate(Spec):
    """The parts of one aggregation, over the whole partition (``group`` is None) or for each group.

    ``phase``: "partial" folds tuples into values that "merge" folds further; "full" does both at once. ``single``: of
    the partitions without tuples, only number txid modulo count ("batch") or number 0 ("global") runs the aggregators;
    None: all do. ``inits``: the number of combiners, each of whose init is a node of its own in Storm.
    """

    parts: tuple[Part, ...]
    group: Fields | None = None
    phase: Phase = "full"
    single: Single = None
    inits: int = 0

    @property
    def steps(self) -> int:
        return 1 + self.inits

    @property
    def operation(self) -> str:
        names = ", ".join(name_of(part.aggregator) for part in self.parts)
        by = f" by {self.group}" if self.group is not None else ""
        return f"aggregate {names}{by}{'' if self.phase == 'full' else ' (' + self.phase + ')'}"

    @property
    def operations(self) -> tuple[Any, ...]:
        return tuple(part.aggregator for part in self.parts)

    @property
    def groups_by(self) -> Fields:
        return self.group or Fields()

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
    """One run of the parts' aggregators over one group, or over the whole partition."""

    __slots__ = ("collectors", "emitted", "values")

    def __init__(self, owner: AggregateProcessor, prefix: tuple) -> None:
        if len(owner.aggregators) == 1:
            self.emitted: list[list[Any]] = []
            emits = [owner.emit_row(prefix)]
        else:
            self.emitted = [[] for _ in owner.aggregators]
            emits = [
                emit_behind((), rows, part.outputs, name_of(part.aggregator))
                for part, rows in zip(owner.spec.parts, self.emitted, strict=True)
            ]
        self.collectors = [TridentCollector(emit, owner.context.report_error) for emit in emits]
        pairs = zip(owner.aggregators, self.collectors, strict=True)
        self.values = [aggregator.init(owner.attempt, collector) for aggregator, collector in pairs]


class AggregateProcessor(Processor[Aggregate]):
    """The base of grouped and whole aggregations: the aggregators, their emitted rows, the end of a run."""

    def __init__(self, spec: Aggregate, context: NodeContext) -> None:
        super().__init__(spec, context)
        self.aggregators = [
            context.prepare(as_aggregator(part.aggregator, merge=spec.phase == "merge"), spec.inputs_of(part))
            for part in spec.parts
        ]
        self.inputs = [spec.inputs_of(part) for part in spec.parts]
        self.attempt: BatchId = TransactionAttempt(0, 0)
        self.rows: list[Any] = []

    def start(self, attempt: BatchId) -> None:
        self.attempt = attempt
        self.rows = []

    def emit_row(self, prefix: tuple) -> Emit:
        """Return the ``emit`` of a single aggregator. As in Storm, the rows of a group, and of a chain, must have a
        value for each field; any other may lack values that nobody reads."""
        part = self.spec.parts[0]
        name = name_of(part.aggregator)
        if self.spec.group is None:
            return emit_into(self.rows, part.outputs, name)
        return emit_behind(prefix, self.rows, part.outputs, name)

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
                    "emitted nothing. Emit a value in any case, or move this aggregator to a stream of its own"
                )
        for combination in product(*run.emitted):
            self.rows.append((*prefix, *chain.from_iterable(combination)))

    def flush(self) -> None:
        self.emit_rows(self.context.fields, self.rows)


class WholeProcessor(AggregateProcessor):
    """One run over all tuples of the partition."""

    def __init__(self, spec: Aggregate, context: NodeContext) -> None:
        super().__init__(spec, context)
        self.run: _Run | None = None

    def start(self, attempt: BatchId) -> None:
        super().start(attempt)
        self.run = None if self.spec.single else self._open()

    def _open(self) -> _Run:
        return _Run(self, ())

    def execute(self, port: int, chunk: Chunk) -> None:
        self.run = run = self.run or self._open()
        for i in range(len(self.aggregators)):
            if not self._add(run.values[i], i, chunk):
                self._each(run, i, chunk)
        self.flush()

    def _add(self, value: Any, number: int, chunk: Chunk) -> bool:
        """Add the kernel's total to the value; False if there is none, or if the order of additions matters."""
        part = self.spec.parts[number]
        total = kernel_of(part.aggregator, [chunk], part.inputs) if self.spec.phase != "merge" else None
        if total is None or type(value[0]) is not int:
            return False
        self.aggregators[number].fold(value, total)
        return True

    def _each(self, run: _Run, number: int, chunk: Chunk) -> None:
        aggregate, collector, value = self.aggregators[number].aggregate, run.collectors[number], run.values[number]
        for tuple_ in chunk.tuples(self.inputs[number]):
            changed = aggregate(value, tuple_, collector)
            if changed is not None:
                value = changed
        run.values[number] = value

    def finish(self) -> None:
        if self.run is None and self._designate():
            self.run = self._open()
        if self.run is not None:
            self.complete(self.run, ())
        self.run = None
        self.flush()

    def _designate(self) -> bool:
        index, count = self.context.operations.getPartitionIndex(), self.context.operations.numPartitions()
        return index == (self.attempt.getId() % count if self.spec.single == "batch" else 0)


class GroupedProcessor(AggregateProcessor):
    """One run for each group, started at the group's first tuple."""

    def __init__(self, spec: Aggregate, context: NodeContext) -> None:
        super().__init__(spec, context)
        self.group: Fields = spec.group or Fields()
        self.groups: dict[tuple, tuple[tuple, _Run]] = {}

    def start(self, attempt: BatchId) -> None:
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
        """Fold partial values of combiners into their groups. Takes pairs: the group values, a value for each part."""
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


def kernels_for(parts: Sequence[Part], group: Fields | None) -> tuple[str, ...] | None:
    """Return the kernel of each part; None if a part has none or another number of fields than one, or if there is
    no group."""
    kernels = tuple(p.aggregator.kernel for p in parts if _has_kernel(p.aggregator) and len(p.outputs) == 1)
    return kernels if group is not None and len(group) and len(kernels) == len(parts) else None


def _has_kernel(aggregator: Any) -> bool:
    return isinstance(aggregator, CombinerAggregator) and aggregator.kernel in ("count", "sum")


def kernel_of(aggregator: Any, chunks: Sequence[Chunk], inputs: Fields) -> int | None:
    """Return the count or the sum of all tuples by a kernel; None if the aggregator has none, or if it would not be
    exact."""
    if not _has_kernel(aggregator):
        return None
    if aggregator.kernel == "count":
        return sum(chunk.length for chunk in chunks)
    totals = [_total(chunk.columns[inputs[0]]) if len(inputs) else None for chunk in chunks]
    return None if None in totals else sum(totals)  # type: ignore[arg-type]


def _total(column: Column) -> int | None:
    """Return the sum of a column of integers; None for any other, and if it could overflow."""
    if isinstance(column, list):
        return sum(column) if set(map(type, column)) <= {int} else None
    if not pa.types.is_int64(column.type) or column.null_count:
        return None
    total = 0
    for at in range(0, len(column), _MERGE_ROWS):
        part = column.slice(at, _MERGE_ROWS)
        ends = pc.min_max(part)
        if max(abs(ends["min"].as_py()), abs(ends["max"].as_py())) > _SAFE_SUM // _MERGE_ROWS:
            return None
        total += pc.sum(part).as_py()
    return total


class KernelProcessor(Processor[Aggregate]):
    """Computes grouped counts and sums as tables of partial results, merged when they grow and at the end.

    If a kernel would not be exact (other types, sums near 64 bits), the general processor takes over, together with
    the partial results so far.
    """

    def __init__(
        self, spec: Aggregate, context: NodeContext, kernels: tuple[str, ...], general: GroupedProcessor
    ) -> None:
        super().__init__(spec, context)
        self.kernels = kernels
        self.general = general
        self.group = list(spec.group or ())
        self.outputs = [part.outputs[0] for part in spec.parts]
        self.counting = kernels == ("count",) and spec.phase != "merge" and len(self.group) == 1
        self.counter = ColumnCounter()
        self.tables: list[pa.Table] = []
        self.pending = 0
        self.bound = 0

    def start(self, attempt: BatchId) -> None:
        self.general.emit = self.emit
        self.general.start(attempt)
        self.counter, self.tables, self.pending, self.bound = ColumnCounter(), [], 0, 0

    def execute(self, port: int, chunk: Chunk) -> None:
        if self.general.groups or not (self._count(chunk) or self._add(chunk)):
            self._hand_over()
            self.general.execute(port, chunk)

    def _count(self, chunk: Chunk) -> bool:
        """Count the values of the only group column, if a count is the only aggregate. False if it cannot."""
        if not self.counting:
            return False
        column = chunk.columns[self.group[0]]
        if (isinstance(column, list) and chunk.short) or not self.counter.add(column):
            return False
        if self.counter.is_full:
            self._settle()
        return True

    def _settle(self) -> None:
        """Move what is counted into tables."""
        for values, counts in self.counter.take():
            arrays = [as_arrow(values), counts]
            if arrays[0] is None or not self._keep(pa.table(arrays, names=[self.group[0], self.outputs[0]])):
                self._absorb([to_list(values), counts.to_pylist()])

    def _add(self, chunk: Chunk) -> bool:
        """Add up ones for a count, values for a sum, or partial results. False if a kernel would not be exact."""
        arrays = [_groupable(chunk, name) for name in self.group]
        for part, kernel in zip(self.spec.parts, self.kernels, strict=True):
            if kernel == "count" and self.spec.phase != "merge":
                arrays.append(pa.repeat(pa.scalar(1, pa.int64()), chunk.length))
            else:
                names = self.spec.inputs_of(part)
                arrays.append(self._addable(chunk, names[0]) if len(names) else None)
        if any(array is None for array in arrays):
            return False
        return self._keep(self._try_add(pa.table(arrays, names=[*self.group, *self.outputs])))

    def _addable(self, chunk: Chunk, name: str) -> pa.Array | None:
        """Return the column if it has whole numbers without nulls, and no sum can overflow unnoticed; else None."""
        array = _groupable(chunk, name)
        if array is None or array.null_count or not pa.types.is_integer(array.type):
            return None
        limits: Any = pc.min_max(array).as_py()
        self.bound += max(abs(limits["min"]), abs(limits["max"])) * chunk.length
        return array.cast(pa.int64()) if self.bound < _SAFE_SUM else None

    def _keep(self, table: pa.Table) -> bool:
        if self.tables and self.tables[0].schema != table.schema:
            return False
        self.tables.append(table)
        self.pending += table.num_rows
        if len(self.tables) > 1 and self.pending > _MERGE_ROWS:
            self.tables = [self._merge()]
            self.pending = self.tables[0].num_rows
        return True

    def _try_add(self, table: pa.Table) -> pa.Table:
        added = table.group_by(self.group, use_threads=False).aggregate([(name, "sum") for name in self.outputs])
        sums = [f"{name}_sum" for name in self.outputs]
        return added.select([*self.group, *sums]).rename_columns([*self.group, *self.outputs])

    def _merge(self) -> pa.Table:
        return self._try_add(pa.concat_tables(self.tables)) if len(self.tables) > 1 else self.tables[0]

    def _hand_over(self) -> None:
        """Move all results so far to the general processor, as partial values."""
        self._settle()
        tables, self.tables, self.pending = self.tables, [], 0
        for table in tables:
            self._absorb([column.to_pylist() for column in table.columns])

    def _absorb(self, columns: list[list]) -> None:
        width = len(self.group)
        self.general.absorb((row[:width], row[width:]) for row in zip(*columns, strict=True))

    def finish(self) -> None:
        self._settle()
        if self.general.groups:
            self._hand_over()
        if self.tables:
            self._give(self._merge())
        self.general.finish()

    def _give(self, table: pa.Table) -> None:
        columns: dict[str, Column] = {
            name: single(table.column(name)) for name in self.context.select_read(self.context.fields)
        }
        self.emit(Chunk(columns, table.num_rows))


def _groupable(chunk: Chunk, name: str) -> pa.Array | None:
    column = chunk.columns[name]
    array = None if isinstance(column, list) and chunk.short else as_arrow(column)
    return array if array is not None and tells_groups_apart(array.type) else None
