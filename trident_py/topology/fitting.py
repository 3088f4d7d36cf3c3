"""Checks by class whether a state fits its updater and its queries."""

from __future__ import annotations

from typing import Any

from ..errors import DefinitionError
from ..state import StateFactory, StateSpec, StateUpdater
from ..state.base import QueryFunction
from ..tuples import Fields
from .arguments import check_object


def own_updater(factory: Any) -> StateUpdater:
    """The factory's own updater. Raises DefinitionError if it has none."""
    factory = check_object("a state", _bare(factory), StateFactory)
    updater = factory.own_updater if isinstance(factory, StateFactory) else None
    if updater is None:
        raise DefinitionError(
            f"partitionPersist got no updater, and {factory!r} has none of its own: pass one, as in "
            "partitionPersist(factory, fields, updater). A map state is updated by persistentAggregate"
        )
    return updater


def check_fits(factory: Any, user: Any) -> None:
    """Raises DefinitionError if the updater or query (``user``) calls a method that the factory's states lack."""
    factory = _bare(factory)
    if not isinstance(factory, StateFactory) or not isinstance(user, StateUpdater | QueryFunction):
        return
    kind = factory.state_type
    missing = [] if kind is None else [name for name in user.calls if name not in dir(kind)]
    if missing and kind is not None:
        raise DefinitionError(
            f"{type(user).__name__} does not fit {factory!r}: it calls {missing[0]}(), which {kind.__name__} does not "
            f"have. {_next_step(missing[0])}"
        )


def _bare(factory: Any) -> Any:
    return factory.stateFactory if isinstance(factory, StateSpec) else factory


def _next_step(call: str) -> str:
    if call == "insert":
        return "A map is updated by persistentAggregate, rows by states.RowUpdater()"
    if call in ("multiUpdate", "update"):
        return "persistentAggregate needs a map state; rows are written by partitionPersist with states.RowUpdater()"
    return "Ask a state that can answer, such as a map state for MapGet"


def keys_of(factory: Any, group: Fields) -> Fields:
    """The group fields in the order of the state's key, matched by name. A key of one field may have any name.

    Raises DefinitionError if the state's key has other fields.
    """
    factory = _bare(factory)
    wanted = factory.key_fields if isinstance(factory, StateFactory) else None
    if wanted is None or (len(wanted) == 1 and len(group) == 1):
        return group
    if set(wanted) != set(group):
        raise DefinitionError(
            f"the stream is grouped by {group}, but the key of {factory!r} is {wanted}: they are matched by name. "
            "Group by the fields of the key, or name the key by the fields of the group"
        )
    return group.only(wanted)
