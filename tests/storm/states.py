"""The states, updaters and queries of the oracle's cases, every call of them written down."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from trident_py.model.canonical import key_of
from trident_py.operations.builtin import MapGet, SnapshotGet, TupleCollectionGet
from trident_py.rpc import service as home
from trident_py.state import (
    ITupleCollection,
    MapState,
    Needs,
    ReadOnlyMapState,
    ReadOnlySnapshottable,
    Snapshottable,
    State,
    StateFactory,
    StateSpec,
    StateUpdater,
)
from trident_py.testing import CallLog, LoggingBackingMap, LRUMemoryMapState, MemoryMapState, stored
from trident_py.testing.logged import show

from .ops import Script

MEMORY_KEY = "$MEMORY-MAP-STATE-GLOBAL$"


class CaseState:
    """One state of a case: its factory, what it holds in the end, what was called."""

    def __init__(self, name: str, kind: str, size: int, script: Script) -> None:
        self.name = name
        self.kind = kind
        self.factory: Any
        if kind in ("memory", "lru"):
            inner = MemoryMapState.Factory() if kind == "memory" else LRUMemoryMapState.Factory(size)
            self.factory = LoggedFactory(inner, name, script)
        elif kind == "log":
            self.factory = LoggedFactory(None, name, script)
        else:
            self.factory = FailingMaps(kind, FailingCall(script, name))

    def spec(self, partitions: int | None) -> Any:
        return self.factory if partitions is None else StateSpec(self.factory, partitions)

    def result(self) -> list[list]:
        if self.kind == "log":
            return []
        found = stored(self.factory).items()
        in_memory = self.kind in ("memory", "lru")
        return [[self.key(key) if in_memory else list(key), show(value)] for key, value in found]

    def key(self, key: tuple) -> list:
        return [MEMORY_KEY] if key == ("$GLOBAL$",) else list(key)

    def logs(self) -> dict[str, list]:
        logs = self.factory.log.calls_by_partition()
        if set(logs) <= {0}:
            return {self.name: logs.get(0, [])}
        return {f"{self.name}/{task}": calls for task, calls in logs.items()}


class FailingMaps(LoggingBackingMap.Factory):
    """Its failures know the way to the driver."""

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        self.onCall.conf = home.of_any_run(conf)  # type: ignore[union-attr]
        return super().makeState(conf, metrics, partitionIndex, numPartitions)


class FailingCall:
    """Fails after a call of a state where the case asks for it."""

    def __init__(self, script: Script, state: str) -> None:
        self.script = script
        self.state = state
        self.conf: dict = {}

    def __call__(self, call: list, attempt: Any) -> None:
        place = "put" if call[0] == "multiPut" else call[0]
        self.script.check(place, attempt, self.state, self.conf)


class LoggedFactory(StateFactory):
    """Memory states, and states that hold nothing, with their beginCommit and commit written down."""

    def __init__(self, inner: Any, name: str, script: Script) -> None:
        self.inner = inner
        self.name = name
        self.onCall = FailingCall(script, name)
        self.id = f"tests.storm:{uuid.uuid4().hex}"

    @property
    def stateName(self) -> str:
        return self.id[-8:]

    @property
    def needs(self) -> Needs:
        return Needs(home=True)

    @property
    def log(self) -> CallLog:
        return home.store({}, self.id, CallLog)

    def stored(self) -> dict[tuple, Any]:
        return stored(self.inner)

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any:
        inner = self.inner and self.inner.makeState(conf, metrics, partitionIndex, numPartitions)
        own = home.of_any_run(conf)
        log, self.onCall.conf = home.store(own, self.id, CallLog), own
        return Logged(inner, log, partitionIndex, self.onCall, conf.get("trident.context"))


class Logged(MapState, Snapshottable, ITupleCollection):
    """Passes everything on; writes beginCommit and commit down and fails where the case asks."""

    def __init__(self, inner: Any, calls: CallLog, partition: int, onCall: FailingCall, context: Any) -> None:
        self.inner = inner
        self.calls = calls
        self.partition = partition
        self.onCall = onCall
        self.context = context

    def log(self, call: list) -> None:
        self.calls.add(self.partition, call)

    def _logged(self, call: list) -> None:
        self.log(call)
        self.onCall(call, self.context.transaction)

    def beginCommit(self, txid: int | None) -> None:
        self._logged(["beginCommit", txid])
        if self.inner is not None:
            self.inner.beginCommit(txid)

    def commit(self, txid: int | None) -> None:
        self._logged(["commit", txid])
        if self.inner is not None:
            self.inner.commit(txid)

    def multiGet(self, keys: Any) -> list[Any]:
        return self.inner.multiGet(keys)

    def multiUpdate(self, keys: Any, updaters: Any) -> list[Any]:
        return self.inner.multiUpdate(keys, updaters)

    def multiPut(self, keys: Any, vals: Any) -> None:
        self.inner.multiPut(keys, vals)

    def get(self) -> Any:
        return self.inner.get()

    def update(self, updater: Any) -> Any:
        return self.inner.update(updater)

    def set(self, value: Any) -> None:
        self.inner.set(value)

    def getTuples(self) -> Iterator[list[Any]]:
        return self.inner.getTuples()


class StaticFactory(StateFactory):
    def __init__(self, entries: list, snapshot: Any) -> None:
        self.entries = entries
        self.snapshot = snapshot

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> State:
        return StaticState(self.entries, self.snapshot)


class StaticState(ReadOnlyMapState, ReadOnlySnapshottable, ITupleCollection):
    def __init__(self, entries: list, snapshot: Any) -> None:
        self.rows = {key_of(key): (key, value) for key, value in entries}
        self.snapshot = snapshot

    def beginCommit(self, txid: int | None) -> None:
        pass

    def commit(self, txid: int | None) -> None:
        pass

    def multiGet(self, keys: Any) -> list[Any]:
        return [self.rows.get(key_of(key), (key, None))[1] for key in keys]

    def get(self) -> Any:
        return self.snapshot

    def getTuples(self) -> Iterator[list[Any]]:
        return iter([[*key, value] for key, value in self.rows.values()])


class Updater(StateUpdater):
    """``log`` emits its tuples, ``size`` their number, ``put`` writes first field -> second."""

    def __init__(self, script: Script, state: str, name: str, out: int) -> None:
        self.script = script
        self.state = state
        self.name = name
        self.out = out
        self.context: Any = None
        self.conf: dict = {}

    def prepare(self, conf: dict, context: Any) -> None:
        self.context, self.conf = context, home.of_any_run(conf)

    def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
        state.log(["update", [list(values) for values in tuples]])
        if self.name == "put":
            state.multiPut([[values[0]] for values in tuples], [values[1] for values in tuples])
        self.script.check("update", self.context.transaction, self.state, self.conf)
        if self.name == "size":
            collector.emit([len(tuples)])
        elif self.out:
            for values in tuples:
                collector.emit(list(values))


def query(name: str) -> Any:
    return {"MapGet": MapGet, "SnapshotGet": SnapshotGet, "TupleCollectionGet": TupleCollectionGet}[name]()
