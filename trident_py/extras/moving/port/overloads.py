"""Overloads: the names of methods and fields in Python, and which method a call means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tree_sitter import Node

from . import library
from .code import Code
from .declarations import SPECIAL, Class, JavaMethod, World
from .java_types import FUNCTION, OBJECT, Type
from .names import python_name
from .scope import Scope
from .source import Untranslatable, text
from .storm_types import python_class
from .wanted import CALLED

_WIDENING = ("byte", "short", "int", "long", "float", "double")
_BOXED, _LAST, _UNSURE = 100, 50, 200
"""What an argument costs more that has to be boxed; that goes to an Object; whose type is not known."""

Inherited = tuple[JavaMethod, list[Type]]
"""A method of a parent, and its parameters with what the child writes for the parent's type variables."""


def name_all(world: World) -> None:
    """Name the members of all classes, parents first."""
    named: set[Class] = set()

    def visit(cls: Class) -> None:
        if cls not in named:
            named.add(cls)
            for parent in list(world.lineage(cls))[1:]:
                visit(parent)
            name_members(world, cls)

    for cls in list(world.all()):
        visit(cls)


def name_members(world: World, cls: Class) -> None:
    """Python has one attribute of a name. A method keeps the name of the one that it overrides; of several overloads
    the longest keeps the plain name; what Java hides from a child has the class in its name."""
    parents = list(world.lineage(cls))[1:]
    inherited = list(_list_inherited(world, cls, {}))
    taken = {method.python for method, _ in inherited}
    for method in sorted(cls.methods, key=lambda one: ("Override" not in text(one.node), -len(one.parameters))):
        method.python = _name(method, cls, inherited, taken, world)
        taken.add(method.python)
    for field in cls.fields.values():
        hides = any(field.name in one.fields and not one.fields[field.name].static for one in parents)
        if not field.static and hides:
            cls.attributes[field.name] = f"{python_name(field.name, member=True)}_{cls.name}"


def _list_inherited(world: World, cls: Class, bound: dict[str, Type]) -> Iterator[Inherited]:
    for written, parent in world.parents(cls):
        given = [bound.get(one.name, one) for one in written.args]
        inner = dict(zip(parent.variables, given, strict=False))
        for method in parent.methods:
            yield method, [inner.get(one.type.name, one.type) for one in method.parameters]
        yield from _list_inherited(world, parent, inner)


def _name(method: JavaMethod, cls: Class, inherited: list[Inherited], taken: set[str], world: World) -> str:
    plain = SPECIAL.get((method.name, len(method.parameters))) or python_name(method.name, member=True)
    if method.private and not method.static and _is_shared(method, cls, world):
        return f"{plain}_{cls.name}"
    overridden = find_overridden(method, inherited, world)
    if overridden is not None:
        return overridden.python
    if cls.kind == "enum" and plain in ("name", "value"):
        plain += "_"
    if plain not in taken:
        return plain
    longer = f"{plain}_{'_'.join(_word(one.type) for one in method.parameters) or 'plain'}"
    return longer if longer not in taken else f"{longer}_{cls.name}"


def _is_shared(method: JavaMethod, cls: Class, world: World) -> bool:
    """Tell whether a parent or a child has a method of this name."""
    return any(
        one is not cls
        and one.methods_named(method.name)
        and (cls in list(world.lineage(one)) or one in list(world.lineage(cls)))
        for one in world.all()
    )


def _word(kind: Type) -> str:
    return f"{_word(kind.args[0])}s" if kind.name == "[]" else kind.name.replace(".", "")


def find_overridden(method: JavaMethod, inherited: list[Inherited], world: World) -> JavaMethod | None:
    """Return the parent's method with the same parameters, or with type variables for some of them."""
    mine = [one.type for one in method.parameters]
    same = [
        (one, kinds)
        for one, kinds in inherited
        if one.name == method.name and len(kinds) == len(mine) and one.static is method.static and not one.private
    ]
    for open_too in (False, True):
        for one, kinds in same:
            if all(_is_same(his, own, world, open_too) for his, own in zip(kinds, mine, strict=True)):
                return one
    return None


def _is_same(one: Type, other: Type, world: World, open_too: bool) -> bool:
    """Tell whether parameters have the same erased type. ``open_too``: a type variable stands for any."""
    if open_too and one.name in world.variables:
        return True
    if one.name == other.name == "[]":
        return _is_same(one.arg(0), other.arg(0), world, open_too)
    return one.name.rpartition(".")[2] == other.name.rpartition(".")[2]


def find_overload(methods: Sequence[JavaMethod], arguments: Sequence[Code], node: Node, scope: Scope) -> JavaMethod:
    """Return the method that Java chooses for these arguments. Raises Untranslatable if that is not certain."""
    if len(methods) == 1 or (len({one.python for one in methods}) == 1 and methods[0].python != "__init__"):
        return methods[0]
    priced = [(one, price) for one in methods if (price := _price(one, arguments, scope)) is not None]
    fixed = [one for one in priced if _is_fixed(one[0], arguments)] or priced
    least = min((max(price, default=0) // _BOXED for _, price in fixed), default=0)
    fitting = [one for one in fixed if max(one[1], default=0) // _BOXED == least]
    best = [one for one in fitting if not any(_beats(other[1], one[1]) for other in fitting)]
    if best and (len(best) == 1 or len({_signature(one[0]) for one in best}) == 1):
        return best[0][0]
    kinds = ", ".join(str(code.type) for code in arguments)
    raise Untranslatable(node, f"which {methods[0].name}({kinds}) is meant is not certain")


def _signature(method: JavaMethod) -> tuple[str, ...]:
    return tuple(str(one.type) for one in method.parameters)


def _is_fixed(method: JavaMethod, arguments: Sequence[Code]) -> bool:
    return not (method.parameters and method.parameters[-1].varargs) or (
        len(method.parameters) == len(arguments) and arguments[-1].type.name == "[]"
    )


def _beats(one: Sequence[int], other: Sequence[int]) -> bool:
    return one != other and all(mine <= his for mine, his in zip(one, other, strict=False))


def _price(method: JavaMethod, arguments: Sequence[Code], scope: Scope) -> list[int] | None:
    """Return how far each argument is from its parameter, or None if Java does not take them."""
    found = []
    spread = not _is_fixed(method, arguments)
    for index, code in enumerate(arguments):
        last = spread and index >= len(method.parameters) - 1
        wanted = method.parameters[-1].type.arg(0) if last else method.parameters[index].type
        price = _price_one(wanted, code, scope)
        if price is None:
            return None
        found.append(price)
    return found


def _price_one(wanted: Type, code: Code, scope: Scope) -> int | None:
    given = code.type
    if wanted.name == given.name and wanted.name != "[]":
        return 0
    if given.name == "null" or code.text == "None":
        return None if wanted.is_primitive else _LAST if wanted == OBJECT else 1
    if wanted.is_primitive:
        if not given.primitive:
            return _UNSURE if given == OBJECT or given.name in scope.world.variables else None
        step = _widen(given.primitive, wanted.name)
        return None if step is None else step + (0 if given.is_primitive else _BOXED)
    if given.is_primitive:
        return _box(given, wanted, scope)
    return _price_object(wanted, given, scope)


def _widen(given: str, wanted: str) -> int | None:
    if given == wanted:
        return 0
    if wanted not in _WIDENING or given not in (*_WIDENING, "char"):
        return None
    start = _WIDENING.index("short") if given == "char" else _WIDENING.index(given)
    step = _WIDENING.index(wanted) - start
    return step if step > 0 else None


def _box(given: Type, wanted: Type, scope: Scope) -> int | None:
    if wanted.name == given.boxed.name:
        return _BOXED
    if wanted.name in ("Number", "Comparable", "Serializable"):
        return _BOXED + 1 if wanted.name != "Number" or given.primitive not in ("char", "boolean") else None
    return _BOXED + 2 if wanted == OBJECT or wanted.name in scope.world.variables else None


def _price_object(wanted: Type, given: Type, scope: Scope) -> int | None:
    if given.name == wanted.name == "[]":
        return _price_object(wanted.arg(0), given.arg(0), scope) if wanted.arg(0) != given.arg(0) else 0
    if wanted == OBJECT or wanted.name in scope.world.variables:
        return _LAST
    if given.name == FUNCTION:
        return 1 if wanted.name in CALLED or scope.find_class(wanted.name) is not None else None
    parents = _parents(given, scope)
    if wanted.name in parents:
        return parents.index(wanted.name)
    mine, his = python_class(wanted.name), python_class(given.name)
    if mine is not None and his is not None and issubclass(his, mine):
        return 1
    unsure = given == OBJECT or given.name in scope.world.variables or given.name == "Values"
    return _UNSURE if unsure else None


def _parents(given: Type, scope: Scope) -> list[str]:
    cls = scope.find_class(given.name)
    if cls is None:
        return library.lineage(given.name)
    return [*(one.name for one in scope.world.lineage(cls)), *(one.name for one in scope.world.library_parents(cls))]
