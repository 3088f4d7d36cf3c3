"""min and max of a stream, in terms of partitionAggregate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from ..operations.builtin import Max, MaxWithComparator, Min, MinWithComparator

if TYPE_CHECKING:
    from .stream import Stream

Comparator = Callable[[Any, Any], int]


class Comparisons:
    """The smallest and the largest tuple of each **partition**, whole. Ties keep the last.

    For the whole batch add ``global_()`` and ask again. A comparator is ``(a, b) -> int``.
    """

    def minBy(self, inputFieldName: str, comparator: Comparator | None = None) -> Stream:
        """By one field; tuples whose value is None are skipped."""
        best = Min(inputFieldName) if comparator is None else MinWithComparator(inputFieldName, comparator)
        return self._best(best, inputFieldName)

    def maxBy(self, inputFieldName: str, comparator: Comparator | None = None) -> Stream:
        """By one field; tuples whose value is None are skipped."""
        best = Max(inputFieldName) if comparator is None else MaxWithComparator(inputFieldName, comparator)
        return self._best(best, inputFieldName)

    def min(self, comparator: Comparator) -> Stream:
        """By a comparator of whole tuples."""
        return self._best(MinWithComparator(comparator))

    def max(self, comparator: Comparator) -> Stream:
        """By a comparator of whole tuples."""
        return self._best(MaxWithComparator(comparator))

    def _best(self, aggregator: Any, field: str | None = None) -> Stream:
        stream = cast("Stream", self)
        stream.check(field)
        fields = stream.getOutputFields()
        return stream.partitionAggregate(fields, aggregator, fields)
