"""Resolves attributes of all possible values of an expression, without running user code."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any

from . import findings, machine, tables
from .atoms import (
    FRESH,
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
    Made,
    Method,
    Super,
    Value,
    held,
    known,
    outlives,
)
from .binding import Names
from .findings import CodeFinding, CodePlace
from .sources import generated, is_ours, is_users

_MISSING = object()
_INSIDE = ("__globals__", "__closure__", "__code__", "__builtins__", "__subclasses__", "__self__", "__func__")


class Attributes:
    """The part of the reader that resolves attributes. ``starting``: whose `__init__` or `prepare` is being read."""

    def __init__(self, trusted: Iterable[str]) -> None:
        self.trusted = tuple(trusted)
        self.starting: KnownObject | Made | None = None
        self.attributes: dict[tuple[Any, str], Value] = {}
        self.prepared: set[tuple[Any, str]] = set()
        self.preparing = False

    report: Callable[[CodeFinding], None]
    function: Callable[..., Value]
    local: Callable[..., Value]
    construct_users: Callable[..., Value]
    use: Callable[[Atom, CodePlace | None], None]
    touch: Callable[[Atom, CodePlace | None], None]
    origin_in_class: Callable[..., None]
    origin_of_arguments: Callable[[type], None]
    origin_in_module: Callable[[Names, str, CodePlace], None]
    origin_of_tag: Callable[[types.FunctionType, str, CodePlace | None], None]

    def declared(self, thing: Any, place: CodePlace | None) -> bool:
        raise NotImplementedError

    def remember(self, owner: KnownObject, name: str, value: Value) -> None:
        """Records an attribute that `__init__` or `prepare` stores. They may change it; to later calls it is held."""
        key = (id(owner.value), name)
        self.attributes[key] = self.attributes.get(key, NOTHING) | held(value)
        if self.preparing:
            self.prepared.add(key)

    def attribute(self, owner: Atom, name: str, place: CodePlace | None) -> Value:
        """Returns the value of ``owner.name``, without running user code."""
        if isinstance(owner, Super):
            return self._super(owner, name, place)
        if isinstance(owner, KnownObject):
            return self._of_known(owner, name, place)
        if isinstance(owner, Made) and is_users(owner.kind):
            return self._of_instance(owner, owner.kind, name, place)
        if isinstance(owner, Argument):
            if owner.role == "context" and name == "transaction":
                return frozenset([Argument("attempt")])
            return frozenset([Method(owner, name)])
        if isinstance(owner, Bound | Local):
            return PLAIN
        return frozenset([Method(owner, name)])

    def _of_known(self, owner: KnownObject, name: str, place: CodePlace | None) -> Value:
        value = owner.value
        if isinstance(value, types.ModuleType):
            return self._of_module(value, name, place)
        if name == "__class__":
            return known(type(value))
        if isinstance(value, type):
            return self._of_class(value, name, place)
        if is_users(type(value)):
            return self._of_instance(owner, type(value), name, place)
        own = getattr(value, "__dict__", {})
        if is_ours(type(value)):
            return known(own[name]) if name in own else READ
        if name in _INSIDE and callable(value):
            return self._lost(place, name)
        if isinstance(value, types.FunctionType) and name in own and is_users(value):
            self.origin_of_tag(value, name, place)
        if isinstance(value, types.FunctionType | functools.partial) or name in own:
            return known(own[name]) if name in own else PLAIN
        return frozenset([Method(owner, name)])

    def _of_module(self, module: types.ModuleType, name: str, place: CodePlace | None) -> Value:
        dotted = f"{tables.ALIASES.get(module.__name__, module.__name__)}.{name}"
        found = vars(module).get(name, _MISSING)
        if found is _MISSING and not is_users(module):
            found = getattr(module, name, _MISSING)
        if found is _MISSING:
            self.report(findings.unseen(place.text if place else dotted, place))
            return READ
        if dotted in ("sys.stdout", "sys.stderr"):
            return frozenset([Argument("stream")])
        if machine.of_the_machine(dotted, found):
            self.report(findings.reads(dotted, place))
            return PLAIN
        if is_users(module):
            self.origin_in_module(Names("", vars(module)), name, place or CodePlace(module.__name__))
        return known(found)

    def _of_class(self, kind: type, name: str, place: CodePlace | None) -> Value:
        found = inspect.getattr_static(kind, name, _MISSING)
        if found is _MISSING:
            return PLAIN if name.startswith("__") else self._lost(place, name)
        if is_users(kind) and not isinstance(found, types.FunctionType):
            self.origin_in_class(kind, name, place)
        if isinstance(found, staticmethod | classmethod) or not is_users(kind):
            found = getattr(kind, name)
        return known(found)

    def _lost(self, place: CodePlace | None, name: str) -> Value:
        self.report(findings.unseen(place.text if place else name, place))
        return READ

    def _of_instance(self, owner: KnownObject | Made, kind: type, name: str, place: CodePlace | None) -> Value:
        """Returns an attribute of a user's object: a method, a property, or the content of the object or its class."""
        if name in ("__class__", "__dict__"):
            return known(kind) if name == "__class__" else frozenset([Data(held=outlives(owner), inner=True)])
        if any("__getattribute__" in vars(each) for each in kind.__mro__ if is_users(each)):
            return self._lost(place, name)
        found = next(((vars(each)[name], each) for each in kind.__mro__ if name in vars(each)), None)
        if found is not None and isinstance(found[0], property | types.FunctionType):
            return self._bound(found[0], owner, found[1], name, place)
        self.origin_in_class(kind, name, place)
        own = self._own(owner, name)
        if own:
            return own
        if found is not None:
            return self._bound(found[0], owner, found[1], name, place)
        if any("__getattr__" in vars(each) for each in kind.__mro__ if is_users(each)):
            return self._lost(place, name)
        return frozenset([Data(held=outlives(owner))])

    def _own(self, owner: KnownObject | Made, name: str) -> Value:
        """Returns the object's own attribute: its present content, and the values stored by code that was read."""
        key = owner.value if isinstance(owner, KnownObject) else None
        stored = self.attributes.get((id(key), name), NOTHING)  # stored by `prepare`, or while `__init__` is read
        if isinstance(owner, Made):
            return owner.attributes.get(name, NOTHING)
        own = getattr(owner.value, "__dict__", {})
        if name not in own and hasattr(type(owner.value), "__slots__"):
            with_slot = inspect.getattr_static(owner.value, name, None)
            own = {name: getattr(owner.value, name)} if isinstance(with_slot, types.MemberDescriptorType) else own
        if name not in own:
            return stored
        if owner != self.starting:
            self.origin_of_arguments(type(owner.value))
        if owner == self.starting and isinstance(own[name], list | dict | set):
            return stored or FRESH
        return known(own[name]) | (stored if (id(key), name) in self.prepared else NOTHING)

    def _bound(self, found: Any, owner: KnownObject | Made, kind: type, name: str, place: CodePlace | None) -> Value:
        if isinstance(found, functools.cached_property):
            found = property(found.func)
        if isinstance(found, property):
            getter = found.fget
            users = isinstance(getter, types.FunctionType) and is_users(getter) and not self.declared(getter, place)
            return self.function(getter, Args(), owner) if users else PLAIN
        if isinstance(found, types.FunctionType):
            if not is_users(found):
                return READ if is_ours(found) or tables.same_again(tables.name_of(found)) else known(found)
            return READ if generated(found, kind) else frozenset([Bound(found, owner)])
        if isinstance(found, staticmethod):
            return known(found.__func__)
        if isinstance(found, classmethod):
            inner = found.__func__
            if isinstance(inner, types.FunctionType):
                return frozenset([Bound(inner, KnownObject(kind))])
            return known(inner)
        if isinstance(found, types.MethodDescriptorType | types.WrapperDescriptorType):
            return frozenset([Method(Data(held=outlives(owner)), name)])
        if isinstance(found, types.GetSetDescriptorType | types.MemberDescriptorType | types.ClassMethodDescriptorType):
            return PLAIN
        if type(found).__name__ == "_tuplegetter":  # of a named tuple
            return known(getattr(owner.value, name)) if isinstance(owner, KnownObject) else PLAIN
        return known(found)

    def _super(self, owner: Super, name: str, place: CodePlace | None) -> Value:
        kind = owner.owner.kind if isinstance(owner.owner, Made) else getattr(owner.owner, "value", object)
        kind = kind if isinstance(kind, type) else type(kind)
        mro = kind.__mro__
        rest = mro[mro.index(owner.after) + 1 :] if owner.after in mro else ()
        for each in rest:
            if name in vars(each):
                assert isinstance(owner.owner, KnownObject | Made)
                return self._bound(vars(each)[name], owner.owner, each, name, place)
        return self._lost(place, name)
