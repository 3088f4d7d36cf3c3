"""Finds the origin of values that exist before a function runs: globals, attributes, closures, arguments."""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import sys
import types
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from typing import Any

from . import findings, machine, tables
from .atoms import CONTAINERS, IMMUTABLE, NOTHING, READ, KnownObject, Made, Value, known
from .binding import Names
from .calling import CallReader
from .findings import CodeFinding, CodePlace
from .frames import Frame
from .modules import (
    Function,
    around,
    assigned,
    assigned_in,
    assigned_in_class,
    calls_of,
    changed_by,
    changed_elsewhere,
    given,
    imported_from,
    parameters,
    says,
    text_of,
    users_modules,
)
from .sources import is_users


class Origins(CallReader):
    """The part of the reader that finds the origin of values."""

    found: dict[CodeFinding, None]
    done: dict[Any, Value]
    starts: Callable[[KnownObject | Made | None], AbstractContextManager[None]]

    def unnamed(self, name: str, place: CodePlace) -> None:
        self.report(findings.unseen(name, place))

    def module(self, name: str, place: CodePlace, level: int = 0, names: dict[str, Any] | None = None) -> Value:
        """Returns a module that a function itself imports. Looks for a user's module, but does not import it."""
        if level:
            name = importlib.util.resolve_name("." * level + name, (names or {}).get("__package__") or "")
        root = name.partition(".")[0]
        if name not in sys.modules and (root in sys.stdlib_module_names or tables.same_again(name)):
            importlib.import_module(name)
        if name in sys.modules:
            return known(sys.modules[name])
        self.report(findings.unseen(place.text, place))
        return READ

    def once(self, *key: Any) -> bool:
        if key in self.done:
            return False
        self.done[key] = NOTHING
        return True

    # -- globals ----------------------------------------------------------------------------------------------------

    def origin_in_module(self, around: Names, name: str, place: CodePlace) -> None:
        """Reads how a module makes a global while it is imported: each process makes it anew."""
        names = around.globals
        value = names[name]
        if not self.once("global", id(names), name) or isinstance(value, types.ModuleType):
            return
        file, text = text_of(names)
        if not text and around.source is not None:  # a notebook's cell
            file, text = around.file, around.source.text
        if name in machine.PLACE:
            self.report(findings.reads(name, place))
        if (function := changed_by(text).get(name)) is not None:
            self.report(findings.unseen(f"{name}, which {function} changes", place))
            self.done[("changed", id(names), name)] = NOTHING
        with self.starts(KnownObject(value)):
            for expression in assigned(text, name):
                Lenient(self, Names(file, names), None, {}).visit(expression)
        self._unchanged(names, text, name, place)
        self._imported(imported_from(text, name), place)

    def _imported(self, source: tuple[str, str] | None, place: CodePlace) -> None:
        if source is None or source[0] not in sys.modules:
            return
        module = sys.modules[source[0]]
        if not is_users(module):
            if machine.of_the_machine(".".join(source), vars(module).get(source[1])):
                self.report(findings.reads(".".join(source), place))
        elif source[1] in vars(module):
            self.origin_in_module(Names("", vars(module)), source[1], place)

    def _unchanged(self, names: dict[str, Any], text: str, name: str, place: CodePlace) -> None:
        """Reports a global that other code changes, or that has another value than its module gave it."""
        home, value = str(names.get("__name__")), names[name]
        if ("changed", id(names), name) in self.done:
            return
        if not callable(value) and isinstance(value, (*IMMUTABLE, *CONTAINERS)):
            other = changed_elsewhere(home, sys.modules.get(home), name, value)
            if other is not None:
                self.report(findings.unseen(f"{name}, which module {other} changes", place))
                return
        values = given(text, name)
        if values and not any(self._is(each, names, value) for each in values):
            self.report(findings.changed(name, place))

    def _is(self, expression: ast.expr, names: dict[str, Any], value: Any) -> bool:
        """Whether an expression may give this value; True if that cannot be told."""
        with suppress(ValueError, TypeError, SyntaxError, MemoryError):
            told = ast.literal_eval(expression)
            return type(told) is type(value) and bool(told == value)
        if not isinstance(expression, ast.Attribute):
            return True
        found = Frame(self, Names("", names), None, {}).raw(expression)
        owner = next(iter(found), None)
        if len(found) != 1 or not isinstance(owner, KnownObject):
            return True
        return owner.value is value or bool(owner.value == value)

    # -- classes ----------------------------------------------------------------------------------------------------

    def origin_in_class(self, kind: type, name: str, place: CodePlace | None = None) -> None:
        for each in kind.__mro__:
            if not is_users(each) or each.__module__ not in sys.modules or not self.once("class", each, name):
                continue
            names = vars(sys.modules[each.__module__])
            file, text = text_of(names)
            for expression in assigned_in_class(text, each.__name__, name):
                Lenient(self, Names(file, names), None, {}).visit(expression)
            if name in vars(each) and text and place is not None:
                self._of_the_class(each, name, text, place)

    def _of_the_class(self, kind: type, name: str, text: str, place: CodePlace) -> None:
        value = vars(kind)[name]
        plain = isinstance(value, (*IMMUTABLE, *CONTAINERS)) and not (name[:2] == "__" or isinstance(value, kind))
        if not plain or hasattr(kind, "__dataclass_fields__"):
            return
        if not says(text, kind.__name__, name):
            self.report(findings.unseen(f"{place.text}, which class {kind.__name__} does not name", place))
        elif (other := changed_elsewhere(kind.__module__, kind, name, value)) is not None:
            self.report(findings.unseen(f"{place.text}, which module {other} changes", place))

    def origin_of_tag(self, function: types.FunctionType, name: str, place: CodePlace | None) -> None:
        """Reads how code sets an attribute on a function."""
        file, text = text_of(function.__globals__)
        values = assigned(text, function.__name__)
        if not values and place is not None and name[:2] != "__":
            self.report(findings.unseen(place.text, place))
        for expression in values:
            Lenient(self, Names(file, function.__globals__), None, {}).visit(expression)

    # -- arguments
    # ------------------------------------------------------------------------------------------------------

    def origin_in_closure(self, names: Names, name: str) -> None:
        if not self.once("closure", id(names.source.function), name) or callable(names.closure[name]):
            return
        for function in around(names.source):
            for expression in assigned_in(function, name):
                Lenient(self, Names(names.file, names.globals), None, {}).visit(expression)
            if name in parameters(function):
                self._handed(function.name, names.globals, names.source.text)

    def origin_of_arguments(self, kind: type) -> None:
        """Reads the arguments with which the user's modules make objects of this class."""
        if not self.once("made", kind) or kind.__module__ not in sys.modules:
            return
        for module in users_modules():
            names = vars(module)
            text = text_of(names)[1]
            if f"{kind.__name__}(" in text and names.get(kind.__name__, kind) is kind:
                self._handed(kind.__name__, names, text)

    def _handed(self, name: str, names: dict[str, Any], text: str) -> None:
        """Reports a clock or a random draw in the arguments of calls. Settings are passed to stay as they are."""
        file = text_of(names)[0]
        other = type(self)(self.trusted)
        for call, within in calls_of(text, name):
            given = [*call.args, *(each.value for each in call.keywords)]
            for expression in [*given, *_locals(given, within)]:
                Lenient(other, Names(file, names), None, {}).visit(expression)
        for each in other.found:
            if tables.is_chance(each.name):
                self.report(each)


def _locals(expressions: Iterable[ast.expr], within: Function | None) -> list[ast.expr]:
    """Returns the values that the surrounding function assigns to variables of the expressions."""
    if within is None:
        return []
    names = {each.id for found in expressions for each in ast.walk(found) if isinstance(each, ast.Name)}
    return [value for name in names for value in assigned_in(within, name)]


class Lenient(Frame):
    """Reads an expression of a surrounding function whose other variables are not known."""

    def look_up(self, name: str) -> Value | None:
        unknown = name not in self.env and name not in self.names.globals and not hasattr(builtins, name)
        return READ if unknown else super().look_up(name)
