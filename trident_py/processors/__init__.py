"""Processors: what each kind of node does to the tuples of one partition of one batch, on either cluster."""

from .aggregate import Aggregate, Part
from .base import NodeContext, Processor
from .each import Each
from .keep import Keep
from .multi import Joiner, Merge, MultiReduce
from .passing import Collect, Project
from .replace import Peek, Replace
from .states import PartitionPersist, StateQuery

__all__ = [
    "Aggregate",
    "Collect",
    "Each",
    "Joiner",
    "Keep",
    "Merge",
    "MultiReduce",
    "NodeContext",
    "Part",
    "PartitionPersist",
    "Peek",
    "Processor",
    "Project",
    "Replace",
    "StateQuery",
]
