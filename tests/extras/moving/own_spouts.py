"""Topologies over spouts of their own, whose metadata an import takes over as it is."""

from __future__ import annotations

from typing import Any

from trident_py import TridentTopology
from trident_py.spouts import IOpaquePartitionedTridentSpout


class Spout(IOpaquePartitionedTridentSpout):
    def getOutputFields(self) -> str:
        return "value"

    def getCoordinator(self, *arguments: Any) -> Any:
        raise NotImplementedError

    getEmitter = getCoordinator


def build() -> TridentTopology:
    """Make one component of the streams a and b."""
    topology = TridentTopology()
    streams = [topology.newStream(name, Spout()) for name in "ab"]
    topology.merge(*streams).each("value", lambda value: [value], "v")
    return topology


def apart() -> TridentTopology:
    """Make two components."""
    topology = TridentTopology()
    for name in "ab":
        topology.newStream(name, Spout()).each("value", lambda value: [value], "v")
    return topology
