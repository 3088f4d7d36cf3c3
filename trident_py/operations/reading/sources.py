"""The source of a function, if it is found and still the one that runs; and what a module does with its globals."""

from __future__ import annotations

import ast
import builtins
import linecache
import sys
import sysconfig
import types
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from .tables import MUTATORS, OURS

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_LIBRARIES = tuple(
    f"{path}/" for path in {*map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))} if path
)
_OF_C = types.MethodDescriptorType | types.WrapperDescriptorType
_MADE_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE; the class of an exec without __name__ is said to be of builtins


def is_ours(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).partition(".")[0] in OURS


def is_users(thing: Any) -> bool:
    """A function or class that a user wrote: neither ours nor of Python or an installed package."""
    if is_ours(thing):
        return False
    if isinstance(thing, types.FunctionType):
        file = thing.__code__.co_filename
        return not (file.startswith((*_LIBRARIES, "<frozen ")) or "site-packages" in file)
    root = str(getattr(thing, "__module__", "")).partition(".")[0]
    made = root == "builtins" and isinstance(thing, type) and getattr(builtins, thing.__name__, None) is not thing
    if root == "__main__" or (made and thing.__flags__ & _MADE_IN_PYTHON):
        return True
    if root in sys.stdlib_module_names:
        return False
    if isinstance(thing, type) and any(
        isinstance(each, _OF_C) and each.__objclass__ is thing for each in vars(thing).values()
    ):
        return False
    file = getattr(sys.modules.get(thing.__module__), "__file__", None) or ""
    return not (file.startswith(_LIBRARIES) or "site-packages" in file or file.endswith((".so", ".pyd")))


def generated(function: types.FunctionType, kind: type) -> bool:
    """What dataclasses and named tuples write themselves."""
    made = hasattr(kind, "__dataclass_fields__") or hasattr(kind, "_fields")
    name = function.__name__
    return made and function.__code__.co_filename.startswith("<") and (name[:1] == "_" or name == "wrapper")


class Source:
    """A function in the tree of its file."""

    def __init__(self, function: types.FunctionType, node: FunctionNode, text: str) -> None:
        self.function, self.node, self.text = function, node, text

    @property
    def file(self) -> str:
        return Path(self.function.__code__.co_filename).name


def source_of(function: types.FunctionType) -> Source | None:
    """None where no file holds the function, or another one than runs: standard input, exec, an edited file."""
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    found = _functions(text).get((code.co_firstlineno, code.co_name), [])
    if len(found) > 1:
        places = set(code.co_positions())
        found = [node for node in found if _place(node) in places]
    if len(found) != 1 or not _still(code, text):
        return None
    return Source(function, found[0], text)


def _still(code: types.CodeType, text: str) -> bool:
    """Whether the text compiles to this very code. pytest rewrites functions with an assert: these are taken."""
    if any(name.startswith("@py") for name in (*code.co_names, *code.co_varnames)):
        return True
    return _shape(code) in _shapes(text)


def _shape(code: types.CodeType) -> tuple:
    constants = tuple(repr(each) for each in code.co_consts if not isinstance(each, types.CodeType | frozenset))
    return code.co_firstlineno, code.co_name, code.co_code, code.co_names, constants


@lru_cache(maxsize=64)
def _shapes(text: str) -> frozenset[tuple]:
    try:
        todo, found = [compile(text, "<read>", "exec", dont_inherit=True)], set()
    except (SyntaxError, ValueError):
        return frozenset()
    while todo:
        code = todo.pop()
        found.add(_shape(code))
        todo += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return frozenset(found)


def _place(node: FunctionNode) -> tuple[int | None, ...]:
    body: Any = node.body if isinstance(node, ast.Lambda) else node.body[-1]
    return body.lineno, body.end_lineno, body.col_offset, body.end_col_offset


@lru_cache(maxsize=64)
def tree_of(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


@lru_cache(maxsize=64)
def _functions(text: str) -> dict[tuple[int, str], list[FunctionNode]]:
    """All functions of a file, by first line and name."""
    found: dict[tuple[int, str], list[FunctionNode]] = {}
    for node in ast.walk(tree_of(text) or ast.Module([], [])):
        if isinstance(node, ast.Lambda):
            found.setdefault((node.lineno, "<lambda>"), []).append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found.setdefault((first, node.name), []).append(node)
    return found


# -- globals and closures -------------------------------------------------------------------------------------------


def text_of(names: dict[str, Any]) -> tuple[str, str]:
    """File name and text of the module with these globals; empty where there is none."""
    file = names.get("__file__") or ""
    return Path(file).name, "".join(linecache.getlines(file, names)) if file else ""


def assigned(text: str, name: str) -> list[ast.expr]:
    """What a module assigns to a global while it is imported."""
    return _assignments(text).get(name, [])


@lru_cache(maxsize=64)
def _assignments(text: str) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    tree = tree_of(text)
    for statement in _statements(tree.body if tree else []):
        for name, value in _targets(statement):
            found.setdefault(name, []).append(value)
    return found


def assigned_in_class(text: str, kind: str, name: str) -> list[ast.expr]:
    """What the body of a class assigns to one of its names."""
    classes = [node for node in ast.walk(tree_of(text) or ast.Module([], [])) if isinstance(node, ast.ClassDef)]
    bodies = [node.body for node in classes if node.name == kind]
    return [value for body in bodies for each in _statements(body) for found, value in _targets(each) if found == name]


def imported_from(text: str, name: str) -> tuple[str, str] | None:
    """The module and the name there, for a global that came by ``from module import name``."""
    tree = tree_of(text)
    for statement in tree.body if tree else []:
        if isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    return statement.module, alias.name
    return None


def assigned_around(source: Source, name: str) -> list[ast.expr]:
    """What the function around this one assigns to a variable of its own."""
    functions = [
        node
        for node in ast.walk(tree_of(source.text) or ast.Module([], []))
        if isinstance(node, ast.FunctionDef) and node is not source.node
    ]
    around = [node for node in functions if any(each is source.node for each in ast.walk(node))]
    return [value for node in around for each in _statements(node.body) for n, value in _targets(each) if n == name]


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements, those within `if`, `try`, `with` and loops too, but not those of functions and classes."""
    for statement in body:
        yield statement
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(statement, part, []))


def _targets(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            for each in ast.walk(target):
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                    yield each.id, statement.value
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
        yield statement.target.id, statement.value


@lru_cache(maxsize=64)
def changed_by(text: str) -> dict[str, str]:
    """Globals that functions of a module change, each with the name of such a function."""
    found: dict[str, str] = {}
    for function in ast.walk(tree_of(text) or ast.Module([], [])):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            own = _own_names(function)
            for name in _changed(function):
                if name not in own:
                    found.setdefault(name, function.name)
    return found


def _own_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    declared = {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return ({each.arg for each in ast.walk(function) if isinstance(each, ast.arg)} | stored) - declared


def _changed(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Global):
            yield from node.names
        elif isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield from _root(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            yield from _root(node.func.value)


def _root(node: ast.expr) -> Iterator[str]:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id
