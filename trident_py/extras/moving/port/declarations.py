"""The classes of all files, with their members: what a name of the user's own means."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tree_sitter import Node

from .java_types import OBJECT, VOID, Type, array_of, read_type
from .names import python_name
from .source import JavaSource, child, children, get_changed, modifiers, optional, text, walk

CLASSES = {
    "class_declaration": "class", "interface_declaration": "interface", "enum_declaration": "enum",
    "record_declaration": "record",
}  # fmt: skip


SPECIAL = {("toString", 0): "__str__", ("equals", 1): "__eq__", ("hashCode", 0): "__hash__"}


@dataclass(eq=False)
class Parameter:
    name: str
    type: Type
    varargs: bool = False


@dataclass(eq=False)
class JavaField:
    name: str
    type: Type
    static: bool
    final: bool
    node: Node
    value: Node | None = None


@dataclass(eq=False)
class JavaMethod:
    """A method or a constructor. ``python``: its name there, which differs if it is overloaded."""

    name: str
    parameters: list[Parameter]
    returns: Type
    static: bool
    node: Node
    python: str = ""
    private: bool = False

    @property
    def body(self) -> Node | None:
        return optional(self.node, "body")

    def takes(self, count: int) -> bool:
        if self.parameters and self.parameters[-1].varargs:
            return count >= len(self.parameters) - 1
        return count == len(self.parameters)


@dataclass(eq=False)
class Class:
    """A class, interface, enum or record of the given files. ``instance``: it belongs to an object of its outer one.
    ``attributes``: the fields that have another name in Python."""

    name: str
    kind: str
    node: Node
    source: JavaSource
    outer: Class | None = None
    instance: bool = False
    parents: list[Type] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    fields: dict[str, JavaField] = field(default_factory=dict)
    methods: list[JavaMethod] = field(default_factory=list)
    constructors: list[JavaMethod] = field(default_factory=list)
    inner: dict[str, Class] = field(default_factory=dict)
    constants: list[str] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    python: str = ""
    flat: bool = False

    @property
    def body(self) -> list[Node]:
        body = self.node if self.node.type == "class_body" else optional(self.node, "body")
        return [] if body is None else body.named_children

    @property
    def members(self) -> list[Node]:
        """The members of the body, also those that stand behind the constants of an enum."""
        return [
            one
            for member in self.body
            for one in (member.named_children if member.type == "enum_body_declarations" else [member])
        ]

    @property
    def type(self) -> Type:
        return Type(self.name, tuple(Type(name) for name in self.variables))

    @property
    def full(self) -> str:
        """The name with package and outer classes."""
        return f"{self.source.package if self.outer is None else f'{self.outer.full}.'}{self.name}"

    def is_hidden_from(self, source: JavaSource) -> bool:
        """Tell whether its simple name means another class in that file, by what the file imports."""
        if source is self.source:
            return False
        imported = source.imports.get(self.name)
        if imported is None:
            return self.outer is not None and source.imports_storms(self.name)
        return imported != self.full

    def is_imported_by(self, source: JavaSource) -> bool:
        """Tell whether a file imports this class, by itself or with all classes of the one around it."""
        if source.imports.get(self.name) == self.full:
            return True
        return self.outer is not None and self.outer.full in (*source.wildcards, source.statics.get(self.name))

    def methods_named(self, name: str) -> list[JavaMethod]:
        return [method for method in self.methods if method.name == name]

    def python_field(self, name: str) -> str:
        """Return the attribute of a field: a method of the same name would hide it."""
        taken = self.kind != "record" and any(method.python == name for method in self.methods)
        taken = taken or (self.kind == "enum" and name in ("name", "value"))
        return self.attributes.get(name) or python_name(name, member=True) + ("_" if taken else "")


@dataclass(eq=False)
class World:
    """All classes of the given files, and the type variables that they declare."""

    sources: list[JavaSource] = field(default_factory=list)
    classes: dict[str, list[Class]] = field(default_factory=lambda: defaultdict(list))
    variables: dict[str, Type] = field(default_factory=dict)

    @cached_property
    def reassigned(self) -> set[str]:
        """The names that something else than a constructor assigns to."""
        return {name for source in self.sources for name in _list_assigned(source.root)}

    def all(self) -> Iterator[Class]:
        for classes in self.classes.values():
            yield from classes

    def find(self, name: str, within: Class | None = None, source: JavaSource | None = None) -> Class | None:
        """Return the class that a name means inside a class, or in a file: the nearest one."""
        first, _, rest = name.partition(".")
        found = self._nearest(first, within, within.source if within is not None else source)
        while found is not None and rest:
            first, _, rest = rest.partition(".")
            found = found.inner.get(first)
        return found

    def _nearest(self, name: str, within: Class | None, source: JavaSource | None) -> Class | None:
        around = within
        while around is not None:
            if around.name == name:
                return around
            for one in self.lineage(around):
                if name in one.inner:
                    return one.inner[name]
            around = around.outer
        named = self.classes.get(name, ())
        tops = [one for one in named if one.outer is None]
        if source is not None:
            tops = [one for one in tops if not one.is_hidden_from(source)]
            imported = (one for one in named if one.outer is not None and one.is_imported_by(source))
            tops = [one for one in tops if one.source is source] or [*imported, *tops]
        return tops[0] if tops else None

    def lineage(self, cls: Class) -> Iterator[Class]:
        """Yield the class and its parents among the given files, nearest first."""
        yield cls
        for _, found in self.parents(cls):
            yield from self.lineage(found)

    def parents(self, cls: Class) -> Iterator[tuple[Type, Class]]:
        """Yield the direct parents among the given files, as the class writes them, with their classes."""
        for parent in cls.parents:
            found = self.find(parent.name, cls.outer, cls.source) or self._top(parent.name, cls.source)
            if found is not None and found is not cls:
                yield parent, found

    def _top(self, name: str, source: JavaSource) -> Class | None:
        named = self.classes.get(name.rpartition(".")[2], ())
        return next((one for one in named if not one.is_hidden_from(source)), None)

    def field(self, cls: Class, name: str) -> tuple[Class, JavaField] | None:
        return next(((one, one.fields[name]) for one in self.lineage(cls) if name in one.fields), None)

    def methods(self, cls: Class, name: str) -> list[JavaMethod]:
        return [method for one in self.lineage(cls) for method in one.methods_named(name)]

    def library_parents(self, cls: Class) -> Iterator[Type]:
        """Yield the parents that are not among the given files."""
        for one in self.lineage(cls):
            for parent in one.parents:
                if self.find(parent.name, one.outer, one.source) is None:
                    yield parent

    def functional(self, cls: Class) -> JavaMethod | None:
        """Return the only abstract method of an interface."""
        if cls.kind != "interface":
            return None
        abstract = [one for each in self.lineage(cls) for one in each.methods if one.body is None and not one.static]
        return abstract[0] if len(abstract) == 1 else None


def _list_assigned(node: Node) -> Iterator[str]:
    if (target := get_changed(node)) is not None:
        yield text(target).rpartition(".")[2]
    for one in node.children:
        if one.type != "constructor_declaration":
            yield from _list_assigned(one)


def collect(sources: Iterable[JavaSource]) -> World:
    world = World(sources=list(sources))
    declared = [(one, node) for one in world.sources for node in one.root.named_children if node.type in CLASSES]
    given = {f"{source.package}{text(child(node, 'name'))}" for source, node in declared}
    for source in world.sources:
        source.given = given
    for source, node in declared:
        _add(world, read_class(world, node, source, None))
    _name_classes(world)
    return world


def _add(world: World, cls: Class) -> None:
    world.classes[cls.name].append(cls)
    for inner in cls.inner.values():
        _add(world, inner)


def _name_classes(world: World) -> None:
    """Nested classes stand in the module: their name, or the outer one's before it if that is not unique."""
    for name, classes in world.classes.items():
        for cls in classes:
            shared = len(classes) > 1 or any(cls.is_hidden_from(source) for source in world.sources)
            outer = f"{cls.outer.name}{name}" if cls.outer is not None and shared else name
            cls.python = python_name(outer)


def read_class(world: World, node: Node, source: JavaSource, outer: Class | None, name: str = "") -> Class:
    """Read a declaration, or the body of an anonymous class, and the classes in it."""
    kind = CLASSES.get(node.type, "class")
    cls = Class(name or text(child(node, "name")), kind, node, source, outer)
    static = kind != "class" or "static" in modifiers(node)
    cls.instance = outer is not None and not static and outer.kind not in ("interface", "record")
    cls.variables = _variables(world, node)
    for part in node.named_children:
        if part.type in ("superclass", "super_interfaces", "extends_interfaces"):
            for one in walk_types(part):
                cls.parents.append(read_type(one, source.aliases))
    for parameter in children(optional(node, "parameters")) if kind == "record" else ():
        read = _parameter(parameter, source.aliases)
        cls.fields[read.name] = JavaField(read.name, read.type, False, True, parameter)
    for member in cls.body:
        _read_member(world, cls, member)
    return cls


def walk_types(part: Node) -> list[Node]:
    found = []
    for one in children(part):
        found += children(one) if one.type in ("type_list", "interface_type_list") else [one]
    return found


def _variables(world: World, node: Node) -> list[str]:
    names = []
    parameters = optional(node, "type_parameters") or next(
        (one for one in node.named_children if one.type == "type_parameters"), None
    )
    for one in children(parameters):
        bound = next((part for part in one.named_children if part.type == "type_bound"), None)
        name = text(next(part for part in one.named_children if "identifier" in part.type))
        names.append(name)
        world.variables.setdefault(name, read_type(children(bound)[0]) if bound else OBJECT)
    return names


def _read_member(world: World, cls: Class, member: Node) -> None:
    kind = member.type
    if kind in ("field_declaration", "constant_declaration"):
        for read in read_declarators(member, cls.source.aliases, static=cls.kind == "interface"):
            cls.fields[read.name] = read
    elif kind == "method_declaration":
        cls.methods.append(_read_method(world, cls, member))
    elif kind == "constructor_declaration":
        cls.constructors.append(
            JavaMethod(cls.name, _parameters(member, cls.source.aliases), VOID, False, member, "__init__")
        )
    elif kind == "enum_constant":
        cls.constants.append(text(child(member, "name")))
    elif kind == "enum_body_declarations":
        for one in member.named_children:
            _read_member(world, cls, one)
    elif kind in CLASSES:
        inner = read_class(world, member, cls.source, cls)
        cls.inner[inner.name] = inner


def read_declarators(node: Node, aliases: dict[str, str], static: bool = False) -> list[JavaField]:
    """Return what a declaration of fields or locals declares."""
    words, declared = modifiers(node), read_type(child(node, "type"), aliases)
    found = []
    for one in node.children_by_field_name("declarator"):
        kind = array_of(declared, text(optional(one, "dimensions")).count("["))
        name = text(child(one, "name"))
        found.append(JavaField(name, kind, static or "static" in words, "final" in words, one, optional(one, "value")))
    return found


def _read_method(world: World, cls: Class, node: Node) -> JavaMethod:
    _variables(world, node)
    words, returns = modifiers(node), read_type(child(node, "type"), cls.source.aliases)
    name = text(child(node, "name"))
    parameters = _parameters(node, cls.source.aliases)
    python = SPECIAL.get((name, len(parameters))) or python_name(name, member=True)
    return JavaMethod(name, parameters, returns, "static" in words, node, python, "private" in words)


def _parameters(node: Node, aliases: dict[str, str]) -> list[Parameter]:
    return [
        _parameter(one, aliases)
        for one in children(optional(node, "parameters"))
        if one.type in ("formal_parameter", "spread_parameter")
    ]


def _parameter(node: Node, aliases: dict[str, str]) -> Parameter:
    if node.type == "spread_parameter":
        parts = [one for one in children(node) if one.type != "modifiers"]
        return Parameter(text(child(parts[1], "name")), array_of(read_type(parts[0], aliases)), varargs=True)
    kind = read_type(child(node, "type"), aliases)
    return Parameter(text(child(node, "name")), array_of(kind, text(optional(node, "dimensions")).count("[")))


def has_main(cls: Class) -> bool:
    return any(one.name == "main" and one.static for one in cls.methods)


def find_instantiated(world: World) -> set[str]:
    """Return the simple names of the classes that some file creates, extends or uses as a type."""
    found: set[str] = set()
    for source in world.sources:
        for node in walk(source.root):
            if node.type == "object_creation_expression":
                found.add(read_type(child(node, "type")).name.rpartition(".")[2])
    return found
