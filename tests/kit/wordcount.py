"""Topologies as a user writes them."""

from __future__ import annotations

from typing import Any

from states.sql import SqlMapState
from trident_py import TridentTopology
from trident_py.operations.builtin import Count
from trident_py.testing import MemoryMapState

BATCHES = [[("a",), ("b",), ("c",), ("a",)], [("b",), ("a",), ("d",)], [("a",), ("e",), ("c",)]]
FIELDS = "word string"


def build(spout: Any, store: str) -> Any:
    return counting(spout, SqlMapState.transactional(store, "counts", FIELDS, "count bigint"))


def counting(spout: Any, factory: Any) -> Any:
    topology = TridentTopology()
    words = topology.newStream("words", spout).parallelismHint(2).groupBy("word")
    words.persistentAggregate(factory, Count(), "count").parallelismHint(2)
    return topology.build()


def plain(spout: Any, store: str) -> Any:
    return counting(spout, SqlMapState.nonTransactional(store, "counts", FIELDS, "count bigint"))


def opaque(spout: Any, store: str) -> Any:
    return counting(spout, SqlMapState.opaque(store, "counts", FIELDS, "count bigint"))


def in_memory(spout: Any, store: str) -> Any:
    return counting(spout, MemoryMapState.Factory())


