"""Whose a table or topic is: one state of one topology, noted in the store itself before its first batch is written.

A state that reads back what it wrote takes the txids and values of another one for its own. So what `build()` cannot
see, two topologies or two spellings of one place, is refused at the start; and of two that start at once on a new place
the first to note itself goes on.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from trident_py.context import RunContext
from trident_py.errors import StateError
from trident_py.names import joined
from trident_py.state import Location

REPLACE = "topology.owner.replace"


class Owner(NamedTuple):
    """What is noted; ``shared`` as in `Location`: then it is the first of several."""

    topology: str
    state: str
    shared: str = ""

    @property
    def name(self) -> str:
        """What the setting says to replace it."""
        return joined("/", [self.topology, self.state])


@dataclass(frozen=True)
class Tenure:
    """A place, who comes to update it, and the owners whom the user says to replace."""

    location: Location
    own: Owner
    replaced: tuple[str, ...] = ()
    by_line: bool = False

    @classmethod
    def of(cls, location: Location, conf: dict) -> Tenure:
        """``conf`` as a participant gets it."""
        context = RunContext.of(conf)
        own = Owner(context.topology, context.state, location.shared)
        return cls(location, own, _replaced(conf), context.command_line)

    def stays(self, found: Owner | None) -> bool:
        """Whether the note may stay as it is, or is to be written. Raises StateError if the place is another one's."""
        if found is None or found == self.own:
            return found is not None
        if found.shared and found.shared == self.own.shared:
            return True
        if found[:2] == self.own[:2] or found.name in self.replaced:
            return False
        raise StateError(
            f"{self.location.shown} is updated by state {found.state!r} of topology {found.topology!r}. State "
            f"{self.own.state!r} of topology {self.own.topology!r} would take what that one writes for its own, and "
            "tuples would be lost or counted twice; another name does not help. Nothing was changed. Let one state "
            "update it: merge the streams before it. Or give this one a table or topic of its own; to ask that one, "
            "use newStaticState. If the other one has another name now or will never run again, stop it and start with "
            f"{self._setting(found.name)}"
        )

    def _setting(self, name: str) -> str:
        """What to type: with the owners that are replaced already, for a topology may have several such states."""
        names = [*self.replaced, name]
        value = name if len(names) == 1 else names
        if not self.by_line:
            return f'conf["{REPLACE}"] = {value!r}'
        return "--set " + shlex.quote(f"{REPLACE}={value if isinstance(value, str) else json.dumps(value)}")


def _replaced(conf: Mapping[str, Any]) -> tuple[str, ...]:
    told = conf.get(REPLACE) or ()
    return (told,) if isinstance(told, str) else tuple(told)
