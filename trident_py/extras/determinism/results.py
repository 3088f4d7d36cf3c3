"""What a call of a library's function, or of a method of a plain value, returns, and which arguments it changes."""

from __future__ import annotations

import contextlib
import inspect
import types
from typing import Any

import numpy as np

from . import libraries, tables
from .atoms import (
    CONTAINERS,
    FRESH,
    NOTHING,
    PLAIN,
    SET,
    Args,
    Argument,
    Atom,
    Bound,
    Data,
    KnownObject,
    Local,
    NewObject,
    Value,
    container,
    inside,
    is_unordered,
    kind_of,
    mark,
    outlives,
    pair,
    union,
)
from .sources import is_users


def result_of_method(owner: Atom, name: str, args: Args) -> Value:
    """Return the result of a method of a plain value or a library's object."""
    if name in tables.SETS:
        return SET
    if name == "copy":
        return SET if is_unordered(owner) else mark(FRESH, holds=_parts(owner))
    if name in ("keys", "items", "values"):
        within = {"items": pair(inside(owner)), "values": inside(owner)}.get(name, NOTHING)
        return mark(container(within), view=name != "values")
    if name in ("get", "pop", "setdefault", "popitem", "popleft"):
        return inside(owner) | (union(args.values) if name in ("get", "setdefault", "pop") else NOTHING)
    if tables.keeps_naive(owner, name, args):
        return frozenset([Data(naive=True)])
    callables = passes_callables(args) or (isinstance(owner, Data) and owner.callables)
    view = name in tables.VIEWS and outlives(owner)
    part = outlives(owner) and isinstance(owner, Data) and owner.inner  # the result may be a part of the owner
    return frozenset([Data(callables=callables, held=part or view, container=view)])


def find_parts(name: str, args: Args) -> Value:
    """Return what a library's function hands on of the contents of its arguments, if that outlives the call."""
    parts = union(_parts(atom) for atom in union(args.values))
    if name == "builtins.dict":
        parts |= frozenset(filter(leads_out, union(value for _, value in args.keywords)))
    return container(parts) if name in tables.PAIRS and parts else parts if name in tables.HANDS_ON else NOTHING


def find_first(args: Args) -> Value:
    """Return what `reduce` gives its function first."""
    first = union([*args.positional[2:], *(value for name, value in args.keywords if name == "initial")])
    return first or union(map(inside, union(args.positional[1:2])))


def find_outputs(thing: Any, args: Args) -> Value:
    """Return what a function of NumPy puts its result into, if that is given by its position."""
    if isinstance(thing, np.ufunc):
        return union(args.positional[thing.nin :])
    with contextlib.suppress(TypeError, ValueError):
        at = list(inspect.signature(thing).parameters).index("out")
        return union(args.positional[at : at + 1])
    return NOTHING


def _parts(owner: Atom) -> Value:
    """Return the contents of a container that outlive the call."""
    kind = kind_of(owner)
    return frozenset(filter(leads_out, inside(owner))) if kind is None or issubclass(kind, CONTAINERS) else NOTHING


def leads_out(atom: Atom) -> bool:
    """Return whether a change of its contents is visible in the next call."""
    if isinstance(atom, NewObject) and not atom.held:
        return any(map(leads_out, union(atom.attributes.values())))
    function = isinstance(atom, KnownObject) and callable(atom.value)
    return outlives(atom) and not function and not libraries.is_empty(kind_of(atom))


def shows_address(atom: Atom) -> bool:
    """Return whether the object's text shows its memory address."""
    if isinstance(atom, Bound | Local) or (isinstance(atom, Data) and atom.iterator):
        return True
    if isinstance(atom, KnownObject) and isinstance(atom.value, types.FunctionType | types.MethodType):
        return True
    kind = kind_of(atom)
    if kind is None or not (kind is object or is_users(kind)):
        return False
    return kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__


def is_module(atom: Atom) -> bool:
    return isinstance(atom, KnownObject) and isinstance(atom.value, types.ModuleType)


def passes_callables(args: Args) -> bool:
    atoms = [atom for value in args.values for atom in value]
    return any(atom.callables if isinstance(atom, Data) else not isinstance(atom, Argument) for atom in atoms)


def result_of(name: str, args: Args) -> Value:
    """Return the result of a library's function."""
    first = args.positional[0] if args.positional else NOTHING
    if name in tables.SCALARS:
        return PLAIN
    if name in tables.COPIES and any(map(is_unordered, first)):
        return SET
    if tables.makes_naive(name, args):
        return frozenset([Data(naive=True)])
    if name == "builtins.iter":
        held = find_parts(name, args)
        return frozenset([Data(iterator=True, callables=passes_callables(args), holds=held)])
    if name in ("builtins.next", "builtins.min", "builtins.max", "builtins.anext", "operator.getitem"):
        return union(map(inside, first)) | union(args.positional[1:]) | PLAIN
    returns_callables = name.partition(".")[0] in ("functools", "operator", "itertools", "types", "numpy")
    # The user's objects that pass through a function such as `sorted`.
    atoms = union(args.values)
    holds = union(atom.holds for atom in atoms if isinstance(atom, Data)) | frozenset(
        atom for atom in atoms if isinstance(atom, NewObject)
    )
    if name in ("contextlib.nullcontext", "contextlib.closing"):
        return frozenset([Data(iterator=True, holds=frozenset(filter(leads_out, atoms)))])
    view = name.removeprefix("numpy.") in tables.VIEWS and any(map(outlives, atoms))
    view |= name in tables.FOLDS and any(map(leads_out, find_first(args)))
    holds |= find_parts(name, args)
    callables = returns_callables or passes_callables(args)
    return frozenset([Data(container=True, callables=callables, holds=holds, held=view)])
