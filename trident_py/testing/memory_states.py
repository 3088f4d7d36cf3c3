"""States in memory, for tests and for data that may be lost with the driver process, where they live."""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from ..errors import DefinitionError, StateError
from ..model.canonical import keys_of
from ..model.requirements import Needs
from ..rpc import service
from ..state.base import BackingMap, ITupleCollection, Key, Location, Reading, RemovableMapState, StateFactory
from ..state.copies import copy_value
from ..state.keys import ExactKey
from ..state.maps import OpaqueMap, SnapshottableMap
from ..state.values import OpaqueValue

GLOBAL_KEY = "$MEMORY-MAP-STATE-GLOBAL$"


class MemoryBackingMap(BackingMap):
    """A BackingMap in a dict; with ``maxSize`` it evicts the least recently used keys.

    On replay: as the map above it; it lives and dies with this process.
    """

    def __init__(self, maxSize: int | None = None) -> None:
        self.maxSize = maxSize
        self._rows: OrderedDict[tuple, tuple[tuple, Any]] = OrderedDict()

    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        names = keys_of(keys)
        rows = [self._rows.get(name) for name in names]
        if self.maxSize is not None:
            for name, row in zip(names, rows, strict=True):
                if row is not None:
                    self._rows.move_to_end(name)
        return [None if row is None else row[1] for row in rows]

    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        rows = zip(keys_of(keys), zip(map(tuple, keys), vals, strict=True), strict=True)
        if self.maxSize is None:
            self._rows.update(rows)
            return
        for name, row in rows:
            self._rows[name] = row
            self._rows.move_to_end(name)
            while len(self._rows) > self.maxSize:
                self._rows.popitem(last=False)

    def multiRemove(self, keys: Sequence[Key]) -> None:
        for name in keys_of(keys):
            self._rows.pop(name, None)

    def items(self) -> list[tuple[tuple, Any]]:
        """Return each key, as first put, with its value."""
        return list(self._rows.values())


class MemoryStore:
    """All partitions of one memory state, in the driver process. Called from any thread."""

    def __init__(self, maxSize: int | None) -> None:
        self._maxSize = maxSize
        self._maps: dict[int, MemoryBackingMap] = {}
        self._removed: dict[int, tuple[int | None, list[Key]]] = {}
        self._lock = threading.Lock()

    def _map(self, partition: int) -> MemoryBackingMap:
        return self._maps.setdefault(partition, MemoryBackingMap(self._maxSize))

    def get(self, partition: int, keys: Sequence[Key]) -> list[Any]:
        with self._lock:
            return self._map(partition).multiGet(keys)

    def put(self, partition: int, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        with self._lock:
            self._map(partition).multiPut(keys, vals)

    def begin(self, partition: int, txid: int | None) -> None:
        """Delete the keys that an earlier txid removed: their current and previous values are no longer needed."""
        with self._lock:
            before, keys = self._removed.get(partition, (None, []))
            if txid is None or txid != before:
                self._map(partition).multiRemove(keys)
            self._removed[partition] = (txid, [])

    def remove_later(self, partition: int, keys: Sequence[Key]) -> None:
        with self._lock:
            txid, before = self._removed.get(partition, (None, []))
            self._removed[partition] = (txid, [*before, *keys])

    def items(self, partition: int) -> list[tuple[tuple, Any]]:
        with self._lock:
            return [(key, copy_value(value)) for key, value in self._map(partition).items()]

    def is_empty(self) -> bool:
        with self._lock:
            return not any(map_.items() for map_ in self._maps.values())

    def stored(self) -> dict[tuple, Any]:
        """Return every key of every partition with its OpaqueValue; the global key is ("$GLOBAL$",).

        Raises StateError if two partitions hold the same key: one row would hide the other.
        """
        places: dict[tuple, tuple[int, Any]] = {}
        with self._lock:
            rows = [(partition, *row) for partition, map_ in self._maps.items() for row in map_.items()]
        for partition, key, value in rows:
            name = ("$GLOBAL$",) if key == (GLOBAL_KEY,) else ExactKey(key)
            if name in places:
                raise StateError(
                    f"key {tuple(name)!r} is in partitions {places[name][0]} and {partition} of the state: the tuples "
                    "were not partitioned by key (partitionBy, groupBy). To read such a state, give it one partition"
                )
            places[name] = partition, value
        return {name: copy_value(value) for name, (_, value) in places.items()}


class _Partition(BackingMap):
    """One partition of a MemoryStore as a backing map."""

    def __init__(self, store: MemoryStore, partition: int) -> None:
        self.store = store
        self.partition = partition

    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        return self.store.get(self.partition, list(map(tuple, keys)))

    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        self.store.put(self.partition, list(map(tuple, keys)), list(vals))


@dataclass(frozen=True)
class _MemoryFactory(StateFactory):
    """Makes the states of one store. Copies and pickles of a factory share the store; two factories share nothing."""

    id: str = field(default_factory=lambda: uuid.uuid4().hex, kw_only=True)
    kind: ClassVar[str] = "opaque"
    maxSize: ClassVar[int | None] = None
    needs = Needs(home=True)
    reading = Reading.CURRENT
    remark = "in memory, for the life of one driver process"

    @property
    def stateName(self) -> str:
        return f"memory-{self.id[:8]}"

    @property
    def location(self) -> Location:
        return Location(frozenset(["memory"]), frozenset([self.id]), shown="the memory of one factory used twice")

    def store(self, conf: dict) -> MemoryStore:
        """Return this state's store: the object itself in the driver process, a proxy in a worker."""
        # As in Storm, memory outlives the topology, not the process.
        return service.store(service.of_any_run(conf), f"memory/{self.id}", partial(MemoryStore, self.maxSize))

    def is_empty(self, conf: dict) -> bool:
        """Called by the driver as a run starts. Return whether this process has put nothing yet."""
        return self.store(conf).is_empty()

    def stored(self) -> dict[tuple, Any]:
        """Return all rows of all partitions, read in the driver process: key tuple -> OpaqueValue."""
        return self.store({}).stored()


class LRUMemoryMapState(SnapshottableMap, ITupleCollection):
    """An opaque map in memory that keeps the last ``maxSize`` keys of each partition.

    On replay: exact, like every opaque map, while the driver process lives and the key is still kept.
    """

    def __init__(self, store: MemoryStore, partition: int) -> None:
        self.store = store
        self.partition = partition
        super().__init__(OpaqueMap.build(_Partition(store, partition)), [GLOBAL_KEY])

    def getTuples(self) -> Iterator[list[Any]]:
        for key, value in self.store.items(self.partition):
            yield [*key, value.curr if isinstance(value, OpaqueValue) else value]

    @dataclass(frozen=True)
    class Factory(_MemoryFactory):
        """``LRUMemoryMapState.Factory(maxSize)``"""

        maxSize: int = 1000  # type: ignore[misc]

        def __post_init__(self) -> None:
            if self.maxSize < 1:
                raise DefinitionError(f"LRUMemoryMapState: maxSize must be at least 1, got {self.maxSize}")

        def makeState(
            self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int
        ) -> LRUMemoryMapState:
            return LRUMemoryMapState(self.store(conf), partitionIndex)


class MemoryMapState(LRUMemoryMapState, RemovableMapState):
    """An opaque map in memory.

    On replay: exact, like every opaque map, while the driver process lives; a restart begins empty.
    """

    def beginCommit(self, txid: int | None) -> None:
        super().beginCommit(txid)
        self.store.begin(self.partition, txid)

    def multiRemove(self, keys: Sequence[Key]) -> None:
        """Set the values to None now and delete the keys in the next txid: a replay still sees the value before."""
        self.multiPut(keys, [None] * len(keys))
        self.store.remove_later(self.partition, [tuple(key) for key in keys])

    @dataclass(frozen=True)
    class Factory(_MemoryFactory):
        """``MemoryMapState.Factory()``"""

        def makeState(
            self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int
        ) -> MemoryMapState:
            return MemoryMapState(self.store(conf), partitionIndex)
