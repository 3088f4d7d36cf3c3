"""TridentState: the handle of a state within a topology."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import DefinitionError
from ..plan import StateUse

if TYPE_CHECKING:
    from .stream import Stream
    from .topology import TridentTopology


class TridentState:
    """What partitionPersist, persistentAggregate and newStaticState return."""

    def __init__(self, topology: TridentTopology, stream: Stream | None, use: StateUse) -> None:
        self.topology = topology
        self.stream = stream
        self.use = use

    def newValuesStream(self) -> Stream:
        """The tuples that the updater emits, in the commit phase. Every call is the same stream."""
        if self.stream is None:
            raise DefinitionError("a static state has no new values; nothing in this topology updates it")
        return self.stream

    def parallelismHint(self, parallelism: int) -> TridentState:
        """The number of the state's partitions."""
        if self.stream is not None:
            self.topology.hint(self.stream.node_id, parallelism)
        return self

    def setCPULoad(self, *load: Any) -> TridentState:
        """Accepted for ported lines; Spark places tasks itself."""
        return self

    def setMemoryLoad(self, *load: Any) -> TridentState:
        """Accepted for ported lines; Spark places tasks itself."""
        return self
