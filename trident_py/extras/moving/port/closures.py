"""Lambdas and method references."""

from __future__ import annotations

import re

from tree_sitter import Node

from . import library
from .code import Code
from .expressions import HANDLERS, class_named, coerce, handles, translate
from .java_types import FUNCTION, OBJECT, Type
from .layout import break_lines
from .scope import FunctionFrame, Scope, hoisting
from .source import Untranslatable, child, children, optional, parse, text, walk
from .statements import EFFECTS, block_lines
from .wanted import LambdaShape, find_wanted, list_captured

OBJECTS = {"StateFactory": "StateFactoryOf", "ValueUpdater": "ValueUpdaterOf"}
"""Storm's interfaces with one method: a lambda becomes an object of the class that calls it."""


@handles("lambda_expression")
def lambda_expression(node: Node, scope: Scope) -> Code:
    wanted: LambdaShape | None = scope.wanted or (find_wanted(scope.expected, scope) if scope.expected else None)
    if scope.expected is not None and scope.expected.name in OBJECTS:
        made = lambda_expression(node, scope.inner(expected=None, wanted=wanted))
        return Code(f"{OBJECTS[scope.expected.name]}({made.text})", scope.expected, True)
    names, declared = _parameters(node, scope)
    body = child(node, "body")
    inner = scope.inner(
        wanted=None, expected=None, returns=None, update=None, frame=FunctionFrame(names=set(scope.frame.names))
    )
    kinds = [
        declared[index] or (wanted.parameters[index] if wanted and index < len(wanted.parameters) else OBJECT)
        for index in range(len(names))
    ]
    parameters = [inner.declare(name, kind) for name, kind in zip(names, kinds, strict=True)]
    parameters += [f"{name}={name}" for name in list_captured(node, scope)]
    inner.in_loop = False
    method = wanted.method if wanted is not None else None
    if body.type != "block":
        with hoisting(inner):
            written = _expression(body, parameters, kinds, inner, method.returns if method else None)
            if written is not None and not inner.frame.before:
                return written
    return _function(node, body, parameters, kinds, inner, scope, method.returns if method else None)


def _parameters(node: Node, scope: Scope) -> tuple[list[str], list[Type | None]]:
    parameters = child(node, "parameters")
    if parameters.type == "identifier":
        return [text(parameters)], [None]
    names: list[str] = []
    kinds: list[Type | None] = []
    for one in children(parameters):
        names.append(text(one) if one.type == "identifier" else text(child(one, "name")))
        kind = optional(one, "type")
        kinds.append(None if kind is None or text(kind) == "var" else scope.read_type(kind))
    return names, kinds


def _expression(
    body: Node, parameters: list[str], kinds: list[Type], inner: Scope, returns: Type | None
) -> Code | None:
    try:
        value = translate(body, inner)
    except Untranslatable:
        if body.type in EFFECTS:
            return None
        raise
    if re.search(r"^[\w.\[\]]+ = ", value.text):
        return None
    if returns is not None:
        value = coerce(value, returns)
    written = f"lambda {', '.join(parameters)}: {value.text}" if parameters else f"lambda: {value.text}"
    direct = re.fullmatch(r"([\w.]+)\(([\w, ]*)\)", value.text)
    same = direct is not None and [one.strip() for one in direct[2].split(",") if one.strip()] == parameters
    if direct and same and parameters and direct[1].split(".")[0] not in parameters:
        written = direct[1]
    return Code(written, Type(FUNCTION, (*kinds, value.type)), True)


def _function(
    node: Node, body: Node, parameters: list[str], kinds: list[Type], inner: Scope, scope: Scope, returns: Type | None
) -> Code:
    """Write a function before the statement."""
    name = scope.frame.fresh("function")
    inner.returns = returns
    inner.frame = FunctionFrame(names=set(scope.frame.names))
    lines = block_lines(body, inner) if body.type == "block" else _body_of_expression(body, inner, returns)
    scope.frame.before += [f"def {name}({', '.join(parameters)}):", *(f"    {line}" for line in lines), ""]
    result = OBJECT
    if body.type == "block":
        for one in walk(body):
            if one.type == "return_statement" and children(one):
                result = _type_of(children(one)[0], inner)
                break
    return Code(name, Type(FUNCTION, (*kinds, result)), True)


def _body_of_expression(body: Node, inner: Scope, returns: Type | None) -> list[str]:
    with hoisting(inner) as before:
        try:
            value = translate(body, inner)
            if not re.search(r"^[\w.\[\]]+ = ", value.text):
                value = coerce(value, returns) if returns is not None else value
                return [*before, *break_lines(f"return {value.text}")]
        except Untranslatable:
            if body.type not in EFFECTS:
                raise
    with hoisting(inner) as before:
        return [*before, *EFFECTS[body.type](body, inner)]


def _type_of(node: Node, scope: Scope) -> Type:
    """Return the type of what a function returns, as far as its parameters tell."""
    with hoisting(scope):
        try:
            return translate(node, scope).type
        except Untranslatable:
            return OBJECT


_NAMES = ("value", "other", "third")


@handles("method_reference")
def method_reference(node: Node, scope: Scope) -> Code:
    """Translate ``Owner::method`` as the lambda that it stands for."""
    wanted: LambdaShape | None = scope.wanted or (find_wanted(scope.expected, scope) if scope.expected else None)
    owner = children(node)[0]
    name = "new" if any(one.type == "new" for one in node.children) else text(node.children[-1])
    count = len(wanted.parameters) if wanted is not None else (0 if name == "new" else 1)
    names = list(_NAMES[:count])
    kinds = list(wanted.parameters) if wanted is not None else [OBJECT] * count
    if name == "new":
        body = f"new {text(owner)}{'<>' if library.knows(text(owner)) else ''}({', '.join(names)})"
        if owner.type == "array_type":
            body = f"new {text(owner)[:-2]}[{names[0]}]"
    elif _is_unbound(owner, name, count, scope):
        kinds[0] = kinds[0] if kinds[0] != OBJECT and kinds[0].name == text(owner) else scope.read_type(owner)
        body = f"{names[0]}.{name}({', '.join(names[1:])})"
    else:
        body = f"{text(owner)}.{name}({', '.join(names)})"
    made = _parse_lambda(f"({', '.join(names)}) -> {body}")
    try:
        return HANDLERS["lambda_expression"](
            made, scope.inner(wanted=LambdaShape(kinds, wanted.method if wanted else None))
        )
    except Untranslatable as error:
        raise Untranslatable(node, error.reason, error.section) from None


def _is_unbound(owner: Node, name: str, count: int, scope: Scope) -> bool:
    """Tell whether the first argument of the reference is the object of the call."""
    kind = class_named(owner, scope) if owner.type in ("identifier", "field_access") else text(owner)
    if kind is None or owner.type in ("this", "super") or count == 0:
        return False
    cls = scope.find_class(kind)
    if cls is not None:
        return not any(one.static and one.takes(count) for one in scope.world.methods(cls, name))
    return library.find(kind, f".{name}", [OBJECT] * count) is None or (
        library.find(kind, name, [OBJECT] * (count - 1)) is not None and count > 1 and kind != "Integer"
    )


def _parse_lambda(written: str) -> Node:
    root = parse(f"class X {{ Object f = {written}; }}".encode())
    return next(one for one in walk(root) if one.type == "lambda_expression")
