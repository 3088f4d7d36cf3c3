"""Counts and sums without a Python call for each tuple: Arrow kernels on columns, a C loop on lists.

A combiner that says ``kernel = "count"`` or ``kernel = "sum"`` is exactly that; groups must be texts or whole
numbers for a kernel to tell them apart as Storm does, anything else takes the general way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ..chunks import Chunk, as_arrow
from ..tuples import Fields, TransactionAttempt
from .base import NodeContext, Processor

if TYPE_CHECKING:
    from .aggregate import Aggregate, GroupedProcessor, Part

_SAFE_SUM = 2**62
_MERGE_ROWS = 1_000_000


def kernels_for(parts: Sequence[Part], group: Fields | None) -> tuple[str, ...] | None:
    """The kernel of each part, or None where one has none or there is no group to count by."""
    found = [getattr(part.aggregator, "kernel", None) for part in parts]
    if group is None or not len(group) or not all(kernel in ("count", "sum") for kernel in found):
        return None
    return tuple(found)  # type: ignore[arg-type]


class KernelProcessor(Processor):
    """Grouped counts and sums as tables of partial results, merged when they grow and at the end.

    What kernels cannot do exactly (other types, sums near 64 bits) the general processor does; it then also
    takes the partial results so far.
    """

    def __init__(
        self, spec: Aggregate, context: NodeContext, kernels: tuple[str, ...], general: GroupedProcessor
    ) -> None:
        super().__init__(context)
        self.spec = spec
        self.kernels = kernels
        self.general = general
        self.group = list(spec.group or ())
        self.outputs = [part.outputs[0] for part in spec.parts]
        self.counting = kernels == ("count",) and spec.phase != "merge" and len(self.group) == 1
        self.counter: Counter = Counter()
        self.tables: list[pa.Table] = []
        self.pending = 0
        self.bound = 0

    def start(self, attempt: TransactionAttempt) -> None:
        self.general.emit = self.emit
        self.general.start(attempt)
        self.counter, self.tables, self.pending, self.bound = Counter(), [], 0, 0

    def execute(self, port: int, chunk: Chunk) -> None:
        if self.general.groups or not (self._count(chunk) or self._add(chunk)):
            self._hand_over()
            self.general.execute(port, chunk)

    def _count(self, chunk: Chunk) -> bool:
        """Counts the values of the one group column, where nothing else is asked."""
        if not self.counting:
            return False
        column = chunk.columns[self.group[0]]
        if isinstance(column, list):
            return not chunk.short and self._count_list(column)
        if not (pa.types.is_string(column.type) or pa.types.is_integer(column.type)):
            return False
        counts = column.value_counts()
        return self._keep(pa.table([counts.field(0), counts.field(1)], names=[self.group[0], self.outputs[0]]))

    def _count_list(self, column: list) -> bool:
        """Counts texts in one dict; a text equals nothing but itself, so only new keys need a look."""
        known, counted = len(self.counter), iter(column)
        try:
            self.counter.update(column)
            if set(map(type, islice(reversed(self.counter), len(self.counter) - known))) <= {str}:
                return True
        except TypeError:  # a list, a dict: what came before it is counted already
            counted = takewhile(_has_hash, column)
        self.counter.subtract(counted)
        self.counter = +self.counter
        return False

    def _settle(self) -> None:
        """What was counted in the dict, as one more table."""
        counted, self.counter = self.counter, Counter()
        if counted:
            columns = [pa.array(list(counted), pa.string()), pa.array(list(counted.values()), pa.int64())]
            table = pa.table(columns, names=[self.group[0], self.outputs[0]])
            if not self._keep(table):
                self._absorb(table)

    def _add(self, chunk: Chunk) -> bool:
        """Adds up: for a count ones, for a sum the values, for partial results these."""
        arrays = [_groupable(chunk, name) for name in self.group]
        for part, kernel in zip(self.spec.parts, self.kernels, strict=True):
            if kernel == "count" and self.spec.phase != "merge":
                arrays.append(pa.repeat(pa.scalar(1, pa.int64()), chunk.length))
            else:
                names = self.spec.inputs_of(part)
                arrays.append(self._addable(chunk, names[0]) if len(names) else None)
        if any(array is None for array in arrays):
            return False
        return self._keep(self._added(pa.table(arrays, names=[*self.group, *self.outputs])))

    def _addable(self, chunk: Chunk, name: str) -> pa.Array | None:
        """Whole numbers without nulls, as long as no sum can overflow unseen."""
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
            self.tables = [self._merged()]
            self.pending = self.tables[0].num_rows
        return True

    def _added(self, table: pa.Table) -> pa.Table:
        added = table.group_by(self.group, use_threads=False).aggregate([(name, "sum") for name in self.outputs])
        sums = [f"{name}_sum" for name in self.outputs]
        return added.select([*self.group, *sums]).rename_columns([*self.group, *self.outputs])

    def _merged(self) -> pa.Table:
        return self._added(pa.concat_tables(self.tables)) if len(self.tables) > 1 else self.tables[0]

    def _hand_over(self) -> None:
        """Everything so far goes to the general processor, as partial values."""
        self._settle()
        tables, self.tables, self.pending = self.tables, [], 0
        for table in tables:
            self._absorb(table)

    def _absorb(self, table: pa.Table) -> None:
        width = len(self.group)
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        self.general.absorb((row[:width], row[width:]) for row in rows)

    def finish(self) -> None:
        self._settle()
        if self.general.groups:
            self._hand_over()
        if self.tables:
            self._give(self._merged())
        self.general.finish()

    def _give(self, table: pa.Table) -> None:
        columns = {name: table.column(name).combine_chunks() for name in self.context.kept(self.context.fields)}
        flat = {n: c.chunk(0) if isinstance(c, pa.ChunkedArray) else c for n, c in columns.items()}
        self.emit(Chunk(flat, table.num_rows))

    def close(self) -> None:
        self.general.close()


def _has_hash(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _groupable(chunk: Chunk, name: str) -> pa.Array | None:
    column = chunk.columns[name]
    array = None if isinstance(column, list) and chunk.short else as_arrow(column)
    if array is None or not (pa.types.is_string(array.type) or pa.types.is_integer(array.type)):
        return None
    return array
