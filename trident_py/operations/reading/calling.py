"""Evaluates calls of all possible values of an expression."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import operator
import types
from dataclasses import replace
from typing import Any

import numpy as np

from . import findings, machine, tables
from .atoms import (
    ENTRIES,
    FRESH,
    NOTHING,
    PLAIN,
    READ,
    SET,
    UNKNOWN,
    Args,
    Argument,
    Atom,
    Bound,
    Data,
    KnownObject,
    Local,
    Made,
    Method,
    Value,
    container,
    deep,
    inside,
    known,
    outlives,
    pair,
    unordered,
)
from .attributes import Attributes
from .findings import CodePlace
from .results import by_address, hands_callables, is_module, result, union
from .sources import is_ours, is_users

_METACLASSES = ("builtins.type", "abc.ABCMeta", "enum.EnumType", "typing.NamedTupleMeta")
_SHOWN = {"genericpath.": "os.path.", "posixpath.": "os.path."}


def shown(name: str) -> str:
    for root, public in _SHOWN.items():
        name = name.replace(root, public) if name.startswith(root) else name
    return name.removeprefix("builtins.")


class CallReader(Attributes):
    """The part of the reader that evaluates calls."""

    # -- calls ------------------------------------------------------------------------------------------------------

    def call(self, atom: Atom, args: Args, place: CodePlace | None) -> Value:
        """Evaluates a call of the atom: reports findings, returns the result."""
        match atom:
            case KnownObject():
                return self._call_known(atom.value, args, place)
            case Bound():
                declared = self.declared(atom.function, place)
                return READ if declared else self.function(atom.function, args, atom.owner)
            case Local():
                return self.local(atom, args)
            case Method():
                return self.method(atom.owner, atom.name, args, place)
            case Made():
                return self._call_attribute(atom, "__call__", args, place)
            case Data(callables=True) if any(is_module(each) for value in args.values for each in value):
                self.report(findings.unseen(place.text if place else "a call", place))
            case Data(callables=False):
                self.report(findings.unseen(place.text if place else "a call", place))
        return READ

    def _call_attribute(self, owner: Atom, name: str, args: Args, place: CodePlace | None) -> Value:
        return union(self.call(each, args, place) for each in self.attribute(owner, name, place))

    def _call_known(self, thing: Any, args: Args, place: CodePlace | None) -> Value:
        if self.declared(thing, place) or self._trusts(thing):
            return READ
        if (chance := tables.changing(thing, args)) is not None:
            self.report(findings.calls(chance, place))
            return PLAIN
        if isinstance(thing, functools.partial):
            stored = tuple(map(known, thing.args))
            named = tuple((name, known(value)) for name, value in thing.keywords.items())
            for each in (*stored, *(value for _, value in named)):
                self.use(next(iter(each)), place)
            more = args._replace(positional=(*stored, *args.positional), keywords=(*named, *args.keywords))
            return self._call_known(thing.func, more, place)
        if isinstance(thing, types.MethodType):
            return self._call_method(thing, args, place)
        if isinstance(thing, type):
            return self._construct(thing, args, place)
        if isinstance(thing, types.FunctionType):
            return self._call_function(thing, args, place)
        return self._call_object(thing, args, place)

    def _call_method(self, thing: types.MethodType, args: Args, place: CodePlace | None) -> Value:
        if is_users(thing.__func__):
            self.use(KnownObject(thing.__self__), place)
            return self.function(thing.__func__, args, KnownObject(thing.__self__))
        if isinstance(thing.__self__, type) or is_ours(thing.__func__):
            return self._call_known(thing.__func__, args, place)
        return self.method(KnownObject(thing.__self__), thing.__name__, args, place)

    def _call_function(self, thing: types.FunctionType, args: Args, place: CodePlace | None) -> Value:
        registry = getattr(thing, "registry", None)
        if isinstance(registry, types.MappingProxyType):  # functools.singledispatch
            return union(self._call_known(each, args, place) for each in registry.values())
        if is_users(thing):
            return self.function(thing, args)
        if is_ours(thing):
            return READ
        wrapped = getattr(thing, "__wrapped__", None)
        if wrapped is not None and thing.__code__.co_filename == contextlib.contextmanager.__code__.co_filename:
            return self._call_known(wrapped, args, place)
        return self._library(thing, args, place)

    def _call_object(self, thing: Any, args: Args, place: CodePlace | None) -> Value:
        owner = getattr(thing, "__self__", None)
        if isinstance(thing, functools._lru_cache_wrapper):
            return self._call_known(thing.__wrapped__, args, place)
        if isinstance(thing, operator.methodcaller):
            return self.method(Data(), thing.__reduce__()[1][0], Args(), place)
        if isinstance(thing, types.BuiltinFunctionType | types.MethodWrapperType) and not isinstance(
            owner, types.ModuleType | type(None)
        ):
            if isinstance(owner, type):
                return self._library(thing, args, place)
            return self.method(KnownObject(owner), thing.__name__, args, place)
        if isinstance(thing, types.MethodDescriptorType | types.WrapperDescriptorType):
            rest = args._replace(positional=args.positional[1:])
            owners = args.positional[0] if args.positional else PLAIN
            return union(self.method(each, thing.__name__, rest, place) for each in owners)
        if is_users(type(thing)):
            self.use(KnownObject(thing), place)
            return self._call_attribute(KnownObject(thing), "__call__", args, place)
        return READ if is_ours(type(thing)) else self._library(thing, args, place)

    def _trusts(self, thing: Any) -> bool:
        name = tables.name_of(thing)
        return any(name == each or name.startswith(f"{each}.") for each in self.trusted)

    # -- classes ----------------------------------------------------------------------------------------------------

    def _construct(self, kind: type, args: Args, place: CodePlace | None) -> Value:
        if is_ours(kind):
            return PLAIN
        if not is_users(kind):
            return self._construct_library(kind, args, place)
        if tables.name_of(type(kind)) not in _METACLASSES:
            why = f"{kind.__qualname__}, whose class is made by {type(kind).__qualname__}"
            self.report(findings.unseen(why, place))
        return self.construct_users(kind, args, place)

    def _construct_library(self, kind: type, args: Args, place: CodePlace | None) -> Value:
        found = self._library(kind, args, place)
        if issubclass(kind, set | frozenset):
            return SET
        name = tables.name_of(kind)
        if name.startswith(("numpy.random.", "random.Random", "pathlib.", "collections.defaultdict")):
            made = Made(kind, place.node if place else None)
            if name == "collections.defaultdict" and args.positional:
                made.attributes[ENTRIES] = union(self.call(each, Args(), place) for each in args.positional[0])
            return frozenset([made])
        if kind is object:
            return frozenset([Made(kind, place.node if place else None)])
        if kind is operator.methodcaller or kind is operator.attrgetter:
            self._by_name(kind, args, place)
        if issubclass(kind, map | filter | zip | enumerate | reversed) or hasattr(kind, "__next__"):
            return frozenset([Data(iterator=True, callables=hands_callables(args))])
        if name in tables.SCALARS:
            return PLAIN
        return found

    def _by_name(self, kind: type, args: Args, place: CodePlace | None) -> None:
        """Handles ``methodcaller("now")``, which calls the named method, and ``attrgetter``, which may lead to it."""
        names = [each.value for each in args.nodes[:1] if isinstance(each, ast.Constant)]
        for name in names if kind is operator.methodcaller else set(names) & set(tables.CLOCK):
            self.method(Data(), str(name), Args(), place)
        if not names:
            self.report(findings.unseen(place.text if place else kind.__name__, place))

    def item_of_class(self, atom: Atom, place: CodePlace | None) -> None:
        """Evaluates ``Kind[...]`` of a user's class."""
        if isinstance(atom, KnownObject) and isinstance(atom.value, type) and is_users(atom.value):
            found = inspect.getattr_static(atom.value, "__class_getitem__", None)
            if isinstance(found, classmethod) and is_users(found.__func__):
                self._call_known(getattr(atom.value, "__class_getitem__"), UNKNOWN, place)  # noqa: B009

    # -- libraries --------------------------------------------------------------------------------------------------

    def _library(self, thing: Any, args: Args, place: CodePlace | None) -> Value:
        name = tables.name_of(thing)
        if name.startswith("numpy.random.") and args.nodes and callable(thing):
            kind = thing if isinstance(thing, type) else np.random.Generator
            return frozenset([Made(kind, place.node if place else None)])
        self._check_arguments(name, args, place)
        files = name.startswith("pathlib.") and name.rpartition(".")[2] in tables.FILE_METHODS
        if files or (tables.outside(name) and not tables.same_again(name)):
            if name != "random.Random":
                self.report(findings.calls(shown(name), place))
            return PLAIN
        if not tables.same_again(name):
            self.report(findings.unseen(place.text if place else f"{shown(name)}", place))
            return READ
        return result(name, args)

    def _check_arguments(self, name: str, args: Args, place: CodePlace | None) -> None:
        if place is None:
            return
        first = args.positional[0] if args.positional else NOTHING
        if name in tables.TEXTS and any(isinstance(each, Argument) and each.role == "attempt" for each in first):
            self.report(findings.calls("TransactionAttempt.__str__, which tells the attempt,", place))
        if name in tables.TEXTS and any(map(by_address, deep(first))):
            self.report(findings.calls("object.__repr__, which shows an address,", place))
        if (name in tables.FIRST_CHANGES or name.endswith(".__setattr__")) and any(
            outlives(each) and each != self.starting for each in first
        ):
            self.report(findings.keeps(place.text, place))
        within = deep if name in tables.GO_DEEP else iter
        sets = any(unordered(each) for value in args.values for each in within(value))
        if name == "builtins.next" and Data() in first:
            self.report(findings.unseen(place.text, place))
        by_key = name in tables.BY_KEY and any(each == "key" for each, _ in args.keywords)
        sorting = name in tables.ORDERLESS | tables.COPIES or name.partition(".")[0] == "logging"
        if sets and (by_key or not sorting):
            self.report(findings.set_order(place))

    def method(self, owner: Atom, name: str, args: Args, place: CodePlace | None) -> Value:
        """Evaluates a method call on a plain value, or on a library's object."""
        kind = type(owner.value) if isinstance(owner, KnownObject) else owner.kind if isinstance(owner, Made) else None
        self.touch(owner, place)
        if kind is not None and tables.is_random(kind):
            if outlives(owner):
                self.report(findings.calls(tables.drawn(kind, name), place))
            return PLAIN
        if kind is not None and tables.is_path(kind):
            if name in tables.FILE_METHODS:
                self.report(findings.calls(f"Path.{name}", place))
            return frozenset([Made(kind, None)])
        if isinstance(owner, Argument):
            return self._given(owner, name, args, place)
        self._check_method(owner, name, args, place)
        return self._of_method(owner, name, args)

    def _given(self, owner: Argument, name: str, args: Args, place: CodePlace | None) -> Value:
        if owner.role == "collector" and name == "emit":
            self.emitted(union(args.values), place)
        if owner.role == "context" and name == "transaction":
            return frozenset([Argument("attempt")])
        fine = {"context": ("numPartitions",), "attempt": ("txid", "getTransactionId")}
        if name not in fine.get(owner.role, (name,)):
            self.report(findings.calls(name, place))
        return PLAIN

    def emitted(self, value: Value, place: CodePlace | None) -> None:
        """Checks a value that travels in tuples. A set has another order in another process. Where the tuple is read, a
        method of a user's object may be taken for one of a plain value, so it is read here."""
        for atom in deep(value):
            if unordered(atom) and place is not None:
                self.report(findings.set_order(place))
            if isinstance(atom, Made) and is_users(atom.kind):
                for name in sorted(tables.data_methods() & set(dir(atom.kind))):
                    found = inspect.getattr_static(atom.kind, name)
                    if isinstance(found, types.FunctionType) and is_users(found):
                        self.function(found, UNKNOWN, atom)

    def _check_method(self, owner: Atom, name: str, args: Args, place: CodePlace | None) -> None:
        plain = isinstance(owner, Data) or isinstance(getattr(owner, "value", None), (*_PLAIN_KINDS, np.ndarray))
        fits = name in tables.data_methods() if plain else not name.startswith("_")
        local = machine.method(owner, name, args) if plain else None
        if local or (name in tables.CLOCK and (plain or isinstance(owner, Made))):
            self.report(findings.calls(local or name, place))
        elif (name in tables.STREAMS and owner == Data()) or not (fits or _is_special(name)):
            self.report(findings.unseen(place.text if place else f"method {name}", place))
        if place is None:
            return
        starting = self.starting is not None and (isinstance(owner, Data | Made) or owner == self.starting)
        if name in tables.MUTATORS and outlives(owner) and not starting:
            self.report(findings.keeps(place.text, place))
        through = name in tables.GO_THROUGH and any(unordered(each) for value in args.values for each in deep(value))
        if through or (name == "pop" and unordered(owner)):
            self.report(findings.set_order(place))

    def _of_method(self, owner: Atom, name: str, args: Args) -> Value:
        if name in tables.SETS:
            return SET
        if name == "copy":
            return SET if unordered(owner) else FRESH
        if name in ("keys", "items", "values"):
            within = {"items": pair(inside(owner)), "values": inside(owner)}.get(name, NOTHING)
            view = name != "values"
            return frozenset(replace(each, view=view) for each in container(within) if isinstance(each, Data))
        if name in ("get", "pop", "setdefault", "popitem", "popleft"):
            given = union(args.values)
            return inside(owner) | (given if name in ("get", "setdefault", "pop") else NOTHING)
        if machine.keeps_naive(owner, name, args):
            return frozenset([Data(naive=True)])
        callables = hands_callables(args) or (isinstance(owner, Data) and owner.callables)
        part = outlives(owner) and isinstance(owner, Data) and owner.inner  # the result may be a part of the owner
        return frozenset([Data(callables=callables, held=part)])


_PLAIN_KINDS = (str, bytes, int, float, list, dict, tuple, set, frozenset)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
