"""The interfaces of states: what a store's author implements, and what updaters and queries may call.

A State serves one partition. It is made where its tuples are (on Spark in a Python worker of an executor, on
LocalCluster in this process) and lives there for many batches. Source in Storm: storm.trident.state.
"""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import StateError
from ..operations.base import Operation, TridentCollector
from ..tuples import Fields, TridentTuple
from .location import Location

Key = Sequence[Any]


class State:
    """One partition of a state. Both calls come from `persist` only, in the order of txids.

    On replay: the same txid arrives again, whole, also when the first try got as far as `commit`; what was
    stored must tell. `beginCommit` opens, `commit` makes durable and may return a receipt (any picklable
    value, handed to the driver's BatchParticipant). txid is None where there is no transaction.

    A state that holds something open between the two may have ``rollback(txid)``: called when the commit
    ended by an exception. Nothing is called for a partition without tuples.
    """

    @abstractmethod
    def beginCommit(self, txid: int | None) -> None:
        raise NotImplementedError

    @abstractmethod
    def commit(self, txid: int | None) -> Any:
        raise NotImplementedError


StateClass = type[State]


class ReadOnlyState(State):
    """A state that only answers queries (newStaticState).

    On replay: nothing, it is never written. Both calls raise StateError.
    """

    def beginCommit(self, txid: int | None) -> None:
        raise StateError(f"{type(self).__name__} is read-only and does not support updates")

    def commit(self, txid: int | None) -> Any:
        raise StateError(f"{type(self).__name__} is read-only and does not support updates")


class StateFactory:
    """Makes the State of a partition; a frozen, picklable value that opens nothing itself.

    `makeState` is called once for each partition, where its tuples are, also for partitions that never get
    one. ``conf`` carries topology.name, trident.state.name, trident.generation, trident.lineage, trident.way (see
    `trident_py.run.ways`), trident.run and trident.home where a cluster runs it; ``metrics`` is None. A factory may
    also be a BatchParticipant.

    It may have ``requiredNumPartitions``, as in a StateSpec, and ``check_place(place: StatePlace)``, which is called
    when the topology is built and raises DefinitionError where the state cannot work.

    ``location`` says where its data is, None if nobody else can write it: a topology is refused in which two states
    would update one place (`trident_py.topology.places`). ``key_fields`` are the fields of a map's key, where they have
    names: groups are matched with them by name. ``state_type`` is the class of its states, where it is always the same:
    an updater or a query that calls what they do not have is refused when it is defined. ``own_updater`` is what
    partitionPersist updates them with where it gets no updater; None: it must get one.
    """

    @property
    def location(self) -> Location | None:
        return None

    @property
    def key_fields(self) -> Fields | None:
        return None

    @property
    def state_type(self) -> StateClass | None:
        return None

    @property
    def own_updater(self) -> StateUpdater | None:
        return None

    @abstractmethod
    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> State:
        raise NotImplementedError


@dataclass(frozen=True)
class StatePlace:
    """Where a topology updates a state: its name and partitions, the fields of its tuples, the streams' names of the
    spouts before it, and those of them whose tuples come to it ``beside``: in the partition in which they were emitted.
    ``queries``: the functions that ask the state behind its update in the same batch, and must see what it has written.
    """

    state: str
    partitions: int
    fields: Fields
    spouts: tuple[str, ...]
    beside: tuple[str, ...]
    queries: tuple[Any, ...] = ()


@dataclass(frozen=True)
class StateSpec:
    """A factory together with the number of partitions that it insists on (None: as the topology says)."""

    stateFactory: StateFactory
    requiredNumPartitions: int | None = None


class StateUpdater(Operation):
    """`updateState` gets all tuples of one partition of one batch, between beginCommit and commit.

    What it emits are the new values; operations behind them run before `commit`. On replay it runs again.
    ``calls`` are the methods that a state must have for it, besides those of `State`. ``groupFields`` are the fields of
    the key under which it keeps values.
    """

    calls: ClassVar[tuple[str, ...]] = ()
    groupFields: Fields = Fields()

    @abstractmethod
    def updateState(self, state: Any, tuples: Sequence[TridentTuple], collector: TridentCollector) -> None:
        raise NotImplementedError


class QueryFunction(Operation):
    """`batchRetrieve` answers all tuples of a partition at once, `execute` emits one answer's values.

    The answers must be as many as the tuples. A query sees its own partition of the state, written or
    committed alike. ``calls`` are the methods that a state must have for it.
    """

    calls: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def batchRetrieve(self, state: Any, tuples: Sequence[TridentTuple]) -> Sequence[Any]:
        raise NotImplementedError

    @abstractmethod
    def execute(self, tuple: TridentTuple, result: Any, collector: TridentCollector) -> None:
        raise NotImplementedError


BaseStateUpdater = StateUpdater
BaseQueryFunction = QueryFunction


class ValueUpdater:
    """`update` gets the stored value, or None where there is none, and returns the new one."""

    @abstractmethod
    def update(self, stored: Any) -> Any:
        raise NotImplementedError


class StateType(enum.Enum):
    """The three ways to keep a value: alone, with its txid, with its txid and the value before."""

    NON_TRANSACTIONAL = "non-transactional"
    TRANSACTIONAL = "transactional"
    OPAQUE = "opaque"


class ReadOnlyMapState(State):
    """Values by key; a key is a list or tuple of values, and 1, 1.0, True, "1" and None are five keys."""

    @abstractmethod
    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        """The values in the order of the keys; None where there is none."""
        raise NotImplementedError


class MapState(ReadOnlyMapState):
    """What a grouped persistentAggregate needs."""

    @abstractmethod
    def multiUpdate(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater]) -> list[Any]:
        """Updates each key once and returns the values that hold afterwards, in the order of the keys."""
        raise NotImplementedError

    @abstractmethod
    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        raise NotImplementedError


class RemovableMapState(State):
    """A map whose keys can be removed."""

    @abstractmethod
    def multiRemove(self, keys: Sequence[Key]) -> None:
        raise NotImplementedError


class ReadOnlySnapshottable(State):
    """One value."""

    @abstractmethod
    def get(self) -> Any:
        raise NotImplementedError


class Snapshottable(ReadOnlySnapshottable):
    """What a global persistentAggregate needs."""

    @abstractmethod
    def update(self, updater: ValueUpdater) -> Any:
        """Updates the value and returns the one that holds afterwards."""
        raise NotImplementedError

    @abstractmethod
    def set(self, value: Any) -> None:
        raise NotImplementedError


class ITupleCollection:
    """A state whose rows can be listed."""

    @abstractmethod
    def getTuples(self) -> Iterator[list[Any]]:
        """One list for each row: the key's values, then the value."""
        raise NotImplementedError


class BackingMap:
    """What a store's author writes; the txid logic stands above it, in the maps of `trident_py.state.maps`.

    `multiGet` answers in the order of the keys, None where there is nothing. `multiPut` may get a key twice:
    the last value wins. Within a commit there is one multiGet of all keys and at most one multiPut.
    """

    @abstractmethod
    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        raise NotImplementedError

    @abstractmethod
    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        raise NotImplementedError


IBackingMap = BackingMap
