"""States: where results are kept, and what a replay does to them.

Updaters and queries use `State`, `MapState` and `Snapshottable`. A store's author writes a `BackingMap`; the maps add
the txid logic. Memory states are in `trident_py.testing`, states with a store of their own in the package `states`.
"""

from typing import TYPE_CHECKING

from ..entry_points import answer
from ..model.requirements import Needs
from .base import (
    BackingMap,
    BaseQueryFunction,
    BaseStateUpdater,
    IBackingMap,
    ITupleCollection,
    Location,
    MapState,
    QueryFunction,
    Reading,
    ReadOnlyMapState,
    ReadOnlySnapshottable,
    ReadOnlyState,
    RemovableMapState,
    Snapshottable,
    State,
    StateClass,
    StateFactory,
    StatePlace,
    StateSpec,
    StateType,
    StateUpdater,
    ValueUpdater,
)
from .cached import CachedBatchReadsMap, CachedMap, MicroBatchIBackingMap
from .maps import NonTransactionalMap, OpaqueMap, SnapshottableMap, TransactionalMap
from .participants import BatchParticipant, Remembered, participant_of
from .persist import SILENT, SilentCollector, persist
from .serializers import (
    JSONNonTransactionalSerializer,
    JSONOpaqueSerializer,
    JSONTransactionalSerializer,
    Serializer,
)
from .updaters import (
    CombinerAggStateUpdater,
    MapCombinerAggStateUpdater,
    MapReducerAggStateUpdater,
    ReducerAggStateUpdater,
)
from .updates import CombinerValueUpdater, ReducerValueUpdater
from .values import OpaqueValue, TransactionalValue

__all__ = [
    "SILENT",
    "BackingMap",
    "BaseQueryFunction",
    "BaseStateUpdater",
    "BatchParticipant",
    "CachedBatchReadsMap",
    "CachedMap",
    "CombinerAggStateUpdater",
    "CombinerValueUpdater",
    "IBackingMap",
    "ITupleCollection",
    "JSONNonTransactionalSerializer",
    "JSONOpaqueSerializer",
    "JSONTransactionalSerializer",
    "LRUMemoryMapState",
    "Location",
    "MapCombinerAggStateUpdater",
    "MapReducerAggStateUpdater",
    "MapState",
    "MemoryBackingMap",
    "MemoryMapState",
    "MicroBatchIBackingMap",
    "Needs",
    "NonTransactionalMap",
    "OpaqueMap",
    "OpaqueValue",
    "QueryFunction",
    "ReadOnlyMapState",
    "ReadOnlySnapshottable",
    "ReadOnlyState",
    "Reading",
    "ReducerAggStateUpdater",
    "ReducerValueUpdater",
    "Remembered",
    "RemovableMapState",
    "Serializer",
    "SilentCollector",
    "Snapshottable",
    "SnapshottableMap",
    "State",
    "StateClass",
    "StateFactory",
    "StatePlace",
    "StateSpec",
    "StateType",
    "StateUpdater",
    "TransactionalMap",
    "TransactionalValue",
    "ValueUpdater",
    "participant_of",
    "persist",
]

if not TYPE_CHECKING:
    _TESTING = ".testing.memory_states"
    __getattr__ = answer(
        __name__, dict.fromkeys(("LRUMemoryMapState", "MemoryBackingMap", "MemoryMapState"), _TESTING)
    )
