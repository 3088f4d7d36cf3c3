"""The types of Java, as far as the translation has to know them."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from .names import NESTED
from .source import children, text

BOXES = {
    "Integer": "int", "Long": "long", "Short": "short", "Byte": "byte", "Character": "char", "Double": "double",
    "Float": "float", "Boolean": "boolean",
}  # fmt: skip
_UNBOXED = {primitive: box for box, primitive in BOXES.items()}
WHOLE = ("byte", "short", "char", "int", "long")
NUMBERS = (*WHOLE, "float", "double")


@dataclass(frozen=True)
class Type:
    """A type with its type arguments. An array is ``[]`` of its elements."""

    name: str
    args: tuple[Type, ...] = ()

    @property
    def primitive(self) -> str:
        """The primitive type that it is or unboxes to, or ""."""
        return self.name if self.name in _UNBOXED else BOXES.get(self.name, "")

    @property
    def is_primitive(self) -> bool:
        return self.name in _UNBOXED

    @property
    def is_whole(self) -> bool:
        return self.primitive in WHOLE

    @property
    def is_number(self) -> bool:
        return self.primitive in NUMBERS

    @property
    def is_float(self) -> bool:
        return self.primitive in ("float", "double")

    @property
    def boxed(self) -> Type:
        return Type(_UNBOXED[self.name]) if self.name in _UNBOXED else self

    def arg(self, index: int) -> Type:
        return self.args[index] if index < len(self.args) else OBJECT

    def __str__(self) -> str:
        if self.name == "[]":
            return f"{self.args[0]}[]"
        return self.name + (f"<{', '.join(map(str, self.args))}>" if self.args else "")


OBJECT, STRING, VOID, NULL = Type("Object"), Type("String"), Type("void"), Type("null")
INT, LONG, DOUBLE, BOOLEAN, CHAR = Type("int"), Type("long"), Type("double"), Type("boolean"), Type("char")
FUNCTION = "λ"
"""The type of a value that is called: its arguments are the parameters, then the result."""


def array_of(element: Type, dimensions: int = 1) -> Type:
    return Type("[]", (array_of(element, dimensions - 1),)) if dimensions else element


def promote(a: Type, b: Type) -> Type:
    """Return the type of a binary operation on two numbers."""
    kinds = (a.primitive, b.primitive)
    return next((Type(kind) for kind in ("double", "float", "long") if kind in kinds), INT)


def read_type(node: Node, aliases: dict[str, str] | None = None) -> Type:
    """Return the type that the node writes. ``aliases``: names that mean another class."""
    kind = node.type
    if kind == "array_type":
        return array_of(read_type(node.named_children[0], aliases), text(node.named_children[-1]).count("["))
    if kind == "generic_type":
        base, *rest = children(node)
        arguments = tuple(read_type(one, aliases) for one in children(rest[0]))
        return Type(read_type(base, aliases).name, arguments)
    if kind == "wildcard":
        bound = [one for one in children(node) if one.type != "super"]
        return read_type(bound[-1], aliases) if bound else OBJECT
    if kind == "annotated_type":
        return read_type(children(node)[-1], aliases)
    if kind == "scoped_type_identifier":
        names = text(node).split(".")
        nested = ".".join(name for name in names if name[:1].isupper()) or text(node)
        return Type(NESTED.get(nested, nested))
    return Type((aliases or {}).get(text(node), text(node)))
