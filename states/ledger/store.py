"""What the protocol needs of a store. A store knows its tables, keys or files, and no rule."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple

from .fence import LedgerRow, Row
from .owner import Owner


class Trace(NamedTuple):
    """What a store has recorded of a state. ``written``: the highest txid that is complete or has left data; ``last``:
    the same, or begun."""

    row: LedgerRow | None = None
    written: int = 0
    last: int = 0


class Transition(NamedTuple):
    """What a change of the row is for. ``doing``: the words of an error. ``begins``: an attempt begins, so marks of
    earlier ones no longer count. ``forgets``: all marks are those of another checkpoint. ``receipts`` and ``attempt``:
    the partitions whose marks must be there; None if none must. ``back``: the batch whose later ones are undone."""

    doing: str
    begins: bool = False
    forgets: bool = False
    attempt: int = 0
    receipts: Sequence[Any] | None = None
    back: int | None = None


class LedgerStore(ABC, Generic[Row]):
    """Where the ledger of one state is: a row, a mark for each partition that has committed, and the owners of the
    tables or topics. Raises FailedException if the store is away, StateError if it is damaged."""

    @abstractmethod
    def read(self) -> Row | None:
        """Return the row; None if there is none."""

    @abstractmethod
    def change(self, old: Row | None, new: Row, step: Transition) -> bool:
        """Replace the row by ``new`` if it is still ``old`` and has the marks that the step asks for, and delete the
        marks that no longer count, all in one step. Return whether it was done; False also if it is unknown."""

    @abstractmethod
    def trace(self) -> Trace:
        """Return what is there before a start. Creates nothing."""

    @abstractmethod
    def owners(self) -> Mapping[str, Owner | None]:
        """Return the owner of each table or topic, in the order in which they are claimed. Creates nothing."""

    @abstractmethod
    def claim(self, name: str, old: Owner | None, new: Owner) -> bool:
        """Note the owner if the note is still ``old``, and raise the generation of another state that it replaces, in
        one step. Return whether it was done."""


def utc_now(timespec: str = "seconds") -> str:
    """Return the time of a change, as people read it in a ledger."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec=timespec)
