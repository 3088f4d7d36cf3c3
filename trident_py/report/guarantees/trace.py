"""Traces the operations between spouts and a state: which may differ on a replay, and where key fields come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ...engine.processors import (
    Aggregate,
    Each,
    Joiner,
    Merge,
    MultiReduce,
    PartitionPersist,
    Replace,
    StateQuery,
    WindowPersist,
)
from ...model.plan import Node, PartitionNode, Plan, ProcessorNode, operations_of
from ...operations.base import CombinerAggregator, short_name
from ...operations.determinism import CHANGING, Judge, is_declared, judge
from ...tuples import Fields
from ...windowing import CountWindow
from .replays import Routes


class Cause(NamedTuple):
    """Why a result may differ on a replay, and the remedy. ``kind``: that of the `Verdict`, if it is one's."""

    what: str
    remedy: str
    kind: str = CHANGING


def changes(routes: Routes, node: Node) -> list[Cause]:
    """Return why the tuples that reach a state may differ on a replay, even if the spout emits the same ones."""
    judge = routes.judge
    earlier = [other for other in routes.plan.before(node) if other.id != node.id]
    causes = [cause for other in earlier for cause in _in_node(other, judge)]
    causes += [cause for other in earlier for cause in _by_partition(routes, other)]
    updater = node.spec.updater if isinstance(node, ProcessorNode) else None
    return list(dict.fromkeys([*causes, *_judge_all([updater], judge)]))


def _by_partition(routes: Routes, node: Node) -> list[Cause]:
    """Return the cause if the node aggregates each partition by itself and a replay may distribute tuples
    differently."""
    spec = node.spec if isinstance(node, ProcessorNode) else None
    if isinstance(spec, WindowPersist):
        return _by_order(routes, node)
    if not isinstance(spec, Aggregate) or spec.phase != "full" or spec.single is not None:
        return []
    why = routes.unsteady(node)
    return [Cause(f"{spec.operation} of each partition: {why}", "add partitionBy(...) before it")] if why else []


def _by_order(routes: Routes, node: Node) -> list[Cause]:
    """Return the cause if a replay may bring the tuples of a window to other partitions, or in another order where that
    matters: a window of a number of tuples then holds others, and an aggregator may depend on the order."""
    assert isinstance(node, ProcessorNode) and isinstance(node.spec, WindowPersist)
    why = routes.unsteady(node)
    if why:
        return [Cause(f"{node.spec.operation}: {why}", "add partitionBy(...) before the window")]
    updater = node.spec.updater
    if isinstance(updater.config, CountWindow) or not isinstance(updater.aggregator, CombinerAggregator):
        why = routes.unordered(node)
    remedy = "keep the window in the partitions of the spout, or use a window of a duration with a combiner"
    return [Cause(f"{node.spec.operation}: {why}", remedy)] if why else []


def _in_node(node: Node, judge: Judge) -> list[Cause]:
    """Return the causes in the node itself."""
    if isinstance(node, PartitionNode):
        return []  # a grouping decides where tuples go, not their content: see `unsteady`
    causes = _judge_all(operations_of(node), judge)
    spec = node.spec if isinstance(node, ProcessorNode) else None
    if isinstance(spec, StateQuery) and not causes and not is_declared(spec.query):
        assert isinstance(node, ProcessorNode) and node.state is not None
        causes.append(
            Cause(
                f"{short_name(spec.query)} queries state {node.state.name}, which may answer differently on a replay",
                "declare the query with deterministic(...) if that state never changes",
            )
        )
    if isinstance(spec, PartitionPersist):
        causes += _new_values(node)
    return causes


def _new_values(node: Node) -> list[Cause]:
    """Return the cause in a state's new values. A state that keeps txids emits the same values on a replay; others may
    not."""
    assert isinstance(node, ProcessorNode) and node.state is not None
    if node.state.kind in ("transactional", "opaque", "batch", "window"):
        return []
    return [Cause(f"the new values of state {node.state.name} differ on a replay", "make that state opaque")]


def _judge_all(operations: Iterable[Any], judge: Judge) -> list[Cause]:
    causes = []
    for operation in operations:
        verdict, name = judge(operation), short_name(operation)
        if not verdict.seen:
            causes.append(Cause(f"{name} {verdict.why}", f"declare {name} @deterministic if it is", verdict.kind))
        elif not verdict.deterministic:
            causes.append(Cause(f"{name} {verdict.why}", f"make {name} deterministic"))
    return causes


# -- where the fields of a key come from ------------------------------------------------------------------------


def key_fields(node: ProcessorNode) -> list[str]:
    """Return the key fields of a state, as far as its factory and its updater declare them."""
    assert node.state is not None
    groups, factory = node.spec.groups_by, node.state.factory
    # The factories of the package `states` have these attributes; a user's own may have them too.
    declared = [getattr(factory, name, None) for name in ("key", "sender", "sequence")]
    names = [name for fields in ([groups] if groups else declared) for name in _fields(fields)]
    return [name for name in dict.fromkeys(names) if name in node.spec.inputs]


def _fields(value: Any) -> tuple[str, ...]:
    return Fields.of(value).names if isinstance(value, Fields | str | list | tuple) else ()


def origin(plan: Plan, node: Node, name: str, judge: Judge = judge) -> list[Cause]:
    """Return why a field of a node's output does not depend on one spout tuple alone; empty if it does."""
    causes: dict[Cause, None] = {}
    todo, seen = [(node.id, name)], set[tuple[int, str]]()
    while todo:
        place = todo.pop()
        if place not in seen:
            seen.add(place)
            own, fields = _derivation(plan.by_id[place[0]], place[1], judge)
            causes |= dict.fromkeys(own)
            todo += reversed(fields)
    return list(causes)


def _derivation(node: Node, name: str, judge: Judge) -> tuple[list[Cause], list[tuple[int, str]]]:
    """Return why a field of a node's output does not depend on one tuple of its inputs alone, and the fields of nodes
    before it that it is made of."""
    parents, spec = node.parents, node.spec if isinstance(node, ProcessorNode) else None
    if isinstance(spec, Merge):
        place = node.fields.index(name)
        sides = zip(parents, spec.inputs, strict=True)
        return [], [(side, fields[place]) for side, fields in sides if place < len(fields)]
    if isinstance(spec, Replace) or (isinstance(spec, Each | StateQuery) and name in spec.outputs):
        own = [cause._replace(what=f"field {name!r}: {cause.what}") for cause in _in_node(node, judge)]
        return own, [(parents[0], field) for field in spec.inputs]
    if isinstance(spec, MultiReduce) and isinstance(spec.reducer, Joiner):
        reads = zip(parents, spec.groups or (), spec.inputs, strict=True)
        return [], [(side, field) for side, group, rest in reads for field in (*group, *rest)]
    if isinstance(spec, Aggregate | PartitionPersist | MultiReduce) and name not in spec.groups_by:
        reason = f"field {name!r} is computed from the whole batch by {spec.operation}"
        return [*_in_node(node, judge), Cause(reason, "use only fields of single tuples as the key")], []
    return [], [(parent, name) for parent in parents[:1]]
