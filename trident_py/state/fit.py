"""Whether a state has the interface that its updater or query needs."""

from __future__ import annotations

from typing import Any

from ..errors import DefinitionError, StateError
from ..tuples import Fields
from .base import MapState, QueryFunction, StateFactory, StateUpdater

_NEEDED = {
    "update": "A persistentAggregate without groupBy needs a Snapshottable, such as {wrapped}",
    "multiUpdate": "A persistentAggregate after groupBy needs a MapState, such as OpaqueMap.build(backing map)",
    "multiGet": "MapGet needs a ReadOnlyMapState, which has multiGet()",
    "get": "SnapshotGet needs a ReadOnlySnapshottable, such as {wrapped}",
    "getTuples": "TupleCollectionGet needs an ITupleCollection, which has getTuples()",
}


def next_step(call: str, kind: type) -> str:
    """Return which interface has the method, and a state that has it. ``kind``: the class that lacks it."""
    is_map = issubclass(kind, MapState)
    built = f"{kind.__name__}.build(...)" if is_map else "OpaqueMap.build(...)"
    needed = _NEEDED.get(call, "Use a state that has it").format(
        wrapped=f"SnapshottableMap({built}, Values('$GLOBAL$'))"
    )
    if is_map or call not in ("update", "multiUpdate"):
        return needed
    return f"{needed}; rows are written by partitionPersist with an updater, such as states.RowUpdater()"


def refuse_global(where: str, key: Fields | None) -> dict[str, str]:
    """Return the calls that the states of a map with key fields refuse, each with the reason; without, none."""
    if key is None:
        return {}
    why = f"{where} has the key {key}; a global aggregate needs key=None"
    return dict.fromkeys(("get", "update", "set"), why)


def check_call(factory: StateFactory, call: str) -> None:
    """Raise DefinitionError if the factory's states refuse the call. An updater that does not say what it `calls`
    comes here."""
    if call in factory.refused_calls:
        raise DefinitionError(factory.refused_calls[call])


def check_state(state: Any, user: StateUpdater | QueryFunction) -> None:
    """Raise StateError if the updater or query (``user``) calls a method that the state lacks. The state may be of any
    class that has the methods."""
    for call in user.calls:
        if not callable(getattr(state, call, None)):
            kind = type(state)
            raise StateError(
                f"{type(user).__name__} does not fit a state of class {kind.__name__}, which has no {call}(). "
                f"{next_step(call, kind)}"
            )
