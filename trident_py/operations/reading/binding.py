"""The names in a call: the values of its parameters and cells, and the surrounding names."""

from __future__ import annotations

import ast
import types
from dataclasses import dataclass, field
from typing import Any

from .atoms import NOTHING, PLAIN, Data, Value


@dataclass
class Names:
    """The surrounding names of a function: closure, globals, and what `super()` needs."""

    file: str
    globals: dict[str, Any]
    closure: dict[str, Any] = field(default_factory=dict)
    owner: Any = None
    source: Any = None  # of the function that has the closure


def cells(function: types.FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not yet assigned
            continue
    return found


def positional(wanted: ast.arguments) -> list[str]:
    return [each.arg for each in (*wanted.posonlyargs, *wanted.args)]


def bound_names(
    wanted: ast.arguments,
    given: tuple[Value, ...],
    named: dict[str, Value],
    defaults: dict[str, Value],
    anything: Value | None,
) -> dict[str, Value]:
    """Returns the parameters of a call. ``anything``: the value of arguments that are not known."""
    env: dict[str, Value] = {}
    names = positional(wanted)
    for position, name in enumerate([*names, *(each.arg for each in wanted.kwonlyargs)]):
        if position < len(given) and position < len(names):
            env[name] = given[position]
        elif name in named:
            env[name] = named[name]
        else:
            default = defaults.get(name, NOTHING)
            env[name] = default | (anything if anything is not None else NOTHING if default else PLAIN)
    rest = frozenset().union(*given[len(names) :], *named.values(), anything or NOTHING)
    callables = any(not isinstance(each, Data) or each.callables for each in rest)
    for extra in (wanted.vararg, wanted.kwarg):
        if extra is not None:
            env[extra.arg] = frozenset([Data(callables=callables, container=True)])
    return env
