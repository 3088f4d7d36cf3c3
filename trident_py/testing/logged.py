"""A map state to inspect: its rows and the calls that reached it, kept in the driver process."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..errors import DefinitionError
from ..model.canonical import key_of
from ..model.context import RunContext
from ..model.requirements import Needs
from ..rpc import service
from ..state import (
    BackingMap,
    ITupleCollection,
    OpaqueValue,
    Reading,
    SnapshottableMap,
    StateFactory,
    TransactionalValue,
)
from ..state.keys import ExactKey
from ..state.maps import MAPS
from ..tuples import TransactionAttempt

GLOBAL_KEY = ("$GLOBAL$",)
Hook = Callable[[list, TransactionAttempt | None], None]
_MAPS: dict[str, Any] = {kind.value.replace("-", ""): made for kind, made in MAPS.items()}


class CallLog:
    """The rows of a state and the calls of each partition. Lives in the driver process."""

    def __init__(self) -> None:
        self.rows: dict[tuple, tuple[tuple, Any]] = {}
        self.partitions: dict[int, list[list]] = {}
        self.order: list[list] = []

    def add(self, partition: int, call: list) -> None:
        self.partitions.setdefault(partition, []).append(call)
        self.order.append(call)

    def multiGet(self, partition: int, keys: Sequence[Sequence[Any]]) -> list[Any]:
        self.add(partition, ["multiGet", [list(key) for key in keys]])
        return [self.rows.get(key_of(key), (key, None))[1] for key in keys]

    def multiPut(self, partition: int, keys: Sequence[Sequence[Any]], values: Sequence[Any]) -> None:
        self.add(partition, ["multiPut", [list(key) for key in keys], [show(value) for value in values]])
        for key, value in zip(keys, values, strict=True):
            self.rows[key_of(key)] = (tuple(key), value)

    def stored(self) -> dict[tuple, Any]:
        return {ExactKey(key): value for key, value in self.rows.values()}

    def items(self) -> list[tuple[tuple, Any]]:
        return list(self.rows.values())

    def calls(self) -> list[list]:
        return list(self.order)

    def calls_by_partition(self) -> dict[int, list[list]]:
        return {partition: list(calls) for partition, calls in self.partitions.items()}


def show(value: Any) -> Any:
    """Return a stored value in the form used in calls: plain, {txid, val} or {currTxid, curr, prev}."""
    if isinstance(value, OpaqueValue):
        return {"currTxid": value.currTxid, "curr": value.curr, "prev": value.prev}
    if isinstance(value, TransactionalValue):
        return {"txid": value.txid, "val": value.value}
    return value


class LoggingBackingMap(BackingMap):
    """One partition's view of the map that all partitions share."""

    def __init__(self, log: CallLog, partition: int, hook: Callable[[list], None]) -> None:
        self.log = log
        self.partition = partition
        self.hook = hook

    def multiGet(self, keys: Sequence[Sequence[Any]]) -> list[Any]:
        return self.log.multiGet(self.partition, list(map(tuple, keys)))

    def multiPut(self, keys: Sequence[Sequence[Any]], vals: Sequence[Any]) -> None:
        plain = list(map(tuple, keys))
        self.log.multiPut(self.partition, plain, list(vals))
        self.hook(["multiPut", plain, [show(value) for value in vals]])

    class Factory(StateFactory):
        """``kind``: nontransactional, transactional or opaque. ``calls`` and ``stored()`` show what happened.

        ``onCall(call, attempt)`` is called where the state is, after beginCommit, multiPut or commit is recorded and
        before the next step; it may raise.
        """

        needs = Needs(home=True)
        reading = Reading.CURRENT

        def __init__(self, kind: str = "opaque", onCall: Hook | None = None) -> None:
            if kind not in _MAPS:
                raise DefinitionError(f"LoggingBackingMap has no kind {kind!r}; the kinds are: {', '.join(_MAPS)}")
            self.mapKind = kind
            self.kind = "non-transactional" if kind == "nontransactional" else kind
            self.onCall = onCall
            self.key = f"testing.calls:{uuid.uuid4().hex}"

        @property
        def stateName(self) -> str:
            return f"logged-{self.key[-8:]}"

        def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> LoggedState:
            return LoggedState(self, service.store(service.of_any_run(conf), self.key, CallLog), partitionIndex, conf)

        @property
        def log(self) -> CallLog:
            return service.store({}, self.key, CallLog)

        @property
        def calls(self) -> list[list]:
            """Returns the calls in order: ["beginCommit", txid], ["multiGet", keys], ["multiPut", keys, stored] ..."""
            return self.log.calls()

        def stored(self) -> dict[tuple, Any]:
            return self.log.stored()


class LoggedState(SnapshottableMap, ITupleCollection):
    """A map, a value under the global key and a tuple collection in one. Records all calls."""

    def __init__(self, factory: LoggingBackingMap.Factory, log: CallLog, partition: int, conf: dict) -> None:
        self.calls = log
        self.partition = partition
        self.onCall = factory.onCall
        self.context = RunContext.of(conf).running
        super().__init__(_MAPS[factory.mapKind].build(LoggingBackingMap(log, partition, self.hook)), GLOBAL_KEY)

    def hook(self, call: list) -> None:
        if self.onCall is not None:
            self.onCall(call, None if self.context is None else self.context.transaction)

    def log(self, call: list) -> None:
        """Record a call; also for a test's own updaters."""
        self.calls.add(self.partition, call)

    def beginCommit(self, txid: int | None) -> None:
        self.log(["beginCommit", txid])
        self.hook(["beginCommit", txid])
        super().beginCommit(txid)

    def commit(self, txid: int | None) -> Any:
        self.log(["commit", txid])
        self.hook(["commit", txid])
        return super().commit(txid)

    def getTuples(self) -> Iterator[list[Any]]:
        for key, value in self.calls.items():
            plain = value.value if isinstance(value, TransactionalValue) else value
            yield [*key, value.curr if isinstance(value, OpaqueValue) else plain]
