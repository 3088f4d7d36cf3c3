"""The source of a DRPC stream. Its requests travel in the descriptors; the engine makes those."""

from __future__ import annotations

from ..tuples import Fields
from .interfaces import ITridentDataSource


class DRPCSpout(ITridentDataSource):
    """Stands for the requests of a function. It has no coordinator.

    Source in Storm: org.apache.storm.drpc.DRPCSpout.
    """

    home = True

    def getOutputFields(self) -> Fields:
        return Fields("args string")
