"""The values of fields and the blocks of a class: what runs when it is loaded or made, in Java's order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tree_sitter import Node

from .declarations import Class, JavaField
from .expressions import default
from .java_types import STRING
from .layout import break_lines
from .scope import Scope, hoisting
from .source import Untranslatable, children, optional, text, walk
from .statements import initial, refuse, statement_lines

Named = Callable[[JavaField], str]


def static_lines(cls: Class, scope: Scope, early_name: Named, name: Named) -> tuple[list[str], list[str]]:
    """Return the static fields that stand in the class or the module, and what must run behind all classes."""
    early, first, rest = list[str](), list[str](), list[str]()
    ran, late = False, set[str]()
    for member in _in_order(cls, static=True):
        if isinstance(member, Node):
            rest += list(statement_lines(children(member)[-1].named_children, scope))
            ran = True
            continue
        lines = guard(member.node, scope, partial(_value, member, scope))
        plain = member.value is None or is_constant(member, cls)
        free = is_early(member, scope, late) and not any(f"{cls.python}." in line for line in lines) and len(lines) == 1
        if free and lines[0].startswith("= ") and (plain or not ran) and cls.kind != "enum":
            early += assign(early_name(member), lines)
            continue
        late.add(member.name)
        (first if plain else rest).extend(assign(name(member), lines))
        ran = ran or _runs_own(member, scope)
    return early, [*first, *rest]


def instance_lines(cls: Class, scope: Scope, assigned: set[str]) -> list[str]:
    """Return the values of an object's fields, and its blocks. ``assigned``: what its constructor sets anyway."""
    members = _in_order(cls, static=False)
    blocks = any(isinstance(member, Node) for member in members)
    blank = [one for one in members if isinstance(one, JavaField) and one.value is None] if blocks else []
    lines: list[str] = []
    for member in [*blank, *(one for one in members if one not in blank)]:
        if isinstance(member, Node):
            lines += list(statement_lines(member.named_children, scope))
        elif blocks or member.value is not None or member.name not in assigned:
            written = guard(member.node, scope, partial(_value, member, scope))
            target = f"self.{cls.python_field(member.name)}"
            lines += assign(target, written) if written[-1].startswith("= ") else written
    return lines


def _in_order(cls: Class, static: bool) -> list[JavaField | Node]:
    kind = "static_initializer" if static else "block"
    fields = [one for one in cls.fields.values() if one.static is static]
    found: dict[int, JavaField | Node] = {one.node.start_byte: one for one in fields}
    found |= {one.start_byte: one for one in cls.members if one.type == kind}
    return [found[place] for place in sorted(found)]


def is_constant(field: JavaField, cls: Class) -> bool:
    """Tell whether a field is a constant of the compiler: it has its value before anything runs."""
    if not field.final or field.value is None or not (field.type.is_primitive or field.type == STRING):
        return False
    for node in walk(field.value):
        if node.type in ("method_invocation", "object_creation_expression", "array_access", "field_access"):
            return False
        if node.type == "identifier":
            named = cls.fields.get(text(node))
            if named is None or not is_constant(named, cls):
                return False
    return True


def is_early(field: JavaField, scope: Scope, late: set[str]) -> bool:
    """Tell whether a static value needs none of the user's own classes and functions, and nothing that is set late."""
    for node in walk(field.value) if field.value is not None else ():
        if node.type in ("lambda_expression", "method_reference", "class_body"):
            return False
        if node.type == "method_invocation" and optional(node, "object") is None:
            return False
        if node.type == "identifier" and text(node) in late:
            return False
        names_class = node.type in ("type_identifier", "identifier") and scope.find_class(text(node)) is not None
        if names_class and (node.parent is None or node.parent.type != "class_literal"):
            return False
    return True


def _runs_own(field: JavaField, scope: Scope) -> bool:
    """Tell whether a value runs the user's own code, which may see and set other fields."""
    return any(
        node.type == "method_invocation"
        or (node.type == "type_identifier" and scope.find_class(text(node)) is not None)
        for node in (walk(field.value) if field.value is not None else ())
    )


def _value(field: JavaField, scope: Scope) -> str:
    value = default(field.type) if field.value is None else initial(field.value, field.type, scope).text
    return f"= {value}"


def assign(name: str, lines: list[str]) -> list[str]:
    """Put the target before the value, or a value that cannot be had behind the Java."""
    if lines[-1].startswith("= "):
        return [*lines[:-1], *break_lines(f"{name} {lines[-1]}")]
    return [*(line for line in lines if line.startswith("#")), f"{name} = None  # {lines[-1].removeprefix('raise ')}"]


def guard(node: Node, scope: Scope, write: Callable[[], str]) -> list[str]:
    """Translate a declaration; one that cannot be is reported."""
    scope.report.statements += 1
    with hoisting(scope) as before:
        try:
            line = write()
            return [*before, line]
        except Untranslatable as error:
            return refuse(node, error, scope)
