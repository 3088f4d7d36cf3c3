"""A word count into two maps, which goes on behind Storm's batch 2: from there on each word comes twice."""

from __future__ import annotations

from pathlib import Path

import states
from states.sql import SqlMapState
from trident_py import TridentTopology
from trident_py.operations.builtin import Count
from trident_py.testing import FixedBatchSpout

STREAM = "words"
SPOUT = FixedBatchSpout("word", 2, *[("a",), ("b",)] * 4)
AFTER = 3  # the txid that Storm had not committed


def build(table: str = "counts") -> TridentTopology:
    topology = TridentTopology()
    words = topology.newStream(STREAM, SPOUT)
    for name in (table, "others"):
        state = SqlMapState.opaque(f"sqlite:///{Path.cwd()}/c.db", name, "word string")
        words.groupBy("word").persistentAggregate(state, Count(), "count")
    return topology


def renamed() -> TridentTopology:
    return build("renamed")


def named() -> TridentTopology:
    """Make one that counts into the state counts of s.yaml alone."""
    topology, counts = TridentTopology(), states.load("s.yaml")["counts"]
    topology.newStream(STREAM, SPOUT).groupBy("word").persistentAggregate(counts, Count(), "count")
    return topology
