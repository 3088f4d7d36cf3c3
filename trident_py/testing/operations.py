"""Storm's operations for tests. Source in Storm: org.apache.storm.trident.testing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import TridentError
from ..operations import Aggregator, Filter, Function, TridentCollector
from ..tuples import TridentTuple


class CountAsAggregator(Aggregator):
    """Counts the tuples of a batch as an Aggregator, so without partial counts. Emits 0 for an empty batch."""

    def init(self, batchId: Any, collector: TridentCollector) -> int:
        return 0

    def aggregate(self, value: int, tuple: TridentTuple, collector: TridentCollector) -> int:
        return value + 1

    def complete(self, value: int, collector: TridentCollector) -> None:
        collector.emit((value,))


class Split(Function):
    """The words of the first input field, split at single spaces; empty words are skipped."""

    def execute(self, tuple: TridentTuple, collector: TridentCollector) -> None:
        for word in _check_string(tuple[0], "Split").split(" "):
            if word:
                collector.emit((word,))

    def executeBatch(self, *columns: pa.Array) -> tuple[list[pa.Array], Callable[[], np.ndarray]] | None:
        """Return the words of a string column, and a callable for the row of each. None: use the row form."""
        if not pa.types.is_string(columns[0].type) or columns[0].null_count:
            return None
        lists = pc.split_pattern(columns[0], " ")
        words, full = pc.list_flatten(lists), None
        if pc.min_max(pc.binary_length(words)).as_py()["min"] == 0:
            full = pc.not_equal(words, "")

        def parents() -> np.ndarray:
            rows = pc.list_parent_indices(lists)
            return (rows if full is None else rows.filter(full)).to_numpy(zero_copy_only=False)

        return [words if full is None else words.filter(full)], parents


class StringLength(Function):
    """The length of the first input field."""

    def execute(self, tuple: TridentTuple, collector: TridentCollector) -> None:
        collector.emit((len(_check_string(tuple[0], "StringLength")),))


class TrueFilter(Filter):
    """Keeps every tuple."""

    def isKeep(self, tuple: TridentTuple) -> bool:
        return True


class TuplifyArgs(Function):
    """Reads a JSON list of lists from the first input field (a DRPC request's args) and emits each list."""

    def execute(self, tuple: TridentTuple, collector: TridentCollector) -> None:
        for values in json.loads(_check_string(tuple[0], "TuplifyArgs")):
            collector.emit(values)


def _check_string(value: Any, user: str) -> str:
    if not isinstance(value, str):
        raise TridentError(f"{user}: the first input field holds {value!r}; a string is needed")
    return value
