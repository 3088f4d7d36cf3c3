"""The states of a topology file: by name, as a states file has them, or as objects."""

from __future__ import annotations

from typing import Any

from ...topology.user_modules import states_loading
from .locations import Located, Told
from .objects import Objects
from .sections import unknown


class States:
    """The factories by name. All are made when the object is: every problem is in the documents then."""

    def __init__(self, places: dict[str, Located], components: dict[str, Located]) -> None:
        self._places = places
        self._types = states_loading().find_types()
        self._under_way: list[str] = []
        self.objects = Objects(components, self.factory)
        self.factories: dict[str, Any] = {}
        for name, place in places.items():
            try:
                self._find(name, place)
            except Told:
                continue

    def factory(self, place: Located) -> Any:
        """Return the factory of a name, of settings as in a states file, or of an object. Raises Told."""
        if not is_name(place.value):
            return self._make(place)
        name = place.value
        if name not in self._places:
            raise unknown(place, self._places, "state")
        if name in self._under_way:
            raise place.refuse(f"the states refer to each other in a circle: {' -> '.join([*self._under_way, name])}")
        return self._find(name, self._places[name])

    def _find(self, name: str, place: Located) -> Any:
        if name not in self.factories:
            if place.document.wrong(place.where):
                raise Told(name)
            self._under_way.append(name)
            try:
                self.factories[name] = self._make(place)
            finally:
                self._under_way.pop()
        return self.factories[name]

    def _make(self, place: Located) -> Any:
        if place.is_object:
            return self.objects.make(place)
        state = states_loading().define(place.document, place.where, place.value, self._types)
        if state is None:
            raise Told(place.named)
        return state.factory


def is_name(value: Any) -> bool:
    """Return whether it is written as the name of a state; else it is an import path, or says what the state is."""
    return isinstance(value, str) and ":" not in value
