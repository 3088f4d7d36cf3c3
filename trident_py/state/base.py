"""The state interfaces: what a store's author implements, and what updaters and queries may call.

A State serves one partition. It is made where its tuples are (on Spark in a Python worker of an executor, on
LocalCluster in this process) and serves many batches. Source in Storm: storm.trident.state.
"""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..errors import DefinitionError, StateError
from ..model.requirements import Needs
from ..operations.base import BaseOperation, EachOperation, Operation, TridentCollector
from ..tuples import Fields, TridentTuple

Key = Sequence[Any]


class State:
    """One partition of a state. Only `persist` calls the two methods, in the order of txids.

    On replay: the same txid arrives again, whole, even if the first attempt reached `commit`; the stored data must show
    that it did. `beginCommit` opens, `commit` makes the writes durable and may return a receipt (any picklable value;
    the driver's BatchParticipant gets it). txid is None outside a transaction.

    A state that holds something open between the two may define ``rollback(txid)``: it is called if the commit ends by
    an exception. A partition without tuples gets no calls.
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


@dataclass(frozen=True)
class Location:
    """The place of a state's data, which two states of a topology must not share. A factory gives it without opening
    anything (`StateFactory.location`).

    ``stores``: the store's addresses, each in one spelling (absolute files without links, ``host:port/database``,
    brokers); two stores with a common address are one. ``names``: its tables or its topic there. ``shared``: "" if the
    state must be the only writer, because it reads back what it wrote, or its writes depend on existing data; otherwise
    only states with the same ``shared`` may write beside it. ``shown``: the place in messages, without secrets.
    ``within``: the folders that hold it, if it is one.
    """

    stores: frozenset[str]
    names: frozenset[str]
    shared: str = ""
    shown: str = field(default="", compare=False)
    within: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Raise DefinitionError for a text in place of a set: each of its characters would count as an element."""
        for name in ("stores", "names", "within"):
            if isinstance(getattr(self, name), str):
                call = 'Location(frozenset(["host:port/database"]), frozenset(["table"]))'
                raise DefinitionError(f"Location: {name} is one text; it takes a frozenset of texts, as in {call}")

    def meets(self, other: Location) -> bool:
        """Return whether both have a table, a topic or a folder in common; a folder has those inside it."""
        common = self.names & (other.names | other.within) or self.within & other.names
        return bool(self.stores & other.stores and common)

    def admits(self, other: Location) -> bool:
        """Return whether two states may write both places."""
        return not self.meets(other) or (self.shared != "" and self.shared == other.shared)


class Reading(enum.Enum):
    """What a state sees that is made in the driver to answer DRPC requests, beside those that update the data."""

    NOTHING = "nothing: the state only writes, or keeps its data in the object that updates it"
    ANEW = "what was written before it was made, so one is made for each request"
    CURRENT = "what is written at the time of each call, so one serves many requests"


class StateFactory:
    """Makes the State of a partition. A frozen, picklable value that opens nothing itself.

    `makeState` is called once per partition, where its tuples are, also for partitions that never get a tuple. ``conf``
    has topology.name, trident.state.name, trident.generation, trident.lineage, trident.way (see
    `trident_py.engine.program`), and on a cluster trident.run and trident.home; ``metrics`` is an
    IMetricsContext, which takes the state's metrics (`trident_py.metrics`). A factory may also be a BatchParticipant.

    It may define ``requiredNumPartitions``, as in a StateSpec, and ``check_place(place: StatePlace)``, which is called
    when the topology is built and raises DefinitionError where the state cannot work.

    ``location``: where the data is. None: the factory does not say, so the data counts as kept in the state's object,
    unless it ``needs`` the home; on Spark every batch that updates it then runs in the driver process. A topology in
    which two states would update one place is refused (`trident_py.topology.checks`). ``key_fields``: the fields of a
    map's key, if their number is fixed; group fields are matched with several by name. ``state_type``: the class of its
    states, if it is always the same; an updater or query that calls a method it lacks is refused when it is defined.
    ``reading``: what a state that is made in the driver for DRPC requests sees of the data; one that sees nothing
    cannot be asked. ``own_updater``: the updater of a partitionPersist that names none; None: it must name one.
    ``row_fields``: the fields that a tuple must have to be stored as a row (an updater or query may need others:
    `name_fields`). ``refused_calls``: the methods of ``state_type`` that its states refuse, each with the reason.
    ``needs``: what must be there on each machine that runs its tasks; a start on a cluster checks it.
    ``commits_apart``: its commits wait for a server most of the time, and those of several partitions may run in
    threads of one process, beside the commits of other states; each state object is still in one thread at a time.
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
    def row_fields(self) -> Fields:
        return Fields()

    @property
    def refused_calls(self) -> Mapping[str, str]:
        return {}

    @property
    def reading(self) -> Reading:
        return Reading.NOTHING if self.location is None and not self.needs.home else Reading.ANEW

    @property
    def own_updater(self) -> StateUpdater | None:
        return None

    @property
    def needs(self) -> Needs:
        return Needs()

    @property
    def commits_apart(self) -> bool:
        return False

    @abstractmethod
    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> State:
        raise NotImplementedError


def is_current(factory: Any) -> bool:
    """Return whether a state sees at each call what others have written by then."""
    return isinstance(factory, StateFactory) and factory.reading is Reading.CURRENT


@dataclass(frozen=True)
class StatePlace:
    """Where a topology updates a state: its name, partitions and tuple fields, and the stream names of its spouts.

    ``beside``: the spouts whose tuples reach the state in the partition that emitted them. ``queries``: the functions
    that query the state after its update in the same batch, and must see what it has written. ``updater``: the function
    that updates it.
    """

    state: str
    partitions: int
    fields: Fields
    spouts: tuple[str, ...]
    beside: tuple[str, ...]
    queries: tuple[Any, ...] = ()
    updater: Any = None


@dataclass(frozen=True)
class StateSpec:
    """A factory with the number of partitions that it requires (None: the topology decides)."""

    stateFactory: StateFactory
    requiredNumPartitions: int | None = None


class StateUpdater(Operation):
    """`updateState` gets all tuples of one partition of one batch, between beginCommit and commit.

    It emits the new values; operations after it run before `commit`. On replay it runs again. ``calls``: the methods
    that a state must have for it, besides those of `State`. ``groupFields``: the fields of the key under which it keeps
    values. ``calls_only_states``: it runs no code that a topology's author has written, but for the state's.
    """

    calls: ClassVar[tuple[str, ...]] = ()
    groupFields: Fields = Fields()

    @property
    def calls_only_states(self) -> bool:
        return False

    def name_fields(self, factory: StateFactory) -> Fields:
        """Return the fields that the tuples must have to update a state of this factory; none if they are unknown."""
        return Fields()

    @abstractmethod
    def updateState(self, state: Any, tuples: Sequence[TridentTuple], collector: TridentCollector) -> None:
        raise NotImplementedError


class QueryFunction(EachOperation):
    """`batchRetrieve` answers all tuples of a partition at once; `execute` emits the values of one answer.

    `batchRetrieve` must return one answer per tuple. A query sees its own partition of the state, including values that
    are written and not yet committed. ``calls``: the methods that a state must have for it.
    """

    calls: ClassVar[tuple[str, ...]] = ()

    def name_fields(self, factory: StateFactory) -> Fields:
        """Return the fields that the tuples must have to query a state of this factory; none if they are unknown."""
        return Fields()

    @abstractmethod
    def batchRetrieve(self, state: Any, tuples: Sequence[TridentTuple]) -> Sequence[Any]:
        raise NotImplementedError

    @abstractmethod
    def execute(self, tuple: TridentTuple, result: Any, collector: TridentCollector) -> None:
        raise NotImplementedError


class BaseStateUpdater(BaseOperation, StateUpdater): ...


class BaseQueryFunction(BaseOperation, QueryFunction): ...


class ValueUpdater:
    """`update` gets the stored value, or None if there is none, and returns the new one."""

    @abstractmethod
    def update(self, stored: Any) -> Any:
        raise NotImplementedError


class StateType(enum.Enum):
    """The three ways to keep a value: alone, with its txid, or with its txid and the previous value."""

    NON_TRANSACTIONAL = "non-transactional"
    TRANSACTIONAL = "transactional"
    OPAQUE = "opaque"


class ReadOnlyMapState(State):
    """Values by key. A key is a list or tuple of values; 1, 1.0, True, "1" and None are five keys."""

    @abstractmethod
    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        """Return the values in the order of the keys; None for a key without a value."""
        raise NotImplementedError


class MapState(ReadOnlyMapState):
    """The interface that a grouped persistentAggregate needs."""

    @abstractmethod
    def multiUpdate(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater]) -> list[Any]:
        """Update each key once. Returns the new values, in the order of the keys."""
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
    """A state of one value."""

    @abstractmethod
    def get(self) -> Any:
        raise NotImplementedError


class Snapshottable(ReadOnlySnapshottable):
    """The interface that a global persistentAggregate needs."""

    @abstractmethod
    def update(self, updater: ValueUpdater) -> Any:
        """Update the value and return the new one."""
        raise NotImplementedError

    @abstractmethod
    def set(self, value: Any) -> None:
        raise NotImplementedError


class ITupleCollection:
    """A state whose rows can be listed."""

    @abstractmethod
    def getTuples(self) -> Iterator[list[Any]]:
        """Yield one list per row: the values of the key, then the value."""
        raise NotImplementedError


class BackingMap:
    """The store's side of a map, which a store's author writes. The maps of `trident_py.state.maps` add the txid logic.

    `multiGet` answers in the order of the keys, None for an absent key. `multiPut` may get a key twice: the last value
    wins. A commit makes one multiGet of all keys and at most one multiPut.
    """

    @abstractmethod
    def multiGet(self, keys: Sequence[Key]) -> list[Any]:
        raise NotImplementedError

    @abstractmethod
    def multiPut(self, keys: Sequence[Key], vals: Sequence[Any]) -> None:
        raise NotImplementedError


IBackingMap = BackingMap
