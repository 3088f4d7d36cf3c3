"""Leaves choices out that lead to the same as others, so that two faults end. What is left out is at a point:

- a request that arrives, or a place that goes back, if it could have done so at an earlier point of the driver, and
  nothing has asked that place since. What a reader would see meanwhile is judged here;
- a request that arrives and changes nothing: it may as well still be under way;
- `lost`, where `late` may arrive at the next point; and `power`, where the log has nothing that is only noted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .world import Option, Request, World

ASKED = {"log": "log back", "log read": "log back"}
OF_STORES = ("deliver", "back")


class Reduction:
    """``offered``: what was offered since somebody has asked its place, by a key that stays while the world goes on."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.offered: dict[tuple[str, int], str] = {}

    def ask(self, place: str) -> None:
        """Called when a place is asked, and answers as usual."""
        kinds = (ASKED[place],) if place in ASKED else OF_STORES
        self.offered = {key: kind for key, kind in self.offered.items() if kind not in kinds}

    def turn(self) -> None:
        """Called when something else happens."""
        self.offered = {}

    def choose_from(self, place: str, options: list[Option]) -> list[Option]:
        return [option for option in options if self._is_new(place, *option)]

    def _is_new(self, place: str, kind: str, number: int) -> bool:
        world = self.world
        if kind == "lost":
            return not world.bounds.kinds >= {"late", "deliver"}
        if kind == "power":
            return place == "log" or world.log.durable != world.log.content
        if kind not in ("deliver", "back", "log back"):
            return True
        key = (kind, id(world.late[number])) if kind == "deliver" else (kind, number)
        again = key in self.offered
        self.offered[key] = kind
        if kind == "deliver":
            return self._is_felt(world.late[number], again)
        return not again

    def _is_felt(self, request: Request, again: bool) -> bool:
        """Return whether a request would change something that is new, or that no reader may see."""
        world = self.world
        before = [store.content for store in world.stores]

        def arrive() -> bool:
            try:
                request.act()
            except Exception:
                return False
            changed = [store.content for store in world.stores] != before
            return changed and (not again or world.breaks(request))

        return undone(world, arrive)


def undone(world: World, act: Callable[[], Any]) -> Any:
    """Return what is returned by an act on the stores and what the specification has seen, and undo it."""
    stores = [(store, dict(vars(store)), list(store.history)) for store in world.stores]
    memory = {key: set(value) if isinstance(value, set) else value for key, value in world.memory.items()}
    try:
        return act()
    finally:
        for store, fields, history in stores:
            vars(store).update(fields, history=history)
        world.memory = memory
