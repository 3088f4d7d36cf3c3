"""How the partitions of a state share the rows of one table when a query asks each of them for its own."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from trident_py.errors import DefinitionError
from trident_py.state import StatePlace
from trident_py.state.queries import TupleCollectionGet


def shared(rows: Iterable[tuple[Sequence[Any], Any]], partition: int, of: int) -> Iterator[tuple[Sequence[Any], Any]]:
    """The (key, value) rows of this partition of so many: each row belongs to exactly one.

    So a tuple that is broadcast to all partitions sees every row once, as in Storm, where each partition holds
    its own rows. The owner is a function of the key alone.
    """
    for key, value in rows:
        if of == 1 or zlib.crc32(repr(tuple(key)).encode("utf-8", "surrogatepass")) % of == partition:
            yield key, value


def check_asked_behind(place: StatePlace, where: str) -> None:
    """Refuses what cannot see all that its batch has written: the list of all rows while several partitions write.

    To be called when a topology is built. Raises DefinitionError.
    """
    lists = any(isinstance(query, TupleCollectionGet) for query in place.queries)
    if lists and place.partitions > 1:
        raise DefinitionError(
            f"{where}: TupleCollectionGet stands behind the update of state {place.state!r} in the same batch, and "
            f"{place.partitions} partitions write its rows: it would show those that the others have committed so far. "
            "Give the state one partition (parallelismHint(1)), ask by key (MapGet), or ask in a stream of its own "
            "(newStaticState)"
        )
