"""What the functions and methods of a library of ours do to what they are given, derived from its source.

An entry point of the group ``trident_py.libraries`` names a package whose classes hold values of the user's code, as a
HashMap of Java does. It counts once that code has loaded it. `effects` reads each function.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from ...entry_points import find_points
from . import tables
from .atoms import CONTAINERS, attribute_of
from .effects import Effect, FunctionEffects, Surroundings
from .sources import source_of

LIBRARIES = "trident_py.libraries"


def belongs(thing: Any) -> bool:
    """Return whether a class or a function is of a library."""
    return _is_in(attribute_of(thing, "__module__"), _packages())


def effect_of(function: types.FunctionType) -> Effect:
    """Return what a call of a library's function does."""
    return _effects(_roots())[function]


def effect_on(kind: type | None, name: str) -> Effect | None:
    """Return what a method does to an object of this class; None if no library defines it."""
    function = _function(inspect.getattr_static(kind, name, None))
    return effect_of(function) if function is not None and belongs(function) else None


def is_empty(kind: type | None) -> bool:
    """Return whether an object of this class of a library holds nothing."""
    holds = kind is None or issubclass(kind, CONTAINERS) or effect_on(kind, "__init__") is not None
    return not holds and belongs(kind)


def data_methods() -> frozenset[str]:
    """Return the methods that a plain value may have, or an object of a library."""
    return tables.data_methods() | _methods(_roots())


def mutators() -> frozenset[str]:
    """Return the names of the methods that change their object."""
    return tables.MUTATORS | _mutators(_roots())


@functools.cache
def _packages() -> tuple[str, ...]:
    return tuple(point.module for point in find_points(LIBRARIES))


def _roots() -> tuple[str, ...]:
    return tuple(package for package in _packages() if package in sys.modules)


def _is_in(module: Any, packages: tuple[str, ...]) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


def _things(packages: tuple[str, ...]) -> Iterator[Any]:
    """Yield the functions and classes that the packages define, and what their modules import."""
    for name in [name for name in sys.modules if _is_in(name, packages)]:
        yield from vars(sys.modules[name]).values()


@functools.cache
def _kinds(packages: tuple[str, ...]) -> dict[type, None]:
    kinds = (thing for thing in _things(packages) if isinstance(thing, type))
    return dict.fromkeys(kind for kind in kinds if _is_in(kind.__module__, packages))


@functools.cache
def _methods(packages: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name for kind in _kinds(packages) for name in vars(kind) if name[:1] != "_")


def _function(member: Any) -> types.FunctionType | None:
    function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
    return function if isinstance(function, types.FunctionType) else None


def _members(packages: tuple[str, ...]) -> Iterator[tuple[type | None, Any]]:
    """Yield the functions of the packages, and of their classes with these."""
    yield from ((kind, member) for kind in _kinds(packages) for member in vars(kind).values())
    yield from ((None, thing) for thing in _things(packages))


@functools.cache
def _readings(packages: tuple[str, ...]) -> dict[types.FunctionType, tuple[FunctionEffects, type | None]]:
    readings: dict[types.FunctionType, tuple[FunctionEffects, type | None]] = {}
    for kind, member in _members(packages):
        function = _function(member)
        if function is None or function in readings or not _is_in(function.__module__, packages):
            continue
        source = source_of(function)
        if source is not None:
            owned = kind is not None and not isinstance(member, staticmethod)
            readings[function] = FunctionEffects(source.node, owned), kind
    return readings


@functools.cache
def _effects(packages: tuple[str, ...]) -> dict[types.FunctionType, Effect]:
    """Read all functions again until nothing new is found: what one changes, its callers change."""
    readings = _readings(packages)
    effects = {function: Effect() for function in readings}
    while True:
        before, mutators = effects, tables.MUTATORS | _find_mutators(effects)
        effects = {
            function: reading.effect(Surroundings(function.__globals__, _methods_of(kind), before, mutators))
            for function, (reading, kind) in readings.items()
        }
        if effects == before:
            return effects


def _methods_of(kind: type | None) -> Callable[[str], Any]:
    return lambda name: _function(inspect.getattr_static(kind, name, None))


@functools.cache
def _mutators(packages: tuple[str, ...]) -> frozenset[str]:
    return _find_mutators(_effects(packages))


def _find_mutators(effects: dict[types.FunctionType, Effect]) -> frozenset[str]:
    """Return the names of methods that change their object, without those of plain values that do not."""
    names = frozenset(function.__name__ for function, effect in effects.items() if effect.changes_owner)
    return frozenset(name for name in names if name[:1] != "_") - (tables.METHODS - tables.MUTATORS)
