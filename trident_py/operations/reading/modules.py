"""Finds what modules do with globals: assign and fill their own, change those of other modules."""

from __future__ import annotations

import ast
import linecache
import sys
import types
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from .sources import Source, is_users, tree_of
from .tables import MUTATORS

Function = ast.FunctionDef | ast.AsyncFunctionDef


def text_of(names: dict[str, Any]) -> tuple[str, str]:
    """Returns file name and text of the module with these globals; empty if there is none."""
    file = names.get("__file__") or ""
    return Path(file).name, "".join(linecache.getlines(file, names)) if file else ""


# -- what a module assigns ------------------------------------------------------------------------------------------


def assigned(text: str, name: str) -> list[ast.expr]:
    """Returns the expressions that are assigned to a global, or put into it, while its module is imported."""
    return _assignments(text).get(name, [])


@lru_cache(maxsize=64)
def _assignments(text: str) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    tree = tree_of(text)
    for statement in _statements(tree.body if tree else []):
        for name, value in _targets(statement):
            found.setdefault(name, []).append(value)
        if isinstance(statement, ast.For):
            gone_through = ast.copy_location(ast.Starred(statement.iter, ast.Load()), statement.iter)
            for name in _roots(statement.target):
                found.setdefault(name, []).append(gone_through)
            for name in {name for each in _statements([statement]) for name, _ in _targets(each)}:
                found.setdefault(name, []).append(gone_through)
    return found


def given(text: str, name: str) -> list[ast.expr]:
    """Returns the expressions assigned to a global, if nothing else changes it while its module is imported."""
    tree = tree_of(text)
    plain = [each for each in _statements(tree.body if tree else []) if isinstance(each, ast.Assign | ast.AnnAssign)]
    values = [each.value for each in plain for target in _written(each) if _is_name(target, name) and each.value]
    return values if len(values) == len(assigned(text, name)) else []


def _written(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def assigned_in_class(text: str, kind: str, name: str) -> list[ast.expr]:
    """Returns the expressions that the body of a class assigns to one of its names."""
    return [value for body in _bodies(text, kind) for n, value in _in_class(body) if n == name]


def says(text: str, kind: str, name: str) -> bool:
    """Whether the body of a class names this attribute."""
    named = {each.name for body in _bodies(text, kind) for each in body if isinstance(each, Function | ast.ClassDef)}
    told = {each.target.id for body in _bodies(text, kind) for each in body if _is_annotation(each)}  # type: ignore[attr-defined]
    return name in named | told or bool(assigned_in_class(text, kind, name))


def _is_annotation(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)


def _in_class(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for each in _statements(body):
        yield from _targets(each)


@lru_cache(maxsize=64)
def _classes(text: str) -> dict[str, list[list[ast.stmt]]]:
    found: dict[str, list[list[ast.stmt]]] = {}
    for node in ast.walk(tree_of(text) or ast.Module([], [])):
        if isinstance(node, ast.ClassDef):
            found.setdefault(node.name, []).append(node.body)
    return found


def _bodies(text: str, kind: str) -> list[list[ast.stmt]]:
    return _classes(text).get(kind, [])


def imported_from(text: str, name: str) -> tuple[str, str] | None:
    """Returns module and original name of a global from ``from module import name``."""
    tree = tree_of(text)
    for statement in _statements(tree.body if tree else []):
        if isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    return statement.module, alias.name
    return None


# -- arguments of functions and classes -----------------------------------------------------------------------------


def around(source: Source) -> list[Function]:
    """Returns the surrounding functions of this one."""
    functions = [node for node in ast.walk(tree_of(source.text) or ast.Module([], [])) if isinstance(node, Function)]
    return [f for f in functions if f is not source.node and any(each is source.node for each in ast.walk(f))]


def assigned_in(function: Function, name: str) -> list[ast.expr]:
    """Returns the expressions that a function assigns to one of its variables."""
    return [value for each in _statements(function.body) for n, value in _targets(each) if n == name]


def parameters(function: Function) -> set[str]:
    wanted = function.args
    rest = [each for each in (wanted.vararg, wanted.kwarg) if each is not None]
    return {each.arg for each in (*wanted.posonlyargs, *wanted.args, *wanted.kwonlyargs, *rest)}


def calls_of(text: str, name: str) -> list[tuple[ast.Call, Function | None]]:
    """Returns the calls by this name, and its partials, each with the surrounding function."""
    return _calls(text).get(name, [])


@lru_cache(maxsize=64)
def _calls(text: str) -> dict[str, list[tuple[ast.Call, Function | None]]]:
    found: dict[str, list[tuple[ast.Call, Function | None]]] = {}
    todo: list[tuple[ast.AST, Function | None]] = [(tree_of(text) or ast.Module([], []), None)]
    while todo:
        node, within = todo.pop()
        if isinstance(node, ast.Call):
            name = _last(node.func)
            name = _last(node.args[0]) if name == "partial" and node.args else name
            found.setdefault(name, []).append((node, within))
        within = node if isinstance(node, Function) else within
        todo += [(each, within) for each in ast.iter_child_nodes(node)]
    return found


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


# -- statements -----------------------------------------------------------------------------------------------------


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements, also inside `if`, `try`, `with` and loops, but not those of functions and classes."""
    for statement in body:
        yield statement
        if not isinstance(statement, Function | ast.ClassDef):
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(statement, part, []))
            for handler in getattr(statement, "handlers", []):
                yield from _statements(handler.body)


def _targets(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yields the names whose values a statement makes or changes, each with the expression that does so."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from ((name, statement.value) for name in _roots(target))
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign) and statement.value:
        yield from ((name, statement.value) for name in _roots(statement.target))
    elif isinstance(statement, ast.With | ast.AsyncWith):
        for item in statement.items:
            named = _roots(item.optional_vars) if item.optional_vars else ()
            yield from ((name, item.context_expr) for name in named)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        changes = isinstance(call.func, ast.Attribute) and call.func.attr in MUTATORS
        handed = [name for each in call.args for name in _roots(each)]
        yield from ((name, call) for name in [*(_roots(call.func) if changes else ()), *handed])
    for node in _own_expressions(statement):
        if isinstance(node, ast.NamedExpr):
            yield node.target.id, node.value


def _own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    for each in ast.iter_child_nodes(statement):
        if isinstance(each, ast.expr):
            yield from ast.walk(each)


def _roots(node: ast.expr) -> Iterator[str]:
    """Yields the names at the root of an expression: for ``a.b[c], d`` a and d."""
    if isinstance(node, ast.Tuple | ast.List):
        for each in node.elts:
            yield from _roots(each)
        return
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Starred):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


# -- changes --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def changed_by(text: str) -> dict[str, str]:
    """Returns the globals that functions of a module change, each with the name of such a function."""
    found: dict[str, str] = {}
    for function in ast.walk(tree_of(text) or ast.Module([], [])):
        if isinstance(function, Function):
            own = _own_names(function)
            for name in _changed(function):
                if name not in own:
                    found.setdefault(name, function.name)
    return found


def _own_names(function: Function) -> set[str]:
    declared = {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return ({each.arg for each in ast.walk(function) if isinstance(each, ast.arg)} | stored) - declared


def _changed(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Global):
            yield from node.names
        else:
            yield from (name for target in _changes(node) for name in _roots(target))


def _changes(node: ast.AST) -> Iterator[ast.expr]:
    """Yields the targets that a node changes in place: ``a.b``, ``a[0]``, ``a`` of ``a.append(1)``."""
    if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
        yield node
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
        yield node.func.value
    elif isinstance(node, ast.Call) and _last(node.func) in ("setattr", "delattr") and len(node.args) > 1:
        name = node.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield ast.copy_location(ast.Attribute(node.args[0], name.value, ast.Store()), node)


def changed_elsewhere(home: str, owner: Any, name: str, value: Any) -> str | None:
    """Returns the loaded user module that changes a definition of ``home``, or None: an attribute of the module or
    class ``owner``, or the container in it."""
    last = home.rpartition(".")[2]
    for module in users_modules():
        if module.__name__ == home:
            continue
        text = text_of(vars(module))[1]
        if name in text and (last in text or getattr(owner, "__name__", "\n") in text):
            found = _foreign(text, vars(module))
            if (id(owner), name) in found or (id(value), "") in found:
                return module.__name__
    return None


def users_modules() -> list[types.ModuleType]:
    """Returns the loaded modules of the user."""
    return _modules(len(sys.modules))


@lru_cache(maxsize=1)
def _modules(count: int) -> list[types.ModuleType]:
    return [each for each in list(sys.modules.values()) if isinstance(each, types.ModuleType) and is_users(each)]


def _foreign(text: str, names: dict[str, Any]) -> set[tuple[int, str]]:
    """Returns the objects that a module's code changes: (owner, attribute), or (container, "")."""
    found = set()
    for target in _targets_anywhere(text):
        stored = isinstance(target, ast.Attribute) and not isinstance(target.ctx, ast.Load)
        within = stored or isinstance(target, ast.Subscript)
        owner = _resolved(target.value if within else target, names)  # type: ignore[attr-defined]
        if owner is not None:
            found.add((id(owner), target.attr if stored else ""))  # type: ignore[attr-defined]
    return found


@lru_cache(maxsize=64)
def _targets_anywhere(text: str) -> list[ast.expr]:
    return [target for node in ast.walk(tree_of(text) or ast.Module([], [])) for target in _changes(node)]


def _resolved(node: ast.expr, names: dict[str, Any]) -> Any:
    """Returns the object of a dotted name in a module; None if it is not known."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _resolved(node.value, names)
        return vars(owner).get(node.attr) if isinstance(owner, types.ModuleType | type) else None
    return None
