"""What names mean at one place of the source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from tree_sitter import Node

from .declarations import Class, JavaField, World
from .java_types import Type, read_type
from .names import python_name
from .report import PortReport
from .source import JavaSource, Untranslatable

HandlerT = TypeVar("HandlerT", bound=Callable[..., Any])


@dataclass(eq=False)
class LocalVariable:
    """A local variable. ``counts``: one of a range without negative numbers."""

    python: str
    type: Type
    looped: bool = False
    wide: bool = False
    counts: bool = False


@dataclass(eq=False)
class FunctionFrame:
    """A Python function that is being written. ``before``: lines that have to stand before the current statement."""

    before: list[str] = field(default_factory=list)
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    jumps: list[tuple[str, str]] = field(default_factory=list)

    def fresh(self, name: str) -> str:
        """Return a name that the function does not use yet."""
        number, found = 1, name
        while found in self.names:
            number += 1
            found = f"{name}{number}"
        self.names.add(found)
        return found


@dataclass(eq=False)
class Scope:
    """``selves``: how an object of each enclosing class is called. ``returns``: the type that `return` must have.
    ``update``: what a `continue` has to do first. ``element``: of what the surrounding call is a collection;
    ``expected``: which type the value should have; ``wanted``: what a lambda gets. ``checked``: something catches a
    wrong cast. ``labels``: of the loops around, the innermost last."""

    world: World
    source: JavaSource
    cls: Class | None
    report: PortReport
    frame: FunctionFrame = field(default_factory=FunctionFrame)
    locals: dict[str, LocalVariable] = field(default_factory=dict)
    selves: dict[Class, str] = field(default_factory=dict)
    returns: Type | None = None
    update: tuple[str, ...] | None = None
    element: Type | None = None
    expected: Type | None = None
    wanted: Any = None
    method: str = ""
    checked: bool = False
    labels: tuple[str, ...] = ()
    label: str = ""
    in_loop: bool = False

    def inner(self, **changes: object) -> Scope:
        """Return the scope of a block: what it declares ends with it."""
        return replace(self, locals=dict(self.locals), **changes)  # type: ignore[arg-type]

    def loop(self, **changes: object) -> Scope:
        """Return the scope of a loop."""
        return self.inner(in_loop=True, label="", labels=(*self.labels, self.label), **changes)

    def declare(self, name: str, kind: Type) -> str:
        """Return the Python name of a local: another one than that of what stands in the module, or of a module."""
        python = python_name(name)
        modules = (one.module for one in self.world.sources if one is not self.source)
        python += "_" if name in self.source.members or python in modules else ""
        self.locals[name] = LocalVariable(python, kind, self.in_loop)
        self.frame.names.add(python)
        return python

    def outward(self) -> Iterator[Class]:
        around = self.cls
        while around is not None:
            yield around
            around = around.outer

    def read_type(self, node: Node) -> Type:
        return read_type(node, self.source.aliases)

    def upper_bound(self, kind: Type) -> Type:
        """Return the bound of a type variable, and any other type as it is."""
        if kind.name in self.world.variables and self.world.find(kind.name, self.cls) is None:
            return self.world.variables[kind.name]
        return kind

    def find_class(self, name: str) -> Class | None:
        return self.world.find(name, self.cls, self.source)

    def find_field(self, name: str) -> tuple[Class, Class, JavaField] | None:
        """Return the enclosing class that has the field, the class that declares it, and the field."""
        for around in self.outward():
            if found := self.world.field(around, name):
                return around, *found
        return None

    def member_text(self, cls: Class, name: str, function: bool = False) -> str:
        """Return how the Python names a static member."""
        if not cls.flat:
            return f"{cls.python}.{name}"
        plain = python_name(name)
        return plain if cls.source is self.source else f"{cls.source.module}.{plain}"

    def self_text(self, cls: Class, node: Node) -> str:
        found = self.selves.get(cls)
        if found is None:
            found = next((text for own, text in self.selves.items() if cls in self.world.lineage(own)), None)
        if found is None:
            raise Untranslatable(node, f"an object of {cls.name} is not at hand here")
        return found


def register(handlers: dict[str, HandlerT], *kinds: str) -> Callable[[HandlerT], HandlerT]:
    """Return a decorator that makes a function the handler of these kinds of nodes."""

    def add(handler: HandlerT) -> HandlerT:
        handlers.update(dict.fromkeys(kinds, handler))
        return handler

    return add


@contextmanager
def hoisting(scope: Scope) -> Iterator[list[str]]:
    """Collect the lines that have to stand before what is translated meanwhile."""
    kept, scope.frame.before = scope.frame.before, []
    try:
        yield scope.frame.before
    finally:
        scope.frame.before = kept
