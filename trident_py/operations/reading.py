"""Reads the source of users' functions for calls that give another result each time: clocks, random numbers, ids.

Names are resolved through the function's globals, its closure and its own imports, so aliases do not hide a
call. Nothing of the user's is executed. What the source does not show (a service that is asked, a file that
changes) is not found: that is what ``nondeterministic`` is for.
"""

from __future__ import annotations

import ast
import builtins
import datetime
import importlib
import linecache
import os
import random
import secrets
import sys
import time
import types
import uuid
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_MISSING = object()
_CLOCK = ("now", "utcnow", "today")
_MODULES = ("datetime", "os", "random", "secrets", "time", "uuid")
_ALWAYS = {
    uuid: ("uuid1", "uuid4", "uuid6", "uuid7"),
    time: ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"),
    os: ("urandom", "getrandom"),
    secrets: ("token_bytes", "token_hex", "token_urlsafe", "randbelow", "randbits", "choice"),
    random: ("SystemRandom",),
}
_WITHOUT_ARGUMENTS = {random: ("Random",), time: ("localtime", "gmtime", "ctime", "asctime")}


def _table(names: dict[Any, tuple[str, ...]]) -> dict[int, str]:
    return {
        id(getattr(module, name)): f"{module.__name__}.{name}"
        for module, listed in names.items()
        for name in listed
        if hasattr(module, name)
    }


_KNOWN, _KNOWN_BARE = _table(_ALWAYS), _table(_WITHOUT_ARGUMENTS)


def source_of_chance(thing: Any, arguments: bool = False) -> str | None:
    """The name of a function that gives another result each time, None for all others.

    ``arguments``: it is called with some, so ``random.Random(seed)`` is fine.
    """
    if id(thing) in _KNOWN:
        return _KNOWN[id(thing)]
    if id(thing) in _KNOWN_BARE and not arguments:
        return _KNOWN_BARE[id(thing)]
    owner, name = getattr(thing, "__self__", None), str(getattr(thing, "__name__", ""))
    if isinstance(owner, type) and issubclass(owner, datetime.date) and name in _CLOCK:
        return f"{owner.__name__}.{name}"
    if isinstance(owner, random.Random) or _of_numpy(type(owner)):
        return None if name == "seed" else f"{'numpy.' if _of_numpy(type(owner)) else ''}random.{name}"
    if callable(thing) and _of_numpy(thing) and not arguments:
        return f"numpy.random.{name}"
    return None


def _of_numpy(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).startswith("numpy.random")


def calls(function: types.FunctionType) -> list[tuple[Any, str | None, str]] | None:
    """What a function calls or hands on: (the thing, the source of chance that it is or None, file and line).

    None if the source is not found.
    """
    node = _node_of(function)
    if node is None:
        return None
    names = _Names(function, node)
    file = Path(function.__code__.co_filename).name
    found = []
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            given = [(call.func, bool(call.args or call.keywords))]
            given += [(value, False) for value in [*call.args, *(keyword.value for keyword in call.keywords)]]
            for expression, arguments in given:
                thing = names.value(expression)
                if thing is not _MISSING and callable(thing):
                    found.append((thing, source_of_chance(thing, arguments), f"{file}:{expression.lineno}"))
    return found


class _Names:
    """What the names in a function stand for, as far as that can be known without running it."""

    def __init__(self, function: types.FunctionType, node: _Function) -> None:
        code = function.__code__
        self.imported = dict(_imports(node))
        self.locals = set(code.co_varnames) | set(code.co_cellvars)
        self.globals = function.__globals__
        self.closure = {}
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            try:
                self.closure[name] = cell.cell_contents
            except ValueError:  # not yet assigned
                continue

    def value(self, expression: ast.expr) -> Any:
        if isinstance(expression, ast.Name):
            return self._name(expression.id)
        if isinstance(expression, ast.Attribute):
            owner = self.value(expression.value)
            if isinstance(owner, types.ModuleType | type | random.Random) or _of_numpy(type(owner)):
                return getattr(owner, expression.attr, _MISSING)
        return _MISSING

    def _name(self, name: str) -> Any:
        if name in self.imported:
            return self.imported[name]
        if name in self.locals:
            return _MISSING
        for place in (self.closure, self.globals, vars(builtins)):
            if name in place:
                return place[name]
        return _MISSING


def _imports(node: ast.AST) -> Iterator[tuple[str, Any]]:
    """The names that a function imports itself, with what they stand for."""
    for each in ast.walk(node):
        if isinstance(each, ast.Import):
            for alias in each.names:
                yield (
                    alias.asname or alias.name.partition(".")[0],
                    _module(alias.name if alias.asname else alias.name.partition(".")[0]),
                )
        elif isinstance(each, ast.ImportFrom) and each.module and not each.level:
            for alias in each.names:
                found = getattr(_module(each.module), alias.name, None)
                known = found if found is not None else _module(f"{each.module}.{alias.name}")
                yield alias.asname or alias.name, known


def _module(name: str) -> Any:
    """A module that is loaded, or one of those that are looked for; others are not imported for this."""
    return importlib.import_module(name) if name in _MODULES else sys.modules.get(name, _MISSING)


def _node_of(function: types.FunctionType) -> _Function | None:
    """The function in the tree of its file; of several lambdas in a line the one with its body."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    found = _functions("".join(lines)).get((code.co_firstlineno, code.co_name), [])
    if len(found) > 1:
        places = set(code.co_positions())
        found = [node for node in found if _place(node) in places]
    return found[0] if len(found) == 1 else None


def _place(node: _Function) -> tuple[int | None, ...]:
    body: Any = node.body if isinstance(node, ast.Lambda) else node.body[-1]
    return body.lineno, body.end_lineno, body.col_offset, body.end_col_offset


@lru_cache(maxsize=64)
def _functions(text: str) -> dict[tuple[int, str], list[_Function]]:
    """All functions of a file, by first line and name."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    found: dict[tuple[int, str], list[_Function]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            found.setdefault((node.lineno, "<lambda>"), []).append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found.setdefault((first, node.name), []).append(node)
    return found
