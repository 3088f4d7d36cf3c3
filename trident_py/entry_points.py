"""Extras, found by entry point: in ``trident_py/extras`` or another package. No core imports one.

An entry point of the group ``trident_py.extras`` refers to the module of an extra; the core calls it under its name.
One of the group ``trident_py.commands`` refers to a click command. An extra that pip installs libraries for is named
behind it: ``events = trident_py.extras.gateway.cli:events [events]``.

Our own are in ``entry_points.txt``, which setup.cfg names. They are read there, and not from what pip has written of an
installation: modules that Spark sends (``--py-files``) have no metadata.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.metadata import (
    Distribution,
    EntryPoint,
    PackageMetadata,
    PackageNotFoundError,
    distribution,
    entry_points,
)
from types import MappingProxyType
from typing import Any

from .errors import DefinitionError, explain_missing, explain_missing_extra

NAME = "trident-py"
EXTRAS, COMMANDS = "trident_py.extras", "trident_py.commands"


def names(group: str) -> list[str]:
    """Return the names of a group, sorted. Loads none of them."""
    return sorted(_points(group))


def load(what: str, name: str, group: str = EXTRAS) -> Any:
    """Return what the entry point refers to. Raises DefinitionError, which says what is missing; ``what``: who needs
    it."""
    point = _points(group).get(name)
    if point is None:
        raise DefinitionError(explain_missing_extra(what, name))
    try:
        return point.load()
    except ModuleNotFoundError as error:
        if is_absent(point, error.name):
            raise DefinitionError(explain_missing_extra(what, point.module)) from None
        if (error.name or "").startswith(("trident_py.", "states.")):
            raise
        raise DefinitionError(explain_missing(what, error.name, *point.extras)) from None


def is_absent(point: EntryPoint, missing: str | None) -> bool:
    """Return whether the missing module is that of an entry point, or its package, and nothing that it imports."""
    return f"{point.module}.".startswith(f"{missing}.")


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


def absent(module: str, name: str) -> Exception:
    """Return the error for a name that a module has not."""
    extra = find("storm_names") if name[:1].isupper() else None  # a class, no module that is only now imported
    instead = extra.describe(module, name) if extra is not None else None
    if instead is None:
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    # An AttributeError's text would be lost in `from module import name`. So `hasattr` raises, too.
    return ImportError(instead, name=name)


def answer(
    module: str, later: Mapping[str, str | Callable[[str], Any]] = MappingProxyType({})
) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module from which ported code imports.

    ``later``: names that are loaded when they are asked for, and the modules below it that have them, or who returns
    them by name.
    """

    def answer_for(name: str) -> Any:
        if name not in later:
            raise absent(module, name)
        source = later[name]
        return vars(importlib.import_module(f".{source}", module))[name] if isinstance(source, str) else source(name)

    return answer_for


def find_points(group: str) -> list[EntryPoint]:
    """Return the entry points of a group: our own, and those of other packages."""
    others = [point for point in entry_points(group=group) if point.dist is None or point.dist.name != NAME]
    return [*_Own().entry_points.select(group=group), *others]


@functools.cache
def _points(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in find_points(group)}


class _Own(Distribution):
    """This package, which may be installed or not."""

    @functools.cached_property
    def metadata(self) -> PackageMetadata:
        return super().metadata

    def read_text(self, filename: str) -> str | None:
        if filename == "entry_points.txt":
            with suppress(OSError):  # who packs modules alone has no extras
                return (pkgutil.get_data(__package__, filename) or b"").decode()
            return ""
        try:
            return distribution(NAME).read_text(filename)
        except PackageNotFoundError:
            return f"Name: {NAME}\nVersion: ?\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        raise NotImplementedError("the modules may be in an archive")
