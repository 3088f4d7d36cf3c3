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

from .atoms import attribute_of
from .sources import Source, captures, is_users, tree_of, walk
from .tables import MUTATORS

Function = ast.FunctionDef | ast.AsyncFunctionDef


def text_of(names: dict[str, Any]) -> tuple[str, str]:
    """Return file name and text of the module with these globals; empty if there is none."""
    file = names.get("__file__") or ""
    return Path(file).name, "".join(linecache.getlines(file, names)) if file else ""


# -- what a module assigns ------------------------------------------------------------------------------------------


def find_assigned(text: str, name: str) -> list[ast.expr]:
    """Return the expressions that are assigned to a global, or put into it, while its module is imported."""
    return _assignments(text).get(name, [])


def _top_level(text: str) -> Iterator[ast.stmt]:
    tree = tree_of(text)
    return _statements(tree.body if tree else [])


@lru_cache(maxsize=64)
def _assignments(text: str) -> dict[str, list[ast.expr]]:
    expressions: dict[str, list[ast.expr]] = {}
    for statement in _top_level(text):
        for name, value in _targets(statement):
            expressions.setdefault(name, []).append(value)
        if isinstance(statement, ast.For):
            items = ast.copy_location(ast.Starred(statement.iter, ast.Load()), statement.iter)
            within = {name for inner in _statements([statement]) for name, _ in _targets(inner)}
            for name in (*_roots(statement.target), *within):
                expressions.setdefault(name, []).append(items)
    return expressions


def sole_assignments(text: str, name: str) -> list[ast.expr]:
    """Return the expressions assigned to a global, if nothing else changes it while its module is imported."""
    values = []
    for statement in _top_level(text):
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            values += [statement.value for target in targets if isinstance(target, ast.Name) and target.id == name]
    return values if len(values) == len(find_assigned(text, name)) else []


def find_assigned_in_class(text: str, kind: str, name: str) -> list[ast.expr]:
    """Return the expressions that the body of a class assigns to one of its names."""
    return [value for body in _bodies(text, kind) for value in find_assigned_in(body, name)]


def mentions(text: str, kind: str, name: str) -> bool:
    """Return whether the body of a class names this attribute."""
    for node in (node for body in _bodies(text, kind) for node in body):
        if isinstance(node, Function | ast.ClassDef) and node.name == name:
            return True
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            return True
    return bool(find_assigned_in_class(text, kind, name))


@lru_cache(maxsize=64)
def _classes(text: str) -> dict[str, list[list[ast.stmt]]]:
    bodies: dict[str, list[list[ast.stmt]]] = {}
    for node in walk(text):
        if isinstance(node, ast.ClassDef):
            bodies.setdefault(node.name, []).append(node.body)
    return bodies


def _bodies(text: str, kind: str) -> list[list[ast.stmt]]:
    return _classes(text).get(kind, [])


def find_import(text: str, name: str) -> tuple[str, str] | None:
    """Return module and original name of a global from ``from module import name``."""
    for statement in _top_level(text):
        if isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    return statement.module, alias.name
    return None


# -- arguments of functions and classes -----------------------------------------------------------------------------


def list_enclosing(source: Source) -> list[Function]:
    """Return the surrounding functions of this one."""
    functions = [node for node in walk(source.text) if isinstance(node, Function) and node is not source.node]
    return [function for function in functions if any(node is source.node for node in ast.walk(function))]


def find_assigned_in(body: list[ast.stmt], name: str) -> list[ast.expr]:
    """Return the expressions that the body of a function or class assigns to one of its names."""
    return [value for statement in _statements(body) for target, value in _targets(statement) if target == name]


def parameters(function: Function) -> set[str]:
    signature = function.args
    rest = [parameter for parameter in (signature.vararg, signature.kwarg) if parameter is not None]
    return {p.arg for p in (*signature.posonlyargs, *signature.args, *signature.kwonlyargs, *rest)}


def calls_of(text: str, name: str) -> list[tuple[ast.Call, Function | None]]:
    """Return the calls by this name, and its partials, each with the surrounding function."""
    return _calls(text).get(name, [])


@lru_cache(maxsize=64)
def _calls(text: str) -> dict[str, list[tuple[ast.Call, Function | None]]]:
    calls: dict[str, list[tuple[ast.Call, Function | None]]] = {}
    todo: list[tuple[ast.AST, Function | None]] = [(tree_of(text) or ast.Module([], []), None)]
    while todo:
        node, within = todo.pop()
        if isinstance(node, ast.Call):
            name = _last(node.func)
            name = _last(node.args[0]) if name == "partial" and node.args else name
            calls.setdefault(name, []).append((node, within))
        within = node if isinstance(node, Function) else within
        todo += [(child, within) for child in ast.iter_child_nodes(node)]
    return calls


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


# -- statements -----------------------------------------------------------------------------------------------------


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements, also inside `if`, `try`, `match`, `with` and loops; not those of functions and classes."""
    for statement in body:
        yield statement
        if not isinstance(statement, Function | ast.ClassDef):
            parts = dict(ast.iter_fields(statement))
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(parts.get(part, []))
            for branch in (*parts.get("handlers", []), *parts.get("cases", [])):
                yield from _statements(branch.body)


def _targets(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names whose values a statement makes or changes, each with the expression that does so."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from ((name, statement.value) for name in _roots(target))
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign) and statement.value:
        yield from ((name, statement.value) for name in _roots(statement.target))
    elif isinstance(statement, ast.With | ast.AsyncWith):
        for item in statement.items:
            names = _roots(item.optional_vars) if item.optional_vars else ()
            yield from ((name, item.context_expr) for name in names)
    elif isinstance(statement, ast.Match):
        names = (name for case in statement.cases for name in captures(case.pattern))
        yield from ((name, statement.subject) for name in names)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        changes = isinstance(call.func, ast.Attribute) and call.func.attr in MUTATORS
        yield from ((name, call) for node in [*([call.func] if changes else []), *call.args] for name in _roots(node))
    expressions = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr)]
    for node in (node for expression in expressions for node in ast.walk(expression)):
        if isinstance(node, ast.NamedExpr):
            yield node.target.id, node.value


def _roots(node: ast.expr) -> Iterator[str]:
    """Yield the names at the root of an expression: for ``a.b[c], d`` a and d."""
    if isinstance(node, ast.Tuple | ast.List):
        for element in node.elts:
            yield from _roots(element)
        return
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Starred):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


# -- changes --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def find_changed(text: str) -> dict[str, str]:
    """Return the globals that functions of a module change, each with the name of such a function."""
    functions: dict[str, str] = {}
    for function in walk(text):
        if isinstance(function, Function):
            local = _local_names(function)
            for name in _list_changed(function):
                if name not in local:
                    functions.setdefault(name, function.name)
    return functions


def _local_names(function: Function) -> set[str]:
    declared = {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return ({node.arg for node in ast.walk(function) if isinstance(node, ast.arg)} | stored) - declared


def _list_changed(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Global):
            yield from node.names
        else:
            yield from (name for target in _changes(node) for name in _roots(target))


def _changes(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the targets that a node changes in place: ``a.b``, ``a[0]``, ``a`` of ``a.append(1)``."""
    if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
        yield node
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
        yield node.func.value
    elif isinstance(node, ast.Call) and _last(node.func) in ("setattr", "delattr") and len(node.args) > 1:
        name = node.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield ast.copy_location(ast.Attribute(node.args[0], name.value, ast.Store()), node)


def find_changer(home: str, owner: Any, name: str, value: Any) -> str | None:
    """Return the loaded user module that changes a definition of ``home``, or None: an attribute of the module or
    class ``owner``, or the container in it."""
    last = home.rpartition(".")[2]
    for module in users_modules():
        if module.__name__ == home:
            continue
        text = text_of(vars(module))[1]
        if name in text and (last in text or (attribute_of(owner, "__name__") or "\n") in text):
            objects = _foreign(text, vars(module))
            if (id(owner), name) in objects or (id(value), "") in objects:
                return module.__name__
    return None


def users_modules() -> list[types.ModuleType]:
    """Return the loaded modules of the user."""
    return _modules(len(sys.modules))


@lru_cache(maxsize=1)
def _modules(count: int) -> list[types.ModuleType]:
    modules = [module for module in list(sys.modules.values()) if isinstance(module, types.ModuleType)]
    return list(filter(is_users, modules))


def _foreign(text: str, names: dict[str, Any]) -> set[tuple[int, str]]:
    """Return the objects that a module's code changes: (owner, attribute), or (container, "")."""
    objects = set()
    for target in _targets_anywhere(text):
        stored = isinstance(target, ast.Attribute) and not isinstance(target.ctx, ast.Load)
        within = stored or isinstance(target, ast.Subscript)
        owner = _resolve(target.value if within else target, names)  # type: ignore[attr-defined]
        if owner is not None:
            objects.add((id(owner), target.attr if stored else ""))  # type: ignore[attr-defined]
    return objects


@lru_cache(maxsize=64)
def _targets_anywhere(text: str) -> list[ast.expr]:
    return [target for node in walk(text) for target in _changes(node)]


def _resolve(node: ast.expr, names: dict[str, Any]) -> Any:
    """Return the object of a dotted name in a module; None if it is not known."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _resolve(node.value, names)
        return vars(owner).get(node.attr) if isinstance(owner, types.ModuleType | type) else None
    return None
