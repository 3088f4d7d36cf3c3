"""What one function does to its parameters, by its source alone: which ones it changes, and whether it asks the clock.

Names and not values decide: a method named as one that changes its object does so. `libraries` reads with it.
"""

from __future__ import annotations

import ast
import builtins
import functools
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from . import tables
from .atoms import NOTHING, PLAIN, Args, Atom, NewObject, Value
from .sources import FunctionNode, positional

Part = tuple[str, str]
"""A parameter, and which attribute of it; "" is the parameter itself."""


class Effect(NamedTuple):
    """What a call does. ``owner``: the parameter for the object of a method, "" of a function; ``parameters``: the
    others. ``stored``: attributes that hold a parameter after `__init__`. ``chance``: a clock or a random draw; of a
    function that needs no argument only if it gets none."""

    owner: str = ""
    parameters: tuple[str, ...] = ()
    changed: frozenset[Part] = frozenset()
    stored: tuple[tuple[str, str], ...] = ()
    chance: str = ""
    optional: bool = False

    @property
    def changes_owner(self) -> bool:
        return any(name == self.owner for name, _ in self.changed)

    def asks_clock(self, args: Args) -> bool:
        return bool(self.chance) and not (self.optional and not args.bare)

    def bind(self, args: Args, owner: Atom | None = None) -> dict[str, Value]:
        """Return the values of the parameters in a call."""
        given = dict(zip(self.parameters, args.positional, strict=False)) | dict(args.keywords)
        return given | ({self.owner: frozenset([owner])} if owner is not None else {})

    def list_changed(self, given: Mapping[str, Value]) -> Iterator[Atom]:
        """Yield what a call changes. A new object holds its own parts, and those that were given to it."""
        for name, attribute in self.changed:
            for atom in given.get(name, NOTHING):
                if attribute and isinstance(atom, NewObject) and not atom.held:
                    yield from atom.attributes.get(attribute, NOTHING)
                else:
                    yield atom


class Surroundings(NamedTuple):
    """What a function finds around it: the globals, the methods of its class, and what is known of other functions."""

    names: Mapping[str, Any]
    method: Callable[[str], Any]
    effects: Mapping[Any, Effect]
    mutators: Collection[str]


class FunctionEffects:
    """Reads one function. ``owned``: its first parameter is an object or a class."""

    def __init__(self, node: FunctionNode, owned: bool) -> None:
        names = positional(node.args)
        self.owner = names[0] if owned else ""
        self._node = node
        rest = names[1:] if owned else names
        self.parameters = (*rest, *(one.arg for one in node.args.kwonlyargs))
        self.optional = bool(self.parameters) and len(node.args.defaults) == len(rest)
        self._nodes = list(ast.walk(node))
        self._calls = [one for one in self._nodes if isinstance(one, ast.Call)]

    def effect(self, around: Surroundings) -> Effect:
        changed = frozenset([*self._stores(), *(part for call in self._calls for part in self._changes(call, around))])
        chance = next(filter(None, (self._chance(call, around) for call in self._calls)), "")
        return Effect(self.owner, self.parameters, changed, self._stored, chance, self.optional)

    # -- parts of parameters ----------------------------------------------------------------------------------------

    def _part(self, node: ast.AST) -> Part | None:
        """Return the part of a parameter that an expression is, or is in."""
        match node:
            case ast.Name():
                known = node.id in (self.owner, *self.parameters)
                return (node.id, "") if known else self._aliases.get(node.id)
            case ast.Attribute():
                part = self._part(node.value)
                return part and (part[0], part[1] or node.attr)
            case ast.Subscript() | ast.Starred() | ast.NamedExpr():
                return self._part(node.value)
            case ast.Call(func=ast.Name(id="super")):
                return (self.owner, "")
            case ast.Call(func=ast.Attribute(value=owner)):
                return self._part(owner)
            case ast.IfExp():
                return self._part(node.body) or self._part(node.orelse)
        return None

    @functools.cached_property
    def _aliases(self) -> dict[str, Part]:
        """The local names of parts: from assignments, and of items from loops."""
        self.__dict__["_aliases"] = aliases = {}
        for target, value in self._pairs:
            part = self._part(value)
            if isinstance(target, ast.Name) and part is not None:
                aliases[target.id] = part
        return aliases

    @functools.cached_property
    def _pairs(self) -> list[tuple[ast.expr, ast.expr]]:
        """What is assigned, and to what."""
        pairs: list[tuple[ast.expr, ast.expr]] = []
        for node in self._nodes:
            if isinstance(node, ast.Assign):
                pairs += [pair for target in node.targets for pair in _split(target, node.value)]
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                pairs.append((node.target, node.value))
            elif isinstance(node, ast.For | ast.comprehension):
                pairs += [(name, node.iter) for name in ast.walk(node.target) if isinstance(name, ast.Name)]
        return pairs

    @functools.cached_property
    def _stored(self) -> tuple[tuple[str, str], ...]:
        targets = [(one.attr, self._part(value)) for one, value in self._pairs if isinstance(one, ast.Attribute)]
        return tuple((name, part[0]) for name, part in targets if part is not None and part[0] != self.owner)

    # -- what changes -----------------------------------------------------------------------------------------------

    def _stores(self) -> Iterator[Part]:
        for node in self._nodes:
            if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
                yield from filter(None, [self._part(node.value)])

    def _changes(self, call: ast.Call, around: Surroundings) -> Iterator[Part]:
        first = [part for node in call.args[:1] if (part := self._part(node)) is not None]
        thing = _resolve(call.func, around.names)
        if tables.name_of(thing) in tables.FIRST_CHANGES:
            yield from first
        if not isinstance(call.func, ast.Attribute):
            yield from self._pass_on(call, around.effects.get(thing))
            return
        owner, name = self._part(call.func.value), call.func.attr
        itself = isinstance(call.func.value, ast.Name) and owner == (self.owner, "")
        own = around.effects.get(around.method(name)) if itself else None
        if own is not None:
            yield from self._pass_on(call, own)
        elif name in around.mutators:
            of_class = isinstance(_resolve(call.func.value, around.names), type)  # ``dict.pop(map, key)``
            yield from first if of_class else filter(None, [owner])

    def _pass_on(self, call: ast.Call, effect: Effect | None) -> Iterator[Part]:
        """Yield the parts that a call of a known function changes."""
        if effect is None:
            return
        given: dict[str, ast.expr] = dict(zip(effect.parameters, call.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
        if effect.owner and isinstance(call.func, ast.Attribute):
            given[effect.owner] = call.func.value
        for name, attribute in effect.changed:
            part = self._part(given[name]) if name in given else None
            if part is not None:
                yield part[0], part[1] or attribute

    def _chance(self, call: ast.Call, around: Surroundings) -> str:
        thing = _resolve(call.func, around.names)
        if thing in around.effects:
            effect = around.effects[thing]
            return effect.chance if not (effect.optional and call.args) else ""
        args = Args((PLAIN,) * len(call.args), (), tuple(call.args))
        name = tables.find_changing(thing, args) if thing is not None else None
        return name if name is not None and tables.is_chance(name) else ""


def _split(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(one, value) for one in (target.elts if isinstance(target, ast.Tuple) else [target])]


def _resolve(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return what a name stands for, or a name of a module; None if that is not known."""
    if isinstance(node, ast.Name):
        return names.get(node.id, vars(builtins).get(node.id))
    if isinstance(node, ast.Attribute):
        module = _resolve(node.value, names)
        return vars(module).get(node.attr) if isinstance(module, types.ModuleType) else None
    return None
