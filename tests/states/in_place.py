"""Aggregators that change the value they are given, and return it."""

from __future__ import annotations

from typing import Any

from trident_py.operations.base import CombinerAggregator, ReducerAggregator

SHARED: list = []


class Listing(ReducerAggregator):
    """All values of a key, in one list; every group begins with the same empty list."""

    def init(self) -> list:
        return SHARED

    def reduce(self, curr: list, tuple: Any) -> list:
        if tuple[0] is None:
            raise ValueError("a tuple in the middle fails")
        curr.append(tuple[0])
        return curr


class Joining(CombinerAggregator):
    """The same by a combiner, which also empties the partial result that it gets."""

    def __init__(self) -> None:
        self.empty: list = []

    def init(self, tuple: Any) -> list:
        return [tuple[0]]

    def combine(self, val1: list, val2: list) -> list:
        if None in val2:
            raise ValueError("a partial result in the middle fails")
        val1.extend(val2)
        val2.clear()
        return val1

    def zero(self) -> list:
        return self.empty
