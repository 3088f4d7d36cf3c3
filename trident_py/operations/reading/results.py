"""The results of library calls, and the properties of their arguments that matter."""

from __future__ import annotations

import types
from collections.abc import Iterable

from . import machine, tables
from .atoms import (
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
    Made,
    Value,
    inside,
    unordered,
)
from .sources import is_users


def by_address(atom: Atom) -> bool:
    """Whether the object's text shows its memory address."""
    if isinstance(atom, Bound | Local) or (isinstance(atom, Data) and atom.iterator):
        return True
    if isinstance(atom, KnownObject) and isinstance(atom.value, types.FunctionType | types.MethodType):
        return True
    kind = atom.kind if isinstance(atom, Made) else type(atom.value) if isinstance(atom, KnownObject) else None
    if kind is object:
        return True
    return kind is not None and is_users(kind) and kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__


def is_module(atom: Atom) -> bool:
    return isinstance(atom, KnownObject) and isinstance(atom.value, types.ModuleType)


def hands_callables(args: Args) -> bool:
    handed = [each for value in args.values for each in value]
    return any(each.callables if isinstance(each, Data) else not isinstance(each, Argument) for each in handed)


def result(name: str, args: Args) -> Value:
    """Returns the result of a library's function."""
    first = args.positional[0] if args.positional else NOTHING
    if name in tables.SCALARS:
        return PLAIN
    if name in tables.COPIES and any(map(unordered, first)):
        return SET
    if machine.makes_naive(name, args):
        return frozenset([Data(naive=True)])
    if name == "builtins.iter":
        return frozenset([Data(iterator=True, callables=hands_callables(args))])
    if name in ("builtins.next", "builtins.min", "builtins.max", "builtins.anext"):
        return union(inside(each) for each in first) | union(args.positional[1:]) | PLAIN
    giving = name.partition(".")[0] in ("functools", "operator", "itertools", "types", "numpy")
    holds = frozenset(each for value in args.values for each in objects(value))
    return frozenset([Data(container=True, callables=giving or hands_callables(args), holds=holds)])


def objects(value: Value) -> Value:
    """Returns the user's objects that pass through a function such as `sorted`."""
    own = frozenset(each for each in value if isinstance(each, Made))
    return own.union(*(each.holds for each in value if isinstance(each, Data)))


def union(values: Iterable[Value]) -> Value:
    return frozenset().union(*values)
