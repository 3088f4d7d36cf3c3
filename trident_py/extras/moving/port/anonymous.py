"""Anonymous classes: written before the statement that makes the object."""

from __future__ import annotations

import re

from tree_sitter import Node

from . import library
from .calls import constructor_arguments
from .classes import class_lines
from .code import Code
from .declarations import read_class
from .expressions import handles, translate
from .java_types import Type
from .overloads import name_members
from .scope import Scope
from .source import COMMENTS, Untranslatable, children, optional
from .statements import statement_lines
from .wanted import list_captured


@handles("class_body")
def anonymous_class(body: Node, scope: Scope) -> Code:
    """Write the class before the statement, and return its object."""
    node, kind = body.parent, scope.expected
    if node is None or kind is None:
        raise Untranslatable(body, "a class body")
    if kind.name == "TypeReference":
        return Code("None", kind.arg(0), True)
    if all(one.type in ("block", *COMMENTS) for one in body.named_children):
        return _double_brace(node, body, kind, scope)
    last = kind.name.rpartition(".")[2]
    owner = scope.cls.name if scope.cls is not None else ""
    cls = read_class(scope.world, body, scope.source, scope.cls, scope.frame.fresh(f"{owner}{last}"))
    cls.parents, cls.python, cls.instance = [kind], cls.name, False
    name_members(scope.world, cls)
    selves = dict(scope.selves)
    if "self" in selves.values():
        selves = {own: ("outer" if name == "self" else name) for own, name in selves.items()}
    if list_captured(body, scope):
        raise Untranslatable(node, "a class that keeps the variable of a loop is not translated")
    lines, after = class_lines(cls, scope.inner(selves=selves, expected=None))
    fields = any(not one.static for one in cls.fields.values())
    needs_outer = any(re.search(r"\bouter\b", line) for line in lines) and "outer = self" not in scope.frame.before
    scope.frame.before += [*(["outer = self"] if needs_outer else []), *lines, *after, ""]
    return Code(f"{cls.python}({_pass_on(node, kind, fields, scope)})", kind, True)


def _pass_on(node: Node, kind: Type, fields: bool, scope: Scope) -> str:
    """Return the arguments of an anonymous class: those of its parent."""
    arguments = children(optional(node, "arguments"))
    if not arguments:
        return ""
    if fields:
        raise Untranslatable(node, "an anonymous class with arguments and fields is not translated")
    parent = scope.find_class(kind.name)
    if parent is not None:
        return constructor_arguments(node, parent, scope)
    return ", ".join(translate(one, scope.inner(expected=None)).text for one in arguments)


def _double_brace(node: Node, body: Node, kind: Type, scope: Scope) -> Code:
    """Translate ``new HashMap() {{ put(...); }}``."""
    entry = library.find(kind.name, "new", [])
    if entry is None or children(optional(node, "arguments")):
        raise Untranslatable(node, "an anonymous class with a block alone")
    name = scope.frame.fresh("made")
    holder = read_class(scope.world, body, scope.source, scope.cls, name)
    holder.parents = [kind]
    inner = scope.inner(cls=holder, selves={**scope.selves, holder: name}, expected=None)
    lines = [line for block in children(body) for line in statement_lines(block.named_children, inner)]
    scope.frame.before += [f"{name} = {entry.template}", *lines]
    return Code(name, kind, True)
