"""The functions that are read: whose code it is, its source if that is the code that runs, and its names."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import linecache
import sys
import sysconfig
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from .atoms import NOTHING, PLAIN, Value, attribute_of, container
from .tables import OURS

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_LIBRARIES = tuple(
    f"{path}/" for path in {*map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))} if path
)
_OF_C = types.MethodDescriptorType | types.WrapperDescriptorType
LOOSE = "**"  # among the keywords of a call: what may be in any parameter, as `**` was passed
_MADE_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE; a class from exec without __name__ claims to be of builtins


def _module_name(thing: Any) -> str:
    name = thing.__name__ if isinstance(thing, types.ModuleType) else attribute_of(thing, "__module__")
    return str(name or "")


def is_ours(thing: Any) -> bool:
    return _module_name(thing).partition(".")[0] in OURS


def is_users(thing: Any) -> bool:
    """Return whether a user wrote this function or class: it is neither ours nor of Python or an installed package."""
    if is_ours(thing):
        return False
    if isinstance(thing, types.FunctionType):
        file = thing.__code__.co_filename
        return not (file.startswith((*_LIBRARIES, "<frozen ")) or "site-packages" in file)
    module = _module_name(thing)
    root = module.partition(".")[0]
    foreign = root == "builtins" and isinstance(thing, type) and vars(builtins).get(thing.__name__) is not thing
    if root == "__main__" or (foreign and thing.__flags__ & _MADE_IN_PYTHON):
        return True
    if root in sys.stdlib_module_names:
        return False
    members = vars(thing).values() if isinstance(thing, type) else ()
    if any(isinstance(member, _OF_C) and member.__objclass__ is thing for member in members):
        return False
    file = attribute_of(sys.modules.get(module), "__file__") or ""
    return not (file.startswith(_LIBRARIES) or "site-packages" in file or file.endswith((".so", ".pyd")))


def is_generated(function: types.FunctionType, kind: type) -> bool:
    """Return whether dataclasses or named tuples have generated this function."""
    generates = dataclasses.is_dataclass(kind) or attribute_of(kind, "_fields") is not None
    name = function.__name__
    return generates and function.__code__.co_filename.startswith("<") and (name[:1] == "_" or name == "wrapper")


class Source:
    """A function in the tree of its file."""

    def __init__(self, function: types.FunctionType, node: FunctionNode, text: str) -> None:
        self.function, self.node, self.text = function, node, text

    @property
    def file(self) -> str:
        return Path(self.function.__code__.co_filename).name


def source_of(function: types.FunctionType) -> Source | None:
    """Return None if no file has the function's present code: standard input, exec, an edited file."""
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    nodes = _functions(text).get((code.co_firstlineno, code.co_name), [])
    if len(nodes) > 1:
        places = set(code.co_positions())
        nodes = [node for node in nodes if _place(node) in places]
    return Source(function, nodes[0], text) if len(nodes) == 1 and _is_current(code, text) else None


def _is_current(code: types.CodeType, text: str) -> bool:
    """Return whether the text compiles to this code. Accepts functions that pytest has rewritten because of an
    assert."""
    if any(name.startswith("@py") for name in (*code.co_names, *code.co_varnames)):
        return True
    return _shape(code) in _shapes(text)


def _shape(code: types.CodeType) -> tuple:
    constants = tuple(repr(const) for const in code.co_consts if not isinstance(const, types.CodeType | frozenset))
    return code.co_firstlineno, code.co_name, code.co_code, code.co_names, constants


@lru_cache(maxsize=64)
def _shapes(text: str) -> frozenset[tuple]:
    try:
        todo, shapes = [compile(text, "<read>", "exec", dont_inherit=True)], set()
    except (SyntaxError, ValueError):
        return frozenset()
    while todo:
        code = todo.pop()
        shapes.add(_shape(code))
        todo += [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return frozenset(shapes)


def _place(node: FunctionNode) -> tuple[int | None, ...]:
    body: Any = node.body if isinstance(node, ast.Lambda) else node.body[-1]
    return body.lineno, body.end_lineno, body.col_offset, body.end_col_offset


@lru_cache(maxsize=64)
def tree_of(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def walk(text: str) -> Iterator[ast.AST]:
    """Yield all nodes of a file; none if it has no Python."""
    return ast.walk(tree_of(text) or ast.Module([], []))


@lru_cache(maxsize=64)
def _functions(text: str) -> dict[tuple[int, str], list[FunctionNode]]:
    """Return all functions of a file, by first line and name."""
    functions: dict[tuple[int, str], list[FunctionNode]] = {}
    for node in walk(text):
        if isinstance(node, ast.Lambda):
            functions.setdefault((node.lineno, "<lambda>"), []).append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            functions.setdefault((first, node.name), []).append(node)
    return functions


# -- its names --------------------------------------------------------------------------------------------------


@dataclass
class Names:
    """The surrounding names of a function: closure, globals, and what `super()` needs."""

    file: str
    globals: dict[str, Any]
    closure: dict[str, Any] = field(default_factory=dict)
    owner: Any = None
    source: Any = None  # of the function that has the closure


def cells(function: types.FunctionType) -> dict[str, Any]:
    contents = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            contents[name] = cell.cell_contents
        except ValueError:  # not yet assigned
            continue
    return contents


def positional(signature: ast.arguments) -> list[str]:
    return [parameter.arg for parameter in (*signature.posonlyargs, *signature.args)]


def captures(pattern: ast.pattern) -> Iterator[str]:
    """Yield the names to which a pattern of `match` assigns parts of the subject."""
    for part in ast.walk(pattern):
        name = part.name if isinstance(part, ast.MatchAs | ast.MatchStar) else None
        name = part.rest if isinstance(part, ast.MatchMapping) else name
        if name is not None:
            yield name


def bind_names(
    signature: ast.arguments,
    arguments: tuple[Value, ...],
    keywords: dict[str, Value],
    defaults: dict[str, Value],
    anything: Value | None,
) -> dict[str, Value]:
    """Return the parameters of a call. ``anything``: the value of unknown arguments."""
    env: dict[str, Value] = {}
    names, loose = positional(signature), keywords.get(LOOSE, NOTHING)
    for position, name in enumerate([*names, *(parameter.arg for parameter in signature.kwonlyargs)]):
        if position < len(arguments) and position < len(names):
            env[name] = arguments[position]
        elif name in keywords:
            env[name] = keywords[name]
        else:
            default = defaults.get(name, NOTHING)
            env[name] = default | loose | (anything if anything is not None else NOTHING if default else PLAIN)
    rest = frozenset().union(*arguments[len(names) :], *keywords.values(), anything or NOTHING)
    for extra in (signature.vararg, signature.kwarg):
        if extra is not None:
            env[extra.arg] = container(rest)
    return env
