"""Nodes whose operation takes whole columns: each, filter and map with a `Columnar`; counts of one column."""

from __future__ import annotations

from collections import Counter
from itertools import islice, takewhile
from typing import Any

import pyarrow as pa

from ...errors import TridentError
from ...model.chunks import Chunk, Column, as_arrow, compact, convert, is_text, kinds_of, lacks
from ...operations.columnar import Columnar, check_columns
from ...tuples import Fields, absence_error
from .base import NodeContext, Processor

HELD_BYTES = 1 << 22


def tells_groups_apart(kind: pa.DataType) -> bool:
    """Return whether equal values of this type are one group in Storm, and different ones are two."""
    return bool(pa.types.is_string(kind) or pa.types.is_integer(kind))


class ColumnCounter:
    """Counts the values of one column, part by part. Texts in lists are counted in a dict; Arrow columns of texts or
    whole numbers are held, and counted together in one hash table."""

    def __init__(self) -> None:
        self.texts: Counter[Any] = Counter()
        self.held: dict[pa.DataType, list[pa.Array]] = {}
        self.size = 0

    @property
    def is_full(self) -> bool:
        """Whether so many columns are held that they should be counted now."""
        return self.size >= HELD_BYTES

    def add(self, column: Column) -> bool:
        """Return False, and count nothing, if equal values of this column may be different groups in Storm."""
        if isinstance(column, list):
            return self._add_list(column)
        if not tells_groups_apart(column.type):
            return False
        self.held.setdefault(column.type, []).append(compact(column))
        self.size += column.nbytes
        return True

    def take(self) -> list[tuple[Column, pa.Array]]:
        """Return the values and the counts of what was added, for each type, and start again. Texts of lists stay a
        list: Arrow cannot hold half a surrogate pair."""
        found: list[tuple[Column, pa.Array]] = []
        for columns in self.held.values():
            counts = pa.chunked_array(columns).value_counts()
            found.append((counts.field(0), counts.field(1)))
        if self.texts:
            found.append((list(self.texts), pa.array(list(self.texts.values()), pa.int64())))
        self.texts, self.held, self.size = Counter(), {}, 0
        return found

    def _add_list(self, column: list) -> bool:
        """Count texts. A text equals only texts, so checking the types of the new keys is enough."""
        before, counted = len(self.texts), iter(column)
        try:
            self.texts.update(column)
            if set(map(type, islice(reversed(self.texts), len(self.texts) - before))) <= {str}:
                return True
        except TypeError:  # an unhashable value; the values before it are already counted
            counted = takewhile(_has_hash, column)
        self.texts.subtract(counted)
        self.texts = +self.texts
        return False


def _has_hash(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


_MOST_SHOWN = 80
# What an untyped column may stay in: these give back the Python values that a callable would have emitted.
_PLAIN = (pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.binary())


class ColumnsProcessor(Processor[Any]):
    """Calls the operation with the input columns of each chunk; `_send` gets its results."""

    def __init__(self, spec: Any, operation: Columnar, count: int, context: NodeContext) -> None:
        super().__init__(spec, context)
        self.operation: Columnar = context.prepare(operation, spec.inputs)
        self.count = count

    def execute(self, port: int, chunk: Chunk) -> None:
        arrays = [self._input(chunk, name) for name in self.spec.inputs]
        results = self.operation.columns(self.spec.inputs, arrays, chunk.length)
        self._send(chunk, check_columns(self.spec.operation, results, self.count, chunk.length))

    def _send(self, chunk: Chunk, results: list[pa.Array]) -> None:
        raise NotImplementedError

    def _input(self, chunk: Chunk, name: str) -> pa.Array:
        column = chunk.columns[name]
        if chunk.short and isinstance(column, list) and lacks(column):
            raise absence_error(name)
        array = as_arrow(column)
        if array is None:
            assert isinstance(column, list)
            raise TridentError(f"{self.spec.operation}: {_unfit(column, name)}")
        return array

    def _outputs(self, fields: Fields, results: list[pa.Array]) -> dict[str, Column]:
        """Return the results that a later node reads, in the types of their fields."""
        pairs = zip(fields, results, strict=True)
        return {
            name: self._output(name, array, fields.types.get(name))
            for name, array in pairs
            if name in self.context.wanted
        }

    def _output(self, name: str, array: pa.Array, ddl: str | None) -> Column:
        if ddl is None:
            return array if array.type in _PLAIN else _find_untyped(array, name)
        if is_text(array.type) and ddl != "string":
            raise TridentError(f"{self.spec.operation}: field {name!r} is declared {ddl}, but the column is text")
        return convert(array, ddl, name)


class AppendColumns(ColumnsProcessor):
    """each: the results beside the columns of the input."""

    def _send(self, chunk: Chunk, results: list[pa.Array]) -> None:
        carried = chunk.only(self.context.select_read(self.context.inputs[0]))
        self.emit(Chunk(carried.columns | self._outputs(self.spec.outputs, results), chunk.length, chunk.short))


class ReplaceColumns(ColumnsProcessor):
    """map: the results in place of the columns of the input."""

    def _send(self, chunk: Chunk, results: list[pa.Array]) -> None:
        self.emit(Chunk(self._outputs(self.spec.outputs, results), chunk.length))


class KeepColumns(ColumnsProcessor):
    """filter: the rows for which the result is true; neither false nor null passes."""

    def _send(self, chunk: Chunk, results: list[pa.Array]) -> None:
        keeps = results[0]
        if pa.types.is_null(keeps.type):
            return
        if not pa.types.is_boolean(keeps.type):
            raise TridentError(
                f"{self.spec.operation} returned a column of type {keeps.type}; a filter returns a boolean array"
            )
        carried = chunk.only(self.context.select_read(self.context.inputs[0]))
        self.emit_chosen(carried, keeps.fill_null(False).to_numpy(zero_copy_only=False).nonzero()[0])


def _find_untyped(array: pa.Array, name: str) -> list:
    """Return the values of an untyped field as Python objects; times have microseconds there."""
    kind = array.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        try:
            array = array.cast(pa.timestamp("us", kind.tz))
        except pa.ArrowInvalid as error:
            raise TridentError(f"field {name!r}: a time has nanoseconds; round to microseconds: {error}") from error
    return array.to_pylist()


def _unfit(column: list, name: str) -> str:
    """Report the first value that prevents a single Arrow type."""
    first = next(iter(kinds_of(column[: next(i for i, value in enumerate(column) if value is not None) + 1])))
    other = next((value for value in column if value is not None and type(value) is not first), None)
    if other is not None:
        shown = f"{other!r:.{_MOST_SHOWN}}, a {type(other).__name__}, beside a {first.__name__}"
        return f"field {name!r} holds {shown}; an Arrow column has one type: declare the field's type, or convert it"
    value = next(value for value in column if value is not None and as_arrow([value]) is None)
    shown = f"{value!r:.{_MOST_SHOWN}}, a {first.__name__}"
    return f"field {name!r} holds {shown}, which fits no Arrow column; convert it first, or use a plain callable"
