"""Operations on several streams of one partition: merge, multiReduce plain and grouped, and the join of typed columns.

The join numbers the groups and gathers all columns of the result by index. It gives the same tuples in the order of
the `Joiner`, row by row, which takes over where a key is untyped or of a type whose equality is not Arrow's (a float:
0.0 and -0.0 are two keys).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import TridentError
from ...model.canonical import key_of
from ...model.chunks import Chunk, Column, concat_columns, convert, to_list
from ...model.rows import emit_into
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


class MergeProcessor(Processor[Merge]):
    """Renames columns. If an input lacks a field, reading that field raises."""

    def execute(self, port: int, chunk: Chunk) -> None:
        names, outputs = self.spec.inputs[port].names, self.context.select_read(self.spec.outputs)
        positions = {name: self.spec.outputs.index(name) for name in outputs}
        missing = [name for name in outputs if positions[name] >= len(names)]
        columns = {name: chunk.columns[names[i]] for name, i in positions.items() if i < len(names)}
        if missing:
            absent = Chunk.of_rows(Fields.of_names(missing), [()] * chunk.length)
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


class MultiReduceProcessor(Processor[MultiReduce]):
    """One reducer state over all tuples of the partition."""

    def __init__(self, spec: MultiReduce, context: NodeContext) -> None:
        super().__init__(spec, context)
        self.reducer = context.prepare(spec.reducer, *spec.inputs)
        self.rows: list[Any] = []
        emit = emit_into(self.rows, spec.outputs, spec.operation)
        self.collector = TridentCollector(emit, context.report_error)
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
        self.emit_rows(self.spec.outputs, self.rows)


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


ROWS = 65_536
"""Joined tuples in one chunk."""


@dataclass(frozen=True)
class Join(MultiReduce):
    """A `Joiner` over groups."""

    def make(self, context: NodeContext) -> Processor:
        return JoinProcessor(self, context)


class JoinProcessor(GroupedMultiProcessor):
    """Keeps the chunks of all inputs until the end of the batch, as long as their keys are typed alike."""

    def __init__(self, spec: MultiReduce, context: NodeContext) -> None:
        super().__init__(spec, context)
        self.chunks: list[tuple[int, Chunk]] = []
        self.by_row = False

    def start(self, attempt: BatchId) -> None:
        super().start(attempt)
        self.chunks, self.by_row = [], not _full(self.spec)

    def execute(self, port: int, chunk: Chunk) -> None:
        if not self.by_row and self._fits(port, chunk):
            self.chunks.append((port, chunk))
            return
        self._go_by_row()
        super().execute(port, chunk)

    def finish(self) -> None:
        if self.chunks:
            kept, chunks = self.context.select_read(self.spec.outputs), self.chunks
            self.chunks = []
            for part in JoinedColumns(self.spec, chunks).parts(kept):
                self.emit(part)
        super().finish()

    def _go_by_row(self) -> None:
        self.by_row, chunks = True, self.chunks
        self.chunks = []
        for port, chunk in chunks:
            super().execute(port, chunk)

    def _fits(self, port: int, chunk: Chunk) -> bool:
        types = key_types(self.spec, port, chunk)
        return types is not None and (not self.chunks or types == key_types(self.spec, *self.chunks[0]))


def _full(spec: MultiReduce) -> bool:
    """Do the join name the type of each side, and make a value for each output field?"""
    sides = len(spec.inputs)
    made = len(list(_sources(spec)))
    return len(spec.reducer.outer) >= sides and made == len(spec.outputs)


def key_types(spec: MultiReduce, port: int, chunk: Chunk) -> list[pa.DataType] | None:
    """Return the types of the key, if it can be compared in Arrow."""
    assert spec.groups is not None
    columns = [chunk.columns[name] for name in spec.groups[port]]
    types = [column.type for column in columns if not isinstance(column, list)]
    fits = not chunk.short and 0 < len(types) == len(columns) and all(map(_exact, types))
    return types if fits else None


def _exact(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind))


def _sources(spec: MultiReduce) -> Iterator[tuple[int | None, str]]:
    """Return where the value of each output field comes from: a side and its field; None for a field of the key."""
    joiner: Joiner = spec.reducer
    assert spec.groups is not None
    if not joiner.preserve:
        yield from ((None, name) for name in spec.groups[0])
    for side, (group, inputs) in enumerate(zip(spec.groups, spec.inputs, strict=True)):
        fields = (*group, *inputs)
        places: Sequence[int] = joiner.places[side] if joiner.preserve else range(len(group), len(fields))
        yield from ((side, fields[place]) for place in places)


class JoinedColumns:
    """All chunks of a batch, joined. The groups come in the order of their first tuple, from whichever side."""

    def __init__(self, spec: MultiReduce, chunks: list[tuple[int, Chunk]]) -> None:
        assert spec.groups is not None
        self.spec = spec
        self.of_side = [[chunk for port, chunk in chunks if port == side] for side in range(len(spec.inputs))]
        keys = [concat_columns([chunk.columns[spec.groups[port][i]] for port, chunk in chunks])
                for i in range(len(spec.groups[0]))]  # fmt: skip
        numbers = _number_groups(keys)
        self.first = np.flatnonzero(np.diff(np.maximum.accumulate(numbers), prepend=-1))
        self.keys = dict(zip(spec.groups[0], keys, strict=True))
        ports = np.repeat([port for port, _ in chunks], [chunk.length for _, chunk in chunks])
        self.rows, self.starts, self.counts = [], [], []
        for side in range(len(spec.inputs)):
            of_side = numbers[ports == side]
            counts = np.bincount(of_side, minlength=len(self.first))
            self.rows.append(np.argsort(of_side, kind="stable"))
            self.counts.append(counts)
            self.starts.append(np.cumsum(counts) - counts)

    def parts(self, kept: list[str]) -> Iterator[Chunk]:
        """Return the joined tuples with these fields, part by part."""
        times = [np.maximum(counts, outer) for counts, outer in zip(self.counts, self.spec.reducer.outer, strict=False)]
        many = np.multiply.reduce(times)
        group = np.repeat(np.arange(len(many)), many)
        within = np.arange(len(group)) - np.repeat(np.cumsum(many) - many, many)
        columns = {name: source for name, source in zip(self.spec.outputs, _sources(self.spec), strict=True)
                   if name in kept}  # fmt: skip
        whole = {source: self._column(*source) for source in columns.values()}
        for at in range(0, len(group), ROWS):
            indices = self._indices(group[at : at + ROWS], within[at : at + ROWS], times)
            made = {name: _take(whole[source], indices[source[0]]) for name, source in columns.items()}
            ready = {name: _cast_to_declared(column, self.spec.outputs, name) for name, column in made.items()}
            yield Chunk(ready, len(group[at : at + ROWS]))

    def _column(self, side: int | None, name: str) -> Column:
        if side is None:
            return self.keys[name]
        return concat_columns([chunk.columns[name] for chunk in self.of_side[side]])

    def _indices(self, group: Any, within: Any, times: list[Any]) -> dict[int | None, Any]:
        """Return for each side the row of each joined tuple, -1 where the side is missing: the last side varies
        fastest."""
        found: dict[int | None, Any] = {None: self.first[group]}
        for side in reversed(range(len(times))):
            many = times[side][group]
            place, within = within % many, within // many
            there = self.counts[side][group] > 0
            rows = np.full(len(group), -1)
            rows[there] = self.rows[side][(self.starts[side][group] + place)[there]]
            found[side] = rows
        return found


def _number_groups(keys: list[Any]) -> Any:
    """Return the number of each row's group: groups are numbered in the order of their first row. Null is a key too."""
    numbers: Any = None
    for key in keys:
        encoded = key.dictionary_encode(null_encoding="encode")
        indices = encoded.indices.to_numpy().astype(np.int64)
        if numbers is None:
            numbers = indices
        else:
            both = pa.array(numbers * len(encoded.dictionary) + indices)
            numbers = both.dictionary_encode().indices.to_numpy().astype(np.int64)
    return numbers


def _take(column: Column, rows: Any) -> Column:
    """Return the values at these rows; null at -1."""
    if isinstance(column, list):
        return [None if row < 0 else column[row] for row in rows.tolist()]
    return pc.take(column, pa.array(rows, mask=rows < 0))


def _cast_to_declared(column: Column, outputs: Fields, name: str) -> Column:
    return convert(column, outputs.types[name], name) if name in outputs.types else to_list(column)
