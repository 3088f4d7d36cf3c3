"""Finds where values come from: attributes, globals, closures and arguments, without running user code."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
import importlib
import importlib.util
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ...operations.determinism import attributes_of
from . import diagnostics, libraries, tables
from .atoms import (
    CONTAINERS,
    FRESH,
    IMMUTABLE,
    NOTHING,
    PLAIN,
    READ,
    Args,
    Argument,
    Atom,
    Bound,
    Data,
    KnownObject,
    Local,
    Method,
    NewObject,
    Super,
    Value,
    outlives,
    read_back,
    wrap,
)
from .diagnostics import CodeFinding, CodePlace
from .frames import Frame
from .modules import (
    Function,
    calls_of,
    find_assigned,
    find_assigned_in,
    find_assigned_in_class,
    find_changed,
    find_changer,
    find_import,
    list_enclosing,
    mentions,
    parameters,
    sole_assignments,
    text_of,
    users_modules,
)
from .sources import Names, is_generated, is_ours, is_users

_MISSING = object()
_IN_C = (types.GetSetDescriptorType, types.MemberDescriptorType, types.ClassMethodDescriptorType)
_INSIDE = ("__globals__", "__closure__", "__code__", "__builtins__", "__subclasses__", "__self__", "__func__")


class Origins:
    """The part of the reader that finds where values come from.

    ``starting``: the object whose `__init__` or `prepare` is being read. ``done``: the results of what was read.
    """

    def __init__(self, trusted: Iterable[str]) -> None:
        self.trusted = tuple(trusted)
        self.findings: dict[CodeFinding, None] = {}
        self.done: dict[Any, Value] = {}
        self.starting: KnownObject | NewObject | None = None
        self.attributes: dict[tuple[Any, str], Value] = {}
        self.prepared: set[tuple[Any, str]] = set()
        self.preparing = False

    function: Callable[..., Value]

    def is_declared(self, thing: Any, place: CodePlace | None) -> bool:
        raise NotImplementedError

    def report(self, finding: CodeFinding) -> None:
        self.findings.setdefault(finding)

    def unseen(self, what: str, place: CodePlace | None) -> Value:
        """Report an expression that was not understood. Its value counts as read, so it is reported only once."""
        self.report(diagnostics.unseen(place.text if place else what, place))
        return READ

    def once(self, *key: Any) -> bool:
        if key in self.done:
            return False
        self.done[key] = NOTHING
        return True

    @contextmanager
    def starts(self, owner: KnownObject | NewObject | None) -> Iterator[None]:
        before, self.starting = self.starting, owner
        yield
        self.starting = before

    def _evaluate(self, expressions: Iterable[ast.expr], file: str, names: dict[str, Any]) -> None:
        """Read expressions of surrounding code, for their findings."""
        for expression in expressions:
            Lenient(self, Names(file, names), None, {}).visit(expression)

    # -- attributes -------------------------------------------------------------------------------------------------

    def remember(self, owner: KnownObject, name: str, value: Value) -> None:
        """Record an attribute that `__init__` or `prepare` stores. They may change it; to later calls it is held."""
        key = (id(owner.value), name)
        self.attributes[key] = self.attributes.get(key, NOTHING) | read_back(value)
        if self.preparing:
            self.prepared.add(key)

    def attribute(self, owner: Atom, name: str, place: CodePlace | None) -> Value:
        """Return the value of ``owner.name``, without running user code."""
        if isinstance(owner, Super):
            return self._of_super(owner, name, place)
        if isinstance(owner, KnownObject):
            return self._of_known(owner, name, place)
        if isinstance(owner, NewObject) and is_users(owner.kind):
            return self._of_instance(owner, owner.kind, name, place)
        if isinstance(owner, Bound | Local):
            return PLAIN
        if owner == Argument("context") and name == "transaction":
            return frozenset([Argument("attempt")])
        return frozenset([Method(owner, name)])

    def _of_known(self, owner: KnownObject, name: str, place: CodePlace | None) -> Value:
        value = owner.value
        if isinstance(value, types.ModuleType):
            return self._of_module(value, name, place)
        if name == "__class__":
            return wrap(type(value))
        if isinstance(value, type):
            return self._of_class(value, name, place)
        if is_users(type(value)):
            return self._of_instance(owner, type(value), name, place)
        stored = attributes_of(value)
        if is_ours(type(value)) and not (libraries.belongs(type(value)) and name not in stored):
            return wrap(stored[name]) if name in stored else READ
        if name in _INSIDE and callable(value):
            return self.unseen(name, place)
        if isinstance(value, types.FunctionType) and name in stored and is_users(value):
            self._origin_of_tag(value, name, place)
        if name in stored:
            return wrap(stored[name])
        function = isinstance(value, types.FunctionType | functools.partial)
        return PLAIN if function else frozenset([Method(owner, name)])

    def _of_module(self, module: types.ModuleType, name: str, place: CodePlace | None) -> Value:
        dotted = f"{tables.ALIASES.get(module.__name__, module.__name__)}.{name}"
        value = vars(module).get(name, _MISSING)
        if value is _MISSING and not is_users(module):
            value = getattr(module, name, _MISSING)  # a library's module may load it on first use
        if value is _MISSING:
            return self.unseen(dotted, place)
        if dotted in ("sys.stdout", "sys.stderr"):
            return frozenset([Argument("stream")])
        if tables.of_the_machine(dotted, value):
            self.report(diagnostics.reads(dotted, place))
            return PLAIN
        if is_users(module):
            self.origin_in_module(Names("", vars(module)), name, place or CodePlace(module.__name__))
        return wrap(value)

    def _of_class(self, kind: type, name: str, place: CodePlace | None) -> Value:
        value = inspect.getattr_static(kind, name, _MISSING)
        if value is _MISSING:
            return PLAIN if name.startswith("__") else self.unseen(name, place)
        if is_users(kind) and not isinstance(value, types.FunctionType):
            self._origin_in_class(kind, name, place)
        if isinstance(value, staticmethod | classmethod) or not is_users(kind):
            value = getattr(kind, name)  # bound to the class
        return wrap(value)

    def _of_instance(self, owner: KnownObject | NewObject, kind: type, name: str, place: CodePlace | None) -> Value:
        """Return an attribute of a user's object: a method, a property, or the content of the object or its class."""
        if name in ("__class__", "__dict__"):
            return wrap(kind) if name == "__class__" else frozenset([Data(held=outlives(owner), inner=True)])
        users = [base for base in kind.__mro__ if is_users(base)]
        if any("__getattribute__" in vars(base) for base in users):
            return self.unseen(name, place)
        base = next((base for base in kind.__mro__ if name in vars(base)), None)
        if base is not None and isinstance(vars(base)[name], property | types.FunctionType):
            return self._bind_member(vars(base)[name], owner, base, name, place)
        self._origin_in_class(kind, name, place)
        stored = self._read_stored(owner, name)
        if stored:
            return stored
        if base is not None:
            return self._bind_member(vars(base)[name], owner, base, name, place)
        if any("__getattr__" in vars(base) for base in users):
            return self.unseen(name, place)
        return frozenset([Data(held=outlives(owner))])

    def _read_stored(self, owner: KnownObject | NewObject, name: str) -> Value:
        """Return the object's own attribute: its present content, and the values stored by code that was read."""
        if isinstance(owner, NewObject):
            return owner.attributes.get(name, NOTHING)
        key = (id(owner.value), name)
        stored = self.attributes.get(key, NOTHING)  # stored by `prepare`, or while `__init__` is read
        present = attributes_of(owner.value)
        if name not in present:
            slot = inspect.getattr_static(owner.value, name, None)
            slotted = inspect.getattr_static(type(owner.value), "__slots__", None) is not None
            if not slotted or not isinstance(slot, types.MemberDescriptorType):
                return stored
            present = {name: slot.__get__(owner.value)}
        if owner != self.starting:
            self._origin_of_arguments(type(owner.value))
        value = present[name]
        if owner == self.starting and (isinstance(value, list | dict | set) or libraries.belongs(type(value))):
            return stored or FRESH
        return wrap(present[name]) | (stored if key in self.prepared else NOTHING)

    def _bind_member(
        self, member: Any, owner: KnownObject | NewObject, kind: type, name: str, place: CodePlace | None
    ) -> Value:
        """Return an attribute that class ``kind`` defines, as the object sees it."""
        if isinstance(member, property | functools.cached_property):
            getter = member.fget if isinstance(member, property) else member.func
            users = isinstance(getter, types.FunctionType) and is_users(getter) and not self.is_declared(getter, place)
            return self.function(getter, Args(), owner) if users else PLAIN
        if isinstance(member, types.FunctionType):
            if libraries.belongs(member):
                return frozenset([Method(owner, name)])
            if not is_users(member):
                return READ if is_ours(member) or tables.same_again(tables.name_of(member)) else wrap(member)
            return READ if is_generated(member, kind) else frozenset([Bound(member, owner)])
        if isinstance(member, staticmethod | classmethod):
            inner: Any = member.__func__
            of_class = isinstance(member, classmethod) and isinstance(inner, types.FunctionType)
            return frozenset([Bound(inner, KnownObject(kind))]) if of_class else wrap(inner)
        if isinstance(member, types.MethodDescriptorType | types.WrapperDescriptorType):
            return frozenset([Method(Data(held=outlives(owner)), name)])
        if isinstance(member, _IN_C):
            return PLAIN
        if type(member).__name__ == "_tuplegetter":  # of a named tuple
            return wrap(member.__get__(owner.value)) if isinstance(owner, KnownObject) else PLAIN
        return wrap(member)

    def _of_super(self, owner: Super, name: str, place: CodePlace | None) -> Value:
        instance = owner.owner
        kind = instance.kind if isinstance(instance, NewObject) else object
        if isinstance(instance, KnownObject):
            kind = instance.value if isinstance(instance.value, type) else type(instance.value)
        mro = kind.__mro__
        for base in mro[mro.index(owner.after) + 1 :] if owner.after in mro else ():
            if name in vars(base):
                assert isinstance(instance, KnownObject | NewObject)
                return self._bind_member(vars(base)[name], instance, base, name, place)
        return self.unseen(name, place)

    # -- globals ----------------------------------------------------------------------------------------------------

    def module(self, name: str, place: CodePlace, level: int = 0, names: dict[str, Any] | None = None) -> Value:
        """Return a module that a function itself imports. Looks for a user's module, but does not import it."""
        if level:
            name = importlib.util.resolve_name("." * level + name, (names or {}).get("__package__") or "")
        root = name.partition(".")[0]
        if name not in sys.modules and (root in sys.stdlib_module_names or tables.same_again(name)):
            importlib.import_module(name)
        return wrap(sys.modules[name]) if name in sys.modules else self.unseen(name, place)

    def origin_in_module(self, around: Names, name: str, place: CodePlace) -> None:
        """Read how a module makes a global while it is imported: each process makes it anew."""
        names = around.globals
        value = names[name]
        if not self.once("global", id(names), name) or isinstance(value, types.ModuleType):
            return
        file, text = text_of(names)
        if not text and around.source is not None:  # a notebook's cell
            file, text = around.file, around.source.text
        if name in tables.PLACE:
            self.report(diagnostics.reads(name, place))
        function = find_changed(text).get(name)
        if function is not None:
            self.report(diagnostics.unseen(f"{name}, which {function} changes", place))
        with self.starts(KnownObject(value)):
            self._evaluate(find_assigned(text, name), file, names)
        if function is None:
            self._check_unchanged(names, text, name, place)
        self._origin_of_import(find_import(text, name), place)

    def _origin_of_import(self, source: tuple[str, str] | None, place: CodePlace) -> None:
        if source is None or source[0] not in sys.modules:
            return
        module = sys.modules[source[0]]
        if not is_users(module):
            if tables.of_the_machine(".".join(source), vars(module).get(source[1])):
                self.report(diagnostics.reads(".".join(source), place))
        elif source[1] in vars(module):
            self.origin_in_module(Names("", vars(module)), source[1], place)

    def _check_unchanged(self, names: dict[str, Any], text: str, name: str, place: CodePlace) -> None:
        """Report a global that other code changes, or that has another value than its module assigned."""
        home, value = str(names.get("__name__")), names[name]
        if not callable(value) and isinstance(value, (*IMMUTABLE, *CONTAINERS)):
            other = find_changer(home, sys.modules.get(home), name, value)
            if other is not None:
                self.report(diagnostics.unseen(f"{name}, which module {other} changes", place))
                return
        expressions = sole_assignments(text, name)
        if expressions and not any(self._may_be(expression, names, value) for expression in expressions):
            self.report(diagnostics.differs(name, place))

    def _may_be(self, expression: ast.expr, names: dict[str, Any], value: Any) -> bool:
        """Return whether an expression may have this value; True if that is not known."""
        with suppress(ValueError, TypeError, SyntaxError, MemoryError):
            literal = ast.literal_eval(expression)
            return type(literal) is type(value) and bool(literal == value)
        if not isinstance(expression, ast.Attribute):
            return True
        atoms = Frame(self, Names("", names), None, {}).raw(expression)
        atom = next(iter(atoms), None)
        if len(atoms) != 1 or not isinstance(atom, KnownObject):
            return True
        return atom.value is value or bool(atom.value == value)

    # -- classes ----------------------------------------------------------------------------------------------------

    def _origin_in_class(self, kind: type, name: str, place: CodePlace | None) -> None:
        for base in kind.__mro__:
            if not is_users(base) or base.__module__ not in sys.modules or not self.once("class", base, name):
                continue
            names = vars(sys.modules[base.__module__])
            file, text = text_of(names)
            self._evaluate(find_assigned_in_class(text, base.__name__, name), file, names)
            if name in vars(base) and text and place is not None:
                self._check_class(base, name, text, place)

    def _check_class(self, kind: type, name: str, text: str, place: CodePlace) -> None:
        """Report an attribute that code outside of the class gives it, or changes."""
        value = vars(kind)[name]
        plain = isinstance(value, (*IMMUTABLE, *CONTAINERS)) and not (name[:2] == "__" or isinstance(value, kind))
        if not plain or dataclasses.is_dataclass(kind):
            return
        if not mentions(text, kind.__name__, name):
            self.report(diagnostics.unseen(f"{place.text}, which class {kind.__name__} does not define", place))
        elif (other := find_changer(kind.__module__, kind, name, value)) is not None:
            self.report(diagnostics.unseen(f"{place.text}, which module {other} changes", place))

    def _origin_of_tag(self, function: types.FunctionType, name: str, place: CodePlace | None) -> None:
        """Read how code sets an attribute on a function."""
        file, text = text_of(function.__globals__)
        expressions = find_assigned(text, function.__name__)
        if not expressions and place is not None and name[:2] != "__":
            self.unseen(name, place)
        self._evaluate(expressions, file, function.__globals__)

    # -- arguments --------------------------------------------------------------------------------------------------

    def origin_in_closure(self, names: Names, name: str) -> None:
        if not self.once("closure", id(names.source.function), name) or callable(names.closure[name]):
            return
        for function in list_enclosing(names.source):
            self._evaluate(find_assigned_in(function.body, name), names.file, names.globals)
            if name in parameters(function):
                self._check_calls(function.name, names.globals, names.source.text)

    def _origin_of_arguments(self, kind: type) -> None:
        """Read the arguments with which the user's modules make objects of this class."""
        if not self.once("made", kind) or kind.__module__ not in sys.modules:
            return
        for module in users_modules():
            names = vars(module)
            text = text_of(names)[1]
            if f"{kind.__name__}(" in text and names.get(kind.__name__, kind) is kind:
                self._check_calls(kind.__name__, names, text)

    def _check_calls(self, name: str, names: dict[str, Any], text: str) -> None:
        """Report a clock or a random draw in the arguments of calls. Settings are passed to stay as they are."""
        file = text_of(names)[0]
        other = type(self)(self.trusted)
        for call, within in calls_of(text, name):
            arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
            other._evaluate([*arguments, *_local_values(arguments, within)], file, names)
        for finding in other.findings:
            if tables.is_chance(finding.name):
                self.report(finding)


def _local_values(expressions: Iterable[ast.expr], within: Function | None) -> list[ast.expr]:
    """Return the values that the surrounding function assigns to variables of the expressions."""
    if within is None:
        return []
    names = {node.id for expression in expressions for node in ast.walk(expression) if isinstance(node, ast.Name)}
    return [value for name in names for value in find_assigned_in(within.body, name)]


class Lenient(Frame):
    """Reads an expression of a surrounding function whose other variables are not known."""

    def look_up(self, name: str) -> Value | None:
        unknown = name not in self.env and name not in self.names.globals and name not in vars(builtins)
        return READ if unknown else super().look_up(name)
