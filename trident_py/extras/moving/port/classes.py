"""Classes, interfaces, enums and records, also anonymous ones."""

from __future__ import annotations

from tree_sitter import Node

from .calls import EXCEPTIONS, constructor_arguments, constructor_name
from .declarations import CLASSES, Class, JavaField, JavaMethod, read_class
from .expressions import type_test
from .initializers import instance_lines, static_lines
from .java_types import VOID, Type
from .layout import break_lines
from .names import python_name, runtime_names
from .overloads import name_members
from .scope import FunctionFrame, Scope
from .source import Untranslatable, child, children, comment_lines, optional, text, walk
from .statements import HANDLERS, block_lines, indent, initial, statement_lines
from .storm_types import python_class, python_name_of
from .wanted import CALLED

IGNORED = {
    "Serializable", "Comparable", "Cloneable", "Iterable", "Object", "AutoCloseable", "Closeable", "Iterator",
    "Consumer",
    "KryoSerializable",
}  # fmt: skip
_BASES = {"ArrayList": "list", "Record": "JavaRecord"}
_ANNOTATIONS = {"String": "str", "double": "float", "float": "float", "boolean": "bool", "List": "list", "Map": "dict"}


def class_scope(cls: Class, around: Scope) -> Scope:
    """Return the scope inside a class: for a local one, the names around it can be seen."""
    return around.inner(
        cls=cls, frame=FunctionFrame(), returns=None, update=None, in_loop=False, expected=None, wanted=None
    )


def class_lines(cls: Class, scope: Scope) -> tuple[list[str], list[str]]:
    """Return the lines of a class, and those that must come after all classes: static values that need them."""
    inner = class_scope(cls, scope)
    parents = base_names(cls, inner)
    head = f"class {cls.python}({', '.join(parents)}):" if parents else f"class {cls.python}:"
    body = []
    if doc := _doc(cls.node):
        body += [*doc, ""]
    body += _constants(cls, inner)
    static, after = _static_fields(cls, inner)
    body += static
    if cls.kind == "record":
        body += [
            f"{cls.python_field(one.name)}: {_annotation(one.type)}" for one in cls.fields.values() if not one.static
        ]
    for lines in _members(cls, inner):
        body += [*([""] if body and body[-1] else []), *lines]
    decorators = ["@dataclass(frozen=True)"] if cls.kind == "record" else []
    return [*decorators, *break_lines(head), *indent(body or ["pass"])], after


def _doc(node: Node) -> list[str]:
    before = node.prev_named_sibling
    if before is None or before.type != "block_comment" or not text(before).startswith("/**"):
        return []
    lines = [line.replace("\\", "\\\\").replace('"""', "'''") for line in comment_lines(before)]
    lines = [line for line in lines if not line.startswith("@")]
    if not lines:
        return []
    lines[0] = lines[0] if not lines[0].startswith('"') else f" {lines[0]}"
    if len(lines) > 1:
        return [f'"""{lines[0]}', *lines[1:], '"""']
    return [f'"""{lines[0]}{"." if lines[0].endswith(chr(34)) else ""}"""']


def base_names(cls: Class, scope: Scope) -> list[str]:
    names, kinds = [], []
    if cls.kind == "enum":
        names.append("JavaEnum")
    if cls.kind == "record":
        names.append("JavaRecord")
    for parent in cls.parents:
        name, kind = _base(parent, cls, scope)
        if name is not None and name not in names:
            names.append(name)
            kinds.append((name, kind))
    redundant = {
        name for name, kind in kinds for other, also in kinds
        if name != other and kind is not None and also is not None and issubclass(also, kind)
    }  # fmt: skip
    return [name for name in names if name not in redundant]


def _base(parent: Type, cls: Class, scope: Scope) -> tuple[str | None, type | None]:
    own = scope.world.find(parent.name, cls.outer, cls.source) or scope.find_class(parent.name)
    if own is not None and own is not cls:
        return own.python, None
    last = parent.name.rpartition(".")[2]
    if last in EXCEPTIONS:
        return EXCEPTIONS[last], None
    kind = python_class(parent.name)
    if kind is not None:
        return python_name_of(parent.name), kind
    if name := find_inherited(parent.name, scope):
        return name, python_class(name)
    if last in CALLED or last in IGNORED:
        return None, None
    if last in _BASES or last in runtime_names():
        return _BASES.get(last, last), None
    raise Untranslatable(cls.node, f"{parent.name}, which {cls.name} extends, has no counterpart")


def find_inherited(name: str, scope: Scope) -> str:
    """Return the full name of a class that one of Storm's interfaces brings along, such as Emitter."""
    for around in scope.outward():
        for parent in scope.world.library_parents(around):
            if hasattr(python_class(parent.name), name):
                return f"{python_name_of(parent.name)}.{name}"
    return ""


def _annotation(kind: Type) -> str:
    return _ANNOTATIONS.get(kind.name) or ("int" if kind.is_whole and kind.primitive != "char" else "object")


def _constants(cls: Class, scope: Scope) -> list[str]:
    """Return the constants of an enum."""
    lines = []
    for member in cls.body:
        if member.type == "enum_constant":
            arguments = constructor_arguments(member, cls, scope) if children(optional(member, "arguments")) else ""
            comma = "," if arguments and "," not in arguments else ""
            lines += break_lines(f"{text(child(member, 'name'))} = ({arguments}{comma})")
    return lines


def _static_fields(cls: Class, scope: Scope) -> tuple[list[str], list[str]]:
    def attribute(field: JavaField) -> str:
        return cls.python_field(field.name)

    body, after = static_lines(cls, scope, attribute, lambda field: f"{cls.python}.{attribute(field)}")
    for member in cls.body:
        if member.type == "enum_constant" and (own := optional(member, "body")) is not None:
            after += _constant_methods(cls, text(child(member, "name")), own, scope)
    return body, after


def _constant_methods(cls: Class, constant: str, body: Node, scope: Scope) -> list[str]:
    """Return the methods that a constant of an enum has of its own."""
    lines = []
    own = read_class(scope.world, body, cls.source, cls, constant)
    own.parents = [Type(cls.name)]
    name_members(scope.world, own)
    for method in own.methods:
        name = f"{constant.lower()}_{method.python}"
        head, *rest = method_lines(method, cls, scope)
        lines += [f"def {name}({head.partition('(')[2]}", *rest, ""]
        lines += [f"{cls.python}.{constant}.{method.python} = {name}.__get__({cls.python}.{constant})", ""]
    return lines


def _members(cls: Class, scope: Scope) -> list[list[str]]:
    found = []
    if lines := constructor_lines(cls, scope):
        found.append(lines)
    for method in cls.methods:
        found.append(method_lines(method, cls, scope))
    names = {method.python for method in cls.methods}
    if "__eq__" in names and "__hash__" not in names:
        found.append(["__hash__ = object.__hash__"])
    for parent in cls.parents:
        called = CALLED.get(parent.name)
        if called in names and "__call__" not in names:
            found.append([f"__call__ = {called}"])
    if (functional := scope.world.functional(cls)) is not None:
        found.append(["def __call__(self, *arguments):", f"    return self.{functional.python}(*arguments)"])
    if "compareTo" in names and cls.kind != "enum":
        found.append(["def __lt__(self, other):", "    return self.compareTo(other) < 0"])
    if "iterator" in names:
        found.append(["def __iter__(self):", "    return each_of(self.iterator())"])
    if any(parent.name in ("AutoCloseable", "Closeable") for parent in cls.parents):
        found.append(["def __enter__(self):", "    return self"])
        found.append(["def __exit__(self, *error):", "    self.close()"])
    return found


def method_lines(method: JavaMethod, cls: Class, scope: Scope, function: bool = False) -> list[str]:
    """Return the lines of a method; ``function``: it stands in the module."""
    inner = body_scope(cls, scope, instance=not method.static)
    inner.returns = method.returns if method.returns != VOID else None
    inner.method = method.name
    parameters = [inner.declare(one.name, one.type) for one in method.parameters]
    first = [] if method.static else ["self"]
    name = python_name(method.python) if function else method.python
    decorators = ["@staticmethod"] if method.static and not function else []
    head = break_lines(f"def {name}({', '.join([*first, *parameters])}):")
    if method.body is None:
        return [*decorators, *head, f'    raise NotImplementedError("{cls.name}.{method.name}")']
    body = block_lines(method.body, inner)
    return [*decorators, *head, *indent([*_doc(method.node), *list_globals(inner), *body])]


def list_globals(scope: Scope) -> list[str]:
    return [f"global {', '.join(sorted(scope.frame.globals))}"] if scope.frame.globals else []


def body_scope(cls: Class, scope: Scope, instance: bool) -> Scope:
    """Return the scope of a method's body. `self` is its object; the object around a class is `outer`."""
    selves = dict(scope.selves)
    if cls.instance and cls.outer is not None and cls.outer not in selves and instance:
        selves[cls.outer] = "self.outer"
    if instance:
        selves[cls] = "self"
    else:
        selves.pop(cls, None)
    return scope.inner(selves=selves, frame=FunctionFrame(names=set(scope.frame.names)))


def constructor_lines(cls: Class, scope: Scope) -> list[str]:
    """Return `__init__`: the outer object, the parent's, the values of fields, then the constructor's own lines."""
    if cls.kind == "record":
        return _record_constructor(cls, scope)
    fields = [one for one in cls.fields.values() if not one.static]
    blocks = [member for member in cls.members if member.type == "block"]
    if not cls.constructors and not fields and not blocks and not cls.instance:
        return []
    if len(cls.constructors) > 1:
        return _merge_constructors(cls, scope)
    only = cls.constructors[0] if cls.constructors else None
    inner = body_scope(cls, scope, instance=True)
    parameters = [inner.declare(one.name, one.type) for one in only.parameters] if only else []
    return _init(cls, inner, parameters, only)


def _init(
    cls: Class, scope: Scope, parameters: list[str], only: JavaMethod | None, initialize: bool = True
) -> list[str]:
    outer = ["outer"] if cls.instance else []
    lines = ["self.outer = outer"] if outer else []
    own_parent = next((one for one in scope.world.lineage(cls) if one is not cls and one.kind == "class"), None)
    statements = list(only.body.named_children) if only is not None and only.body is not None else []
    explicit = next((one for one in statements if one.type == "explicit_constructor_invocation"), None)
    if explicit is not None:
        lines += list(statement_lines([explicit], scope))
        statements.remove(explicit)
    elif own_parent is not None and constructor_lines(own_parent, scope):
        lines.append("super().__init__()")
    assigned = {name for one in statements if (name := get_assigned(one))}
    lines += instance_lines(cls, scope, assigned) if initialize else []
    lines += list(statement_lines(statements, scope))
    head = break_lines(f"def __init__({', '.join(['self', *outer, *parameters])}):")
    if not lines:
        return []
    real = any(not line.startswith("#") for line in lines)
    return [*head, *indent([*list_globals(scope), *lines, *([] if real else ["pass"])])]


def get_assigned(node: Node) -> str:
    """Return the field that a statement ``this.name = ...`` or ``name = ...`` sets."""
    if node.type != "expression_statement" or children(node)[0].type != "assignment_expression":
        return ""
    assignment = children(node)[0]
    if text(child(assignment, "operator")) != "=":
        return ""
    return text(child(assignment, "left")).removeprefix("this.")


def _merge_constructors(cls: Class, scope: Scope) -> list[str]:
    """Return an `__init__` for several constructors: those that call another one become defaults, if that is all."""
    main = [one for one in cls.constructors if _delegation(one) is None]
    if len(main) != 1:
        return _dispatch(cls, scope)
    only = main[0]
    inner = body_scope(cls, scope, instance=True)
    parameters = [inner.declare(one.name, one.type) for one in only.parameters]
    defaults: dict[int, str] = {}
    try:
        for one in cls.constructors:
            if one is not only:
                _add_defaults(one, only, defaults, class_scope(cls, scope))
    except Untranslatable:
        return _dispatch(cls, scope)
    written = [f"{name}={defaults[index]}" if index in defaults else name for index, name in enumerate(parameters)]
    if any(index not in defaults for index in range(min(defaults), len(parameters))):
        return _dispatch(cls, scope)
    return _init(cls, inner, written, only)


def _dispatch(cls: Class, scope: Scope) -> list[str]:
    """Return an `__init__` that tells its constructors apart by the number and the types of the arguments."""
    ordered = sorted(cls.constructors, key=lambda one: len(one.parameters))
    lines: list[str] = []
    for one in ordered:
        inner = body_scope(cls, scope, instance=True)
        names = [inner.declare(parameter.name, parameter.type) for parameter in one.parameters]
        delegating = _delegation(one) is not None
        _, *body = _init(cls, inner, [], one, initialize=not delegating) or ["", "    pass"]
        unpacked = [f"    {', '.join(names)}{',' if len(names) == 1 else ''} = arguments"] if names else []
        lines += [f"{'elif' if lines else 'if'} {_fits(one, ordered, scope)}:", *unpacked, *body]
    if cls.instance:
        raise Untranslatable(cls.node, f"the constructors of {cls.name}, which belongs to an object, are overloaded")
    return ["def __init__(self, *arguments):", *indent(lines)]


def _fits(one: JavaMethod, others: list[JavaMethod], scope: Scope) -> str:
    """Return the test that arguments are for this constructor."""
    count = len(one.parameters)
    same = [other for other in others if len(other.parameters) == count]
    tests = [f"len(arguments) == {count}"]
    for index, parameter in enumerate(one.parameters if len(same) > 1 else ()):
        kinds = {type_test(other.parameters[index].type, scope) for other in same}
        if len(kinds) == len(same) and "" not in kinds:
            tests.append(f"isinstance(arguments[{index}], {type_test(parameter.type, scope)})")
            return " and ".join(tests)
    if len(same) > 1:
        raise Untranslatable(one.node, f"the constructors of {one.name} cannot be told apart")
    return tests[0]


def _delegation(constructor: JavaMethod) -> Node | None:
    for one in children(constructor.body):
        if one.type == "explicit_constructor_invocation" and text(child(one, "constructor")) == "this":
            return one
    return None


def _add_defaults(one: JavaMethod, main: JavaMethod, defaults: dict[int, str], scope: Scope) -> None:
    """Read ``this(a, b, 10)``: the leading arguments are handed on, the others are defaults."""
    call = _delegation(one)
    given = children(optional(call, "arguments")) if call is not None else []
    names = [parameter.name for parameter in one.parameters]
    handed = [text(argument) for argument in given[: len(names)]]
    if call is None or len(children(one.body)) != 1 or handed != names or len(given) != len(main.parameters):
        raise Untranslatable(one.node, f"the constructors of {one.name} are not defaults of one another")
    for index, argument in enumerate(given[len(names) :], len(names)):
        value = initial(argument, main.parameters[index].type, scope).text
        if value.endswith(")") or value[0] in "[{" or defaults.setdefault(index, value) != value:
            raise Untranslatable(one.node, f"the constructors of {one.name} are not defaults of one another")


def _record_constructor(cls: Class, scope: Scope) -> list[str]:
    """Return `__post_init__` for a compact constructor, and a class method for each further one."""
    lines = []
    compact = next((one for one in cls.body if one.type == "compact_constructor_declaration"), None)
    if compact is not None:
        body = child(compact, "body")
        if any(one.type == "assignment_expression" for one in walk(body)):
            raise Untranslatable(compact, "a constructor that changes what a record gets is not translated")
        inner = body_scope(cls, scope, instance=True)
        lines += ["def __post_init__(self):", *indent(block_lines(body, inner))]
    for one in cls.constructors:
        call = _delegation(one)
        if call is None or len(children(one.body)) != 1:
            raise Untranslatable(one.node, "a constructor of a record that does more than this(...)")
        inner = body_scope(cls, scope, instance=False)
        names = [inner.declare(parameter.name, parameter.type) for parameter in one.parameters]
        head = f"def {constructor_name(one)}({', '.join(['cls', *names])}):"
        lines += [*([""] if lines else []), "@classmethod", head]
        lines += indent(break_lines(f"return cls({constructor_arguments(call, cls, inner)})"))
    return lines


def local_class(node: Node, scope: Scope) -> list[str]:
    cls = read_class(scope.world, node, scope.source, scope.cls)
    raise Untranslatable(node, f"the local class {cls.name} is not translated")


HANDLERS.update(dict.fromkeys(CLASSES, local_class))
