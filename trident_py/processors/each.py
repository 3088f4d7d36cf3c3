"""each: appends the results of a function to its input tuple."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import length_hint
from typing import Any

import numpy as np

from ..blame import Blame, arguments, named_values, note
from ..canonical import in_order
from ..chunks import Chunk, typed
from ..errors import TridentError
from ..operations.base import TridentCollector
from ..operations.roles import Executes, ExecutesColumns
from ..tuples import Fields
from .base import NodeContext, Processor, Spec, called, check_row, is_frame, name_of


@dataclass(frozen=True)
class Each(Spec):
    """Appends the results of a Function, or of a callable in its place, to the input tuple."""

    function: Any
    inputs: Fields
    outputs: Fields
    passes = True

    @property
    def operation(self) -> str:
        return f"each {name_of(self.function)}"

    @property
    def operations(self) -> tuple[Any, ...]:
        return (self.function,)

    def reads(self, port: int) -> Iterable[str]:
        return self.inputs

    def make(self, context: NodeContext) -> Processor:
        known = isinstance(self.function, Executes)
        return FunctionProcessor(self, context) if known else CallableProcessor(self, context)


class FunctionProcessor(Processor):
    """Calls ``execute(tuple, collector)``. ``collector.emit`` is the ``append`` of a list."""

    def __init__(self, spec: Each, context: NodeContext) -> None:
        super().__init__(context)
        self.spec = spec
        self.function = context.prepare(spec.function)
        self.carried = context.kept(context.inputs[0])
        self.collector = TridentCollector(lambda values: None, context.report_error)

    def execute(self, port: int, chunk: Chunk) -> None:
        if not self._vectorised(chunk):
            for part in chunk.slices():
                self._execute(part)

    def _execute(self, chunk: Chunk) -> None:
        rows: list[Any] = []
        self.collector.emit = rows.append
        counts = self._call(chunk, rows)
        if rows:
            check_row(rows[0], self.spec.outputs, self.spec.operation)
            self._send(chunk, counts, Chunk.of_rows(self.spec.outputs, rows, self._produced()))

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

    def _vectorised(self, chunk: Chunk) -> bool:
        """Tries the function on whole columns. Returns False if it does not take them."""
        if not isinstance(self.function, ExecutesColumns):
            return False
        columns = [chunk.columns[name] for name in self.spec.inputs]
        if not columns or any(isinstance(column, list) for column in columns):
            return False
        results = self.function.executeBatch(*columns)
        if results is None:
            return False
        arrays, parents = results
        made = {name: arrays[self.spec.outputs.index(name)] for name in self._produced()}
        carried = chunk.only(self.carried)
        if self.carried and parents is not None:
            carried = carried.take(parents())
        length = len(arrays[0]) if arrays else carried.length
        if any(len(array) != length for array in arrays) or (carried.columns and carried.length != length):
            raise TridentError(f"{self.spec.operation} gave columns of different lengths for {carried.length} rows")
        if length:
            self.emit(Chunk({**carried.columns, **made}, length, chunk.short))
        return True

    def _produced(self) -> list[str]:
        return self.context.kept(self.spec.outputs)

    def _send(self, chunk: Chunk, counts: np.ndarray | None, made: Chunk) -> None:
        carried = repeat(chunk.only(self.carried), counts) if counts is not None else Chunk({}, made.length)
        self.emit(Chunk({**carried.columns, **made.columns}, made.length, made.short or carried.short))


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
        made = self._each_row(self.function, columns, columns) if columns else self._calls(chunk.length)
        kinds = set(map(type, made))
        if kinds <= {list, tuple}:
            return made
        wrong = {kind for kind in kinds if kind in (str, bytes, dict) or is_frame(kind)}
        if wrong or not all(kind is type(None) or issubclass(kind, Iterable) for kind in kinds):
            bad = next(r for r in made if type(r) in wrong or not isinstance(r, Iterable | None))
            raise TridentError(
                f"{self.spec.operation} returned {bad!r}; a callable in place of a Function returns an iterable "
                "of results (or None), for example a list or a generator"
            )
        return self._each_row(_listed, [made], columns)

    def _calls(self, length: int) -> list[Any]:
        return [self.function() for _ in range(length)]

    def _each_row(self, function: Callable[..., Any], given: list[list], columns: list[list]) -> list[Any]:
        """Applies the function to each row. An exception gets the row's values as a note if its traceback shows no
        arguments, as with ``int`` or a generator expression."""
        first = iter(given[0])
        try:
            return called(function, first, *given[1:])
        except BaseException as error:
            if not arguments(error):
                row = len(given[0]) - length_hint(first) - 1
                note(error, Blame(values=named_values(self.spec.inputs, [column[row] for column in columns])))
            raise

    def _columns(self, items: list[Any]) -> Chunk:
        outputs = self.spec.outputs
        if len(outputs) == 1:
            name = outputs[0]
            column = typed(items, outputs.types[name], name) if name in outputs.types else items
            return Chunk({name: column} if self._produced() else {}, len(items))
        for item in items:
            if len(outputs) and (not isinstance(item, Sequence) or len(item) != len(outputs)):
                raise TridentError(f"{self.spec.operation} yielded {item!r}; each result has {len(outputs)} values")
        return Chunk.of_rows(outputs, items, self._produced())


def _listed(result: Any) -> Sequence[Any]:
    return () if result is None else result if isinstance(result, list | tuple) else list(in_order(result))


def repeat(chunk: Chunk, counts: np.ndarray) -> Chunk:
    """Repeats each row as often as its count says."""
    if len(counts) == chunk.length and (counts == 1).all():
        return chunk
    return chunk.take(np.repeat(np.arange(len(counts)), counts).tolist())
