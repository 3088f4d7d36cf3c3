"""The guarantees of a topology: one for each state. At submit they are logged and checked."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..config import Config, check
from ..errors import DefinitionError
from ..operations.determinism import CHANGING, DETERMINISTIC, UNSEEN, Judge, Verdict, Verdicts
from ..plan import Plan, ProcessorNode, SpoutNode
from ..run.progress import log
from ..spouts.interfaces import OPAQUE
from ..state import LRUMemoryMapState, MemoryMapState
from .matrix import AT_LEAST, EXACTLY, IN_EFFECT, NONE, ORDER, WRONG, Cell, cell, seen_as, worse
from .routing import unsteady
from .sources import Replay, replay_of
from .tracing import Cause, ancestors, changes, key_fields, origin

GUARANTEE = "topology.guarantee"
ACCEPTED = {"exactly-once": (EXACTLY, IN_EFFECT), "at-least-once": (EXACTLY, IN_EFFECT, AT_LEAST)}
# The updaters of these emit only new rows. On a replay, rows that a failed attempt stored are not new.
_EMITS_ONCE = ("insert-ignore", "append", "sequence")
_TOP = (EXACTLY, IN_EFFECT)


@dataclass(frozen=True)
class Guarantee:
    """The guarantee of one state of a topology.

    ``spout_kind``: the kind that really holds. ``functions``: what may differ on a replay (empty: nothing).
    ``raise_by``: what would give a better guarantee (empty: it is the best). ``unseen``: the part of ``functions``
    whose source could not be read completely, which counts as not deterministic.
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

    def __str__(self) -> str:
        spouts = " + ".join(self.spouts)
        functions = f" -> functions {self.verdict}" if self.functions else ""
        line = f"{spouts} ({self.spout_kind}){functions} -> {self.state} ({self.state_kind}): {self.guarantee}"
        return f"{line}: {self.reason}"

    @property
    def verdict(self) -> str:
        """The verdict on all functions before the state: deterministic, not deterministic, or not seen."""
        if not self.functions:
            return DETERMINISTIC
        return UNSEEN if set(self.functions) <= set(self.unseen) else CHANGING


class Guarantees(list[Guarantee]):
    """The guarantees of a topology. ``str()`` gives a table with reasons."""

    def __str__(self) -> str:
        if not self:
            return "no state is updated"
        head = ("state", "kind", "spout", "functions", "guarantee")
        rows = [head, *map(_cells, self)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        lines = [_line(head, widths)]
        for row, each in zip(rows[1:], self, strict=True):
            lines += [_line(row, widths), f"    because {each.reason}"]
            lines += [f"    to raise it: {each.raise_by}"] if each.raise_by else []
        return "\n".join(lines)

    def notes(self) -> list[str]:
        """One line for each operation whose source could not be read."""
        told = dict.fromkeys(what for each in self for what in each.unseen)
        return [f"{what}: it counts as not deterministic, unless it is declared @deterministic" for what in told]

    def below(self, required: str) -> Guarantees:
        """The guarantees below ``required``: "exactly-once" or "at-least-once"."""
        return Guarantees(each for each in self if each.guarantee not in ACCEPTED[required])


def _cells(each: Guarantee) -> tuple[str, ...]:
    return each.state, each.state_kind, f"{' + '.join(each.spouts)} ({each.spout_kind})", each.verdict, each.guarantee


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def guarantees(plan: Plan, conf: Mapping[str, Any] | None = None, judge: Judge | None = None) -> Guarantees:
    """One guarantee for each state that the topology updates, in the order of their definition.

    ``judge`` decides whether an operation is deterministic. By default: from its declaration, else from its source.
    Raises DefinitionError if a factory's own ``guarantees`` cannot be read.
    """
    done: dict[int, Guarantee] = {}
    judge = judge or Verdicts(trusted(conf))
    for node in plan.nodes:
        if isinstance(node, ProcessorNode) and node.committer:
            done[node.id] = _of_state(plan, node, done, judge)
    return Guarantees(done.values())


def weakened(plan: Plan, conf: Mapping[str, Any], changed: list[Any]) -> tuple[Guarantees, list[Guarantee]]:
    """The guarantees if the ``changed`` operations hold other values, and the current guarantees that would change."""
    judge = Verdicts(trusted(conf))

    def doubting(operation: Any) -> Verdict:
        other = any(operation is each for each in changed)
        return Verdict(CHANGING, "was given another value") if other else judge(operation)

    before, after = guarantees(plan, conf, judge), guarantees(plan, conf, doubting)
    both = zip(before, after, strict=True)
    return after, [one for one, other in both if one.guarantee != other.guarantee]


def trusted(conf: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The names that this configuration declares deterministic."""
    told = (conf or {}).get(Config.TOPOLOGY_DETERMINISM_TRUST) or ()
    check({Config.TOPOLOGY_DETERMINISM_TRUST: told})
    return (told,) if isinstance(told, str) else tuple(told)


def _of_state(plan: Plan, node: ProcessorNode, done: Mapping[int, Guarantee], judge: Judge) -> Guarantee:
    assert node.state is not None
    before = ancestors(plan, node)
    spouts = [each for each in before if isinstance(each, SpoutNode)]
    state_kind = node.state.kind
    causes = changes(plan, node, judge)
    found = [(replay, _cell_of(plan, node, state_kind, replay, causes, judge)) for replay in map(_replay, spouts)]
    nothing = (Replay("none"), Cell(NONE, "no spout feeds this state"))
    replay, answer = max(found, key=lambda pair: ORDER.index(pair[1].guarantee), default=nothing)
    earlier = [done[each.id] for each in before if each.id in done]
    answer = _behind(earlier, answer)
    names, what = tuple(spout.spout_id for spout in spouts), tuple(cause.what for cause in causes)
    unseen = tuple(cause.what for cause in causes if not cause.seen)
    return Guarantee(node.state.name, state_kind, names, replay.kind, *answer, what, unseen)


def _replay(node: SpoutNode) -> Replay:
    return replay_of(node.spout)


def _cell_of(
    plan: Plan, node: ProcessorNode, state_kind: str, replay: Replay, causes: list[Cause], judge: Judge
) -> Cell:
    """The cell for one spout, with this topology's remarks added to its reason."""
    assert node.state is not None
    seen = seen_as(replay.kind, bool(causes))
    keys = [cause for name in key_fields(node) for cause in origin(plan, node_before(plan, node), name, judge)]
    moving = keys if seen == OPAQUE else []  # a batch that never changes gives the same keys again
    found = _own_word(node.state.factory, seen) or cell(seen, state_kind, bool(moving))
    if state_kind == "append" and found.guarantee == EXACTLY and (why := unsteady(plan, node, judge)):
        route = "route the tuples by their content before the state, with partitionBy(...)"
        found = Cell(WRONG, f"a replay may send tuples to other partitions, which skip them: {why}", route)
    told = [cause.what for cause in moving]
    told += [cause.what for cause in causes if not any(each.endswith(cause.what) for each in told)]
    remarks = [replay.remark, *dict.fromkeys(told)]
    remarks += _remarks(node.state.factory, state_kind, found, keys, moving, causes)
    reason = "; ".join([found.reason, *filter(None, remarks)])
    return Cell(found.guarantee, reason, _raise_by(found, moving or (causes if seen != replay.kind else [])))


def _remarks(
    factory: Any, state_kind: str, found: Cell, keys: list[Cause], moving: list[Cause], causes: list[Cause]
) -> Iterator[str]:
    """Further remarks on a good cell."""
    if found.guarantee not in _TOP:
        return
    if causes and state_kind in ("insert-ignore", "sequence"):
        yield "the key stays the same, the values of the first attempt stay"
    if causes and state_kind == "upsert":
        yield "the key stays the same, the values of the last attempt stay"
    if keys and not moving:
        yield f"{keys[0].what}, and the batch never changes"
    if isinstance(factory, MemoryMapState.Factory | LRUMemoryMapState.Factory):
        yield "in memory, for the life of one driver process"


def _raise_by(found: Cell, causes: list[Cause]) -> str:
    """The change that would raise the guarantee: remove the cause of a downgrade, or use another state."""
    if found.guarantee in _TOP:
        return ""
    return ", or ".join(dict.fromkeys([*(cause.remedy for cause in causes), found.raise_by])).removesuffix(", or ")


def node_before(plan: Plan, node: ProcessorNode) -> Any:
    return plan.by_id[node.parents[0]]


def _behind(earlier: list[Guarantee], answer: Cell) -> Cell:
    """Lowers the cell of a state that another state's new values feed: it is no better than that state."""
    for state in earlier:
        if state.state_kind in _EMITS_ONCE and answer.guarantee != NONE:
            reason = f"a replay does not emit again what state {state.state} has stored, so it may never come here"
            return Cell(WRONG, reason, f"feed it from the stream that feeds {state.state}")
        if worse(answer.guarantee, state.guarantee) != answer.guarantee:
            reason = f"it is fed by state {state.state}, which is {state.guarantee}: {state.reason}"
            answer = Cell(state.guarantee, reason, state.raise_by)
    return answer


def _own_word(factory: Any, spout_kind: str) -> Cell | None:
    """The factory's own ``guarantees``: a mapping of spout kind to (guarantee, reason[, raise by])."""
    told = getattr(factory, "guarantees", None)  # a user's own factory need not have it
    if told is None:
        return None
    if not isinstance(told, Mapping):
        raise DefinitionError(f"{factory!r}.guarantees is {told!r}; it maps a spout kind to (guarantee, reason)")
    if spout_kind not in told:
        return None
    values = told[spout_kind]
    if not isinstance(values, tuple) or len(values) not in (2, 3) or values[0] not in ORDER:
        raise DefinitionError(
            f"{factory!r}.guarantees[{spout_kind!r}] is {values!r}; it is a tuple of a guarantee "
            f"({', '.join(ORDER)}), a reason and, if it can be raised, by what"
        )
    return Cell(*values)


def announce(name: str, conf: Mapping[str, Any] | None, plan: Plan) -> None:
    """Called at submit, before anything starts. Logs the table at INFO.

    Raises DefinitionError if a state is below ``conf["topology.guarantee"]``, or if that value is unknown.
    """
    required = (conf or {}).get(GUARANTEE)
    if required is None and not log.isEnabledFor(logging.INFO):
        return
    found = guarantees(plan, conf)
    require(found, conf)
    if found:
        log.info("guarantees of %s:\n%s", name, found)


def require(found: Guarantees, conf: Mapping[str, Any] | None) -> None:
    """Raises DefinitionError if a state is below ``conf["topology.guarantee"]``, or if that value is unknown."""
    required = (conf or {}).get(GUARANTEE)
    if required is None:
        return
    if required not in ACCEPTED:
        raise DefinitionError(f"{GUARANTEE} is {required!r}; it is one of: {', '.join(ACCEPTED)}")
    if below := found.below(required):
        lines = [f"  {each}\n    to raise it: {each.raise_by or 'nothing is known'}" for each in below]
        raise DefinitionError(f"{GUARANTEE} is {required!r}; below it:\n" + "\n".join(lines))
