"""The possible values of an expression, as far as reading can tell: a set of atoms, the union of all paths."""

from __future__ import annotations

import ast
import datetime
import decimal
import enum
import fractions
import inspect
import re
import types
import uuid
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

IMMUTABLE = (
    str, int, float, bool, complex, bytes, type(None), decimal.Decimal, fractions.Fraction, datetime.date,
    datetime.time, datetime.timedelta, datetime.tzinfo, uuid.UUID, range, re.Pattern, enum.Enum, type(...),
)  # fmt: skip
CONTAINERS = (list, tuple, dict, set, frozenset, deque, types.MappingProxyType)
MOST_ELEMENTS = 64
MOST_DEEP = 3
_HOOKS = ("__getattr__", "__getattribute__")
_VIEWS = ("T", "flat", "imag", "real", "values")  # attributes of arrays and frames that are parts of them
ENTRIES = "[]"  # key among the attributes of a defaultdict: its value for a new key


@dataclass(frozen=True)
class Data:
    """A plain value derived from the tuple.

    ``held``: it outlives the call, as an attribute does; ``inner``: its contents do. ``unordered``: a set. ``view``:
    the keys or items of a dict. ``iterator``: reading uses it up. ``container``: it may change in place. ``callables``:
    its contents may be called, and all of them were read. ``naive``: a time without a zone. ``holds``: the objects,
    sets and iterators inside; ``keyed``: those of a dict with constant keys.
    """

    held: bool = False
    inner: bool = False
    unordered: bool = False
    view: bool = False
    iterator: bool = False
    container: bool = False
    callables: bool = False
    naive: bool = False
    holds: Value = frozenset()
    keyed: tuple[tuple[Any, Value], ...] = ()


@dataclass(frozen=True)
class KnownObject:
    """A particular object: a module, a function, a class, or the content of a global, a cell or an attribute."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KnownObject) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True)
class NewObject:
    """An object made in the call that is read; ``held`` if it outlives the call. Reading fills ``attributes``."""

    kind: type
    place: ast.AST | None
    held: bool = False
    attributes: dict[str, Value] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Bound:
    """A user's method with its object."""

    function: types.FunctionType
    owner: Atom


@dataclass(frozen=True)
class Method:
    """A method or attribute of a plain value or of a library's object, by name."""

    owner: Atom
    name: str


@dataclass(frozen=True)
class Local:
    """A function or lambda inside a function, with the surrounding frame."""

    node: ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef
    frame: Any


@dataclass(frozen=True)
class Super:
    """``super()`` in a method of ``after``."""

    after: type
    owner: Atom


@dataclass(frozen=True)
class Argument:
    """An argument that we pass to an operation: "collector", "state", "context" or "attempt"; or what the context
    makes, a "metric" or a "projection"."""

    role: str


Atom = Data | KnownObject | NewObject | Bound | Method | Local | Super | Argument
Value = frozenset[Atom]

PLAIN: Value = frozenset([Data()])
NOTHING: Value = frozenset()
FRESH: Value = frozenset([Data(container=True)])
SET: Value = frozenset([Data(unordered=True, container=True)])
READ: Value = frozenset([Data(callables=True)])  # may be called: it was read


class Args(NamedTuple):
    """The arguments of a call. ``unknown``: unknown code calls it, with any arguments."""

    positional: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    nodes: tuple[ast.expr, ...] = ()
    unknown: bool = False
    call: ast.Call | None = None

    @property
    def key(self) -> tuple:
        return self.positional, self.keywords, self.unknown

    @property
    def values(self) -> Iterator[Value]:
        yield from self.positional
        yield from (value for _, value in self.keywords)

    @property
    def bare(self) -> bool:
        """Whether it is called without arguments, or with None as the first."""
        first = self.nodes[0] if self.nodes else None
        return not any(self.values) or (isinstance(first, ast.Constant) and first.value is None)


UNKNOWN = Args(unknown=True)


def wrap(value: Any) -> Value:
    return frozenset([KnownObject(value)])


def attribute_of(thing: Any, name: str) -> Any:
    """Read an attribute that functions, classes and modules have; None for other objects. Runs no `__getattr__`."""
    if any(isinstance(inspect.getattr_static(type(thing), hook, None), types.FunctionType) for hook in _HOOKS):
        return inspect.getattr_static(thing, name, None)
    return getattr(thing, name, None)  # the one place that reads such an attribute: the object is not ours


def union(values: Iterable[Value]) -> Value:
    return frozenset().union(*values)


def kind_of(atom: Atom) -> type | None:
    """Return the class of an object; None if it is not known."""
    return type(atom.value) if isinstance(atom, KnownObject) else atom.kind if isinstance(atom, NewObject) else None


def read_back(value: Value) -> Value:
    """Return the value as it is read back from a place that outlives the call."""
    return frozenset(replace(atom, held=True) if isinstance(atom, Data | NewObject) else atom for atom in value)


def inside(atom: Atom) -> Value:
    """Return the contents of a plain value."""
    if isinstance(atom, Data):
        rest = Data(held=atom.held or atom.inner, container=atom.inner, callables=atom.callables)
        objects = read_back(atom.holds) if atom.held else atom.holds
        return objects or frozenset([rest])
    if isinstance(atom, KnownObject) and isinstance(atom.value, CONTAINERS):
        return elements(atom.value)
    if isinstance(atom, KnownObject):
        return frozenset([Data(held=not isinstance(atom.value, IMMUTABLE))])
    if isinstance(atom, NewObject) and ENTRIES in atom.attributes:
        return read_back(atom.attributes[ENTRIES]) if atom.held else atom.attributes[ENTRIES]
    return frozenset([Data(held=isinstance(atom, NewObject) and atom.held)])


def elements(container: Any) -> Value:
    """Return the contents of an existing container: a dict's values, or the items."""
    items = container.values() if isinstance(container, dict | types.MappingProxyType) else container
    objects = [item for item in items if not isinstance(item, IMMUTABLE) or isinstance(item, enum.Enum)]
    if len(objects) > MOST_ELEMENTS:
        return frozenset([Data(held=True, inner=True, container=True, callables=True)])
    return frozenset([*map(KnownObject, objects), *(PLAIN if len(objects) < len(container) or not objects else ())])


def container(contents: Value) -> Value:
    """Return a list, tuple or dict with these contents, made in the call that is read."""
    holds = frozenset(_cut(atom) for atom in contents if holds_more(atom))
    inner = any(outlives(atom) and not (isinstance(atom, KnownObject) and callable(atom.value)) for atom in contents)
    return frozenset([Data(container=True, inner=inner, callables=any(map(may_be_called, contents)), holds=holds)])


def pair(values: Value) -> Value:
    """Return a pair of key and value from a dict."""
    return mark(container(values), keyed=((0, PLAIN), (1, values)))


def mark(value: Value, **marks: Any) -> Value:
    """Return the plain values among these with other marks."""
    return frozenset(replace(atom, **marks) for atom in value if isinstance(atom, Data))


def may_be_called(atom: Atom) -> bool:
    """Return whether it may be called, or its contents may: all but plain values that were not read."""
    return not isinstance(atom, Data) or atom.callables


def holds_more(atom: Atom) -> bool:
    """Return whether it is more than a plain value, so that its container must record it."""
    if isinstance(atom, Data):
        return atom.unordered or bool(atom.holds)
    return not isinstance(atom, Argument | Method)


def _cut(atom: Atom, depth: int = MOST_DEEP) -> Atom:
    """Return the atom without contents that are nested too deeply to distinguish."""
    if not isinstance(atom, Data) or not atom.holds:
        return atom
    holds = frozenset(_cut(inner, depth - 1) for inner in atom.holds) if depth else frozenset()
    return replace(atom, holds=holds, keyed=() if depth < MOST_DEEP else atom.keyed)


def outlives(atom: Atom) -> bool:
    """Return whether a change of it is visible in the next call."""
    if isinstance(atom, KnownObject):
        return not isinstance(atom.value, IMMUTABLE)
    return isinstance(atom, Data | NewObject) and atom.held


def is_unordered(atom: Atom) -> bool:
    if isinstance(atom, KnownObject):
        return isinstance(atom.value, set | frozenset)
    if isinstance(atom, NewObject):
        return issubclass(atom.kind, set | frozenset)
    return isinstance(atom, Data) and atom.unordered


def deep(value: Value) -> Iterator[Atom]:
    """Yield the atoms and their contents."""
    for atom in value:
        yield atom
        if isinstance(atom, Data):
            yield from deep(atom.holds)


def settle(atom: Atom) -> Atom:
    """Turn an attribute of a plain value into a plain value, unless it is called."""
    if not isinstance(atom, Method):
        return atom
    owner = atom.owner
    view = outlives(owner) and atom.name in _VIEWS
    return Data(held=outlives(owner), callables=isinstance(owner, Data) and owner.callables, container=view)
