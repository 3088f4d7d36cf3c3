"""Shared by all row states: the updater, and the division of stored rows among the partitions of a query."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from trident_py.errors import DefinitionError
from trident_py.model.requirements import role
from trident_py.operations.base import TridentCollector
from trident_py.state import SilentCollector, StateFactory, StatePlace, StateUpdater
from trident_py.state.updaters import TupleCollectionGet
from trident_py.tuples import Fields, TridentTuple


@role
@runtime_checkable
class Reports(Protocol):
    """A row state that has found problems in its batch, such as gaps, which do not fail it."""

    def reports(self) -> Sequence[Exception]: ...


class RowUpdater(StateUpdater):
    """Writes each tuple as a row, by the state's ``insert(tuples, tell)``; the fields of the tuple name the columns.

    Runs in the task that has the tuples. With output fields, it emits the rows that the state returns as new; on a
    replay, rows that the state recognizes as stored are not. What a state `Reports` becomes events of kind "reported".
    """

    calls = ("insert",)

    @property
    def calls_only_states(self) -> bool:
        return type(self) is RowUpdater

    def name_fields(self, factory: StateFactory) -> Fields:
        return factory.row_fields if self.calls_only_states else Fields()

    def updateState(self, state: Any, tuples: Sequence[TridentTuple], collector: TridentCollector) -> None:
        for row in state.insert(tuples, tell=not isinstance(collector, SilentCollector)):
            collector.emit(tuple(row))
        for error in state.reports() if isinstance(state, Reports) else ():
            collector.reportError(error)


InsertIgnoreUpdater = RowUpdater


def share_rows(
    rows: Iterable[tuple[Sequence[Any], Any]], partition: int, of: int
) -> Iterator[tuple[Sequence[Any], Any]]:
    """Yield the (key, value) rows of this partition out of ``of``; each row belongs to exactly one partition.

    So a tuple broadcast to all partitions sees every row once, as in Storm, where each partition holds its own rows.
    The partition depends only on the key.
    """
    for key, value in rows:
        if of == 1 or zlib.crc32(repr(tuple(key)).encode("utf-8", "surrogatepass")) % of == partition:
            yield key, value


def check_asked_behind(place: StatePlace, where: str) -> None:
    """Raise DefinitionError for a query that lists all rows of its own batch while several partitions write them.

    Called when a topology is built. Such a query could not see all that its batch has written.
    """
    lists = any(isinstance(query, TupleCollectionGet) for query in place.queries)
    if lists and place.partitions > 1:
        raise DefinitionError(
            f"{where}: TupleCollectionGet follows the update of state {place.state!r} in the same batch, and "
            f"{place.partitions} partitions write its rows: the query would miss rows that other partitions have not "
            "committed yet. Give the state one partition (parallelismHint(1)), query it by key (MapGet), or query it "
            "in a separate stream (newStaticState)"
        )
