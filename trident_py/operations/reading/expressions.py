"""Evaluates expressions. Every mention of something that may be called counts as a call."""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from . import findings
from .atoms import (
    FRESH,
    NOTHING,
    PLAIN,
    SET,
    Args,
    Atom,
    Data,
    KnownObject,
    Local,
    Made,
    Method,
    Super,
    Value,
    container,
    deep,
    held,
    holds_more,
    inside,
    known,
    outlives,
    settled,
    unordered,
)
from .binding import Names
from .findings import CodePlace
from .tables import MUTATORS, ORDERLESS, name_of

_SET_OPERATORS = ast.BitAnd | ast.BitOr | ast.BitXor | ast.Sub
_COMPREHENSIONS = ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp


class Expressions(ast.NodeVisitor):
    """The expressions of a frame. ``visit`` returns a value, and reports every mention to the reader."""

    def __init__(self, reader: Any, names: Names) -> None:
        self.reader, self.names = reader, names

    def look_up(self, name: str) -> Value | None:
        raise NotImplementedError

    def store(self, target: ast.expr, value: Value) -> None:
        raise NotImplementedError

    def place(self, node: ast.AST) -> CodePlace:
        return CodePlace(self.names.file, node)

    def raw(self, node: ast.expr) -> Value:
        """Returns the value for a call or an attribute access, which alone is no mention."""
        if isinstance(node, ast.Name):
            return self._named(node)
        if isinstance(node, ast.Attribute):
            owners = self.raw(node.value)
            return _union(self.reader.attribute(settled(atom), node.attr, self.place(node)) for atom in owners)
        return self.visit(node)

    def _named(self, node: ast.Name) -> Value:
        found = self.look_up(node.id)
        if found is not None:
            return found
        name, names = node.id, self.names
        if name in names.closure:
            self.reader.origin_in_closure(names, name)
            return known(names.closure[name])
        if name in names.globals:
            self.reader.origin_in_module(names, name, self.place(node))
            return known(names.globals[name])
        if hasattr(builtins, name):
            return known(getattr(builtins, name))
        self.reader.unnamed(name, self.place(node))
        return PLAIN

    def mention(self, value: Value, node: ast.AST) -> Value:
        for atom in value:
            self.reader.use(atom, self.place(node))
        return value

    def visit_Name(self, node: ast.Name) -> Value:
        return self.mention(self._named(node), node)

    def visit_Attribute(self, node: ast.Attribute) -> Value:
        return self.mention(self.raw(node), node)

    def visit_Constant(self, node: ast.Constant) -> Value:
        return PLAIN

    def generic_visit(self, node: ast.AST) -> Any:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr | ast.stmt | ast.keyword):
                self.visit(child)
        return PLAIN

    # -- calls ------------------------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> Value:
        function = self.raw(node.func)
        special = self._special(function, node)
        if special is not None:
            return special
        args = self._args(node, function)
        self._put(node.func, args)
        return _union(self.reader.call(atom, args, self.place(node)) for atom in function)

    def _put(self, function: ast.expr, args: Args) -> None:
        """Records objects that a method such as `append` puts into a variable of this call."""
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
            return
        if function.attr not in MUTATORS:
            return
        if function.attr not in ("add", "update"):
            self.put(function.value, _union(args.values))

    def put(self, variable: ast.Name, value: Value) -> None:
        """Adds a value to the container in a variable of this call."""
        before = self.look_up(variable.id)
        more = frozenset(each for each in value if isinstance(each, Made | Data) and holds_more(each))
        if before and more and all(isinstance(each, Data) for each in before):
            data = [each for each in before if isinstance(each, Data)]
            self.store(variable, frozenset(replace(each, holds=each.holds | more, keyed=()) for each in data))

    def _args(self, node: ast.Call, function: Value) -> Args:
        anyhow = any(isinstance(atom, KnownObject) and name_of(atom.value) in ORDERLESS for atom in function)
        positional = tuple(self._argument(each, anyhow) for each in node.args)
        named = [(each.arg or "**", self.visit(each.value)) for each in node.keywords]
        starred = any(isinstance(each, ast.Starred) for each in node.args) or any(n == "**" for n, _ in named)
        nodes = tuple(node.args) or tuple(each.value for each in node.keywords)
        return Args(positional, tuple((name, v) for name, v in named if name != "**"), nodes, starred, node)

    def _argument(self, node: ast.expr, anyhow: bool) -> Value:
        if anyhow and isinstance(node, ast.GeneratorExp | ast.ListComp):
            return self._comprehension(node, ordered=False)
        return self.visit(node)

    def _special(self, function: Value, node: ast.Call) -> Value | None:
        atom = next(iter(function)) if len(function) == 1 else None
        if not isinstance(atom, KnownObject):
            return None
        name = name_of(atom.value)
        special = getattr(self, f"_call_{name[9:]}", None) if name.startswith("builtins.") else None
        return special(node) if special is not None else None

    def _call_super(self, node: ast.Call) -> Value | None:
        after = self.names.closure.get("__class__")
        if node.args or after is None or self.names.owner is None:
            return None
        return frozenset([Super(after, self.names.owner)])

    def _call_isinstance(self, node: ast.Call) -> Value:
        for each in node.args[:1]:
            self.visit(each)
        return PLAIN

    _call_issubclass = _call_isinstance

    def _call_type(self, node: ast.Call) -> Value | None:
        if len(node.args) != 1:
            return None
        return _union(map(_kind_of, self.raw(node.args[0])))

    def _call_getattr(self, node: ast.Call) -> Value | None:
        if len(node.args) < 2 or node.keywords:
            return None
        default = self.visit(node.args[2]) if len(node.args) > 2 else NOTHING
        name, owners = node.args[1], self.raw(node.args[0])
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            place = self.place(node)
            return default | _union(self.reader.attribute(settled(each), name.value, place) for each in owners)
        self.visit(name)
        self.reader.report(findings.unseen(self.place(node).text, self.place(node)))
        return default | frozenset([Data(callables=True)])

    def _call_setattr(self, node: ast.Call) -> Value | None:
        for owner in self.raw(node.args[0]) if node.args else ():
            if outlives(settled(owner)):
                self.reader.report(findings.keeps(self.place(node).text, self.place(node)))
        return _union(map(self.visit, node.args[1:])) and PLAIN

    _call_delattr = _call_setattr

    def _call_hasattr(self, node: ast.Call) -> Value:
        for each in node.args:
            self.raw(each)
        return PLAIN

    # -- values made here -------------------------------------------------------------------------------------------

    def visit_List(self, node: ast.List | ast.Tuple) -> Value:
        return self._container([self._element(each) for each in node.elts])

    def visit_Tuple(self, node: ast.Tuple) -> Value:
        values = [self._element(each) for each in node.elts]
        if any(isinstance(each, ast.Starred) for each in node.elts):
            return self._container(values)
        return frozenset(replace(each, keyed=tuple(enumerate(values))) for each in self._container(values))  # type: ignore[arg-type]

    def visit_Dict(self, node: ast.Dict) -> Value:
        for key in filter(None, node.keys):
            self.visit(key)
        values = [self.visit(each) for each in node.values]
        made = self._container(values)
        if not all(isinstance(key, ast.Constant) for key in node.keys):
            return made
        keyed = tuple((key.value, value) for key, value in zip(node.keys, values, strict=True))  # type: ignore[union-attr]
        return frozenset(replace(each, keyed=keyed) for each in made if isinstance(each, Data))

    def _element(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Starred):
            return self.iterate(self.visit(node.value), node)
        return self.visit(node)

    def _container(self, values: Iterable[Value]) -> Value:
        return container(_union(values))

    def visit_Set(self, node: ast.Set) -> Value:
        for each in node.elts:
            self.visit(each.value if isinstance(each, ast.Starred) else each)
        return SET

    def visit_Starred(self, node: ast.Starred) -> Value:
        return self.iterate(self.visit(node.value), node)

    def visit_Lambda(self, node: ast.Lambda) -> Value:
        return self.mention(frozenset([Local(node, self)]), node)

    def visit_ListComp(self, node: _COMPREHENSIONS) -> Value:
        return self._comprehension(node, ordered=True)

    visit_GeneratorExp = visit_DictComp = visit_ListComp

    def visit_SetComp(self, node: ast.SetComp) -> Value:
        self._comprehension(node, ordered=False)
        return SET

    def _comprehension(self, node: _COMPREHENSIONS, ordered: bool) -> Value:
        for generator in node.generators:
            items = self.visit(generator.iter)
            self.store(generator.target, self.iterate(items, generator.iter) if ordered else self._within(items))
            for condition in generator.ifs:
                self.visit(condition)
        if isinstance(node, ast.DictComp):
            self.visit(node.key)
            made = self.visit(node.value)
        else:
            made = self.visit(node.elt)
        found = self._container([made])
        return frozenset([Data(iterator=True)]) if isinstance(node, ast.GeneratorExp) and found == FRESH else found

    def iterate(self, value: Value, node: ast.AST) -> Value:
        """Returns the items in order; reports a set, whose items have none."""
        for atom in value:
            if unordered(atom):
                self.reader.report(findings.set_order(self.place(node)))
        return self._within(value)

    def _within(self, value: Value) -> Value:
        return _union(inside(settled(atom)) for atom in value)

    def visit_Subscript(self, node: ast.Subscript) -> Value:
        self.visit(node.slice)
        owners = self.raw(node.value)
        for atom in owners:
            self.reader.touch(atom, self.place(node))
            self._fill(atom, node)
            self.reader.item_of_class(atom, self.place(node))
        return self.mention(_union(_entry(settled(atom), node.slice) for atom in owners), node)

    def _fill(self, owner: Atom, node: ast.Subscript) -> None:
        """Reports a read of a defaultdict that adds an entry."""
        made = owner.kind if isinstance(owner, Made) else object
        kind = type(owner.value) if isinstance(owner, KnownObject) else made
        if issubclass(kind, defaultdict) and outlives(owner) and isinstance(node.ctx, ast.Load):
            self.reader.report(findings.keeps(CodePlace("", node.value).text, self.place(node)))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Value:
        value = self.visit(node.value)
        self.store(node.target, value)
        return value

    def visit_IfExp(self, node: ast.IfExp) -> Value:
        self.visit(node.test)
        return self.visit(node.body) | self.visit(node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> Value:
        return _union([self.visit(each) for each in node.values])

    def visit_BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.visit(node.left), self.visit(node.right)
        both = left | right
        if isinstance(node.op, _SET_OPERATORS):
            views = any(isinstance(each, Data) and each.view for each in both)
            if views or any(map(unordered, both)):
                return SET
        elif any(map(unordered, deep(right) if isinstance(node.op, ast.Mod) else right)):
            self.reader.report(findings.set_order(self.place(node)))
        data = [each for each in both if isinstance(each, Data)]
        return container(both) if any(each.container or each.callables for each in data) else PLAIN

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Value:
        value = self.visit(node.value)
        self.iterate(frozenset(filter(unordered, value)), node.value)
        self.reader.call(KnownObject(format), Args((value,), (), (node.value,)), self.place(node.value))
        if node.format_spec is not None:
            self.visit(node.format_spec)
        return PLAIN


def nth(value: Value, place: int) -> Value:
    """Returns the value at this place of a tuple; nothing if it is not known."""
    found = [entry for each in value if isinstance(each, Data) for name, entry in each.keyed if name is place]
    return _union(found) if len(found) == len(value) else NOTHING


def _entry(owner: Atom, key: ast.expr) -> Value:
    """Returns the value under a key; for a constant key its own entry, if that is known."""
    keyed = owner.keyed if isinstance(owner, Data) else ()
    found = [value for name, value in keyed if isinstance(key, ast.Constant) and name == key.value]
    if not found:
        return inside(owner)
    return held(_union(found)) if outlives(owner) else _union(found)


def _union(values: Iterable[Value]) -> Value:
    return frozenset().union(*values)


def _kind_of(atom: Any) -> Value:
    """Returns the class of an object, known or made here."""
    atom = settled(atom) if isinstance(atom, Method) else atom
    if isinstance(atom, KnownObject):
        return known(type(atom.value))
    return known(atom.kind) if isinstance(atom, Made) else PLAIN
