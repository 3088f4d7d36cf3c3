"""The fluent builder: makes the nodes of a plan, runs nothing."""

from .chained import ChainedAggregatorDeclarer
from .grouped import GroupedStream
from .state import TridentState
from .stream import Stream
from .topology import JoinOutFieldsMode, JoinType, Topology, TridentTopology

__all__ = [
    "ChainedAggregatorDeclarer",
    "GroupedStream",
    "JoinOutFieldsMode",
    "JoinType",
    "Stream",
    "Topology",
    "TridentState",
    "TridentTopology",
]
