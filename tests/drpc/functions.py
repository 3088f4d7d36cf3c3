"""Topologies with DRPC functions, for the tests here."""

from __future__ import annotations

from typing import Any

from trident_py import LocalDRPC, TridentTopology
from trident_py.operations.builtin import Count, FilterNull, MapGet, Sum
from trident_py.testing import FeederBatchSpout, MemoryMapState, Split


def word_count(topology: TridentTopology, spout: Any, factory: Any = None, partitions: int = 1) -> Any:
    """Storm's TridentWordCount, without its query."""
    words = topology.newStream("sentences", spout).each("sentence", Split(), "word")
    counted = words.groupBy("word").persistentAggregate(factory or MemoryMapState.Factory(), Count(), "count")
    return counted.parallelismHint(partitions)


def words(topology: TridentTopology, counts: Any, drpc: LocalDRPC | None, function: str = "words") -> Any:
    """The query of TridentWordCount: the sum of the counts of the words in args."""
    asked = topology.newDRPCStream(function, drpc).each("args", Split(), "word").groupBy("word")
    found = asked.stateQuery(counts, "word", MapGet(), "count").each("count", FilterNull())
    return found.aggregate("count", Sum(), "sum")


def fed_words(drpc: LocalDRPC, factory: Any = None, partitions: int = 1) -> tuple[TridentTopology, FeederBatchSpout]:
    topology, feeder = TridentTopology(), FeederBatchSpout("sentence")
    words(topology, word_count(topology, feeder, factory, partitions), drpc)
    return topology, feeder
