"""The rows of a batch as columns, in key order; finds the first row of each key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .values import Column

_AT_ONCE = 100_000
_PARTS = 16
_SAMPLE = 1_024


class KeyedRows:
    """Columns of equal length, checked and in their own Arrow type (`states.columns.arrow.encoded`)."""

    def __init__(self, columns: Sequence[Column], arrays: Sequence[pa.Array]) -> None:
        self.columns = list(columns)
        self.arrays = list(arrays)
        self.at = [i for i, column in enumerate(columns) if column.key]
        self.keys = [columns[i] for i in self.at]
        self.others = [column for column in columns if not column.key]

    def __len__(self) -> int:
        return len(self.arrays[0])

    def take(self, positions: pa.Array) -> KeyedRows:
        return KeyedRows(self.columns, [array.take(positions) for array in self.arrays])

    def ordered(self) -> Iterator[pa.Array]:
        """Yield the positions of all rows in key order, part by part. Equal keys are in one part, in their old order.

        A large batch is cut by key first and sorted part by part, so the first part is ready early.
        """
        every = pc.indices_nonzero(pc.is_valid(self.arrays[self.at[0]]))  # keys have no nulls: all positions
        if self._is_sorted():
            yield from (every.slice(at, _AT_ONCE) for at in range(0, len(self), _AT_ONCE))
            return
        for positions in self._cut(every):
            keys = pa.table({str(i): self.arrays[i].take(positions) for i in self.at})
            yield positions.take(pc.sort_indices(keys, sort_keys=[(str(i), "ascending") for i in self.at]))

    def unique(self) -> pa.Array:
        """Return the positions of the first row of each key, in key order."""
        ordered = pa.concat_arrays(list(self.ordered()))
        return ordered.filter(self.first(ordered))

    def first(self, positions: pa.Array) -> pa.Array:
        """Return for each of these rows, which are in key order: whether it is the first of its key."""
        if len(positions) == 0:
            return pa.array([], pa.bool_())
        same: Any = None
        for i in self.at:
            key = self.arrays[i].take(positions)
            equal = pc.equal(key.slice(1), key.slice(0, len(key) - 1))
            same = equal if same is None else pc.and_(same, equal)
        return pa.concat_arrays([pa.array([True]), pc.invert(same)])

    def row(self, position: int) -> tuple:
        return tuple(array[position].as_py() for array in self.arrays)

    def key(self, position: int) -> tuple:
        return tuple(self.arrays[i][position].as_py() for i in self.at)

    def python(self) -> list[tuple]:
        """Return the rows as tuples that a database driver takes."""
        return list(zip(*map(_to_driver, self.columns, self.arrays), strict=True))

    def python_keys(self) -> list[tuple]:
        return list(zip(*(_to_driver(self.columns[i], self.arrays[i]) for i in self.at), strict=True))

    def _is_sorted(self) -> bool:
        key = self.arrays[self.at[0]]
        if len(key) < 2:
            return True
        test = pc.less if len(self.at) > 1 else pc.less_equal
        return bool(pc.all(test(key.slice(0, len(key) - 1), key.slice(1))).as_py())

    def _cut(self, positions: pa.Array) -> Iterator[pa.Array]:
        key = self.arrays[self.at[0]]
        if len(key) > _AT_ONCE:
            for edge in _edges(key):
                below = pc.less(key, edge)
                if len(part := positions.filter(below)):
                    yield part
                rest = pc.invert(below)
                key, positions = key.filter(rest), positions.filter(rest)
        if len(positions):
            yield positions


def _edges(key: pa.Array) -> list[pa.Scalar]:
    """Return keys that cut the rows into parts of about equal size."""
    step = max(1, len(key) // _SAMPLE)
    sample = key.take(pa.array(range(0, len(key), step), pa.int64()))
    sample = sample.take(pc.array_sort_indices(sample))
    return [sample[len(sample) * i // _PARTS] for i in range(1, _PARTS)]


def _to_driver(column: Column, array: pa.Array) -> Sequence[Any]:
    values = array.to_pylist()
    already = column.family in ("json", "decimal", "timestamp") and pa.types.is_large_string(array.type)
    return values if already else column.encode(values)
