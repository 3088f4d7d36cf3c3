"""The guarantees of a topology, one for each state: traced from the spouts, logged and checked at submit."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ...engine.poison import is_on, remark
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
from ...errors import DefinitionError
from ...model.plan import Node, PartitionNode, Plan, ProcessorNode, SpoutNode, operations_of
from ...operations.base import CombinerAggregator, short_name
from ...operations.determinism import (
    CHANGING,
    DETERMINISTIC,
    UNCHECKED,
    UNSEEN,
    Judge,
    Verdict,
    Verdicts,
    is_declared,
    is_trusted,
    judge,
)
from ...spouts.interfaces import OPAQUE
from ...state.roles import EndsWithProcess, Remarks
from ...tuples import Fields
from ...windowing import CountWindow
from .matrix import AT_LEAST, EXACTLY, IN_EFFECT, NONE, ORDER, WRONG, Cell, cell, effective_kind, worse
from .replays import Replay, Routes, replay_of


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
        why = routes.find_disorder(node)
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


log = logging.getLogger("trident_py")

GUARANTEE = "topology.guarantee"
ACCEPTED = {"exactly-once": (EXACTLY, IN_EFFECT), "at-least-once": (EXACTLY, IN_EFFECT, AT_LEAST)}
# The updaters of these emit only new rows. On a replay, rows that a failed attempt stored are not new.
_EMITS_ONCE = ("insert-ignore", "append", "sequence")
_TOP = (EXACTLY, IN_EFFECT)
_UNSAID = "its factory does not say where the data is (location)"
IN_OBJECT = f"{_UNSAID}, so it counts as kept in the state's object, and ends with the process"


@dataclass(frozen=True)
class Guarantee:
    """The guarantee of one state of a topology.

    ``spout_kind``: the kind that really holds. ``functions``: what may differ on a replay (empty: nothing).
    ``raise_by``: what would give a better guarantee (empty: it is the best). ``unseen``: the part of ``functions``
    whose source could not be read completely, which counts as not deterministic. ``unchecked``: none was read, as the
    extra ``determinism`` is missing.
    """

    state: str
    state_kind: str
    spouts: tuple[str, ...]
    spout_kind: str
    guarantee: str
    reason: str
    raise_by: str = ""
    functions: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    unchecked: bool = False

    def __str__(self) -> str:
        spouts = " + ".join(self.spouts)
        functions = f" -> functions {self.verdict}" if self.functions else ""
        line = f"{spouts} ({self.spout_kind}){functions} -> {self.state} ({self.state_kind}): {self.guarantee}"
        return f"{line}: {self.reason}"

    @property
    def verdict(self) -> str:
        """The verdict on all functions before the state: deterministic, not deterministic, not seen, or unchecked."""
        if not self.functions:
            return DETERMINISTIC
        unread = UNCHECKED if self.unchecked else UNSEEN
        return unread if set(self.functions) <= set(self.unseen) else CHANGING


class Guarantees(list[Guarantee]):
    """The guarantees of a topology. ``str()`` gives a table with reasons."""

    def __str__(self) -> str:
        if not self:
            return "no state is updated"
        head = ("state", "kind", "spout", "functions", "guarantee")
        shown, *rows = align([head, *map(_cells, self)])
        lines = [shown]
        for row, guarantee in zip(rows, self, strict=True):
            lines += [row, f"    because {guarantee.reason}"]
            lines += [f"    to raise it: {guarantee.raise_by}"] if guarantee.raise_by else []
        return "\n".join(lines)

    def notes(self) -> list[str]:
        """Return one line for each operation whose source could not be read."""
        operations = dict.fromkeys(operation for guarantee in self for operation in guarantee.unseen)
        return [f"{name}: it counts as not deterministic, unless it is declared @deterministic" for name in operations]

    def below(self, required: str) -> Guarantees:
        """Return the guarantees below ``required``: "exactly-once" or "at-least-once"."""
        return Guarantees(guarantee for guarantee in self if guarantee.guarantee not in ACCEPTED[required])


def _cells(row: Guarantee) -> tuple[str, ...]:
    return row.state, row.state_kind, f"{' + '.join(row.spouts)} ({row.spout_kind})", row.verdict, row.guarantee


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table as lines, in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def guarantees(plan: Plan, conf: Mapping[str, Any] | None = None, judge: Judge | None = None) -> Guarantees:
    """Return one guarantee for each state that the topology updates, in the order of their definition.

    ``judge`` decides whether an operation is deterministic. By default: from its declaration, else from its source.
    Raises DefinitionError if a factory's own ``guarantees`` cannot be read.
    """
    done: dict[int, Guarantee] = {}
    routes = Routes(plan, judge or Verdicts(is_trusted(conf)))
    for node in plan.nodes:
        if isinstance(node, ProcessorNode) and node.committer:
            done[node.id] = _of_state(routes, node, done)
    return Guarantees(_with_poison(plan, conf, done))


def _with_poison(plan: Plan, conf: Mapping[str, Any] | None, rows: Mapping[int, Guarantee]) -> Iterator[Guarantee]:
    """Return the rows, with what `topology.poison` does to their batches."""
    parts = plan.components() if is_on(conf or {}) else []
    remarks = {node.id: remark(part) for part in parts for node in part.nodes}
    for node_id, row in rows.items():
        yield replace(row, reason=f"{row.reason}; {remarks[node_id]}") if remarks else row


def find_weakened(plan: Plan, conf: Mapping[str, Any], changed: list[Any]) -> tuple[Guarantees, list[Guarantee]]:
    """Return the guarantees if the ``changed`` operations hold other values, and the current guarantees that would
    change."""
    judge = Verdicts(is_trusted(conf))

    def doubt(operation: Any) -> Verdict:
        doubtful = any(operation is other for other in changed)
        return Verdict(CHANGING, "holds another value now") if doubtful else judge(operation)

    before, after = guarantees(plan, conf, judge), guarantees(plan, conf, doubt)
    pairs = zip(before, after, strict=True)
    return after, [current for current, doubted in pairs if current.guarantee != doubted.guarantee]


def _of_state(routes: Routes, node: ProcessorNode, done: Mapping[int, Guarantee]) -> Guarantee:
    assert node.state is not None
    before = routes.plan.before(node)
    spouts = [other for other in before if isinstance(other, SpoutNode)]
    state_kind = node.state.kind
    causes = changes(routes, node)
    replays = [replay_of(spout.spout) for spout in spouts]
    cells = [(replay, _cell_of(routes, node, replay, causes)) for replay in replays]
    no_spout = (Replay("none"), Cell(NONE, "no spout feeds this state"))
    replay, answer = max(cells, key=lambda pair: ORDER.index(pair[1].guarantee), default=no_spout)
    updated = [other for other in before if isinstance(other, ProcessorNode) and other.id in done]
    answer = _behind_memory(updated, _nodes_behind([done[other.id] for other in updated], answer))
    names, functions = tuple(spout.spout_id for spout in spouts), tuple(cause.what for cause in causes)
    unseen = tuple(cause.what for cause in causes if cause.kind != CHANGING)
    unchecked = any(cause.kind == UNCHECKED for cause in causes)
    return Guarantee(node.state.name, state_kind, names, replay.kind, *answer, functions, unseen, unchecked)


def _cell_of(routes: Routes, node: ProcessorNode, replay: Replay, causes: list[Cause]) -> Cell:
    """Return the cell for one spout, with this topology's remarks added to its reason."""
    assert node.state is not None
    factory, kind = node.state.factory, node.state.kind
    effective = effective_kind(replay.kind, bool(causes))
    plan, parent = routes.plan, routes.plan.by_id[node.parents[0]]
    keys = [cause for name in key_fields(node) for cause in origin(plan, parent, name, routes.judge)]
    moving = keys if effective == OPAQUE else []  # a batch that never changes gives the same keys again
    declared = getattr(factory, "guarantees", None)  # a user's own factory need not have it
    answer = find_declared_cell(factory, declared, effective) or cell(effective, kind, bool(moving))
    if kind == "append" and answer.guarantee == EXACTLY and (why := routes.unsteady(node)):
        route = "route the tuples by their content before the state, with partitionBy(...)"
        answer = Cell(WRONG, f"a replay may send tuples to other partitions, which skip them: {why}", route)
    reasons = [cause.what for cause in moving]
    reasons += [cause.what for cause in causes if not any(reason.endswith(cause.what) for reason in reasons)]
    remarks = [replay.remark, *dict.fromkeys(reasons)]
    if answer.guarantee in _TOP:
        remarks += _remarks(factory, kind, keys, moving, causes)
    remarks += [IN_OBJECT] if node.state.in_object else []
    reason = "; ".join([answer.reason, *filter(None, remarks)])
    return Cell(answer.guarantee, reason, _raise_by(answer, moving or (causes if effective != replay.kind else [])))


def _remarks(
    factory: Any, state_kind: str, keys: list[Cause], moving: list[Cause], causes: list[Cause]
) -> Iterator[str]:
    """Yield further remarks on a good cell."""
    if causes and state_kind in ("insert-ignore", "sequence"):
        yield "the key stays the same, the values of the first attempt stay"
    if causes and state_kind == "upsert":
        yield "the key stays the same, the values of the last attempt stay"
    if keys and not moving:
        yield f"{keys[0].what}, and the batch never changes"
    if isinstance(factory, Remarks):
        yield factory.remark


def _raise_by(answer: Cell, causes: list[Cause]) -> str:
    """Return the change that would raise the guarantee: remove the cause of a downgrade, or use another state."""
    if answer.guarantee in _TOP:
        return ""
    return ", or ".join(dict.fromkeys([*(cause.remedy for cause in causes), answer.raise_by])).removesuffix(", or ")


def _nodes_behind(earlier: list[Guarantee], answer: Cell) -> Cell:
    """Lower the cell of a state that another state's new values feed: it is no better than that state."""
    for state in earlier:
        if state.state_kind in _EMITS_ONCE and answer.guarantee != NONE:
            reason = f"a replay does not emit again the rows that state {state.state} has stored: they may be lost here"
            return Cell(WRONG, reason, f"feed it from the stream that feeds {state.state}")
        if worse(answer.guarantee, state.guarantee) != answer.guarantee:
            reason = f"it is fed by state {state.state}, which is {state.guarantee}: {state.reason}"
            answer = Cell(state.guarantee, reason, state.raise_by)
    return answer


def _behind_memory(updated: list[ProcessorNode], answer: Cell) -> Cell:
    """Say of a state that is fed by the new values of one in memory when its guarantee ends."""
    factories = {node.state.name: node.state.factory for node in updated if node.state is not None}
    names = [name for name, factory in factories.items() if isinstance(factory, EndsWithProcess)]
    if not names or answer.guarantee not in _TOP:
        return answer
    fed = f"it is fed by state {', '.join(names)}, in memory, which begins empty with each driver process"
    return answer._replace(reason=f"{answer.reason}; {fed}")


def find_declared_cell(factory: Any, table: Any, spout_kind: str) -> Cell | None:
    """Return the cell from a factory's own ``guarantees``: a mapping of spout kind to (guarantee, reason[, raise
    by])."""
    if table is None:
        return None
    if not isinstance(table, Mapping):
        raise DefinitionError(f"{factory!r}.guarantees is {table!r}; it must map a spout kind to (guarantee, reason)")
    if spout_kind not in table:
        return None
    values = table[spout_kind]
    if not isinstance(values, tuple) or len(values) not in (2, 3) or values[0] not in ORDER:
        raise DefinitionError(
            f"{factory!r}.guarantees[{spout_kind!r}] is {values!r}; it must be a tuple of a guarantee "
            f"({', '.join(ORDER)}), a reason and, optionally, what would raise it"
        )
    return Cell(*values)


def announce(name: str, conf: Mapping[str, Any] | None, plan: Plan) -> None:
    """Called at submit, before anything starts. Logs the table at INFO.

    Raises DefinitionError if a state is below ``conf["topology.guarantee"]``, or if that value is unknown.
    """
    required = (conf or {}).get(GUARANTEE)
    if required is None and not log.isEnabledFor(logging.INFO):
        return
    table = guarantees(plan, conf)
    require(table, conf)
    if table:
        log.info("guarantees of %s:\n%s", name, table)


def require(table: Guarantees, conf: Mapping[str, Any] | None) -> None:
    """Raise DefinitionError if a state is below ``conf["topology.guarantee"]``, or if that value is unknown."""
    required = (conf or {}).get(GUARANTEE)
    if required is None:
        return
    if required not in ACCEPTED:
        raise DefinitionError(f"{GUARANTEE} is {required!r}; set it to one of: {', '.join(ACCEPTED)}")
    if below := table.below(required):
        lines = [f"  {row}\n    to raise it: {row.raise_by or 'no way is known'}" for row in below]
        raise DefinitionError(f"{GUARANTEE} is {required!r}; these states are below it:\n" + "\n".join(lines))
