"""What a piece of Java may change while it runs: whether a value can be computed once, or before another one."""

from __future__ import annotations

from tree_sitter import Node

from . import library
from .declarations import read_declarators
from .java_types import OBJECT, STRING, Type, read_type
from .scope import Scope
from .source import child, children, get_changed, optional, text, walk
from .wanted import CALLED

_NAMES = (
    "size isEmpty length charAt contains containsKey containsValue indexOf lastIndexOf substring equals compareTo "
    "equalsIgnoreCase compareToIgnoreCase startsWith endsWith trim strip split toLowerCase toUpperCase matches "
    "hashCode toString valueOf parseInt parseLong parseDouble intValue longValue doubleValue abs min max floor "
    "ceil round sqrt pow floorMod format println print printf getOrDefault getKey getValue getFirst getLast "
    "firstKey lastKey getString getInteger getLong getDouble getBoolean getFloat getShort getByte getValues "
    "getFields getValueByField getStringByField getIntegerByField getLongByField getDoubleByField "
    "getBooleanByField isDigit isLetter isLetterOrDigit isUpperCase isLowerCase isWhitespace toCharArray join "
    "asList ordinal name isPresent hasNext currentTimeMillis nanoTime trace debug info warn error keySet values "
    "entrySet compare toHexString toBinaryString isNaN"
)
_PURE = frozenset(_NAMES.split())
"""Methods of the library that change nothing, whatever the receiver."""
_VALUES = ("decimal_integer_literal", "hex_integer_literal", "octal_integer_literal", "character_literal", "this")
_JOINED = ("parenthesized_expression", "binary_expression", "unary_expression", "cast_expression")
_TYPES = ("integral_type", "floating_point_type", "type_identifier")


def has_effects(node: Node, scope: Scope) -> bool:
    """Tell whether an expression may do more than give its value."""
    return any(
        one.type in ("assignment_expression", "update_expression") or _is_unknown(one, scope, None)
        for one in walk(node)
    )


def _is_unknown(node: Node, scope: Scope, apart: Type | None, declared: dict[str, Type] | None = None) -> bool:
    """Tell whether a node calls code that may change something that is of the type ``apart``."""
    if node.type == "object_creation_expression":
        kind = scope.read_type(child(node, "type")).name
        return scope.find_class(kind) is not None
    if node.type == "method_reference":
        return not library.knows(text(children(node)[0])) or scope.find_class(text(children(node)[0])) is not None
    if node.type != "method_invocation":
        return False
    name, owner = text(child(node, "name")), optional(node, "object")
    own = any(cls.methods_named(name) for cls in scope.world.all())
    arguments = children(optional(node, "arguments"))
    if not own and owner is not None and (name in _PURE or (name == "get" and arguments)):
        return False
    if apart is None or owner is None or owner.type != "identifier":
        return True
    return not _are_apart(apart, _type_of(text(owner), scope, declared or {}), scope)


def _type_of(name: str, scope: Scope, declared: dict[str, Type]) -> Type:
    if name in declared:
        return declared[name]
    if local := scope.locals.get(name):
        return local.type
    found = scope.find_field(name)
    return found[2].type if found is not None else OBJECT


def _are_apart(one: Type, other: Type, scope: Scope) -> bool:
    """Tell whether an object of the library of one type cannot be, or change, one of the other type."""
    if scope.find_class(other.name) is not None or other.name in CALLED:
        return False
    first, second = library.lineage(one.name), library.lineage(other.name)
    if one.is_number:
        return any(kind in second for kind in ("CharSequence", "Collection", "Map"))
    kinds = ("StringBuilder", "List", "Map")
    return any(mine in first and his in second for mine in kinds for his in kinds if mine != his)


def changes(body: Node, name: str) -> bool:
    """Tell whether the body assigns to a variable or a field of this name."""
    return any(_name_of(target) == name for one in walk(body) if (target := get_changed(one)) is not None)


def _name_of(target: Node) -> str:
    return text(child(target, "field")) if target.type == "field_access" else text(target)


def is_steady(bound: Node, body: Node, scope: Scope) -> bool:
    """Tell whether an expression has the same value in each round of a loop with this body."""
    kind = bound.type
    if kind in _VALUES or kind in _TYPES:
        return True
    if kind in _JOINED:
        return all(is_steady(one, body, scope) for one in children(bound))
    if kind == "identifier":
        return not changes(body, text(bound)) and (text(bound) in scope.locals or _keeps(bound, body, scope))
    if kind == "field_access":
        return _is_field_steady(bound, body, scope)
    if kind == "array_access":
        return all(is_steady(one, body, scope) for one in children(bound)) and _keeps_rows(bound, body, scope)
    return kind == "method_invocation" and _is_call_steady(bound, body, scope)


def _is_field_steady(bound: Node, body: Node, scope: Scope) -> bool:
    owner, name = child(bound, "object"), text(child(bound, "field"))
    if not is_steady(owner, body, scope) and not text(owner)[:1].isupper():
        return False
    if name == "length" and not any("length" in cls.fields for cls in scope.world.all()):
        return True
    return not changes(body, name) and _keeps(bound, body, scope)


def _keeps(bound: Node, body: Node, scope: Scope) -> bool:
    """Tell whether a field keeps its value: no method assigns to it, or none is called."""
    return _name_of(bound) not in scope.world.reassigned or _is_quiet(body, Type("int"), scope)


def _keeps_rows(bound: Node, body: Node, scope: Scope) -> bool:
    """Tell whether the body leaves arrays of arrays alone: it may assign to what is in them."""
    for target in filter(None, map(get_changed, walk(body))):
        root, depth = target, 0
        while root.type == "array_access":
            root, depth = child(root, "array"), depth + 1
        kind = _type_of(text(root), scope, _list_declared(body, scope))
        for _ in range(depth):
            kind = kind.arg(0)
        if depth and not kind.is_primitive and kind != STRING:
            return False
    return _is_quiet(body, Type("int"), scope)


def _is_call_steady(bound: Node, body: Node, scope: Scope) -> bool:
    name, owner = text(child(bound, "name")), optional(bound, "object")
    parts = [*children(optional(bound, "arguments")), *([owner] if owner is not None else [])]
    if _is_unknown(bound, scope, None) or not all(is_steady(one, body, scope) for one in parts if not _is_class(one)):
        return False
    kind = _type_of(text(owner).removeprefix("this."), scope, {}) if owner is not None else OBJECT
    if kind == STRING or kind.name == "TridentTuple" or kind.primitive or (owner is not None and _is_class(owner)):
        return True
    return name in ("size", "length", "get", "getValue") and _is_quiet(body, kind, scope)


def _is_class(node: Node) -> bool:
    return node.type == "identifier" and text(node)[:1].isupper() and not text(node).isupper()


def _is_quiet(body: Node, kind: Type, scope: Scope) -> bool:
    """Tell whether the body calls nothing that may change an object, or a field, of this type."""
    declared = _list_declared(body, scope)
    return not any(_is_unknown(one, scope, kind, declared) for one in walk(body))


def _list_declared(body: Node, scope: Scope) -> dict[str, Type]:
    """Return the variables that a body declares; one that is declared twice may be anything."""
    found: dict[str, Type] = {}
    for node in walk(body):
        names: list[tuple[str, Type]] = []
        if node.type == "local_variable_declaration":
            names = [(one.name, one.type) for one in read_declarators(node, scope.source.aliases)]
        elif node.type in ("enhanced_for_statement", "formal_parameter"):
            names = [(text(child(node, "name")), read_type(child(node, "type"), scope.source.aliases))]
        elif node.type == "lambda_expression":
            names = [(text(one), OBJECT) for one in walk(child(node, "parameters")) if one.type == "identifier"]
        for name, kind in names:
            found[name] = kind if found.get(name, kind) == kind else OBJECT
    return found
