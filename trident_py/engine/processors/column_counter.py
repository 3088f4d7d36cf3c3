"""Counts the values of one column without a Python call for each."""

from __future__ import annotations

from collections import Counter
from itertools import islice, takewhile
from typing import Any

import pyarrow as pa

from ...model.chunks import Column, compact

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

    def taken(self) -> list[tuple[Column, pa.Array]]:
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
