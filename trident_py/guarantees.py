"""What a topology guarantees, told before it starts: spout kind x state kind, with the reason.

It extends Storm's table (docs/Trident-state.md) by the states that are idempotent by a key of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from .plan import Node, Plan, ProcessorNode, SpoutNode

EXACTLY = "exactly once"
IN_EFFECT = "exactly once in effect"
AT_LEAST = "at least once"
WRONG = "wrong"
NONE = "no guarantee"

_ORDER = (EXACTLY, IN_EFFECT, AT_LEAST, NONE, WRONG)

_AGAIN = "a replayed batch is applied again; make the state "
_THERE = "a row that is there already is not written again"

_CELLS: dict[tuple[str, str], tuple[str, str]] = {
    ("transactional", "non-transactional"): (AT_LEAST, _AGAIN + "transactional or opaque"),
    ("transactional", "transactional"): (EXACTLY, "a batch never changes, and its txid is kept with each value"),
    ("transactional", "opaque"): (EXACTLY, "the value before the batch is kept with each value"),
    ("transactional", "insert-ignore"): (IN_EFFECT, _THERE),
    ("opaque", "non-transactional"): (AT_LEAST, _AGAIN + "opaque"),
    ("opaque", "transactional"): (
        WRONG,
        "a replay may hold other tuples, and values of this txid are skipped; make the state opaque",
    ),
    ("opaque", "opaque"): (EXACTLY, "but for keys that a failed attempt wrote and the replay does not touch (S12)"),
    ("opaque", "insert-ignore"): (IN_EFFECT, _THERE + ", in whichever batch it comes"),
}


class Guarantees(list["Guarantee"]):
    """The guarantees of a topology; as text a line for each state."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) if self else "no state is updated"


@dataclass(frozen=True)
class Guarantee:
    """What one state of a topology can be trusted for."""

    state: str
    state_kind: str
    spouts: tuple[str, ...]
    spout_kind: str
    guarantee: str
    reason: str

    def __str__(self) -> str:
        spouts = " + ".join(self.spouts)
        return f"{spouts} ({self.spout_kind}) -> {self.state} ({self.state_kind}): {self.guarantee}: {self.reason}"


def guarantees(plan: Plan) -> Guarantees:
    """One line for each state that the topology updates, in the order of their definition."""
    nodes = [node for node in plan.nodes if isinstance(node, ProcessorNode) and node.committer]
    return Guarantees(_of_state(plan, node) for node in nodes)


def _of_state(plan: Plan, node: ProcessorNode) -> Guarantee:
    assert node.state is not None
    spouts = _spouts_behind(plan, node)
    kinds = {spout.spout.kind for spout in spouts}
    state_kind = getattr(node.state.factory, "kind", None) or "unknown"
    cells = {kind: _cell(kind, state_kind) for kind in sorted(kinds)}
    worst = max(cells, key=lambda kind: _ORDER.index(cells[kind][0]), default="none")
    guarantee, reason = cells.get(worst, (NONE, "no spout feeds this state"))
    names = tuple(spout.spout_id for spout in spouts)
    return Guarantee(node.state.name, state_kind, names, worst, guarantee, reason)


def _cell(spout_kind: str, state_kind: str) -> tuple[str, str]:
    if spout_kind == "non-transactional":
        return NONE, "the spout does not promise to emit a failed batch again"
    unknown = (AT_LEAST, f"nothing is known of a state of kind {state_kind!r}; a replayed batch may be applied again")
    return _CELLS.get((spout_kind, state_kind), unknown)


def _spouts_behind(plan: Plan, node: Node) -> list[SpoutNode]:
    seen: set[int] = set()
    todo = [node.id]
    while todo:
        node_id = todo.pop()
        if node_id not in seen:
            seen.add(node_id)
            todo.extend(plan.by_id[node_id].parents)
    return [n for n in plan.nodes if n.id in seen and isinstance(n, SpoutNode)]
