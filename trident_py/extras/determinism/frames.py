"""Reads the statements of one function in order, with the values of its names."""

from __future__ import annotations

import ast
import logging
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import diagnostics
from .atoms import (
    FRESH,
    PLAIN,
    READ,
    Atom,
    Data,
    KnownObject,
    Local,
    Method,
    NewObject,
    Value,
    holds_more,
    inside,
    kind_of,
    may_be_called,
    outlives,
    settle,
    union,
)
from .expressions import Expressions, nth
from .sources import FunctionNode, Names, captures

_LEVELS = ("debug", "info", "warning", "error", "exception", "critical", "log")
_TELLING = (print, *(vars(logging)[level] for level in _LEVELS))


class Frame(Expressions):
    """One call of a function. ``env`` has the values of its own names at the present statement."""

    def __init__(
        self, reader: Any, names: Names, node: FunctionNode | None, env: dict[str, Value], around: Frame | None = None
    ) -> None:
        super().__init__(reader, names)
        self.node, self.env, self.around = node, env, around
        self.returns: Value = frozenset()
        self.declared: dict[str, str] = {}
        self.generates = False

    def run(self) -> Value:
        """Return the function's result."""
        assert self.node is not None
        if isinstance(self.node, ast.Lambda):
            return self.visit(self.node.body)
        self.body(self.node.body)
        if self.generates:
            holds = frozenset(filter(holds_more, self.returns))
            return frozenset([Data(iterator=True, callables=any(map(may_be_called, self.returns)), holds=holds)])
        return self.returns or PLAIN

    def body(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self.visit(statement)

    # -- names ------------------------------------------------------------------------------------------------------

    def look_up(self, name: str) -> Value | None:
        if name in self.env and self.declared.get(name) != "global":
            return self.env[name]
        return self.around.look_up(name) if self.around is not None else None

    def store(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._store_name(target, value)
        elif isinstance(target, ast.Tuple | ast.List):
            items = self.iterate(value, target)
            for place, element in enumerate(target.elts):
                self.store(element, FRESH if isinstance(element, ast.Starred) else nth(value, place) or items)
        elif isinstance(target, ast.Starred):
            self.store(target.value, value)
        elif isinstance(target, ast.Attribute):
            self._store_attribute(target, value)
        elif isinstance(target, ast.Subscript):
            self.visit(target.slice)
            self.change(self.raw(target.value), target)
            if isinstance(target.value, ast.Name):
                self.put(target.value, value)

    def _store_name(self, target: ast.Name, value: Value) -> None:
        how = self.declared.get(target.id)
        if how == "nonlocal":
            frame = self.around
            while frame is not None and target.id not in frame.env:
                frame = frame.around
            if frame is not None:
                frame.env[target.id] = frame.env[target.id] | value
                return
        if how is not None:
            self.reader.report(diagnostics.keeps(self.place(target)))
        self.env[target.id] = value

    def _store_attribute(self, target: ast.Attribute, value: Value) -> None:
        for owner in map(settle, self.raw(target.value)):
            if isinstance(owner, NewObject) and not owner.held:
                owner.attributes[target.attr] = owner.attributes.get(target.attr, frozenset()) | value
            elif isinstance(owner, KnownObject) and owner == self.reader.starting:
                self.reader.remember(owner, target.attr, value)
            elif outlives(owner):
                self.reader.report(diagnostics.keeps(self.place(target)))

    def change(self, owners: Value, node: ast.expr) -> None:
        """Report an in-place change of values that outlive the call."""
        for owner in map(settle, owners):
            starting = self.reader.starting and isinstance(owner, Data | NewObject)  # `prepare` itself has made it
            if outlives(owner) and not starting:
                self.reader.report(diagnostics.keeps(self.place(node)))

    # -- statements -------------------------------------------------------------------------------------------------

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call) and any(map(_logs, self.raw(node.value.func))):
            self.reader.told.update(_find_logged(node.value))
        self.visit(node.value)

    def _tell_later(self, target: ast.expr, value: ast.expr) -> None:
        """Look at a use of a local name where it appears."""
        if isinstance(target, ast.Name) and not self.declared.get(target.id):
            self.reader.told.add(value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) == 1:
            self._tell_later(node.targets[0], node.value)
        for target in node.targets:
            both = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            if both and len(target.elts) == len(node.value.elts):  # type: ignore[attr-defined]
                pairs = [(to, self.visit(of)) for to, of in zip(target.elts, node.value.elts, strict=True)]  # type: ignore[attr-defined]
                for to, of in pairs:
                    self.store(to, of)
            else:
                self.store(target, self.visit(node.value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._tell_later(node.target, node.value)
            self.store(node.target, self.visit(node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        value = self.visit(node.value)
        known = self.look_up(node.target.id) if isinstance(node.target, ast.Name) else None
        before = known or self.raw(node.target)
        for atom in map(settle, before):
            in_place = isinstance(atom, KnownObject) or (isinstance(atom, Data) and atom.container)
            if outlives(atom) and in_place:
                self.reader.report(diagnostics.keeps(self.place(node), ast.unparse(node.target)))
        self.store(node.target, before | value if isinstance(node.target, ast.Name) else value)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.store(node.target, self.iterate(self.visit(node.iter), node.iter))
        self._twice(node.body)
        self.body(node.orelse)

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._twice(node.body)
        self.body(node.orelse)

    def _twice(self, statements: list[ast.stmt]) -> None:
        """Read a loop's body twice: the second pass sees what the first has left."""
        for _ in range(2):
            self._branches([lambda: self.body(statements), lambda: None])

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._branches([lambda: self.body(node.body), lambda: self.body(node.orelse)])

    def visit_Try(self, node: ast.Try) -> None:
        self._branches([lambda: self.body(node.body), lambda: None])
        handlers = [lambda handler=handler: self._handle(handler) for handler in node.handlers]
        self._branches([lambda: self.body(node.orelse), *handlers])
        self.body(node.finalbody)

    visit_TryStar = visit_Try  # type: ignore[assignment]

    def _handle(self, handler: ast.ExceptHandler) -> None:
        if handler.name:
            self.env[handler.name] = PLAIN
        self.body(handler.body)

    def visit_Match(self, node: ast.Match) -> None:
        value = self.visit(node.subject)
        self._branches([lambda case=case: self._case(case, value) for case in node.cases] + [lambda: None])

    def _case(self, case: ast.match_case, value: Value) -> None:
        for name in captures(case.pattern):
            self.env[name] = value | union(map(inside, value))
        if case.guard is not None:
            self.visit(case.guard)
        self.body(case.body)

    def _branches(self, ways: list[Callable[[], Any]]) -> None:
        """Read alternatives, of which one happens. Afterwards each name has its values from all of them."""
        before, after = self.env, []
        for way in ways:
            self.env = dict(before)
            way()
            after.append(self.env)
        names = {name for env in after for name in env}
        self.env = before
        self.env.update({name: union(env.get(name, frozenset()) for env in after) for name in names})

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            value = self.visit(item.context_expr)
            if Data() in value:  # no value in a tuple is a context manager
                self.reader.unseen("with", self.place(item.context_expr))
            if item.optional_vars is not None:
                yields = frozenset(atom for atom in value if isinstance(atom, Data) and atom.iterator)
                self.store(item.optional_vars, value | self._within(yields))
        self.body(node.body)

    visit_AsyncWith = visit_With

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.returns |= self.visit(node.value)

    def visit_Yield(self, node: ast.Yield) -> Value:
        self.generates = True
        self.returns |= self.visit(node.value) if node.value is not None else PLAIN
        return PLAIN

    def visit_YieldFrom(self, node: ast.YieldFrom) -> Value:
        self.generates = True
        self.returns |= self.iterate(self.visit(node.value), node.value)
        return PLAIN

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        function: Value = frozenset([Local(node, self)])
        self.env[node.name] = self.mention(function, node) | READ if node.decorator_list else function
        for decorator in node.decorator_list:
            self.visit(decorator)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.reader.report(diagnostics.unseen(f"class {node.name}, defined inside a function", self.place(node)))
        self.env[node.name] = frozenset([Data(callables=True)])

    def visit_Global(self, node: ast.Global) -> None:
        self.declared.update(dict.fromkeys(node.names, "global"))

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.declared.update(dict.fromkeys(node.names, "nonlocal"))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            self.env[alias.asname or name] = self.reader.module(name, self.place(node))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            place = self.place(node)
            modules = self.reader.module(node.module or "", place, node.level, self.names.globals)
            values = (self.reader.attribute(atom, alias.name, place) for atom in modules)
            self.env[alias.asname or alias.name] = union(values)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript | ast.Attribute):
                self.store(target, PLAIN)



def _logs(atom: Atom) -> bool:
    """Return whether a call of it only shows its arguments."""
    if isinstance(atom, Method):
        return atom.name in _LEVELS and issubclass(kind_of(atom.owner) or object, logging.Logger)
    told = atom.value if isinstance(atom, KnownObject) else None
    if isinstance(told, types.MethodType):
        return told.__name__ in _LEVELS and isinstance(told.__self__, logging.Logger)
    return told in _TELLING


def _find_logged(call: ast.Call) -> Iterator[ast.expr]:
    """Return the expressions whose text alone is in the message of a call that logs, which no tuple sees."""
    for part in (*call.args, *(keyword.value for keyword in call.keywords)):
        yield from _in_text(part)


def _in_text(node: ast.expr) -> Iterator[ast.expr]:
    yield node
    named = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    if isinstance(node, ast.JoinedStr | ast.FormattedValue | ast.BinOp | ast.Tuple) or named in ("str", "repr"):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _in_text(child)
