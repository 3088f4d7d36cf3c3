"""Evaluates expressions. Every mention of something that may be called counts as a call."""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from . import diagnostics
from .atoms import (
    FRESH,
    NOTHING,
    PLAIN,
    SET,
    Args,
    Argument,
    Atom,
    Data,
    KnownObject,
    Local,
    NewObject,
    Super,
    Value,
    container,
    holds_more,
    inside,
    is_unordered,
    kind_of,
    mark,
    outlives,
    read_back,
    settle,
    union,
    wrap,
)
from .diagnostics import CodePlace
from .sources import LOOSE, Names, is_users
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
        """Return the value for a call or an attribute access, which alone is no mention."""
        if isinstance(node, ast.Name):
            return self._look_up_name(node)
        if isinstance(node, ast.Attribute):
            owners = self.raw(node.value)
            return union(self.reader.attribute(settle(atom), node.attr, self.place(node)) for atom in owners)
        return self.visit(node)

    def _look_up_name(self, node: ast.Name) -> Value:
        value = self.look_up(node.id)
        if value is not None:
            if Argument("partition") in value and node not in self.reader.told:
                self.reader.report(diagnostics.calls("getPartitionIndex", self.place(node)))
            return value
        name, names = node.id, self.names
        if name in names.closure:
            self.reader.origin_in_closure(names, name)
            return wrap(names.closure[name])
        if name in names.globals:
            self.reader.origin_in_module(names, name, self.place(node))
            return wrap(names.globals[name])
        if name in vars(builtins):
            return wrap(vars(builtins)[name])
        self.reader.report(diagnostics.unseen(name, self.place(node)))
        return PLAIN

    def mention(self, value: Value, node: ast.AST) -> Value:
        for atom in value:
            self.reader.use(atom, self.place(node))
        return value

    def visit_Name(self, node: ast.Name) -> Value:
        return self.mention(self._look_up_name(node), node)

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
        result = self._special(function, node)
        if result is not None:
            return result
        args = self._args(node, function)
        self._put(node.func, args)
        return union(self.reader.call(atom, args, self.place(node)) for atom in function)

    def _put(self, function: ast.expr, args: Args) -> None:
        """Record objects that a method such as `append` puts into a variable of this call."""
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
            return
        if function.attr in MUTATORS and function.attr not in ("add", "update"):
            self.put(function.value, union(args.values))

    def put(self, variable: ast.Name, value: Value) -> None:
        """Add a value to the container in a variable of this call."""
        before = self.look_up(variable.id)
        more = frozenset(atom for atom in value if isinstance(atom, NewObject | Data) and holds_more(atom))
        data = [atom for atom in before or () if isinstance(atom, Data)]
        if before and more and len(data) == len(before):
            self.store(variable, frozenset(replace(atom, holds=atom.holds | more, keyed=()) for atom in data))

    def _args(self, node: ast.Call, function: Value) -> Args:
        anyhow = any(isinstance(atom, KnownObject) and name_of(atom.value) in ORDERLESS for atom in function)
        positional = tuple(self._argument(argument, anyhow) for argument in node.args)
        keywords = [(keyword.arg, self.visit(keyword.value)) for keyword in node.keywords]
        loose = union(self._within(value) for name, value in keywords if name is None)
        starred = any(isinstance(argument, ast.Starred) for argument in node.args)
        unknown = starred or any(name is None for name, _ in keywords)
        nodes = tuple(node.args) or tuple(keyword.value for keyword in node.keywords)
        named = [(name, value) for name, value in keywords if name is not None]
        return Args(positional, (*named, *([(LOOSE, loose)] if loose else [])), nodes, unknown, node)

    def _argument(self, node: ast.expr, anyhow: bool) -> Value:
        if anyhow and isinstance(node, ast.GeneratorExp | ast.ListComp):
            return self._comprehension(node, ordered=False)
        return self.visit(node)

    def _special(self, function: Value, node: ast.Call) -> Value | None:
        atom = next(iter(function)) if len(function) == 1 else None
        if not isinstance(atom, KnownObject):
            return None
        special = _SPECIAL.get(name_of(atom.value))
        return special(self, node) if special is not None else None

    def _call_super(self, node: ast.Call) -> Value | None:
        after = self.names.closure.get("__class__")
        if node.args or after is None or self.names.owner is None:
            return None
        return frozenset([Super(after, self.names.owner)])

    def _call_isinstance(self, node: ast.Call) -> Value:
        for argument in node.args[:1]:
            self.visit(argument)
        return PLAIN

    def _call_type(self, node: ast.Call) -> Value | None:
        if len(node.args) != 1:
            return None
        return union(map(_type_of, self.raw(node.args[0])))

    def _call_getattr(self, node: ast.Call) -> Value | None:
        if len(node.args) < 2 or node.keywords:
            return None
        default = self.visit(node.args[2]) if len(node.args) > 2 else NOTHING
        name, owners = node.args[1], self.raw(node.args[0])
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            place = self.place(node)
            return default | union(self.reader.attribute(settle(owner), name.value, place) for owner in owners)
        self.visit(name)
        self.reader.unseen("getattr", self.place(node))
        return default | frozenset([Data(callables=True)])

    def _call_setattr(self, node: ast.Call) -> Value | None:
        for owner in self.raw(node.args[0]) if node.args else ():
            if outlives(settle(owner)):
                self.reader.report(diagnostics.keeps(self.place(node)))
        return union(map(self.visit, node.args[1:])) and PLAIN

    def _call_hasattr(self, node: ast.Call) -> Value:
        for argument in node.args:
            self.raw(argument)
        return PLAIN

    # -- values made here -------------------------------------------------------------------------------------------

    def visit_List(self, node: ast.List | ast.Tuple) -> Value:
        return container(union(map(self.visit, node.elts)))

    def visit_Tuple(self, node: ast.Tuple) -> Value:
        values = [self.visit(element) for element in node.elts]
        whole = container(union(values))
        starred = any(isinstance(element, ast.Starred) for element in node.elts)
        return whole if starred else mark(whole, keyed=tuple(enumerate(values)))

    def visit_Dict(self, node: ast.Dict) -> Value:
        for key in filter(None, node.keys):
            self.visit(key)
        values = [self.visit(value) for value in node.values]
        whole = container(union(values))
        pairs = zip(node.keys, values, strict=True)
        keyed = tuple((key.value, value) for key, value in pairs if isinstance(key, ast.Constant))
        return mark(whole, keyed=keyed) if len(keyed) == len(values) else whole

    def visit_Set(self, node: ast.Set) -> Value:
        for element in node.elts:
            self.visit(element.value if isinstance(element, ast.Starred) else element)
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
        items = container(self.visit(node.value if isinstance(node, ast.DictComp) else node.elt))
        return frozenset([Data(iterator=True)]) if isinstance(node, ast.GeneratorExp) and items == FRESH else items

    def iterate(self, value: Value, node: ast.AST) -> Value:
        """Return the items in order; reports a set, whose items have none."""
        for atom in value:
            if is_unordered(atom):
                self.reader.report(diagnostics.set_order(self.place(node)))
        return self._within(value)

    def _within(self, value: Value) -> Value:
        return union(inside(settle(atom)) for atom in value)

    def visit_Subscript(self, node: ast.Subscript) -> Value:
        self.visit(node.slice)
        owners = self.raw(node.value)
        for atom in owners:
            self.reader.touch(atom, self.place(node))
            if isinstance(atom, KnownObject) and is_users(type(atom.value)):  # its own `__getitem__`, or `__missing__`
                self.reader.use(atom, self.place(node))
            self._fill(atom, node)
            self.reader.item_of_class(atom, self.place(node))
        return self.mention(union(_entry(settle(atom), node.slice) for atom in owners), node)

    def _fill(self, owner: Atom, node: ast.Subscript) -> None:
        """Report a read of a defaultdict that adds an entry."""
        kind = kind_of(owner)
        if kind is not None and issubclass(kind, defaultdict) and outlives(owner) and isinstance(node.ctx, ast.Load):
            self.reader.report(diagnostics.keeps(self.place(node), self.place(node.value).text))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Value:
        value = self.visit(node.value)
        self.store(node.target, value)
        return value

    def visit_IfExp(self, node: ast.IfExp) -> Value:
        self.visit(node.test)
        return self.visit(node.body) | self.visit(node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> Value:
        return union(map(self.visit, node.values))

    def visit_BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.visit(node.left), self.visit(node.right)
        both = left | right
        if isinstance(node.op, _SET_OPERATORS):
            if any(is_unordered(atom) or (isinstance(atom, Data) and atom.view) for atom in both):
                return SET
        elif isinstance(node.op, ast.Mod):
            self.reader.call(KnownObject(repr), Args((right,), (), (node.right,)), self.place(node))
        elif any(map(is_unordered, right)):
            self.reader.report(diagnostics.set_order(self.place(node)))
        containers = any(isinstance(atom, Data) and (atom.container or atom.callables) for atom in both)
        return container(both) if containers else PLAIN

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Value:
        value = self.visit(node.value)
        self.iterate(frozenset(filter(is_unordered, value)), node.value)
        self.reader.call(KnownObject(format), Args((value,), (), (node.value,)), self.place(node.value))
        if node.format_spec is not None:
            self.visit(node.format_spec)
        return PLAIN


# The built-in functions that are read in a way of their own.
_SPECIAL: dict[str, Callable[[Expressions, ast.Call], Value | None]] = {
    "builtins.super": Expressions._call_super,
    "builtins.isinstance": Expressions._call_isinstance,
    "builtins.issubclass": Expressions._call_isinstance,
    "builtins.type": Expressions._call_type,
    "builtins.getattr": Expressions._call_getattr,
    "builtins.setattr": Expressions._call_setattr,
    "builtins.delattr": Expressions._call_setattr,
    "builtins.hasattr": Expressions._call_hasattr,
}


def nth(value: Value, place: int) -> Value:
    """Return the value at this place of a tuple; nothing if it is not known."""
    entries = [entry for atom in value if isinstance(atom, Data) for key, entry in atom.keyed if key is place]
    return union(entries) if len(entries) == len(value) else NOTHING


def _entry(owner: Atom, key: ast.expr) -> Value:
    """Return the value under a key; for a constant key its own entry, if that is known."""
    if isinstance(key, ast.Slice):  # of a list, another list with the same contents
        return inside(owner) | container(inside(owner))
    keyed = owner.keyed if isinstance(owner, Data) else ()
    entries = [value for name, value in keyed if isinstance(key, ast.Constant) and name == key.value]
    if not entries:
        return inside(owner)
    return read_back(union(entries)) if outlives(owner) else union(entries)


def _type_of(atom: Atom) -> Value:
    """Return the class of an object, if it is known."""
    kind = kind_of(atom)
    return wrap(kind) if kind is not None else PLAIN
