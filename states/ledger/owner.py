"""The owner of a table or topic: one state of one topology, noted in the store before its first batch is written."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from trident_py.errors import StateError
from trident_py.model.context import RunContext
from trident_py.model.names import join_names
from trident_py.state import Location

REPLACE = "topology.owner.replace"


class Owner(NamedTuple):
    """The note. ``shared`` as in `Location`; if it is not "", this is the first of several owners."""

    topology: str
    state: str
    shared: str = ""

    @property
    def name(self) -> str:
        """The owner's name in the setting ``topology.owner.replace``."""
        return join_names("/", [self.topology, self.state])


@dataclass(frozen=True)
class Tenure:
    """A place, the state that is about to update it, and the owners that the user allows to replace."""

    location: Location
    own: Owner
    replaced: tuple[str, ...] = ()
    by_line: bool = False

    @classmethod
    def of(cls, location: Location, conf: dict) -> Tenure:
        """Build from the conf of a participant."""
        context = RunContext.of(conf)
        own = Owner(context.topology, context.state, location.shared)
        return cls(location, own, _read_replaced(conf), context.command_line)

    def stays(self, owner: Owner | None) -> bool:
        """Return whether the note stays as it is; False if it must be written. Raises StateError if another state owns
        the place."""
        if owner is None or owner == self.own:
            return owner is not None
        if owner.shared and owner.shared == self.own.shared:
            return True
        if owner[:2] == self.own[:2] or owner.name in self.replaced:
            return False
        raise StateError(
            f"{self.location.shown} is updated by state {owner.state!r} of topology {owner.topology!r}. State "
            f"{self.own.state!r} of topology {self.own.topology!r} would mistake the other state's writes for its own, "
            "and tuples would be lost or counted twice; another name does not help. Nothing was changed. Let one state "
            "update it: merge the streams before that state. Or give this state its own table or topic; to query the "
            "other one, use newStaticState. If the other state was renamed or will never run again, stop it and start "
            f"with {self._format_setting(owner.name)}"
        )

    def _format_setting(self, name: str) -> str:
        """Return the setting to type; it keeps the owners already replaced, since a topology may have several such
        states."""
        names = [*self.replaced, name]
        value = name if len(names) == 1 else names
        if not self.by_line:
            return f'conf["{REPLACE}"] = {value!r}'
        return "--set " + shlex.quote(f"{REPLACE}={value if isinstance(value, str) else json.dumps(value)}")


def _read_replaced(conf: Mapping[str, Any]) -> tuple[str, ...]:
    names = conf.get(REPLACE) or ()
    return (names,) if isinstance(names, str) else tuple(names)
