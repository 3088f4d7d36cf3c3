"""Where the tables of a state are, as a value that can be compared with another state's."""

from __future__ import annotations

from collections.abc import Sequence

from trident_py.state import Location

from .dialect import dialect_of
from .store import shown
from .table import Place


def location_of(place: Place, beside: Sequence[str] = (), shared: str = "") -> Location:
    """Opens nothing. ``beside`` are the suffixes of the state's further tables."""
    urls = place.urls()
    names = (place.table, *(f"{place.table}{suffix}" for suffix in beside))
    dialect, where = dialect_of(urls[0]), f"table {place.table!r} in {shown(urls[0])}"
    return Location(frozenset(map(dialect.address, urls)), frozenset(map(dialect.folded, names)), shared, where)
