"""Extras, found by entry point: what is in ``trident_py/extras``, or in another package. The core imports none of them.

An entry point of the group ``trident_py.extras`` refers to the module of an extra; the core calls it under its name.
One of the group ``trident_py.commands`` refers to a click command. An extra that pip installs libraries for is named
behind it: ``events = trident_py.extras.gateway.cli:events [events]``.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from .errors import DefinitionError, missing, missing_extra
from .model.replaced import absent

EXTRAS, COMMANDS = "trident_py.extras", "trident_py.commands"


def names(group: str) -> list[str]:
    """Return the names of a group, sorted. Loads none of them."""
    return sorted(_points(group))


def load(what: str, name: str, group: str = EXTRAS) -> Any:
    """Return what the entry point refers to. Raises DefinitionError, which says what is missing; ``what``: who needs
    it."""
    point = _points(group).get(name)
    if point is None:
        raise DefinitionError(missing_extra(what, name))
    try:
        return point.load()
    except ModuleNotFoundError as error:
        if f"{point.module}.".startswith(f"{error.name}."):
            raise DefinitionError(missing_extra(what, point.module)) from None
        if (error.name or "").startswith("trident_py."):
            raise
        raise DefinitionError(missing(what, error.name, *point.extras)) from None


def find(name: str) -> Any:
    """Return the module of an extra, or None if there is no such extra. Raises DefinitionError if a library is
    missing."""
    return load(name, name) if name in _points(EXTRAS) else None


def names_of(module: str, extra: str, part: str | None = None) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module whose public names are those of an extra, or of a module in it,
    ``part``."""

    def name_of(name: str) -> Any:
        if name.startswith("__"):
            raise absent(module, name)
        found = load(module, extra)
        if part is not None:
            found = importlib.import_module(f"{found.__name__}.{part}")
        return getattr(found, name)  # no probe: what is missing is raised

    return name_of


@functools.cache
def _points(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}
