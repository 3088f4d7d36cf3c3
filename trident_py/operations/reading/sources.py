"""Finds the source of a function, checks that it is the code that runs, and tells user code from other code."""

from __future__ import annotations

import ast
import builtins
import linecache
import sys
import sysconfig
import types
from functools import lru_cache
from pathlib import Path
from typing import Any

from .tables import OURS

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_LIBRARIES = tuple(
    f"{path}/" for path in {*map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))} if path
)
_OF_C = types.MethodDescriptorType | types.WrapperDescriptorType
_MADE_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE; a class from exec without __name__ claims to be of builtins


def is_ours(thing: Any) -> bool:
    name = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", "")
    return str(name).partition(".")[0] in OURS


def is_users(thing: Any) -> bool:
    """Whether a user wrote this function or class: it is neither ours nor of Python or an installed package."""
    if is_ours(thing):
        return False
    if isinstance(thing, types.FunctionType):
        file = thing.__code__.co_filename
        return not (file.startswith((*_LIBRARIES, "<frozen ")) or "site-packages" in file)
    module = str((thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", "")) or "")
    root = module.partition(".")[0]
    made = root == "builtins" and isinstance(thing, type) and getattr(builtins, thing.__name__, None) is not thing
    if root == "__main__" or (made and thing.__flags__ & _MADE_IN_PYTHON):
        return True
    if root in sys.stdlib_module_names:
        return False
    if isinstance(thing, type) and any(
        isinstance(each, _OF_C) and each.__objclass__ is thing for each in vars(thing).values()
    ):
        return False
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return not (file.startswith(_LIBRARIES) or "site-packages" in file or file.endswith((".so", ".pyd")))


def generated(function: types.FunctionType, kind: type) -> bool:
    """Whether dataclasses or named tuples have generated this function."""
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
    """Returns None if no file has the function's present code: standard input, exec, an edited file."""
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
    """Whether the text compiles to this code. Accepts functions that pytest has rewritten because of an assert."""
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
    """Returns all functions of a file, by first line and name."""
    found: dict[tuple[int, str], list[FunctionNode]] = {}
    for node in ast.walk(tree_of(text) or ast.Module([], [])):
        if isinstance(node, ast.Lambda):
            found.setdefault((node.lineno, "<lambda>"), []).append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found.setdefault((first, node.name), []).append(node)
    return found
