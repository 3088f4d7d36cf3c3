"""Operations on several streams of one partition: merge, join, multiReduce plain and grouped."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...errors import TridentError
from ...model.canonical import key_of
from ...model.chunks import Chunk
from ...operations.base import GroupedMultiReducer, TridentCollector, name_of
from ...tuples import BatchId, Fields, TridentTuple
from .base import NodeContext, Processor, Spec


@dataclass(frozen=True)
class Merge(Spec):
    """The tuples of all inputs, with their values matched to the output's names by position."""

    inputs: tuple[Fields, ...]
    outputs: Fields
    operation = "merge"

    def reads(self, port: int) -> Iterable[str]:
        return self.inputs[port].names[: len(self.outputs)]

    def make(self, context: NodeContext) -> Processor:
        return MergeProcessor(self, context)


class MergeProcessor(Processor):
    """Renames columns. If an input lacks a field, reading that field raises."""

    def __init__(self, spec: Merge, context: NodeContext) -> None:
        super().__init__(context)
        self.spec = spec

    def execute(self, port: int, chunk: Chunk) -> None:
        names, outputs = self.spec.inputs[port].names, self.context.kept(self.spec.outputs)
        positions = {name: self.spec.outputs.index(name) for name in outputs}
        missing = [name for name in outputs if positions[name] >= len(names)]
        columns = {name: chunk.columns[names[i]] for name, i in positions.items() if i < len(names)}
        if missing:
            absent = Chunk.of_rows(Fields.named(missing), [()] * chunk.length)
            columns = {**columns, **absent.columns}
        self.emit(Chunk(columns, chunk.length, chunk.short or bool(missing)))


@dataclass(frozen=True)
class MultiReduce(Spec):
    """Runs a MultiReducer over the inputs' fields; with ``groups``, a GroupedMultiReducer."""

    reducer: Any
    inputs: tuple[Fields, ...]
    outputs: Fields
    groups: tuple[Fields, ...] | None = None

    @property
    def operation(self) -> str:
        return f"multiReduce {name_of(self.reducer)}"

    @property
    def operations(self) -> tuple[Any, ...]:
        return (self.reducer,)

    def reads(self, port: int) -> Iterable[str]:
        groups = self.groups[port] if self.groups is not None else ()
        return [*groups, *self.inputs[port]]

    def make(self, context: NodeContext) -> Processor:
        return MultiReduceProcessor(self, context) if self.groups is None else GroupedMultiProcessor(self, context)


class MultiReduceProcessor(Processor):
    """One reducer state over all tuples of the partition."""

    def __init__(self, spec: MultiReduce, context: NodeContext) -> None:
        super().__init__(context)
        self.spec = spec
        self.reducer = context.prepare(spec.reducer, *spec.inputs)
        self.rows: list[Any] = []
        self.collector = TridentCollector(self.rows.append, context.report_error)
        self.state: Any = None

    def start(self, attempt: BatchId) -> None:
        self.rows.clear()
        self.state = self.reducer.init(self.collector)

    def execute(self, port: int, chunk: Chunk) -> None:
        for values in chunk.tuples(self.spec.inputs[port]):
            changed = self.reducer.execute(self.state, port, values, self.collector)
            if changed is not None:
                self.state = changed
        self.flush()

    def finish(self) -> None:
        self.reducer.complete(self.state, self.collector)
        self.flush()

    def flush(self) -> None:
        if self.rows:
            chunk = Chunk.of_rows(self.spec.outputs, self.rows, self.context.kept(self.spec.outputs))
            self.rows.clear()
            self.emit(chunk)


class GroupedMultiProcessor(MultiReduceProcessor):
    """One reducer state for each group, created at the group's first tuple from any input."""

    def __init__(self, spec: MultiReduce, context: NodeContext) -> None:
        super().__init__(spec, context)
        self.groups: dict[tuple, list[Any]] = {}

    def start(self, attempt: BatchId) -> None:
        self.rows.clear()
        self.groups = {}

    def execute(self, port: int, chunk: Chunk) -> None:
        assert self.spec.groups is not None
        groups = chunk.tuples(self.spec.groups[port])
        inputs = chunk.tuples(self.spec.inputs[port])
        for group, values in zip(groups, inputs, strict=True):
            key = key_of(group)
            entry = self.groups.get(key)
            if entry is None:
                entry = self.groups[key] = [group, self.reducer.init(self.collector, group)]
            changed = self.reducer.execute(entry[1], port, entry[0], values, self.collector)
            if changed is not None:
                entry[1] = changed
        self.flush()

    def finish(self) -> None:
        for group, state in self.groups.values():
            self.reducer.complete(state, group, self.collector)
        self.groups = {}
        self.flush()


@dataclass(frozen=True)
class Joiner(GroupedMultiReducer):
    """Joins the tuples of a group: the cross product of its sides.

    ``outer[i]``: side i may be missing; its values are then null. COMPACT output is the key, then each side's other
    fields. ``preserve`` emits all fields of each side in their own order; ``places`` holds, for each side, the position
    of each field in key ++ others. (All fields of a missing side are null.)
    """

    outer: tuple[bool, ...]
    widths: tuple[int, ...]
    preserve: bool = False
    places: tuple[tuple[int, ...], ...] = ()

    def init(self, collector: TridentCollector, group: TridentTuple) -> list[list[tuple]]:
        return [[] for _ in self.widths]

    def execute(
        self, state: Any, streamIndex: int, group: TridentTuple, input: TridentTuple, collector: TridentCollector
    ) -> None:
        state[streamIndex].append(tuple(input))

    def complete(self, state: Any, group: TridentTuple, collector: TridentCollector) -> None:
        if len(self.outer) < len(self.widths):
            raise TridentError(f"{len(self.outer)} join types for {len(self.widths)} streams; pass one per stream")
        sides: list[list[Any]] = []
        for rows, outer in zip(state, self.outer, strict=False):
            if not rows and not outer:
                return
            sides.append(rows or [None])
        key = tuple(group)
        for combination in itertools.product(*sides):
            collector.emit(self._preserve(key, combination) if self.preserve else self._compact(key, combination))

    def _compact(self, key: tuple, combination: Iterable[tuple | None]) -> tuple:
        pairs = zip(combination, self.widths, strict=True)
        return key + tuple(v for row, width in pairs for v in (row if row is not None else (None,) * width))

    def _preserve(self, key: tuple, combination: Iterable[tuple | None]) -> tuple:
        values: list[Any] = []
        for row, places in zip(combination, self.places, strict=True):
            fields = key + row if row is not None else None
            values += [None if fields is None else fields[place] for place in places]
        return tuple(values)
