"""The maps of an imported checkpoint: each is filled with Storm's values, or left out by name, before the first start.

The checkpoint keeps where they are, and which are done. A state that was forgotten would look like a new one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from ...checkpoints.batch_log import BatchLog
from ...checkpoints.metadata_store import IMPORTED
from ...engine.hooks import Start, StartInfo
from ...engine.recovery import Agreement
from ...errors import LineageError
from ...model.plan import Plan
from ...state import Location
from ...state.roles import location_of, opens_values

MAPS = "maps"  # the checkpoint's path for the maps that the topology has, by name
DONE = "done"  # for what became of them, by place


class MapPlace(NamedTuple):
    """A map that the topology updates. ``place``: where its values are, in one spelling; ``shown``: in messages."""

    place: str
    shown: str


def maps_of(plan: Plan) -> dict[str, MapPlace]:
    """Return the maps that an import can fill, by the name of the state."""
    return {use.name: map_of(use.factory) for _, use in plan.updates() if opens_values(use.factory)}


def map_of(factory: Any) -> MapPlace:
    """Return where the values of a map are."""
    location = location_of(factory)
    return MapPlace(repr(factory), repr(factory)) if location is None else map_at(location)


def map_at(location: Location) -> MapPlace:
    return MapPlace(json.dumps([sorted(location.stores), sorted(location.names)]), location.shown)


@dataclass(frozen=True)
class ImportedStates:
    """What an imported checkpoint says of its maps. ``done``: the places that are filled, or left out."""

    maps: Mapping[str, MapPlace]
    done: Mapping[str, str]

    @classmethod
    def of(cls, log: BatchLog) -> ImportedStates:
        maps = log.store.get(MAPS, 0) or {}
        return cls({name: MapPlace(*each) for name, each in maps.items()}, log.store.get(DONE, 0) or {})

    def has_map_at(self, place: str) -> bool:
        return any(each.place == place for each in self.maps.values())

    def list_missing(self) -> list[str]:
        """Return the names of the maps that are neither filled nor left out."""
        return [name for name, each in self.maps.items() if each.place not in self.done]

    def describe(self) -> str:
        return ", ".join(f"{name} ({each.shown})" for name, each in self.maps.items()) or "no map"


@contextmanager
def filling(log: BatchLog, place: str) -> Iterator[None]:
    """Note behind the block that the map is filled. Until then it is not, as after an error or a kill: the block is
    repeated. Closes the log."""
    with closing(log):
        if place in ImportedStates.of(log).done:
            log.store.seize(DONE, partial(_change, place, None))
        yield
        log.store.seize(DONE, partial(_change, place, "imported"))


def leave_out(log: BatchLog, place: str) -> None:
    """Note that the map begins as it is. Closes the log."""
    with closing(log):
        log.store.seize(DONE, partial(_change, place, "skipped"))


def _change(place: str, how: str | None, entries: dict[int, Any]) -> tuple[int, Any]:
    others = {other: done for other, done in entries.get(0, {}).items() if other != place}
    return 0, others if how is None else {**others, place: how}


class FilledStart:
    """A start that is refused on an imported checkpoint until each map is filled or left out. Only the first one is:
    after it the states have a ledger. Raises LineageError, before a store is asked."""

    def __init__(self, start: Start, about: StartInfo) -> None:
        self._start, self._about = start, about

    def examine(self) -> Agreement:
        self._check()
        return self._start.examine()

    def open(self) -> tuple[Agreement, dict[str, int]]:
        self._check()
        return self._start.open()

    def _check(self) -> None:
        standing, store = self._about.standing, self._about.store
        if standing.is_new or (standing.record or {}).get("run") or store.get(IMPORTED, 0) is None:
            return
        now = ImportedStates(maps_of(self._about.plan), store.get(DONE, 0) or {})
        if missing := now.list_missing():
            raise LineageError(_explain(missing, now, standing.where, standing.committed))


def _explain(missing: list[str], now: ImportedStates, where: str, txid: int) -> str:
    names = " and ".join(f"state {name!r} ({now.maps[name].shown})" for name in missing)
    which = missing[0] if len(missing) == 1 else "STATE"
    return (
        f"Storm's values are missing in {names}, which would count from zero: the checkpoint {where} continues Storm's "
        f"run after txid {txid}. For each such state, choose: (1) take its values over, trident import state --from "
        f"... --kind ... --into FILE:STATE (or --in-place) --checkpoint {where}; (2) if it is new, or was filled by "
        f"other means, let it begin as it is, trident import skip {which} --checkpoint {where}. Nothing was changed"
    )
