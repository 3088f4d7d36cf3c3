"""Tools to test topologies: finite spouts, memory states, scripted failures, recorded results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..entry_points import answer
from ..errors import TridentError
from ..state.roles import Shows
from .failing import failing
from .failures import Crashing
from .feeder import FeederBatchSpout, FeederCommitterBatchSpout
from .fixed_batches import FixedBatchSpout
from .logged import GLOBAL_KEY, CallLog, LoggingBackingMap
from .memory_states import LRUMemoryMapState, MemoryBackingMap, MemoryMapState
from .operations import CountAsAggregator, Split, StringLength, TrueFilter, TuplifyArgs

__all__ = [
    "GLOBAL_KEY",
    "CallLog",
    "CountAsAggregator",
    "Crashing",
    "FeederBatchSpout",
    "FeederCommitterBatchSpout",
    "FixedBatchSpout",
    "LRUMemoryMapState",
    "LoggingBackingMap",
    "MemoryBackingMap",
    "MemoryMapState",
    "Split",
    "StringLength",
    "TrueFilter",
    "TuplifyArgs",
    "collect",
    "failing",
    "stored",
]

if not TYPE_CHECKING:
    __getattr__ = answer(__name__)


def collect(stream: Any, name: str) -> Any:
    """Record the stream's rows under a name and return the stream. Works on both clusters.

    ``running.collected(name)`` returns txid -> rows of the batch's last attempt; ``collected_by_partition(name)``
    returns txid -> partition -> rows.
    """
    return stream._collect(name)


def stored(factory: Any) -> dict[tuple, Any]:
    """Return what a state's store holds now, all partitions together.

    Key tuple -> plain value, TransactionalValue or OpaqueValue, by the kind of the state. The key of an ungrouped value
    is ``("$GLOBAL$",)``. Call it in the driver process, while no batch commits.
    """
    if not isinstance(factory, Shows):
        raise TridentError(f"{type(factory).__name__} cannot be inspected: it has no method stored()")
    return factory.stored()
