"""The updater of all states that keep rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from trident_py.operations.base import TridentCollector
from trident_py.state import SilentCollector, StateUpdater
from trident_py.tuples import TridentTuple


class RowState(Protocol):
    """What `RowUpdater` needs of a state."""

    def insert(self, tuples: Sequence[TridentTuple], tell: bool) -> Sequence[TridentTuple]:
        """Writes the tuples as rows; with ``tell`` returns those that were new, else nothing."""
        ...


class RowUpdater(StateUpdater):
    """Writes each tuple as a row; the fields of the tuple name the columns.

    Runs where the tuples are. With output fields it emits the rows that were new; on replay none are. What a state
    has to report (``reports()``: gaps, conflicts) becomes an event of kind "reported".
    """

    calls = ("insert",)

    def updateState(self, state: Any, tuples: Sequence[TridentTuple], collector: TridentCollector) -> None:
        rows: RowState = state
        for row in rows.insert(tuples, tell=not isinstance(collector, SilentCollector)):
            collector.emit(tuple(row))
        for error in getattr(state, "reports", list)():
            collector.reportError(error)


InsertIgnoreUpdater = RowUpdater
