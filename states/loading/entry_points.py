"""The installed state types: entry points of the group ``trident_py.states``."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any

from trident_py.entry_points import find_points

from .settings import StateSettings

GROUP = "trident_py.states"


@dataclass(frozen=True)
class Installed:
    """One type: its name, its package, and its settings or the reason why it cannot be used."""

    name: str
    package: str
    settings: type[StateSettings] | None
    problem: str | None = None

    @property
    def summary(self) -> str:
        """The first line of the settings' docstring."""
        text = (self.settings.__doc__ or "").strip() if self.settings is not None else ""
        return text.splitlines()[0] if text else ""


def find_types() -> dict[str, Installed]:
    """Return all types by name. ``problem`` tells why a type cannot be loaded, or that two have the same name."""
    points: dict[str, list[EntryPoint]] = {}
    for point in find_points(GROUP):
        points.setdefault(point.name, []).append(point)
    return {name: _type_of(name, points[name]) for name in sorted(points)}


def _type_of(name: str, points: list[EntryPoint]) -> Installed:
    packages = " and ".join(sorted({_package(point) for point in points}))
    if len({point.value for point in points}) > 1:
        return Installed(name, packages, None, f"the packages {packages} both define a type of this name")
    try:
        target: Any = points[0].load()
    except Exception as error:  # a third-party package may raise anything when imported
        return Installed(name, packages, None, f"{points[0].value} cannot be loaded: {type(error).__name__}: {error}")
    if not (isinstance(target, type) and issubclass(target, StateSettings)):
        return Installed(name, packages, None, f"{points[0].value} is not a subclass of states.loading.StateSettings")
    return Installed(name, packages, target)


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "?"
