"""A window is a state updated by every batch; its new values are the aggregates of the windows that closed.

Source in Storm: WindowTridentProcessor.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...errors import TridentError
from ...model.chunks import Chunk, TupleList
from ...model.rows import check_row
from ...operations.base import TridentCollector, TridentOperationContext, name_of
from ...operations.roles import CleansUp, Prepares
from ...state import StateUpdater
from ...tuples import Fields, TridentTuple
from ...windowing import DurationWindow, Trigger, WindowConfig, WindowState
from .aggregate import kernel_of
from .base import NodeContext, Processor, Spec
from .folds import as_aggregator
from .states import PartitionPersist

LATE = "trident.late"


@dataclass(frozen=True)
class WindowPersist(PartitionPersist):
    """The windows over the tuples of one partition."""

    always: ClassVar[bool] = True  # a window can end in a batch without tuples, and a replay can have lost its tuples
    steps = 2  # Storm projects the results behind the window
    works_in = 0
    groups_by = Fields()

    @property
    def operation(self) -> str:
        return f"window of {self.updater.config.shown}, aggregate {name_of(self.updater.aggregator)}"

    @property
    def operations(self) -> tuple[Any, ...]:
        return (self.updater.aggregator,)


class WindowUpdater(StateUpdater):
    """Aggregates each window that a batch completes: `init` gets the window's number, `aggregate` the tuples in the
    order of their arrival.

    ``inputs`` are the fields that the aggregator sees, ``outputs`` the number of values in a result. ``ends``: how many
    of the window's start and end follow the result. ``late``: the fields of late tuples. If there are any, a row is a
    result, False and a null for each of these fields; or, for a late tuple, nulls, True and its values.
    """

    def __init__(
        self, config: WindowConfig, aggregator: Any, inputs: Fields, outputs: int, ends: int, late: Fields
    ) -> None:
        self.config = config
        self.aggregator = aggregator
        self.inputs = inputs
        self.outputs = outputs
        self.ends = ends
        self.late = late

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.config}, {name_of(self.aggregator)})"

    @property
    def stored(self) -> Fields:
        """The fields that the store keeps of each tuple."""
        field = self.config.timestampField if isinstance(self.config, DurationWindow) else None
        return self.inputs if field is None or field in self.inputs else self.inputs.concat(Fields(field))

    def prepare(self, conf: dict, context: TridentOperationContext) -> None:
        self.aggregator = copy.copy(self.aggregator)
        if isinstance(self.aggregator, Prepares):
            self.aggregator.prepare(conf, context)

    def cleanup(self) -> None:
        if isinstance(self.aggregator, CleansUp):
            self.aggregator.cleanup()

    def updateState(
        self, state: WindowState, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        assert isinstance(tuples, TupleList)
        fold = as_aggregator(self.aggregator)
        nothing = [None] * (self.outputs + self.ends)

        def late(chunk: Chunk) -> None:
            for row in chunk.rows(self.late):
                collector.emit([*nothing, True, *row])

        for trigger, chunks in state.enter(tuples, self.stored, late):
            self._aggregate(fold, trigger, chunks, collector)

    def _aggregate(self, fold: Any, trigger: Trigger, chunks: list[Chunk], collector: TridentCollector) -> None:
        ends = (trigger.start, trigger.end)[: self.ends]
        beside = [*ends, False, *[None] * len(self.late)] if self.late else ends
        count = self.outputs

        def emit(row: Any) -> None:
            check_row(row, name_of(self.aggregator))
            if beside and len(row) != count:  # without more values behind it, a row is checked like any other
                raise TridentError(f"{name_of(self.aggregator)} emitted {len(row)} values for {count} fields: {row!r}")
            collector.emit([*row, *beside])

        results = TridentCollector(emit if beside else collector.emit, collector.reportError)
        total = kernel_of(self.aggregator, chunks, self.inputs)
        if total is not None:
            results.emit((total,))
            return
        value = fold.init(trigger.number, results)
        for chunk in chunks:
            for part in chunk.slices():
                for values in part.tuples(self.inputs):
                    changed = fold.aggregate(value, values, results)
                    if changed is not None:
                        value = changed
        fold.complete(value, results)


@dataclass(frozen=True)
class WindowSide(Spec):
    """Divides what a window in event time emits: its results, or the late tuples."""

    late: bool
    inputs: Fields
    outputs: Fields

    @property
    def operation(self) -> str:
        return "late tuples" if self.late else "results of the window"

    def reads(self, port: int) -> list[str]:
        return [LATE, *self.inputs]

    def make(self, context: NodeContext) -> Processor:
        return WindowSideProcessor(self, context)


class WindowSideProcessor(Processor[WindowSide]):
    """Takes the rows of its side, under their own names."""

    def execute(self, port: int, chunk: Chunk) -> None:
        rows = [row for row, late in enumerate(chunk.pylist(LATE)) if late == self.spec.late]
        if rows:
            taken = chunk.take(rows)
            pairs = zip(self.spec.inputs, self.spec.outputs, strict=True)
            columns = {name: taken.columns[source] for source, name in pairs}
            self.emit(Chunk(columns, len(rows), chunk.short).only(self.context.select_read(self.spec.outputs)))
