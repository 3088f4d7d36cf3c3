"""The topology of the states in topics, with two of SQL beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from faults.readings import PARTITIONS, Readings
from faults.steps import InHalves
from faults.stores import FACTORIES, ROW

from states.kafka import RowUpdater as TopicUpdater
from states.sql import RowUpdater
from trident_py import TridentTopology
from trident_py.operations.builtin import Sum
from trident_py.state import MapCombinerAggStateUpdater


def build_with_topics(
    url: str, readings: Readings, last: int, partitions: int, only: Sequence[str], topics: Mapping[str, Any],
    wrap: Callable[[str, Any], Any], spout: Callable[[Readings, int], Any],
) -> Any:  # fmt: skip
    """Of records by sender, the latest record of each id, the sum of each word, ``append`` and ``sequence``: ``only``
    these."""
    topology = TridentTopology()
    stream = topology.newStream("readings", spout(readings, last)).parallelismHint(PARTITIONS)
    by_sender, by_id = stream.partitionBy("sender"), stream.partitionBy("id")
    for name in (one for one in ("append", "sequence") if one in only):
        state = by_sender.partitionPersist(wrap(name, FACTORIES[name](url)), ROW.names, InHalves(RowUpdater()))
        state.parallelismHint(partitions)
    for name, rows in ((name, rows) for name, rows in (("topic", by_sender), ("upsert", by_id)) if name in only):
        state = rows.partitionPersist(wrap(name, topics[name]), ROW.names, InHalves(TopicUpdater()), stateName=name)
        state.parallelismHint(2 if name == "topic" else partitions)
    if "topic map" not in only:
        return topology.build()
    words = stream.groupBy("word").aggregate("n", Sum(), "total").partitionBy("word").parallelismHint(partitions)
    updater = InHalves(MapCombinerAggStateUpdater(Sum(), "word", "total"))
    state = words.partitionPersist(wrap("topic map", topics["topic map"]), ["word", "total"], updater, stateName="map")
    state.parallelismHint(partitions)
    return topology.build()
