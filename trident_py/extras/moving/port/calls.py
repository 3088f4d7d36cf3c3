"""Calls: of the user's own methods, of the library, of Storm; and what `new` makes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tree_sitter import Node

from . import library
from .code import BREAK, Code, fill, wrap
from .connectors import connector
from .declarations import Class, JavaField, JavaMethod
from .expressions import as_number, class_named, coerce, handles, of_receiver, subscript, translate
from .java_types import BOOLEAN, INT, OBJECT, STRING, Type, promote
from .names import python_name
from .overloads import find_overload
from .scope import Scope
from .source import Untranslatable, child, children, optional, text
from .storm_types import STREAMS, python_class, returns_of
from .wanted import LambdaShape, find_wanted

EXCEPTIONS = {
    "RuntimeException": "RuntimeError", "IllegalStateException": "IllegalStateError",
    "IllegalArgumentException": "ValueError",
    "NumberFormatException": "NumberFormatError", "Exception": "Exception",
    "UnsupportedOperationException": "NotImplementedError",
    "NullPointerException": "TypeError", "IndexOutOfBoundsException": "IndexError", "IOException": "OSError",
    "ArrayIndexOutOfBoundsException": "IndexError", "NoSuchElementException": "NoSuchElementError",
    "Error": "Exception",
    "ArithmeticException": "ArithmeticError", "ClassCastException": "TypeError", "Throwable": "Exception",
    "FailedException": "FailedException", "ReportedFailedException": "ReportedFailedException",
    "DateTimeParseException": "DateTimeParseError", "ParseException": "ParseError",
    "InterruptedException": "InterruptedError",
    "StringIndexOutOfBoundsException": "IndexError", "DRPCExecutionException": "DRPCExecutionException",
    "JSONException": "JSONError", "JsonProcessingException": "JsonProcessingError",
    "AssertionError": "AssertionError", "UnsupportedEncodingException": "LookupError",
    "ConcurrentModificationException": "RuntimeError", "TimeoutException": "TimeoutError",
}  # fmt: skip


CLOSURES = ("lambda_expression", "method_reference")


def arguments_of(node: Node) -> list[Node]:
    return children(optional(node, "arguments"))


def translate_arguments(nodes: Sequence[Node], scope: Scope, wanted: Sequence[LambdaShape | None] = ()) -> list[Code]:
    """Translate arguments; ``wanted`` says for each slot what a lambda there gets."""
    found: list[Code] = []
    for index, node in enumerate(nodes):
        want = wanted[index] if index < len(wanted) else None
        element = want.parameters[0] if want is not None and want.parameters else scope.element
        found.append(translate(node, scope.inner(element=element, wanted=want, expected=None)))
    return found


@handles("method_invocation")
def method_invocation(node: Node, scope: Scope) -> Code:
    return _call(node, scope, statement=False)


def call_statement(node: Node, scope: Scope) -> Code:
    """Translate a call whose value nobody uses."""
    return _call(node, scope, statement=True)


def _call(node: Node, scope: Scope, statement: bool) -> Code:
    name, owner = text(child(node, "name")), optional(node, "object")
    if owner is None:
        return _own_call(node, name, scope)
    if owner.type == "super":
        return _super_call(node, name, scope)
    kind = class_named(owner, scope)
    if kind is not None:
        return _static_call(node, kind, name, scope, statement)
    return _instance_call(node, translate(owner, scope), name, scope, statement)


def _own_call(node: Node, name: str, scope: Scope) -> Code:
    for around in scope.outward():
        if methods := scope.world.methods(around, name):
            method, arguments = choose(methods, node, scope)
            if method.static:
                owner = next((one for one in scope.world.lineage(around) if method in one.methods), around)
                return Code(f"{scope.member_text(owner, method.python)}({arguments})", method.returns)
            return Code(f"{scope.self_text(around, node)}.{method.python}({arguments})", method.returns)
    for around in scope.outward():
        if around.kind == "enum" and name in ("values", "valueOf", "ordinal", "name"):
            if name.startswith("value"):
                return _static_call(node, around.name, name, scope, False)
            return _library_call(node, Code(scope.self_text(around, node), around.type), "Enum", name, scope, False)
        for parent in scope.world.library_parents(around):
            owner_class = python_class(parent.name)
            if owner_class is not None and hasattr(owner_class, python_name(name, member=True)):
                return _storm_call(node, Code(scope.self_text(around, node), parent), name, scope)
            if library.find(parent.name, name, [OBJECT] * len(arguments_of(node))):
                return _instance_call(node, Code(scope.self_text(around, node), parent), name, scope, True)
    if name == "getClass" and scope.cls is not None:
        return Code(f"type({scope.self_text(scope.cls, node)})", Type("Class"), True)
    if owner_name := scope.source.statics.get(name):
        return _static_call(node, owner_name.rpartition(".")[2], name, scope, False)
    raise Untranslatable(node, f"{name}() is declared in none of the given files")


def choose(methods: Sequence[JavaMethod], node: Node, scope: Scope) -> tuple[JavaMethod, str]:
    """Return the overload that a call means, and its arguments."""
    nodes = arguments_of(node)
    fitting = [method for method in methods if method.takes(len(nodes))]
    if not fitting:
        raise Untranslatable(node, f"no method takes these {len(nodes)} arguments")
    first = fitting[0]
    wanted = [find_wanted(parameter.type, scope) for parameter in first.parameters]
    arguments = translate_arguments(nodes, scope, wanted)
    best = find_overload(fitting, arguments, node, scope)
    return best, pass_arguments(best, arguments)


def pass_arguments(method: JavaMethod, arguments: Sequence[Code]) -> str:
    """Convert the arguments to the types of the parameters; those of a varargs parameter become a list."""
    parameters, given = method.parameters, list(arguments)
    if parameters and parameters[-1].varargs:
        fixed, element = len(parameters) - 1, parameters[-1].type.arg(0)
        rest = given[fixed:]
        if not (len(rest) == 1 and rest[0].type.name in ("[]", "null")):
            rest_text = ", ".join(coerce(one, element).text for one in rest)
            given = [*given[:fixed], Code(f"[{rest_text}]", parameters[-1].type)]
    return ", ".join(coerce(code, one.type).text for code, one in zip(given, parameters, strict=True))


def _super_call(node: Node, name: str, scope: Scope) -> Code:
    cls = scope.cls
    if cls is None:
        raise Untranslatable(node, "super outside a class")
    for parent in cls.parents:
        own = scope.find_class(parent.name)
        if own is not None and (methods := scope.world.methods(own, name)):
            method, arguments = choose(methods, node, scope)
            return Code(f"super().{method.python}({arguments})", method.returns)
        if hasattr(python_class(parent.name), name):
            return _storm_call(node, Code("super()", parent), name, scope)
    raise Untranslatable(node, f"super.{name}() has no counterpart")


def _static_call(node: Node, kind: str, name: str, scope: Scope, statement: bool) -> Code:
    cls = scope.find_class(kind)
    if cls is not None:
        if cls.kind == "enum" and name in ("values", "valueOf"):
            return _library_call(
                node, Code(cls.python, Type("Enum", (cls.type,))), "Enum", f".{name}", scope, statement
            )
        if methods := scope.world.methods(cls, name):
            method, arguments = choose(methods, node, scope)
            owner = next(one for one in scope.world.lineage(cls) if method in one.methods)
            return Code(f"{scope.member_text(owner, method.python)}({arguments})", method.returns)
    if made := connector(kind, name, node, scope, partial(translate_arguments, scope=scope)):
        return made
    if (kind, name) == ("Arrays", "asList") and (shared := _list_over(arguments_of(node), scope)):
        return shared
    receiver = Type(kind, (scope.element,)) if scope.element is not None else Type(kind)
    if library.knows(kind):
        return _library_call(node, Code(kind, receiver), kind, f".{name}", scope, statement)
    if hasattr(python_class(kind), name):
        return _storm_call(node, Code(kind, Type(kind)), name, scope)
    if (kind, name) == ("DRPCClient", "getConfiguredClient"):
        conf = translate_arguments(arguments_of(node), scope)[0].text
        return Code(f"DRPCClient({conf})", Type("DRPCClient"), True)
    raise Untranslatable(node, f"{kind}.{name}() has no counterpart in the tables")


def _list_over(nodes: Sequence[Node], scope: Scope) -> Code | None:
    """Return the array itself as the list that writes to it, if one array of objects is all that is given."""
    only = translate_arguments(nodes, scope)[0] if len(nodes) == 1 else None
    listed = only is not None and only.type.name == "[]" and not only.type.arg(0).is_primitive
    return Code(only.text, Type("List", only.type.args), True) if only is not None and listed else None


def _instance_call(node: Node, this: Code, name: str, scope: Scope, statement: bool) -> Code:
    kind = scope.upper_bound(this.type)
    cls = scope.find_class(kind.name)
    if cls is not None and (found := _user_call(node, this._replace(type=kind), cls, name, scope)):
        return found
    if found := _special_call(node, this._replace(type=kind), name, scope):
        return found
    parents = list(scope.world.library_parents(cls)) if cls is not None else [kind]
    for parent in [*parents, OBJECT]:
        if hasattr(python_class(parent.name), python_name(name, member=True)):
            return _storm_call(node, this._replace(type=parent), name, scope)
        parent = OBJECT if parent.name == "[]" else parent
        if _has_entry(parent.name, name, len(arguments_of(node))):
            return _library_call(node, this._replace(type=parent), parent.name, name, scope, statement)
    raise Untranslatable(node, f"{name}() of {kind} has no counterpart in the tables")


def _special_call(node: Node, this: Code, name: str, scope: Scope) -> Code | None:
    """Translate what depends on more than the name: items, equality, connectors, the class of an object."""
    count = len(arguments_of(node))
    if name == "getClass" and count == 0:
        return Code(f"type({this.text})", Type("Class"), True)
    if this.type.name == "[]" and name == "clone":
        return Code(f"list({this.text})", this.type, True)
    if name in ("get", "charAt") and (item := _item(node, this, name, scope)):
        return item
    if name == "equals" and count == 1:
        return _equals(node, this, translate(arguments_of(node)[0], scope))
    return connector(this.type.name, name, node, scope, partial(translate_arguments, scope=scope), this)


def _has_entry(kind: str, name: str, count: int) -> bool:
    return any(
        key.rstrip("!") in (f"{name}/{count}", f"{name}/*") or (key.startswith(f"{name}(") and count)
        for owner in library.lineage(kind)
        for key in library.entries(owner)
    )


def _item(node: Node, this: Code, name: str, scope: Scope) -> Code | None:
    """Translate ``list.get(i)``, ``text.charAt(i)``."""
    lineage = library.lineage(this.type.name)
    arguments = arguments_of(node)
    listed = "List" in lineage and this.type.name != "TridentTuple"
    if len(arguments) != 1 or not (listed or (name == "charAt" and "String" in lineage)):
        return None
    index = as_number(translate(arguments[0], scope))
    if not index.type.is_whole:
        return None
    element = this.type.arg(0) if listed else Type("char")
    return Code(subscript(this.text, index.text, scope), element)


def _equals(node: Node, this: Code, other: Code) -> Code:
    one, two = this.type, other.type
    if one.name == "[]":
        return Code(f"{wrap(this.text, 6)} is {wrap(other.text, 6)}", BOOLEAN, True)
    if one.primitive and two.primitive and one.primitive != two.primitive:
        raise Untranslatable(node, f"equals() of {one} and {two} is never true")
    sure = (one == STRING and two == STRING) or (one.primitive and one.primitive == two.primitive and not one.is_float)
    if sure or other.text == "None":
        return Code(f"{wrap(this.text, 6)} == {wrap(other.text, 6)}", BOOLEAN, True)
    return Code(f"equals({this.text}, {other.text})", BOOLEAN, True)


def _user_call(node: Node, this: Code, cls: Class, name: str, scope: Scope) -> Code | None:
    count = len(arguments_of(node))
    if count == 0 and name in cls.fields and cls.kind == "record" and not cls.methods_named(name):
        return Code(f"{wrap(this.text)}.{cls.python_field(name)}", of_receiver(cls.fields[name].type, cls, this.type))
    methods = scope.world.methods(cls, name)
    if name in ("toString", "hashCode") and count == 0 and not (cls.kind == "interface" and methods):
        if name == "toString" and not methods and cls.kind == "class":
            raise Untranslatable(node, f"toString() of {cls.name} is that of Object, which differs in each run")
        return Code(
            f"{'to_text' if name == 'toString' else 'hash_code'}({this.text})", STRING if name[0] == "t" else INT
        )
    if name == "equals" and count == 1:
        return Code(f"{wrap(this.text, 6)} == {wrap(translate(arguments_of(node)[0], scope).text, 6)}", BOOLEAN)
    if not methods and cls.kind == "enum" and name in ("name", "ordinal", "compareTo", "getDeclaringClass"):
        return _library_call(node, this, "Enum", name, scope, False)
    if not methods:
        return None
    method, arguments = choose(methods, node, scope)
    returns = of_receiver(method.returns, cls, this.type)
    if scope.world.functional(cls) is method:
        return Code(f"{wrap(this.text)}({arguments})", returns)
    return Code(f"{wrap(this.text)}.{method.python}({arguments})", returns)


def _library_call(node: Node, this: Code, kind: str, name: str, scope: Scope, statement: bool) -> Code:
    nodes = arguments_of(node)
    arguments = translate_arguments(nodes, scope, _lambdas_of(node, this, kind, name, statement, scope))
    types = [code.type for code in arguments]
    entry = library.find(kind, name, types, statement)
    if entry is None:
        said = f"{kind}{'' if name[0] == '.' else '.'}{name}({', '.join(map(str, types))})"
        raise Untranslatable(node, f"{said} has no counterpart in the tables")
    arguments = adjust(name.lstrip("."), kind, arguments)
    returns = library.substitute(entry.returns, this.type, [code.type for code in arguments])
    if kind == "Math":
        returns = Type(returns.primitive or returns.name, returns.args)
    template = entry.template
    for index, code in enumerate(arguments):
        if code.type == STRING and code.sure:
            template = template.replace(f"to_text(${index})", f"${index}")
    written = fill(template, this.text, [code.text for code in arguments])
    return Code(written.replace(", )", ")"), returns, bool(returns.is_primitive or kind in ("String", "StringBuilder")))


def _lambdas_of(
    node: Node, this: Code, kind: str, name: str, statement: bool, scope: Scope
) -> list[LambdaShape | None]:
    """Return what the lambdas among the arguments get."""
    count = len(arguments_of(node))
    rough = library.find(kind, name, [OBJECT] * count, statement)
    if rough is None and not _has_entry(kind, name, count):
        raise Untranslatable(
            node, f"{name.lstrip('.')}() of {kind} with {count} arguments has no counterpart in the tables"
        )
    groups = rough.lambdas if rough is not None else ()
    if not groups and this.type.args:
        return [find_wanted(this.type.args[-1], scope)] * count
    types = _types_for(groups, arguments_of(node), scope)
    return [
        LambdaShape([library.substitute(one, this.type, types) for one in group if one]) if group != ("",) else None
        for group in groups
    ]


def _types_for(groups: tuple[tuple[str, ...], ...], nodes: list[Node], scope: Scope) -> list[Type]:
    """Return the types of the arguments, if what a lambda gets depends on them."""
    if not any(one[-1:].isdigit() for group in groups for one in group):
        return []
    return [OBJECT if one.type in CLOSURES else translate(one, scope).type for one in nodes]


def adjust(name: str, kind: str, arguments: list[Code]) -> list[Code]:
    """Convert arguments where Java widens a number."""
    if kind in ("Math", "StrictMath") and len(arguments) == 2 and all(code.type.is_number for code in arguments):
        both = promote(arguments[0].type, arguments[1].type)
        return [coerce(code, both)._replace(type=both) for code in arguments]
    if kind in ("Integer", "Long") and name != "valueOf":
        return [as_number(code) for code in arguments]
    if name in ("format", "printf", "formatted"):
        arguments = [one._replace(text=library.NARROW.get(one.type.name, "{}").format(one.text)) for one in arguments]
    count = 2 if name in ("format", "printf") else library.VARARGS.get((kind, name))
    if count == len(arguments) and arguments[-1].type.name == "[]":
        *first, last = arguments
        if not last.type.arg(0).is_primitive or kind == "IntStream":
            return [*first, Code(f"*{last.text}", last.type.arg(0))]
    return arguments


def _storm_call(node: Node, this: Code, name: str, scope: Scope) -> Code:
    """Translate a call of Storm's interface, which has the same name here."""
    nodes = arguments_of(node)
    tuple_type = Type("TridentTuple")
    two = name in ("min", "max", "minBy", "maxBy")
    wanted = [LambdaShape([tuple_type, tuple_type] if two else [tuple_type])] * len(nodes)
    if this.type.name == "Config" and name == "put" and len(nodes) == 2:
        key, value = translate_arguments(nodes, scope)
        return Code(f"{this.text}[{key.text}] = {value.text}", Type("void"))
    arguments = spread(objects_of(nodes, translate_arguments(nodes, scope, wanted), name))
    point = BREAK if this.type.name in STREAMS or name.startswith("with") else ""
    returns = returns_of(this.type.name, name)
    if name == "execute" and returns == STRING:
        name = "text"  # what Storm's returns
    return Code(
        f"{wrap(this.text)}{point}.{python_name(name, member=True)}({arguments})", returns, returns.is_primitive
    )


def objects_of(nodes: Sequence[Node], arguments: Sequence[Code], name: str) -> list[Code]:
    """Make an object of a lambda where Storm wants one of an interface with one method."""
    made = name in ("persistentAggregate", "partitionPersist", "newStaticState")
    if not (made and nodes and nodes[0].type in CLOSURES):
        return list(arguments)
    return [Code(f"StateFactoryOf({arguments[0].text})", Type("StateFactory"), True), *arguments[1:]]


def spread(arguments: Sequence[Code]) -> str:
    """Write the arguments of a call of Storm's: an array for varargs is spread."""
    written = [code.text for code in arguments]
    if arguments and arguments[-1].type.name == "[]" and not arguments[-1].type.arg(0).is_primitive:
        last = arguments[-1].text
        written[-1:] = (
            [last[1:-1]] if last.startswith("[") and last.count("[") == 1 and last.endswith("]") else [f"*{last}"]
        )
    return ", ".join(filter(None, written))


@handles("object_creation_expression")
def object_creation(node: Node, scope: Scope) -> Code:
    kind = scope.read_type(child(node, "type"))
    body = next((one for one in node.named_children if one.type == "class_body"), None)
    outer = next((one for one in node.children if one.is_named), None)
    if outer is not None and outer != child(node, "type") and outer.type not in ("type_arguments", "annotation"):
        raise Untranslatable(node, "new of an inner class through another object is not translated")
    if kind.args == () and scope.expected is not None and kind.name in library.PARENTS:
        kind = Type(kind.name, scope.expected.args)
    if body is not None:
        return translate(body, scope.inner(expected=kind))
    return make(node, kind, scope)


def make(node: Node, kind: Type, scope: Scope) -> Code:
    cls = scope.find_class(kind.name)
    if cls is not None:
        count = len(arguments_of(node))
        if cls.kind == "record" and count != len(record_fields(cls)):
            method, arguments = choose(cls.constructors, node, scope)
            return Code(f"{cls.python}.{constructor_name(method)}({arguments})", kind, True)
        return Code(f"{cls.python}({constructor_arguments(node, cls, scope)})", kind, True)
    name = kind.name.rpartition(".")[2]
    if name in EXCEPTIONS:
        return new_exception(node, name, scope)
    if made := connector(kind.name, "new", node, scope, partial(translate_arguments, scope=scope)):
        return made
    if kind.name == "Values" and scope.expected is not None and scope.expected.name != "Object":
        values = spread(translate_arguments(arguments_of(node), scope))
        return Code(f"[{values}]", Type("Values"), True)
    if python_class(kind.name) is not None:
        tuples = [LambdaShape([Type("TridentTuple")])] * len(arguments_of(node))
        return Code(f"{kind.name}({spread(translate_arguments(arguments_of(node), scope, tuples))})", kind, True)
    if library.find(kind.name, "new", [OBJECT] * len(arguments_of(node))) or library.knows(kind.name):
        return _library_call(node, Code("", kind), kind.name, "new", scope, False)._replace(sure=True)
    raise Untranslatable(node, f"new {kind}: the class is not among the given files and has no counterpart")


def constructor_arguments(node: Node, cls: Class, scope: Scope) -> str:
    """Return the arguments for ``cls``: the outer object first, if it needs one."""
    first = [scope.self_text(cls.outer, node)] if cls.instance and cls.outer is not None else []
    if cls.kind == "record":
        given = translate_arguments(arguments_of(node), scope)
        return ", ".join(coerce(code, one.type).text for code, one in zip(given, record_fields(cls), strict=True))
    if not cls.constructors:
        return ", ".join([*first, *(code.text for code in translate_arguments(arguments_of(node), scope))])
    _, arguments = choose(cls.constructors, node, scope)
    return ", ".join(filter(None, [*first, arguments]))


def record_fields(cls: Class) -> list[JavaField]:
    return [one for one in cls.fields.values() if not one.static]


def constructor_name(method: JavaMethod) -> str:
    """Return the name of the class method that stands for a further constructor of a record."""
    return f"of_{'_'.join(parameter.name for parameter in method.parameters) or 'nothing'}"


def new_exception(node: Node, name: str, scope: Scope) -> Code:
    arguments = translate_arguments(arguments_of(node), scope)
    python = EXCEPTIONS[name]
    if not arguments:
        return Code(f"{python}()", Type(name), True)
    first = arguments[0]
    caused = first.type.name in EXCEPTIONS or "Throwable" in library.lineage(first.type.name)
    message = first.text if first.type == STRING else f"to_text({first.text})"
    return Code(f"{python}({message})", Type(name, (Type("caused"),) if caused or len(arguments) > 1 else ()), True)
