"""Expressions: names, literals, conversions, arrays; one handler for each kind of node."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import partial

from tree_sitter import Node

from ..java import to_float
from . import library
from .code import Code, wrap
from .connectors import FIELDS
from .java_types import BOOLEAN, CHAR, DOUBLE, INT, LONG, NULL, OBJECT, STRING, Type, array_of, promote
from .names import NESTED, storm_names
from .scope import Scope, register
from .source import Untranslatable, child, children, optional, text

HANDLERS: dict[str, Callable[[Node, Scope], Code]] = {}
handles = partial(register, HANDLERS)


def translate(node: Node, scope: Scope) -> Code:
    """Translate an expression. Raises Untranslatable."""
    handler = HANDLERS.get(node.type)
    if handler is None:
        raise Untranslatable(node, f"{node.type.replace('_', ' ')} is not translated")
    return handler(node, scope)


def coerce(code: Code, target: Type) -> Code:
    """Convert as an assignment does: a whole number that becomes a double, a char that becomes a number."""
    kind, wanted = code.type.primitive, target.name if target.is_primitive else ""
    if code.text == "None" or not kind or not wanted or kind == wanted:
        return code
    if kind == "char" and wanted != "char":
        code = as_number(code)
        kind = "int"
    if wanted in ("double", "float") and code.type.is_whole:
        plain = re.fullmatch(r"-?\d+", code.text)
        if wanted == "float":
            return Code(repr(to_float(int(code.text))) if plain else f"to_float({code.text})", target, True)
        return Code(f"{code.text}.0" if plain else f"float({code.text})", target, True)
    if wanted == "char" and code.type.is_whole:
        return Code(f"chr({code.text})", CHAR, True)
    return Code(code.text, target, True)


def as_number(code: Code) -> Code:
    """Return the operand of arithmetic: a char counts as its code."""
    return Code(f"ord({code.text})", INT, True) if code.type.primitive == "char" else code


def quote(value: str) -> str:
    escaped = value.encode("unicode_escape").decode() if not value.isprintable() else value.replace("\\", "\\\\")
    if '"' in escaped and "'" not in escaped:
        return f"'{escaped}'"
    return '"' + escaped.replace('"', '\\"') + '"'


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "s": " ", "\n": ""}


def unescape(written: str) -> str:
    def value(match: re.Match[str]) -> str:
        what = match[1]
        if what[0] == "u":
            return chr(int(what.lstrip("u"), 16))
        return chr(int(what, 8)) if what.isdigit() else _ESCAPES.get(what, what)

    found = re.sub(r"\\(u+[0-9a-fA-F]{4}|[0-7]{1,3}|.|\n)", value, written, flags=re.DOTALL)
    return found.encode("utf-16", "surrogatepass").decode("utf-16")


@handles("string_literal")
def string_literal(node: Node, scope: Scope) -> Code:
    raw = text(node)
    if raw.startswith('"""'):
        lines = raw[3:-3].split("\n")[1:]
        indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()] + [
            len(lines[-1]) if not lines[-1].strip() else 999
        ]
        cut = [
            line[min(indents) :].rstrip() if index + 1 < len(lines) else line[min(indents) :]
            for index, line in enumerate(lines)
        ]
        return Code(quote(unescape("\n".join(cut))), STRING, True)
    return Code(quote(unescape(raw[1:-1])), STRING, True)


@handles("character_literal")
def character_literal(node: Node, scope: Scope) -> Code:
    return Code(quote(unescape(text(node)[1:-1])), CHAR, True)


@handles("decimal_integer_literal", "hex_integer_literal", "octal_integer_literal", "binary_integer_literal")
def integer_literal(node: Node, scope: Scope) -> Code:
    raw = text(node).replace("_", "")
    kind = LONG if raw[-1] in "lL" else INT
    raw = raw.rstrip("lL")
    base = {"h": 16, "o": 8, "b": 2, "d": 10}[node.type[0]]
    value = int(raw, base)
    bits = 64 if kind is LONG else 32
    if base != 10 and value >= 1 << (bits - 1):
        value -= 1 << bits
    return Code(raw.lower() if base == 16 and value >= 0 else str(value), kind, True)


@handles("decimal_floating_point_literal")
def float_literal(node: Node, scope: Scope) -> Code:
    raw = text(node).replace("_", "")
    if raw[-1] in "fF":
        return Code(repr(to_float(float(raw[:-1]))), Type("float"), True)
    return Code(repr(float(raw.rstrip("dD"))), DOUBLE, True)


@handles("true", "false")
def boolean_literal(node: Node, scope: Scope) -> Code:
    return Code(text(node).capitalize(), BOOLEAN, True)


@handles("null_literal")
def null_literal(node: Node, scope: Scope) -> Code:
    return Code("None", NULL)


@handles("parenthesized_expression")
def parenthesized(node: Node, scope: Scope) -> Code:
    return translate(children(node)[0], scope)


@handles("this")
def this(node: Node, scope: Scope) -> Code:
    if scope.cls is None:
        raise Untranslatable(node, "no object is at hand here")
    return Code(scope.self_text(scope.cls, node), scope.cls.type, True)


@handles("identifier")
def identifier(node: Node, scope: Scope) -> Code:
    name = text(node)
    if local := scope.locals.get(name):
        return Code(local.python, local.type, wide=local.wide)
    if found := scope.find_field(name):
        around, owner, field = found
        if field.static:
            return Code(scope.member_text(owner, name), field.type, is_constant_text(field.value))
        return Code(f"{scope.self_text(around, node)}.{owner.python_field(name)}", field.type)
    constants = next((one for one in scope.outward() if name in one.constants), None)
    if constants is not None:
        return Code(f"{constants.python}.{name}", constants.type, True)
    if owner_name := scope.source.statics.get(name):
        return static_member(node, owner_name.rpartition(".")[2], name, scope)
    for owner_name in scope.source.wildcards:
        named = scope.find_class(owner_name.rpartition(".")[2])
        if named is not None and (name in named.fields or name in named.constants):
            return static_member(node, named.name, name, scope)
    raise Untranslatable(node, f"{name} is declared in none of the given files")


def is_constant_text(value: Node | None) -> bool:
    return value is not None and value.type in ("string_literal", "decimal_integer_literal")


def class_named(node: Node, scope: Scope) -> str | None:
    """Return the name of the class that an expression names, or None if it is a value."""
    if node.type == "identifier":
        name = text(node)
        if name in scope.locals or scope.find_field(name):
            return None
        known = scope.find_class(name) or name in storm_names() or library.knows(name) or name[:1].isupper()
        return scope.source.aliases.get(name, name) if known else None
    if node.type == "field_access":
        last = text(child(node, "field"))
        outer = class_named(child(node, "object"), scope)
        if outer is not None and (scope.find_class(f"{outer}.{last}") or last in ("Entry", "Factory")):
            return f"{outer}.{last}"
        if outer is not None and last[:1].isupper() and not last.isupper():
            return NESTED.get(f"{outer}.{last}", f"{outer}.{last}")
        if last[:1].isupper() and not last.isupper() and re.fullmatch(r"[a-z_.0-9]+", text(child(node, "object"))):
            return last
    return None


@handles("field_access")
def field_access(node: Node, scope: Scope) -> Code:
    owner, name = child(node, "object"), text(child(node, "field"))
    if name == "this" and (cls := scope.find_class(text(owner))):
        return Code(scope.self_text(cls, node), cls.type, True)
    kind = class_named(owner, scope)
    if kind is not None:
        return static_member(node, kind, name, scope)
    value = translate(owner, scope)
    if value.type.name == "[]" and name == "length":
        return Code(f"len({value.text})", INT, True)
    cls = scope.find_class(value.type.name)
    if cls is not None and (found := scope.world.field(cls, name)):
        declared, field = found
        return Code(f"{wrap(value.text)}.{declared.python_field(name)}", of_receiver(field.type, cls, value.type))
    if (value.type.name, name) in FIELDS:
        return Code(f"{wrap(value.text)}.{name}", FIELDS[value.type.name, name])
    raise Untranslatable(node, f"{name} of {value.type} is declared in none of the given files")


def of_receiver(kind: Type, cls: object, receiver: Type) -> Type:
    """Put the receiver's type arguments for the type variables of its class."""
    names = list(getattr(cls, "variables", ()))

    def replace(one: Type) -> Type:
        if one.name in names:
            return receiver.arg(names.index(one.name))
        return Type(one.name, tuple(map(replace, one.args)))

    return replace(kind)


def static_member(node: Node, kind: str, name: str, scope: Scope) -> Code:
    cls = scope.find_class(kind)
    if cls is not None:
        if name in cls.constants:
            return Code(f"{cls.python}.{name}", cls.type, True)
        if name in cls.inner:
            return Code(cls.inner[name].python, OBJECT, True)
        if name == "class":
            return Code(cls.python, Type("Class"), True)
        if found := scope.world.field(cls, name):
            owner, field = found
            return Code(scope.member_text(owner, name), field.type, is_constant_text(field.value))
    elif entry := library.constant(kind, name):
        return Code(entry.template, library.parse(entry.returns), True)
    elif kind == "System" and name in ("out", "err"):
        return Code("sys.stdout", Type("PrintStream" if name == "out" else "ErrorStream"), True)
    elif (found_class := storm_class(kind) or storm_class(kind.rpartition(".")[2])) is not None and hasattr(
        found_class, name
    ):
        value = getattr(found_class, name)
        kind = kind if storm_class(kind) is not None else kind.rpartition(".")[2]
        return Code(f"{kind}.{name}", STRING if isinstance(value, str) else Type(kind), True)
    raise Untranslatable(node, f"{kind}.{name} has no counterpart in the tables")


def storm_class(name: str) -> type | None:
    """Return the class of trident_py that has this name of Storm, also a nested one."""
    first, _, rest = name.partition(".")
    if first not in storm_names():
        return None
    found = getattr(importlib.import_module(storm_names()[first]), first)
    for part in filter(None, rest.split(".")):
        found = getattr(found, part, None)
    return found


@handles("class_literal")
def class_literal(node: Node, scope: Scope) -> Code:
    name = scope.read_type(children(node)[0]).name
    cls = scope.find_class(name)
    return Code("None" if cls is None or cls.flat else cls.python, Type("Class", (Type(name),)), True)


@handles("ternary_expression")
def ternary(node: Node, scope: Scope) -> Code:
    condition = translate(child(node, "condition"), scope)
    yes, no = translate(child(node, "consequence"), scope), translate(child(node, "alternative"), scope)
    if yes.type.is_number and no.type.is_number and yes.type.primitive != no.type.primitive:
        literal = any(re.fullmatch(r"\d{1,4}", one.text) for one in (yes, no))
        chars = "char" in (yes.type.primitive, no.type.primitive)
        kind = CHAR if chars and literal else promote(yes.type, no.type)
        yes, no = coerce(yes, kind), coerce(no, kind)
    kind = yes.type if yes.type.name != "null" else no.type.boxed
    if no.type.name == "null":
        kind = yes.type.boxed
    elif yes.type.name != no.type.name and not kind.is_number and no.type != NULL and yes.type != NULL:
        kind = yes.type if library.knows(yes.type.name) and yes.type.name in library.lineage(no.type.name) else no.type
    return Code(f"{wrap(yes.text, 2)} if {wrap(condition.text, 2)} else {wrap(no.text, 1)}", kind, yes.sure and no.sure)


_TESTS = {
    "String": "str", "CharSequence": "str", "Double": "float", "Float": "float", "Boolean": "bool",
    "List": "(list, tuple)",
    "ArrayList": "list", "Map": "dict", "Collection": "(list, tuple, HashSet, LinkedHashSet, TreeSet)",
    "Set": "(HashSet, LinkedHashSet, TreeSet)", "HashMap": "HashMap", "JSONObject": "JSONObject",
    "JSONArray": "JSONArray",
    "OrgJSONObject": "OrgJSONObject", "OrgJSONArray": "OrgJSONArray", "Date": "Date", "byte[]": "bytes",
}  # fmt: skip


def type_test(kind: Type, scope: Scope) -> str:
    """Return what `isinstance` takes for a type, or "" if that cannot tell it."""
    cls = scope.find_class(kind.name)
    if cls is not None:
        return cls.python
    if kind.name in ("Integer", "Long", "Short", "Byte"):
        return "int"
    if kind.name == "Number":
        return "(int, float)"
    return _TESTS.get(str(kind), _TESTS.get(kind.name, ""))


@handles("instanceof_expression")
def instance_of(node: Node, scope: Scope) -> Code:
    value = translate(child(node, "left"), scope)
    right = optional(node, "right")
    if right is None:
        raise Untranslatable(node, "a record pattern is not translated")
    kind, name = scope.read_type(right), optional(node, "name")
    tested = value.text
    if name is not None:
        tested = f"{scope.declare(text(name), kind)} := {value.text}"
    if kind.name == "Number":
        if name is not None:
            raise Untranslatable(node, "a pattern of Number is not translated")
        return Code(f"isinstance({tested}, int | float) and not isinstance({tested}, bool)", BOOLEAN, True)
    cls = scope.find_class(kind.name)
    test = cls.python if cls is not None else _TESTS.get(str(kind), _TESTS.get(kind.name))
    if test is None and storm_class(kind.name) is not None:
        test = kind.name
    if test is None:
        raise Untranslatable(node, f"instanceof {kind}: here an Integer and a Long are one type", "porting.md#types")
    return Code(f"isinstance({tested}, {test})", BOOLEAN, True)


@handles("cast_expression")
def cast(node: Node, scope: Scope) -> Code:
    target = scope.read_type(child(node, "type"))
    value = translate(child(node, "value"), scope)
    if not target.is_primitive:
        if target.is_number and value.type.is_primitive and value.type.primitive != target.primitive:
            return coerce(value, Type(target.primitive))._replace(type=target)
        test = type_test(target, scope)
        if scope.checked and test and value.type.name != target.name:
            return Code(f"cast({value.text}, {test})", target)
        return value._replace(type=target)
    return convert(value, target, node)


def convert(value: Code, target: Type, node: Node) -> Code:
    """Cast to a primitive type."""
    kind, wanted = value.type.primitive, target.name
    if not kind or kind == wanted or wanted == "boolean":
        return value._replace(type=target)
    if wanted in ("double", "float") and value.type.is_whole:
        return coerce(value, target)
    if wanted == "double":
        return value._replace(type=target)
    value = as_number(value)
    if wanted == "char":
        return Code(f"chr({value.text} & 0xFFFF)" if kind not in ("byte",) else f"chr({value.text})", CHAR, True)
    order = ["byte", "short", "char", "int", "long"]
    if kind in order and wanted in order and order.index(kind) < order.index(wanted):
        return value._replace(type=target)
    return Code(f"to_{wanted}({value.text})", target, True)


@handles("array_access")
def array_access(node: Node, scope: Scope) -> Code:
    array, index = translate(child(node, "array"), scope), as_number(translate(child(node, "index"), scope))
    if array.type.name != "[]":
        raise Untranslatable(node, f"{array.type} is no array")
    if array.type.arg(0).name == "byte":
        return Code(f"to_byte({subscript(array.text, index.text, scope)})", Type("byte"), True)
    return Code(subscript(array.text, index.text, scope), array.type.arg(0))


def subscript(values: str, index: str, scope: Scope) -> str:
    """Return the Python for an item. An index that may be negative, which Java refuses, is checked."""
    counters = {local.python for local in scope.locals.values() if local.counts}
    certain = re.fullmatch(r"len\([\w.]+\) - 1|\w+ % \w+|ord\(\w+\)", index)
    if certain or all(part.isdigit() or part in counters for part in index.split(" + ")):
        return f"{wrap(values)}[{index}]"
    return f"item({values}, {index})"


def default(kind: Type) -> str:
    """Return the value of a field or of an array's item that nothing was assigned to."""
    if not kind.is_primitive:
        return "None"
    return {"boolean": "False", "double": "0.0", "float": "0.0", "char": '"\\0"'}.get(kind.name, "0")


@handles("array_creation_expression")
def array_creation(node: Node, scope: Scope) -> Code:
    element = scope.read_type(child(node, "type"))
    sizes = [
        as_number(translate(children(one)[0], scope)).text
        for one in node.named_children
        if one.type == "dimensions_expr"
    ]
    open_ends = sum(text(one).count("[") for one in node.named_children if one.type == "dimensions")
    kind = array_of(element, len(sizes) + open_ends)
    if value := optional(node, "value"):
        return array_values(value, kind, scope)
    if element.name == "byte":
        raise Untranslatable(node, "an array of bytes that is filled has no counterpart: bytes do not change")
    blank = default(element) if not open_ends else "None"
    if len(sizes) == 1:
        return Code(f"[{blank}] * {wrap(sizes[0], 12)}", kind, True)
    return Code(f"new_array({blank}, {', '.join(sizes)})", kind, True)


def array_values(node: Node, kind: Type, scope: Scope) -> Code:
    """Translate ``{a, b}`` for an array of this type."""
    values = []
    for one in children(node):
        if one.type == "array_initializer":
            values.append(array_values(one, kind.arg(0), scope).text)
        else:
            values.append(coerce(translate(one, scope), kind.arg(0)).text)
    if kind.arg(0).name == "byte":
        return Code(f"bytes(value & 0xFF for value in [{', '.join(values)}])", kind, True)
    return Code(f"[{', '.join(values)}]", kind, True)
