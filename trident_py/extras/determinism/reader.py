"""Reads one operation: the methods that a cluster calls, and everything that they lead to."""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ...operations.base import CombinerAggregator, Prepared, ReducerAggregator
from ...operations.determinism import DECLARED, attributes_of, nearest, own_declaration
from . import diagnostics, libraries, tables
from .atoms import (
    CONTAINERS,
    IMMUTABLE,
    NOTHING,
    PLAIN,
    READ,
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
    elements,
    wrap,
)
from .calls import CallReader
from .diagnostics import CodeFinding, CodePlace
from .frames import Frame
from .origins import Lenient
from .sources import Names, bind_names, cells, is_generated, is_ours, is_users, positional, source_of

MOST_CALLS = 4_000
_FIRST = ("__new__", "__init__", "__post_init__", "__setstate__", "prepare", "init", "zero")
_STARTS = _FIRST[:5]
_NO_RESULT = ("cleanup", "__repr__", "__str__", "__del__", "__getattr__", "__getstate__", "__reduce__")
_ROLES = {"collector": "collector", "batchId": "attempt", "context": "context"}
_STATE_METHODS = ("updateState", "batchRetrieve")
_ACCUMULATED = ("value", "curr", "val1", "val2", "state")



def read(operation: Any, trusted: Iterable[str] = ()) -> list[CodeFinding]:
    """Return the reasons why results may differ; empty if everything was read and is deterministic.

    ``trusted``: modules, classes and functions to take as deterministic. Raises nothing: an error while reading, for
    example in an object's `__eq__`, makes the operation unseen.
    """
    reader = Reader(trusted)
    try:
        reader.root(operation)
    except Exception as error:
        reader.report(diagnostics.unseen(f"reading the source failed with {error!r}", None))
    return list(reader.findings)


class Reader(CallReader):
    """One pass over an operation. Reads a function once for each combination of arguments."""

    def __init__(self, trusted: Iterable[str]) -> None:
        super().__init__(trusted)
        self.used: dict[int, Any] = {}
        self.accumulated: Value = NOTHING
        self.told: set[ast.AST] = set()
        """Where the number of a partition may stand: in a log's message, and as the whole value of a name."""

    def is_declared(self, thing: Any, place: CodePlace | None) -> bool:
        """Return whether the author has declared it. Reports a declaration as non-deterministic."""
        kind = type(thing)
        declaration = own_declaration(thing)
        if declaration is None and isinstance(thing, type):
            declaration = nearest(thing)
        if declaration is None and not isinstance(thing, type | types.FunctionType) and nearest(kind) is False:
            declaration = False
        if declaration is False:
            text = "declared non-deterministic"
            name = attribute_of(thing, "__qualname__") or kind.__qualname__
            self.report(
                diagnostics.CodeFinding(diagnostics.CHANGING, f"calls {name}, {text} ({place})" if place else text)
            )
        return declaration is not None

    # -- the operation ----------------------------------------------------------------------------------------------

    def root(self, operation: Any) -> None:
        if self.is_declared(operation, None):
            return
        if isinstance(operation, types.FunctionType) and is_users(operation):
            self._check_result(self.function(operation, UNKNOWN, entry=True), operation)
        elif isinstance(operation, types.MethodType) and isinstance(operation.__func__, types.FunctionType):
            self.use(KnownObject(operation.__self__), None)
            self.function(operation.__func__, UNKNOWN, KnownObject(operation.__self__), entry=True)
        else:
            self.use(KnownObject(operation), None)

    def _check_result(self, value: Value, function: types.FunctionType) -> None:
        """Check a function's result, whose items are emitted."""
        source = source_of(function)
        if source is not None:
            self.check_emitted(value, CodePlace(source.file, source.node))

    def operation(self, thing: Any) -> None:
        """Read an object that a cluster calls: its methods, in the order of their calls."""
        kind = type(thing)
        owner = KnownObject(thing)
        entries = sorted(_entries(kind), key=lambda entry: entry[0] not in _FIRST)
        for name, function in entries:
            if self.is_declared(function, None):
                continue
            self.preparing = name == "prepare"
            with self.starts(owner if name in _STARTS else None):
                result = self.function(function, UNKNOWN, owner, roles=self._roles(kind, name, function), entry=True)
            if name in ("init", "zero") and result != PLAIN:
                self.accumulated |= result
            if name in ("execute", "__call__"):
                self._check_result(result, function)
        self._factories(kind)

    def _roles(self, kind: type, name: str, function: types.FunctionType) -> dict[int, Value]:
        """Return the roles of a method's parameters by position. The interface names them."""
        ours = next((vars(base)[name] for base in kind.__mro__ if is_ours(base) and name in vars(base)), None)
        code = ours.__code__ if isinstance(ours, types.FunctionType) else function.__code__
        roles: dict[int, Value] = {}
        for position, parameter in enumerate(code.co_varnames[: code.co_argcount]):
            if name in _STATE_METHODS and parameter == "state":
                roles[position] = frozenset([Argument("state")])
            elif parameter in _ROLES:
                roles[position] = frozenset([Argument(_ROLES[parameter])])
            elif parameter in _ACCUMULATED and self.accumulated:
                roles[position] = self.accumulated
        return roles

    def _factories(self, kind: type) -> None:
        for field in dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ():
            if field.default_factory is not dataclasses.MISSING:
                self.use(KnownObject(field.default_factory), CodePlace(f"{kind.__qualname__}.{field.name}"))

    # -- mentions ---------------------------------------------------------------------------------------------------

    def use(self, atom: Atom, place: CodePlace | None) -> None:
        """Handle a mention: the code that gets the value may call it, or iterate over it."""
        if isinstance(atom, KnownObject):
            self._use_known(atom.value, place)
        elif isinstance(atom, Data) and atom.held and atom.iterator and place is not None:
            self.report(diagnostics.keeps(place))
        elif isinstance(atom, Bound | Local):
            self.call(atom, UNKNOWN, place)
        elif isinstance(atom, Method):
            plain = isinstance(atom.owner, Data) and atom.name not in libraries.data_methods() | set(tables.CLOCK)
            if not plain and not isinstance(atom.owner, NewObject):
                self.method(atom.owner, atom.name, UNKNOWN, place)

    def _use_known(self, value: Any, place: CodePlace | None) -> None:
        self.touch(KnownObject(value), place)
        if id(value) in self.used or (isinstance(value, IMMUTABLE) and not isinstance(value, enum.Enum)):
            return
        self.used[id(value)] = value
        if isinstance(value, CONTAINERS):
            for atom in elements(value):
                self.use(atom, place)
        if isinstance(value, type | types.FunctionType | types.MethodType | functools.partial):
            self.call(KnownObject(value), UNKNOWN, place)
        elif is_ours(type(value)):
            self._parts(value, place)
        elif is_users(type(value)):
            if not isinstance(value, enum.Enum) and not self.is_declared(value, place):
                self.operation(value)
        elif callable(value):
            self.call(KnownObject(value), UNKNOWN, place)

    def _parts(self, value: Any, place: CodePlace | None) -> None:
        """Read the callables and operations in an object of ours."""
        if self.is_declared(value, place):
            return
        for part in attributes_of(value).values():
            if callable(part) or isinstance(part, Prepared | CombinerAggregator | ReducerAggregator):
                self.use(KnownObject(part), place)

    def touch(self, atom: Atom, place: CodePlace | None) -> None:
        """Handle an access: reports values that are kept from call to call or belong to the machine."""
        if isinstance(atom, Data) and atom.held and atom.iterator and place is not None:
            self.report(diagnostics.keeps(place))
        if not isinstance(atom, KnownObject) or place is None:
            return
        value = atom.value
        if (environment := tables.is_environment(value)) is not None:
            self.report(diagnostics.reads(environment, place))
        elif isinstance(value, (*IMMUTABLE, *CONTAINERS, types.ModuleType)) or callable(value) or self._trusts(value):
            return
        elif attribute_of(value, "__next__"):
            self.report(diagnostics.keeps(place))
        elif not (is_ours(type(value)) or is_users(type(value))):
            name = tables.name_of(type(value))
            if tables.same_again(name) or tables.is_random(type(value)):
                return
            outside = tables.outside(name)
            self.report(
                diagnostics.reads(tables.public_name(name), place)
                if outside
                else diagnostics.unseen(place.text, place)
            )

    # -- functions --------------------------------------------------------------------------------------------------

    def function(
        self,
        function: types.FunctionType,
        args: Args,
        owner: Atom | None = None,
        roles: dict[int, Value] | None = None,
        entry: bool = False,
    ) -> Value:
        """Read a user's function with these arguments. Returns its result; nothing while it is being read."""
        key = (function, owner, args.key, self.starting, entry)
        if key in self.done:
            return self.done[key]
        self.done[key] = NOTHING
        source = source_of(function)
        if source is None or len(self.done) > MOST_CALLS:
            why = f"no source found for {function.__qualname__}" if source is None else "too much code to read"
            code = function.__code__
            self.report(diagnostics.unseen(why, CodePlace(f"{Path(code.co_filename).name}:{code.co_firstlineno}")))
            return READ
        names = Names(source.file, function.__globals__, cells(function), owner, source)
        for default in (*source.node.args.defaults, *filter(None, source.node.args.kw_defaults)):
            Lenient(self, Names(source.file, function.__globals__), None, {}).visit(default)
        frame = Frame(self, names, source.node, {})
        frame.env = self._bind(source.node.args, function, args, owner, roles or {}, entry)
        itself = owner if isinstance(owner, KnownObject) else KnownObject(None)
        for name, value in frame.env.items():
            if any(isinstance(atom, KnownObject) for atom in value) and itself not in value:
                frame.mention(value, ast.copy_location(ast.Name(name, ast.Load()), source.node))
        self.done[key] = result = frame.run()
        return result

    def _bind(
        self,
        signature: ast.arguments,
        function: types.FunctionType,
        args: Args,
        owner: Atom | None,
        roles: dict[int, Value],
        entry: bool,
    ) -> dict[str, Value]:
        defaults = {
            name: wrap(value)
            for name, value in zip(reversed(positional(signature)), reversed(function.__defaults__ or ()), strict=False)
        }
        defaults.update((name, wrap(value)) for name, value in (function.__kwdefaults__ or {}).items())
        arguments = ((frozenset([owner]),) if owner is not None else ()) + args.positional
        anything = PLAIN if entry else READ
        env = bind_names(signature, arguments, dict(args.keywords), defaults, anything if args.unknown else None)
        for position, value in roles.items():
            if position < len(positional(signature)):
                env[positional(signature)[position]] = value
        if entry:
            self._apply_annotations(signature, function, env)
        return env

    def _apply_annotations(self, signature: ast.arguments, function: types.FunctionType, env: dict[str, Value]) -> None:
        """Take plain parameters annotated with a user's class as objects of that class."""
        for parameter in signature.args:
            if isinstance(parameter.annotation, ast.Name) and env[parameter.arg] == PLAIN:
                kind = function.__globals__.get(parameter.annotation.id)
                if isinstance(kind, type) and is_users(kind):
                    env[parameter.arg] = frozenset([NewObject(kind, parameter)])

    def local(self, atom: Local, args: Args) -> Value:
        """Read a function inside the function that is read, with the present values of the surrounding names."""
        key = (id(atom.node), args.key, self.starting)
        if self.done.get(key) is NOTHING or len(self.done) > MOST_CALLS:
            return NOTHING
        self.done[key] = NOTHING
        signature, frame = atom.node.args, atom.frame
        values = [frame.visit(default) for default in signature.defaults]
        defaults = dict(zip(reversed(positional(signature)), reversed(values), strict=False))
        keywords = zip(signature.kwonlyargs, signature.kw_defaults, strict=True)
        defaults.update((parameter.arg, frame.visit(value)) for parameter, value in keywords if value is not None)
        env = bind_names(signature, args.positional, dict(args.keywords), defaults, READ if args.unknown else None)
        result = Frame(self, frame.names, atom.node, env, frame).run()
        self.done[key] = result or PLAIN
        return result

    def construct_users(self, kind: type, args: Args, place: CodePlace | None) -> Value:
        """Return a new object of a user's class."""
        instance = NewObject(kind, place.node if place else None)
        if issubclass(kind, enum.Enum):
            return frozenset([instance])
        instance.attributes.update(_list_generated(kind, args))
        for name in _STARTS[:3]:
            method = next((vars(base)[name] for base in kind.__mro__ if name in vars(base) and is_users(base)), None)
            method = method.__func__ if isinstance(method, staticmethod | classmethod) else method
            if isinstance(method, types.FunctionType) and not is_generated(method, kind):
                owner: Atom = KnownObject(kind) if name == "__new__" else instance
                with self.starts(instance):
                    self.function(method, args if name != "__post_init__" else Args(), owner)
        self._factories(kind)
        for name, function in _methods(kind):
            if name[:2] == "__" and name not in (*_STARTS, "__call__"):  # operators
                self.function(function, UNKNOWN, instance)
        return frozenset([instance])


def _methods(kind: type) -> Iterator[tuple[str, types.FunctionType]]:
    """Yield the methods that users wrote, up to the first class with a declaration."""
    names: set[str] = set(_NO_RESULT)
    for base in kind.__mro__:
        if DECLARED in vars(base):
            return
        if not is_users(base):
            continue
        for name, value in vars(base).items():
            if isinstance(value, types.FunctionType) and name not in names and not is_generated(value, base):
                names.add(name)
                yield name, value


def _entries(kind: type) -> list[tuple[str, types.FunctionType]]:
    """Return the methods called from outside: those of our interfaces, `__call__`, operators."""
    methods = list(_methods(kind))
    ours = {name for base in kind.__mro__ if is_ours(base) for name in vars(base)}
    names = {*ours, *_FIRST, "__call__", "executeBatch"}
    if not ours and "__call__" not in dict(methods) and any(name in ("execute", "isKeep") for name, _ in methods):
        return methods
    return [(name, method) for name, method in methods if name in names or name[:2] == "__"]


def _list_generated(kind: type, args: Args) -> dict[str, Value]:
    """Return the attributes that the generated `__init__` of a dataclass, or `__new__` of a named tuple, stores."""
    names = list(attribute_of(kind, "_fields") or ())
    if isinstance(kind.__init__, types.FunctionType) and is_generated(kind.__init__, kind):  # type: ignore[misc]
        fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
        names = [field.name for field in fields if field.init]
    return {**dict(zip(names, args.positional, strict=False)), **{n: v for n, v in args.keywords if n in names}}
