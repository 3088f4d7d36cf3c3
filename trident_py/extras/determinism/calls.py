"""Evaluates calls of all possible values of an expression."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import logging
import operator
import pathlib
import types
from collections.abc import Callable, Iterable
from typing import Any
from xml.etree.ElementTree import ElementTree

import numpy as np

from . import diagnostics, libraries, tables
from .atoms import (
    ENTRIES,
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
    Method,
    NewObject,
    Value,
    attribute_of,
    deep,
    is_unordered,
    kind_of,
    outlives,
    union,
    wrap,
)
from .diagnostics import CodePlace
from .effects import Effect
from .origins import Origins
from .results import (
    find_first,
    find_outputs,
    find_parts,
    is_module,
    leads_out,
    passes_callables,
    result_of,
    result_of_method,
    shows_address,
)
from .sources import is_ours, is_users

_METACLASSES = ("builtins.type", "abc.ABCMeta", "enum.EnumType", "typing.NamedTupleMeta")
_PARTS = Args((frozenset([Data(callables=True, held=True)]),) * 2, unknown=True)
_PLAIN_KINDS = (str, bytes, int, float, list, dict, tuple, set, frozenset, np.ndarray)


class CallReader(Origins):
    """The part of the reader that evaluates calls."""

    local: Callable[[Local, Args], Value]
    construct_users: Callable[[type, Args, CodePlace | None], Value]
    use: Callable[[Atom, CodePlace | None], None]
    touch: Callable[[Atom, CodePlace | None], None]
    told: set[ast.AST]

    # -- calls ------------------------------------------------------------------------------------------------------

    def call(self, atom: Atom, args: Args, place: CodePlace | None) -> Value:
        """Evaluate a call of the atom: reports findings, returns the result."""
        match atom:
            case KnownObject():
                return self._call_known(atom.value, args, place)
            case Bound():
                declared = self.is_declared(atom.function, place)
                return READ if declared else self.function(atom.function, args, atom.owner)
            case Local():
                return self.local(atom, args)
            case Method():
                return self.method(atom.owner, atom.name, args, place)
            case NewObject():
                return self._call_attribute(atom, "__call__", args, place)
            case Data() if not atom.callables or any(is_module(item) for value in args.values for item in value):
                return self.unseen("a call", place)
        return frozenset([Data(callables=True, held=any(map(leads_out, union(args.values))))])

    def _call_attribute(self, owner: Atom, name: str, args: Args, place: CodePlace | None) -> Value:
        return union(self.call(atom, args, place) for atom in self.attribute(owner, name, place))

    def _call_known(self, thing: Any, args: Args, place: CodePlace | None) -> Value:
        if self.is_declared(thing, place) or self._trusts(thing):
            return READ
        if (chance := tables.find_changing(thing, args)) is not None:
            self.report(diagnostics.calls(chance, place))
            return PLAIN
        if isinstance(thing, functools.partial):
            for value in (*thing.args, *thing.keywords.values()):
                self.use(KnownObject(value), place)
            stored = tuple((name, wrap(value)) for name, value in thing.keywords.items())
            positional = (*map(wrap, thing.args), *args.positional)
            args = args._replace(positional=positional, keywords=(*stored, *args.keywords))
            return self._call_known(thing.func, args, place)
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
        registry = attribute_of(thing, "registry")
        if isinstance(registry, types.MappingProxyType):  # functools.singledispatch
            return union(self._call_known(function, args, place) for function in registry.values())
        if is_users(thing):
            return self.function(thing, args)
        if is_ours(thing):
            return self._call_ours(thing, args, place)
        wrapped = attribute_of(thing, "__wrapped__")
        if wrapped is not None and thing.__code__.co_filename == contextlib.contextmanager.__code__.co_filename:
            return self._call_known(wrapped, args, place)
        return self._library(thing, args, place)

    def _call_object(self, thing: Any, args: Args, place: CodePlace | None) -> Value:
        if isinstance(thing, functools._lru_cache_wrapper):
            return self._call_known(thing.__wrapped__, args, place)
        if isinstance(thing, operator.methodcaller):
            return self.method(Data(), thing.__reduce__()[1][0], Args(), place)
        if isinstance(thing, types.BuiltinFunctionType | types.MethodWrapperType):
            owner = thing.__self__
            if not isinstance(owner, types.ModuleType | type | None):
                return self.method(KnownObject(owner), thing.__name__, args, place)
            return self._library(thing, args, place)
        if isinstance(thing, types.MethodDescriptorType | types.WrapperDescriptorType):
            rest = args._replace(positional=args.positional[1:])
            owners = args.positional[0] if args.positional else PLAIN
            return union(self.method(owner, thing.__name__, rest, place) for owner in owners)
        if is_users(type(thing)):
            self.use(KnownObject(thing), place)
            return self._call_attribute(KnownObject(thing), "__call__", args, place)
        return READ if is_ours(type(thing)) else self._library(thing, args, place)

    def _trusts(self, thing: Any) -> bool:
        name = tables.name_of(thing)
        return any(name == trusted or name.startswith(f"{trusted}.") for trusted in self.trusted)

    # -- classes ----------------------------------------------------------------------------------------------------

    def _construct(self, kind: type, args: Args, place: CodePlace | None) -> Value:
        if is_ours(kind):
            return self._construct_ours(kind, args, place)
        if not is_users(kind):
            return self._construct_library(kind, args, place)
        if tables.name_of(type(kind)) not in _METACLASSES:
            self.report(diagnostics.unseen(f"{kind.__qualname__}, whose metaclass is {type(kind).__qualname__}", place))
        return self.construct_users(kind, args, place)

    def _construct_library(self, kind: type, args: Args, place: CodePlace | None) -> Value:
        value = self._library(kind, args, place)
        if issubclass(kind, set | frozenset):
            return SET
        name = tables.name_of(kind)
        kept = name.startswith(("numpy.random.", "random.Random", "pathlib.", "collections.defaultdict"))
        if kept or kind in (object, ElementTree):
            instance = NewObject(kind, place.node if place else None)
            if name == "collections.defaultdict" and args.positional:
                instance.attributes[ENTRIES] = union(self.call(atom, Args(), place) for atom in args.positional[0])
            return frozenset([instance])
        if kind is operator.methodcaller or kind is operator.attrgetter:
            self._by_name(kind, args, place)
        if issubclass(kind, map | filter | zip | enumerate | reversed) or attribute_of(kind, "__next__"):
            return frozenset([Data(iterator=True, callables=passes_callables(args), holds=find_parts(name, args))])
        return PLAIN if name in tables.SCALARS else value

    def _construct_ours(self, kind: type, args: Args, place: CodePlace | None) -> Value:
        if not libraries.belongs(kind):
            return PLAIN
        instance = NewObject(kind, place.node if place else None)
        effect = libraries.effect_on(kind, "__init__")
        if effect is not None:
            self._check_arguments(tables.name_of(kind), args, place)
            self.apply(effect, args, place, instance)
            given = effect.bind(args)
            instance.attributes.update({name: given[value] for name, value in effect.stored if value in given})
        return frozenset([instance])

    def _by_name(self, kind: type, args: Args, place: CodePlace | None) -> None:
        """Handle ``methodcaller("now")``, which calls the named method, and ``attrgetter``, which may lead to it."""
        names = [node.value for node in args.nodes[:1] if isinstance(node, ast.Constant)]
        for name in names if kind is operator.methodcaller else set(names) & set(tables.CLOCK):
            self.method(Data(), str(name), Args(), place)
        if not names:
            self.unseen(kind.__name__, place)

    def item_of_class(self, atom: Atom, place: CodePlace | None) -> None:
        """Evaluate ``Kind[...]`` of a user's class."""
        if isinstance(atom, KnownObject) and isinstance(atom.value, type) and is_users(atom.value):
            method = inspect.getattr_static(atom.value, "__class_getitem__", None)
            if isinstance(method, classmethod) and is_users(method.__func__):
                self._call_known(method.__get__(None, atom.value), UNKNOWN, place)

    # -- libraries --------------------------------------------------------------------------------------------------

    def _call_ours(self, function: types.FunctionType, args: Args, place: CodePlace | None) -> Value:
        if not libraries.belongs(function):
            return READ
        self._check_arguments(tables.name_of(function), args, place)
        return self.apply(libraries.effect_of(function), args, place)

    def apply(self, effect: Effect, args: Args, place: CodePlace | None, owner: Atom | None = None) -> Value:
        """Report what a function of a library does, and return its result: a part of an argument may be in it."""
        given = effect.bind(args, owner)
        if effect.asks_clock(args):
            self.report(diagnostics.calls(effect.chance, place))
        if place is not None and any(outlives(atom) and not self._begins(atom) for atom in effect.list_changed(given)):
            self.report(diagnostics.keeps(place))
        held = any(leads_out(atom) for value in given.values() for atom in value)
        if held:
            self._pass_parts(args, place)
        return frozenset([Data(callables=True, held=held)])

    def _pass_parts(self, args: Args, place: CodePlace | None) -> None:
        """Read the functions that a library calls with parts of what outlives the call."""
        for atom in union(args.values):
            if isinstance(atom, Bound | Local):
                self.call(atom, _PARTS, place)

    def _begins(self, owner: Atom) -> bool:
        """Return whether it may change now, since it is made here: `__init__` or `prepare` is read."""
        return self.starting is not None and (isinstance(owner, Data | NewObject) or owner == self.starting)

    def _library(self, thing: Any, args: Args, place: CodePlace | None) -> Value:
        name = tables.name_of(thing)
        if name.startswith("numpy.random.") and args.nodes and callable(thing):
            kind = thing if isinstance(thing, type) else np.random.Generator
            return frozenset([NewObject(kind, place.node if place else None)])
        self._check_arguments(name, args, place)
        files = name.startswith("pathlib.") and name.rpartition(".")[2] in tables.FILE_METHODS
        files |= thing is ElementTree and (len(args.positional) > 1 or "file" in dict(args.keywords))
        if name.startswith("numpy."):
            self._check_changed(find_outputs(thing, args), Args(), place)
        if name in tables.FOLDS and any(map(leads_out, find_first(args))):
            for atom in union(args.positional[:1]):
                self.call(atom, _PARTS._replace(positional=(_PARTS.positional[0], READ)), place)
        if name == "logging.getLogger":
            return frozenset([NewObject(logging.Logger, None)])
        if files or (tables.outside(name) and not tables.same_again(name)):
            if name != "random.Random":
                self.report(diagnostics.calls(tables.public_name(name), place))
            return PLAIN
        return result_of(name, args) if tables.same_again(name) else self.unseen(tables.public_name(name), place)

    def _check_arguments(self, name: str, args: Args, place: CodePlace | None) -> None:
        if place is None:
            return
        first = args.positional[0] if args.positional else NOTHING
        if name in tables.TEXTS and Argument("attempt") in first:
            self.report(diagnostics.calls("TransactionAttempt.__str__, which shows the attempt,", place))
        shows = {KnownObject(str), KnownObject(repr)}.intersection(dict(args.keywords).get("default", NOTHING))
        if (name in tables.TEXTS or (name == "json.dumps" and shows)) and any(map(shows_address, deep(first))):
            self.report(diagnostics.calls("object.__repr__, which shows an address,", place))
        if name in tables.TEXTS:
            self._read_texts(deep(first))
        changes = name in tables.FIRST_CHANGES or name.endswith(".__setattr__")
        into = args.positional[1:2] if name == "struct.pack_into" else args.positional[:1] if changes else ()
        self._check_changed(union(into), args, place)
        within = deep if name in tables.GO_DEEP else iter
        sets = any(is_unordered(atom) for value in args.values for atom in within(value))
        if name == "builtins.next" and Data() in first:
            self.unseen(name, place)
        by_key = name in tables.BY_KEY and any(keyword == "key" for keyword, _ in args.keywords)
        sorting = name in tables.ORDERLESS | tables.COPIES or name.partition(".")[0] == "logging"
        if sets and (by_key or not sorting):
            self.report(diagnostics.set_order(place))

    def _read_texts(self, atoms: Iterable[Atom]) -> None:
        """Read how users' objects make a text of themselves."""
        for atom in atoms:
            kind = kind_of(atom)
            for name in ("__str__", "__repr__", "__format__") if kind is not None and is_users(kind) else ():
                method = inspect.getattr_static(kind, name)
                if isinstance(method, types.FunctionType) and is_users(method):
                    self.function(method, UNKNOWN, atom)

    def _check_changed(self, changed: Value, args: Args, place: CodePlace | None) -> None:
        """Report what outlives the call and is changed by it in place."""
        changed |= union(value for keyword, value in args.keywords if keyword == "out")
        if place is not None and any(outlives(atom) and not self._begins(atom) for atom in changed):
            self.report(diagnostics.keeps(place))

    def method(self, owner: Atom, name: str, args: Args, place: CodePlace | None) -> Value:
        """Evaluate a method call on a plain value, or on a library's object."""
        kind = kind_of(owner)
        self.touch(owner, place)
        self._check_changed(union(args.positional[:1]) if name in tables.METHODS_CHANGE_FIRST else NOTHING, args, place)
        if kind is not None and tables.is_random(kind):
            if outlives(owner):
                self.report(diagnostics.calls(tables.name_drawing(kind, name), place))
            return PLAIN
        if kind is not None and issubclass(kind, pathlib.PurePath):
            if name in tables.FILE_METHODS:
                self.report(diagnostics.calls(f"Path.{name}", place))
            return frozenset([NewObject(kind, None)])
        if kind is ElementTree and name == "parse":
            self.report(diagnostics.calls("ElementTree.parse", place))
        if isinstance(owner, Argument):
            return self._method_of_argument(owner, name, args, place)
        effect = libraries.effect_on(kind, name)
        if effect is not None:
            return self.apply(effect, args, place, owner)
        self._check_method(owner, name, args, place)
        if outlives(owner) and isinstance(owner, Data) and owner.callables:
            self._pass_parts(args, place)
        return result_of_method(owner, name, args)

    def _method_of_argument(self, owner: Argument, name: str, args: Args, place: CodePlace | None) -> Value:
        if owner.role == "collector" and name == "emit":
            self.check_emitted(union(args.values), place)
        if owner.role == "context" and name == "transaction":
            return frozenset([Argument("attempt")])
        if owner.role == "context" and name == "getPartitionIndex" and place and place.node in self.told:
            return frozenset([Argument("partition")])
        made = tables.MADE_BY_CONTEXT.get(name) if owner.role == "context" else None
        if made is not None or (owner.role == "metric" and name in tables.MORE_METRICS):
            called = [self.call(atom, Args(), place) for atom in union(args.positional)] if name == "time" else []
            return union(called) | frozenset([Argument(made or "metric")])
        same_again = {
            "context": ("numPartitions",),
            "attempt": ("txid", "getTransactionId"),
            "metric": tables.COUNTS,
            "partition": (),
            "projection": ("create",),
        }
        if name not in same_again.get(owner.role, (name,)):
            self.report(diagnostics.calls(name, place))
        return PLAIN

    def check_emitted(self, value: Value, place: CodePlace | None) -> None:
        """Check a value that travels in tuples. A set has another order in another process. Where the tuple is read, a
        method of a user's object may be taken for one of a plain value, so it is read here."""
        for atom in deep(value):
            if is_unordered(atom) and place is not None:
                self.report(diagnostics.set_order(place))
            if isinstance(atom, NewObject) and is_users(atom.kind):
                for name in sorted(libraries.data_methods() & set(dir(atom.kind))):
                    method = inspect.getattr_static(atom.kind, name)
                    if isinstance(method, types.FunctionType) and is_users(method):
                        self.function(method, UNKNOWN, atom)

    def _check_method(self, owner: Atom, name: str, args: Args, place: CodePlace | None) -> None:
        plain = isinstance(owner, Data) or (isinstance(owner, KnownObject) and isinstance(owner.value, _PLAIN_KINDS))
        special = name.startswith("__") and name.endswith("__")
        fits = special or (name in libraries.data_methods() if plain else not name.startswith("_"))
        local = tables.machine_method(owner, name, args) if plain else None
        if local or (name in tables.CLOCK and (plain or isinstance(owner, NewObject))):
            self.report(diagnostics.calls(local or name, place))
        elif (name in tables.STREAMS and owner == Data()) or not fits:
            self.unseen(f"method {name}", place)
        if name == "astype" and tables.names_now(name, args):
            self.report(diagnostics.calls(name, place))
        if name in ("format", "format_map"):
            self._check_arguments("builtins.format", Args((union(args.values),)), place)
        if place is None:
            return
        if name in libraries.mutators() or any(keyword == "inplace" for keyword, _ in args.keywords):
            self._check_changed(frozenset([owner]), Args(), place)
        through = name in tables.GO_THROUGH and any(is_unordered(atom) for value in args.values for atom in deep(value))
        if through or (name in ("pop", "__iter__") and is_unordered(owner)):
            self.report(diagnostics.set_order(place))
