"""Optional roles of a state, its factory or its backing map, besides their interfaces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeGuard, runtime_checkable

from ..model.requirements import needs_of, role
from ..tuples import Fields
from .base import Key, Location, StatePlace, StateType
from .updates import Combination


@role
@runtime_checkable
class RollsBack(Protocol):
    """A state that holds something open between beginCommit and commit. Called if the commit ended by an error."""

    def rollback(self, txid: int | None) -> None: ...


@role
@runtime_checkable
class Closes(Protocol):
    """A state that is closed when the run ends."""

    def close(self) -> Any: ...


@role
@runtime_checkable
class CombinesInStore(Protocol):
    """A backing map that applies the rules of the map above it in one step, instead of a read and a write.

    It writes every key or nothing. Returns the new values (an empty list if they are not wanted). Returns None, having
    done nothing, if a key would not be written (a replay), and for any update that it cannot do exactly.
    """

    def multiCombine(self, txid: int | None, keys: Sequence[Key], combination: Combination) -> list[Any] | None: ...


@role
@runtime_checkable
class MakesState(Protocol):
    """As a `StateFactory`."""

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any: ...


@role
@runtime_checkable
class SaysLocation(Protocol):
    """A factory that says where the data of its states is, as a `StateFactory` does."""

    @property
    def location(self) -> Location | None: ...


def location_of(factory: Any) -> Location | None:
    """Return where the data is; None if the factory does not say."""
    return factory.location if isinstance(factory, SaysLocation) else None


def is_in_object(factory: Any) -> bool:
    """Return whether the data counts as kept in the states' objects: the factory does not say where else it is."""
    return location_of(factory) is None and not needs_of(factory).home


@role
@runtime_checkable
class EndsWithProcess(Protocol):
    """A factory whose states keep their data in the memory of the driver's process. Topologies that it runs one after
    the other share it."""

    def is_empty(self, conf: dict) -> bool: ...


@role
@runtime_checkable
class ChecksPlace(Protocol):
    """A factory that raises DefinitionError, when the topology is built, if its state cannot work there."""

    def check_place(self, place: StatePlace) -> None: ...


@role
@runtime_checkable
class Remarks(Protocol):
    """A factory whose store sets a condition of its guarantee, which the table of guarantees shows behind the
    reason."""

    @property
    def remark(self) -> str: ...


@role
@runtime_checkable
class Participates(Protocol):
    """A factory whose state has a driver side: a BatchParticipant, or None."""

    def participant(self) -> Any: ...


@role
@runtime_checkable
class Shows(Protocol):
    """A factory that returns what its store holds now."""

    def stored(self) -> Any: ...


class StoredValues(Protocol):
    """The values of a map state as its store keeps them, with their txids, outside of any run: for tools that move
    them. ``key``: the declared fields of a key; None if it is one text; ``value``: those of a value; None if it is one
    of any type. On replay: a put may be repeated."""

    kind: StateType
    key: Fields | None
    value: Fields | None

    def put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        """Write all of them in one transaction; a key that exists gets the new value. No key comes twice."""

    def get(self, keys: Sequence[Key]) -> list[Any]:
        """Return the stored values in the order of the keys; None for a missing one."""

    def holds(self, keys: Sequence[Key], values: Sequence[Any]) -> bool:
        """Return whether the store has just these values. It may compare them itself. Called by another thread than
        ``put``, while that puts other keys."""

    def count(self) -> int:
        """Return how many keys the store has."""

    def rows(self) -> Iterable[tuple[Key, Any]]:
        """Return every key with its stored value."""


@role
@runtime_checkable
class OpensValues(Protocol):
    """A factory that opens the stored values of its map. One that also makes states of another kind, such as rows by
    key, is asked only if its ``kind`` is that of a map (`opens_values`)."""

    @property
    def kind(self) -> Any: ...
    def open_values(self) -> StoredValues: ...


def opens_values(factory: Any) -> TypeGuard[OpensValues]:
    """Return whether tools can open the values of the factory's state, and fill it: it is a map."""
    return isinstance(factory, OpensValues) and factory.kind in {kind.value for kind in StateType}


class StoredRows(NamedTuple):
    """The rows of a state, outside of any run: for tools that compare them. ``key``: the columns of a key, none if rows
    have none; ``columns``: those of a row, with the types that are known; ``txid``: the column of the batch;
    ``rows``: each row, with the txid of its batch if it is ``batched``: if the store knows it without a column."""

    key: Fields
    columns: Fields
    txid: str | None
    rows: Iterable[tuple[int | None, Sequence[Any]]]
    batched: bool = False


@role
@runtime_checkable
class OpensRows(Protocol):
    """A factory that opens the stored rows of its state, and creates nothing."""

    def open_rows(self) -> StoredRows: ...
