"""Nodes that take one tuple at a time: each, filter, map, flatMap, peek, project and collect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import length_hint
from typing import Any

import numpy as np
import pyarrow as pa

from ...errors import TridentError
from ...model.canonical import in_order
from ...model.chunks import Chunk, convert
from ...model.rows import check_rows, copy_lists, is_frame, is_row
from ...model.user_traceback import Blame, arguments, format_values, note
from ...operations.base import TridentCollector, name_of
from ...operations.columnar import Columnar
from ...operations.roles import Accepts, Executes, ExecutesColumns, Keeps, KeepsColumns, Maps
from ...tuples import Fields
from .base import NodeContext, Processor, Spec, beside, note_call
from .columns import AppendColumns, KeepColumns, ReplaceColumns

CALLED_ROWS = 4_096
"""A function is called for so many tuples before its results become columns. With more they leave the cache before."""


def _shows_values(operation: Any) -> str:
    return operation.name if isinstance(operation, Columnar) else name_of(operation)


@dataclass(frozen=True)
class Each(Spec):
    """Appends the results of a Function, or of a callable in its place, to the input tuple."""

    function: Any
    inputs: Fields
    outputs: Fields
    passes = True

    @property
    def operation(self) -> str:
        return f"each {_shows_values(self.function)}"

    @property
    def operations(self) -> tuple[Any, ...]:
        return (self.function,)

    def make(self, context: NodeContext) -> Processor:
        if isinstance(self.function, Columnar):
            return AppendColumns(self, self.function, len(self.outputs), context)
        function = isinstance(self.function, Executes)
        return FunctionProcessor(self, context) if function else CallableProcessor(self, context)


class FunctionProcessor(Processor[Each]):
    """Calls ``execute(tuple, collector)``. ``collector.emit`` is the ``append`` of a list."""

    def __init__(self, spec: Each, context: NodeContext) -> None:
        super().__init__(spec, context)
        self.function = context.prepare(spec.function, spec.inputs)
        self.columns = self.function if isinstance(self.function, ExecutesColumns) else None
        self.carried = context.select_read(context.inputs[0])
        self.collector = TridentCollector(lambda values: None, context.report_error)

    def execute(self, port: int, chunk: Chunk) -> None:
        if not self._is_vectorised(chunk):
            for part in chunk.slices(CALLED_ROWS):
                self._execute(part)

    def _execute(self, chunk: Chunk) -> None:
        rows: list[Any] = []
        self.collector.emit = rows.append
        counts = self._call(chunk, rows)
        if rows:
            check_rows(rows, self.spec.outputs, self.spec.operation)
            self._send(chunk, counts, Chunk.of_rows(self.spec.outputs, rows, self._produce()))

    def _call(self, chunk: Chunk, rows: list[Any]) -> np.ndarray | None:
        execute, collector = self.function.execute, self.collector
        tuples = chunk.tuples(self.spec.inputs)
        if not self.carried:
            for values in tuples:
                execute(values, collector)
            return None
        ends = []
        for values in tuples:
            execute(values, collector)
            ends.append(len(rows))
        return np.diff(np.array(ends, np.int64), prepend=0)

    def _is_vectorised(self, chunk: Chunk) -> bool:
        """Try the function on whole columns. Returns False if it does not take them."""
        if self.columns is None:
            return False
        columns = [chunk.columns[name] for name in self.spec.inputs]
        if not columns or any(isinstance(column, list) for column in columns):
            return False
        results = self.columns.executeBatch(*columns)
        if results is None:
            return False
        arrays, parents = results
        produced = {name: arrays[self.spec.outputs.index(name)] for name in self._produce()}
        carried = chunk.only(self.carried)
        if self.carried and parents is not None:
            carried = carried.take(parents())
        length = len(arrays[0]) if arrays else carried.length
        if any(len(array) != length for array in arrays) or (carried.columns and carried.length != length):
            raise TridentError(
                f"{self.spec.operation} returned columns of different lengths for {carried.length} rows; executeBatch "
                "returns columns of one length, and the parent rows unless each row has one result"
            )
        if length:
            self.emit(Chunk({**carried.columns, **produced}, length, chunk.short))
        return True

    def _produce(self) -> list[str]:
        return self.context.select_read(self.spec.outputs)

    def _send(self, chunk: Chunk, counts: np.ndarray | None, results: Chunk) -> None:
        carried = repeat(chunk.only(self.carried), counts) if counts is not None else Chunk({}, results.length)
        self.emit(beside(carried, results))


class CallableProcessor(FunctionProcessor):
    """Calls a plain callable with the input values. It returns None or an iterable of results."""

    def _execute(self, chunk: Chunk) -> None:
        results = self._results(chunk)
        items = list(chain.from_iterable(results))
        if items:
            counts = np.fromiter(map(len, results), np.int64, len(results)) if self.carried else None
            self._send(chunk, counts, self._columns(items))

    def _results(self, chunk: Chunk) -> list[Sequence[Any]]:
        columns = [chunk.pylist(name) for name in self.spec.inputs]
        if columns:
            results = self._by_row(self.function, columns, columns)
        else:
            results = [self.function() for _ in range(chunk.length)]
        kinds = set(map(type, results))
        if kinds <= {list, tuple}:
            return results
        wrong = {kind for kind in kinds if kind in (str, bytes, dict) or is_frame(kind)}
        if wrong or not all(kind is type(None) or issubclass(kind, Iterable) for kind in kinds):
            bad = next(r for r in results if type(r) in wrong or not isinstance(r, Iterable | None))
            raise TridentError(
                f"{self.spec.operation} returned {bad!r}; a callable in place of a Function returns an iterable "
                "of results (or None), for example a list or a generator"
            )
        return self._by_row(_to_values if len(self.spec.outputs) == 1 else _to_rows, [results], columns)

    def _by_row(self, function: Callable[..., Any], inputs: list[list], columns: list[list]) -> list[Any]:
        """Apply the function to each row. An exception gets the row's values as a note if its traceback shows no
        arguments, as with ``int`` or a generator expression."""
        first = iter(inputs[0])
        try:
            return note_call(function, first, *inputs[1:])
        except BaseException as error:
            if not arguments(error):
                row = len(inputs[0]) - length_hint(first) - 1
                note(error, Blame(values=format_values(self.spec.inputs, [column[row] for column in columns])))
            raise

    def _columns(self, items: list[Any]) -> Chunk:
        outputs = self.spec.outputs
        if len(outputs) == 1:
            name = outputs[0]
            column = convert(items, outputs.types[name], name) if name in outputs.types else items
            return Chunk({name: column} if self._produce() else {}, len(items))
        for item in items:
            if len(outputs) and (not isinstance(item, Sequence) or not is_row(item) or len(item) != len(outputs)):
                raise TridentError(f"{self.spec.operation} yielded {item!r}; each result has {len(outputs)} values")
        return Chunk.of_rows(outputs, items, self._produce())


def _to_values(result: Any) -> Sequence[Any]:
    return () if result is None else result if isinstance(result, list | tuple) else list(in_order(result))


def _to_rows(result: Any) -> Sequence[Any]:
    return () if result is None else result if isinstance(result, list | tuple) else copy_lists(in_order(result))


def repeat(chunk: Chunk, counts: np.ndarray) -> Chunk:
    """Repeat each row as often as its count says."""
    if len(counts) == chunk.length and (counts == 1).all():
        return chunk
    return chunk.take(np.repeat(np.arange(len(counts)), counts).tolist())


@dataclass(frozen=True)
class Keep(Spec):
    """A Filter, or a callable in its place."""

    filter: Any
    inputs: Fields
    passes = True

    @property
    def operation(self) -> str:
        return f"filter {_shows_values(self.filter)}"

    @property
    def operations(self) -> tuple[Any, ...]:
        return (self.filter,)

    def make(self, context: NodeContext) -> Processor:
        if isinstance(self.filter, Columnar):
            return KeepColumns(self, self.filter, 1, context)
        return FilterProcessor(self, context)


class FilterProcessor(Processor[Keep]):
    """Keeps the rows for which the filter is true. A filter that takes columns gets typed columns as they are."""

    def __init__(self, spec: Keep, context: NodeContext) -> None:
        super().__init__(spec, context)
        self.filter = context.prepare(spec.filter, spec.inputs)
        self.columns = self.filter if isinstance(self.filter, KeepsColumns) else None
        self.rows = self.filter if isinstance(self.filter, Keeps) else None
        self.carried = context.select_read(context.inputs[0])

    def execute(self, port: int, chunk: Chunk) -> None:
        keeps = self._keeps(chunk)
        if len(keeps) != chunk.length:
            raise TridentError(
                f"{self.spec.operation} returned {len(keeps)} answers for {chunk.length} rows; isKeepBatch returns one "
                "per row"
            )
        chosen = [i for i, keep in enumerate(keeps) if keep]
        self.emit_chosen(chunk.only(self.carried), chosen)

    def _keeps(self, chunk: Chunk) -> list[Any]:
        columns = [chunk.columns[name] for name in self.spec.inputs]
        if self.columns is not None and columns and all(isinstance(column, pa.Array) for column in columns):
            return self.columns.isKeepBatch(*columns).to_pylist()
        if self.rows is not None:
            return note_call(self.rows.isKeep, chunk.tuples(self.spec.inputs))
        lists = [chunk.pylist(name) for name in self.spec.inputs]
        return note_call(self.filter, *lists) if lists else [self.filter() for _ in range(chunk.length)]


@dataclass(frozen=True)
class Replace(Spec):
    """map and flatMap: new tuples in place of the input tuple."""

    function: Any
    outputs: Fields
    flat: bool
    inputs: Fields

    @property
    def operation(self) -> str:
        return f"{'flatMap' if self.flat else 'map'} {_shows_values(self.function)}"

    @property
    def operations(self) -> tuple[Any, ...]:
        return (self.function,)

    def make(self, context: NodeContext) -> Processor:
        if isinstance(self.function, Columnar):
            return ReplaceColumns(self, self.function, len(self.outputs), context)
        return ReplaceProcessor(self, context)


class ReplaceProcessor(Processor[Replace]):
    """Calls the function with the whole tuple. It returns the new tuple; for flatMap, an iterable of tuples."""

    def __init__(self, spec: Replace, context: NodeContext) -> None:
        super().__init__(spec, context)
        self.function = context.prepare(spec.function, spec.inputs)
        self.call: Callable[[Any], Any] = self.function.execute if isinstance(self.function, Maps) else self.function

    def execute(self, port: int, chunk: Chunk) -> None:
        tuples = chunk.tuples(self.spec.inputs)
        if self.spec.flat:
            call = self.call
            rows = [row for values in tuples if (result := call(values)) is not None for row in self._rows_of(result)]
        else:
            rows = note_call(self.call, tuples)
        if rows:
            check_rows(rows, self.spec.outputs, self.spec.operation)
            self.emit_rows(self.spec.outputs, rows)

    def _rows_of(self, result: Any) -> Iterable[Any]:
        if type(result) is list or type(result) is tuple:
            return result
        if not isinstance(result, Iterable) or isinstance(result, str | bytes | Mapping) or is_frame(type(result)):
            raise TridentError(
                f"{self.spec.operation} returned {result!r}; return an iterable of tuples (or None), for example a "
                "list or a generator"
            )
        return copy_lists(in_order(result))


@dataclass(frozen=True)
class Peek(Spec):
    """Shows every tuple to a Consumer, or to a callable in its place."""

    consumer: Any
    inputs: Fields
    passes = True

    @property
    def operation(self) -> str:
        return f"peek {name_of(self.consumer)}"

    def make(self, context: NodeContext) -> Processor:
        return PeekProcessor(self, context)


class PeekProcessor(Processor[Peek]):
    """Calls the consumer with each tuple and passes all of them on."""

    def __init__(self, spec: Peek, context: NodeContext) -> None:
        super().__init__(spec, context)
        self.consumer = context.prepare(spec.consumer, spec.inputs)
        accepts = isinstance(self.consumer, Accepts)
        self.accept: Callable[[Any], Any] = self.consumer.accept if accepts else self.consumer

    def execute(self, port: int, chunk: Chunk) -> None:
        for values in chunk.tuples(self.spec.inputs):
            self.accept(values)
        self.emit(chunk.only(self.context.select_read(self.spec.inputs)))


@dataclass(frozen=True)
class Project(Spec):
    """Keeps the named fields. With all fields it is the identity."""

    fields: Fields
    passes = True

    @property
    def operation(self) -> str:
        return f"project {self.fields}"

    def reads(self, port: int) -> Iterable[str]:
        return ()

    def make(self, context: NodeContext) -> Processor:
        return ProjectProcessor(self, context)


class ProjectProcessor(Processor[Project]):
    """Drops columns."""

    def execute(self, port: int, chunk: Chunk) -> None:
        self.emit(chunk.only(self.context.select_read(self.context.fields)))


@dataclass(frozen=True)
class Collect(Spec):
    """Reports the passing rows, for tests: `trident_py.testing.collect`."""

    name: str
    fields: Fields
    passes = True

    @property
    def operation(self) -> str:
        return f"collect {self.name}"

    def reads(self, port: int) -> Iterable[str]:
        return self.fields

    def make(self, context: NodeContext) -> Processor:
        return CollectProcessor(self, context)


class CollectProcessor(Processor[Collect]):
    """Sends the rows to the driver with the outcome of the batch."""

    def execute(self, port: int, chunk: Chunk) -> None:
        self.context.report("collected", (self.spec.name, chunk.rows(self.spec.fields)))
        self.emit(chunk.only(self.context.select_read(self.spec.fields)))
