"""The fluent builder: makes the nodes of a plan and runs nothing."""

from typing import TYPE_CHECKING

from ..entry_points import answer
from .aggregations import ChainedAggregatorDeclarer
from .stream import GroupedStream, Stream, TridentState
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

if not TYPE_CHECKING:
    __getattr__ = answer(__name__)
