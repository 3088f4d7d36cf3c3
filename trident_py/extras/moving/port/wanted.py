"""What a lambda gets: the types of its parameters, from the place where it stands."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from .declarations import JavaMethod
from .java_types import INT, OBJECT, STRING, Type
from .scope import Scope
from .source import text, walk


@dataclass(frozen=True)
class LambdaShape:
    """``method``: the one of the user's own interface that the lambda implements."""

    parameters: list[Type]
    method: JavaMethod | None = None


CALLED = {
    "Comparator": "compare", "JFunction": "apply", "BiFunction": "apply", "UnaryOperator": "apply",
    "BinaryOperator": "apply", "Predicate": "test", "BiPredicate": "test", "JConsumer": "accept",
    "BiConsumer": "accept",
    "Supplier": "get", "Runnable": "run", "Callable": "call", "IntFunction": "apply", "ToIntFunction": "applyAsInt",
    "ToLongFunction": "applyAsLong", "ToDoubleFunction": "applyAsDouble", "IntPredicate": "test",
    "Func": "apply", "IntUnaryOperator": "applyAsInt", "IntBinaryOperator": "applyAsInt",
}  # fmt: skip
"""Interfaces of the library with one method: here their objects are called."""
_TUPLE = ("MapFunction", "FlatMapFunction", "Consumer")


def find_wanted(kind: Type, scope: Scope) -> LambdaShape | None:
    """Return what a lambda of this type gets, or None if it is no interface of one method."""
    name = kind.name
    if name in _TUPLE:
        return LambdaShape([Type("TridentTuple")])
    if name == "StateFactory":
        return LambdaShape([Type("Map", (STRING, OBJECT)), Type("IMetricsContext"), INT, INT])
    if name in ("Supplier", "Runnable", "Callable"):
        return LambdaShape([])
    if name in ("BinaryOperator", "Comparator"):
        return LambdaShape([kind.arg(0), kind.arg(0)])
    if name in ("BiFunction", "BiPredicate", "BiConsumer"):
        return LambdaShape([kind.arg(0), kind.arg(1)])
    if name.startswith("Int") and name in CALLED:
        return LambdaShape([INT] * (2 if "Binary" in name else 1))
    if name in CALLED or name == "ValueUpdater":
        return LambdaShape([kind.arg(0)])
    cls = scope.find_class(name)
    if cls is not None and (method := scope.world.functional(cls)):
        bound = dict(zip(cls.variables, kind.args, strict=False))
        return LambdaShape([bound.get(one.type.name, one.type) for one in method.parameters], method)
    return None


def list_captured(node: Node, scope: Scope) -> list[str]:
    """Return the variables of loops that the node uses: Python would see their last value."""
    used = {text(one) for one in walk(node) if one.type == "identifier"}
    return list(dict.fromkeys(local.python for name, local in scope.locals.items() if local.looped and name in used))
