"""Traces the operations between spouts and a state: which may differ on a replay, and where key fields come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..operations.base import CombinerAggregator, short_name
from ..operations.determinism import CHANGING, Judge, is_declared, judge
from ..plan import Node, PartitionNode, Plan, ProcessorNode, operations_of
from ..processors import (
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
from ..tuples import Fields
from ..windowing import CountWindow
from .replays import is_unordered, unsteady


class Cause(NamedTuple):
    """Why a result may differ on a replay, and the remedy. ``kind``: that of the `Verdict`, if it is one's."""

    what: str
    remedy: str
    kind: str = CHANGING


def ancestors(plan: Plan, node: Node) -> list[Node]:
    """Return the node and all nodes before it, in the order of their definition."""
    ids: set[int] = set()
    todo = [node.id]
    while todo:
        node_id = todo.pop()
        if node_id not in ids:
            ids.add(node_id)
            todo.extend(plan.by_id[node_id].parents)
    return [other for other in plan.nodes if other.id in ids]


def changes(plan: Plan, node: Node, judge: Judge = judge) -> list[Cause]:
    """Return why the tuples that reach a state may differ on a replay, even if the spout emits the same ones."""
    before = ancestors(plan, node)
    earlier = [other for other in before if other.id != node.id]
    causes = [cause for other in earlier for cause in _in_node(other, judge)]
    causes += [cause for other in earlier for cause in _by_partition(plan, other, judge)]
    updater = node.spec.updater if isinstance(node, ProcessorNode) else None
    return list(dict.fromkeys([*causes, *_judge_all([updater], judge)]))


def _by_partition(plan: Plan, node: Node, judge: Judge) -> list[Cause]:
    """Return the cause if the node aggregates each partition by itself and a replay may distribute tuples
    differently."""
    spec = node.spec if isinstance(node, ProcessorNode) else None
    if isinstance(spec, WindowPersist):
        return _by_order(plan, node, judge)
    if not isinstance(spec, Aggregate) or spec.phase != "full" or spec.single is not None:
        return []
    why = unsteady(plan, node, judge)
    return [Cause(f"{spec.operation} of each partition: {why}", "add partitionBy(...) before it")] if why else []


def _by_order(plan: Plan, node: Node, judge: Judge) -> list[Cause]:
    """Return the cause if a replay may bring the tuples of a window to other partitions, or in another order where that
    matters: a window of a number of tuples then holds others, and an aggregator may depend on the order."""
    assert isinstance(node, ProcessorNode) and isinstance(node.spec, WindowPersist)
    why = unsteady(plan, node, judge)
    if why:
        return [Cause(f"{node.spec.operation}: {why}", "add partitionBy(...) before the window")]
    updater = node.spec.updater
    if isinstance(updater.config, CountWindow) or not isinstance(updater.aggregator, CombinerAggregator):
        why = is_unordered(plan, node, judge)
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
    return _Origins(plan, judge).of(node, name)


class _Origins:
    """Traces each field of each node only once; a map reads all fields of the node before it."""

    def __init__(self, plan: Plan, judge: Judge) -> None:
        self.plan = plan
        self.judge = judge
        self.causes: dict[tuple[int, str], list[Cause]] = {}

    def of(self, node: Node, name: str) -> list[Cause]:
        place = (node.id, name)
        if place not in self.causes:
            self.causes[place] = list(dict.fromkeys(self._causes(node, name)))
        return self.causes[place]

    def _causes(self, node: Node, name: str) -> Iterator[Cause]:
        parents = [self.plan.by_id[parent] for parent in node.parents]
        spec = node.spec if isinstance(node, ProcessorNode) else None
        if isinstance(spec, Merge):
            place = node.fields.index(name)
            sides = zip(parents, spec.inputs, strict=True)
            yield from self._all((side, fields[place]) for side, fields in sides if place < len(fields))
        elif isinstance(spec, Replace) or (isinstance(spec, Each | StateQuery) and name in spec.outputs):
            yield from (cause._replace(what=f"field {name!r}: {cause.what}") for cause in _in_node(node, self.judge))
            yield from self._all((parents[0], field) for field in spec.inputs)
        elif isinstance(spec, MultiReduce) and isinstance(spec.reducer, Joiner):
            groups = spec.groups or ()
            reads = zip(parents, groups, spec.inputs, strict=True)
            yield from self._all((side, field) for side, group, rest in reads for field in (*group, *rest))
        elif isinstance(spec, Aggregate | PartitionPersist | MultiReduce) and name not in spec.groups_by:
            yield from _in_node(node, self.judge)
            reason = f"field {name!r} is computed from the whole batch by {spec.operation}"
            yield Cause(reason, "use only fields of single tuples as the key")
        elif parents:
            yield from self.of(parents[0], name)

    def _all(self, fields: Iterable[tuple[Node, str]]) -> Iterator[Cause]:
        for node, name in fields:
            yield from self.of(node, name)
