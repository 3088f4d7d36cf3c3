"""What a state, its factory or its backing map may have besides the interface.

The protocols hold at run time: an object plays the role if it has the method, whatever it inherits from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from .base import Key, StatePlace
from .updates import Combination


@runtime_checkable
class RollsBack(Protocol):
    """A state that holds something open between beginCommit and commit: called when the commit ended by an error."""

    def rollback(self, txid: int | None) -> None: ...


@runtime_checkable
class Closes(Protocol):
    """A state that is closed when the run ends."""

    def close(self) -> Any: ...


@runtime_checkable
class CombinesInStore(Protocol):
    """A backing map that keeps the rules of the map above it, in one step instead of reading and writing.

    Every key is written, or nothing is done. It answers with the values that hold afterwards (an empty list if nobody
    wants them), or with None and nothing done: where a key is not written (a replay), and for whatever it cannot do
    exactly.
    """

    def multiCombine(self, txid: int | None, keys: Sequence[Key], combination: Combination) -> list[Any] | None: ...


@runtime_checkable
class MakesState(Protocol):
    """As a `StateFactory`."""

    def makeState(self, conf: dict, metrics: Any, partitionIndex: int, numPartitions: int) -> Any: ...


@runtime_checkable
class ChecksPlace(Protocol):
    """A factory that raises DefinitionError, when the topology is built, where its state cannot work."""

    def check_place(self, place: StatePlace) -> None: ...


@runtime_checkable
class Participates(Protocol):
    """A factory whose state has a side on the driver: a BatchParticipant, or None for none."""

    def participant(self) -> Any: ...


@runtime_checkable
class Shows(Protocol):
    """A factory that tells what its store holds now."""

    def stored(self) -> Any: ...
