"""Checks of build() on the states of a topology: each factory checks its place, and each location has one owner."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from ..errors import DefinitionError
from ..partitioning import Identity
from ..plan import Node, PartitionNode, Plan, ProcessorNode, SpoutNode, StateUse
from ..run.lowering import Lowered
from ..state import Location, StateFactory, StatePlace
from ..state.roles import ChecksPlace


def check_places(lowered: Lowered) -> None:
    """Calls ``check_place`` of each factory that has it. Raises DefinitionError if a state cannot work in its place."""
    counts = {node_id: stage.partitions for level in lowered.levels for stage in level for node_id in stage.nodes}
    for node in lowered.plan.nodes:
        if isinstance(node, ProcessorNode) and node.committer and node.state is not None:
            factory = node.state.factory
            if isinstance(factory, ChecksPlace):
                factory.check_place(_place(lowered, node, counts))


def _place(lowered: Lowered, node: ProcessorNode, counts: dict[int, int]) -> StatePlace:
    assert node.state is not None
    routes = list(_routes(lowered, node, counts, False))
    spouts = tuple(dict.fromkeys(spout for spout, _ in routes))
    moved = {spout for spout, crossed in routes if crossed}
    inputs = lowered.plan.by_id[node.parents[0]].fields.only(node.spec.inputs)
    beside = tuple(spout for spout in spouts if spout not in moved)
    return StatePlace(node.state.name, counts[node.id], inputs, spouts, beside, _queries_behind(lowered, node))


def _queries_behind(lowered: Lowered, update: ProcessorNode) -> tuple[Any, ...]:
    """The functions that query the state after its update in the same batch."""
    order = [node_id for level in lowered.levels for stage in level for node_id in stage.nodes]
    behind = [lowered.plan.by_id[node_id] for node_id in order[order.index(update.id) + 1 :]]
    return tuple(
        node.spec.query
        for node in behind
        if isinstance(node, ProcessorNode) and node.state is not None and node.state == update.state
    )


def _routes(lowered: Lowered, node: Node, counts: dict[int, int], crossed: bool) -> Iterator[tuple[str, bool]]:
    """The spouts that feed a node, each with whether its tuples may change their partition on the way."""
    if isinstance(node, SpoutNode):
        yield node.spout_id, crossed
    for parent_id in node.parents:
        parent = lowered.plan.by_id[parent_id]
        yield from _routes(lowered, parent, counts, crossed or _moves(parent, node, counts))


def _moves(parent: Node, node: Node, counts: dict[int, int]) -> bool:
    if not isinstance(parent, PartitionNode) or isinstance(parent.partitioner, Identity):
        return False
    return counts[parent.parents[0]] > 1 or counts[node.id] > 1


def check_owners(plan: Plan) -> None:
    """Raises DefinitionError if two updated states share a name or a location. A state that is only queried may share
    both."""
    for state, other in combinations(_updated(plan), 2):
        _check_both(state, other)
        if state.name == other.name:
            raise DefinitionError(
                f"two states are named {state.name!r}, but the name keeps their txids apart. Their data is in two "
                "places, so give one of them another name with stateName="
            )


def _updated(plan: Plan) -> Iterator[StateUse]:
    uses = [node.state for node in plan.nodes if isinstance(node, ProcessorNode) and node.committer and node.state]
    yield from {use.id: use for use in uses}.values()


def _check_both(state: StateUse, other: StateUse) -> None:
    location, second = _location(state), _location(other)
    if location is None or second is None or location.admits(second):
        return
    both = f"the states {state.name!r} and {other.name!r} would both"
    if state.name == other.name:
        both = f"two states, both named {state.name!r}, would"
    raise DefinitionError(
        f"{both} update {second.shown}. Each would take the other's writes for its own, so tuples would be lost or "
        "counted twice; another name does not help. Update it by one state: merge the streams before it "
        "(topology.merge), or give one of the two its own table, topic or factory. To query it from another stream, "
        "use stateQuery, with newStaticState if that stream is in another topology"
    )


def _location(use: StateUse) -> Location | None:
    return use.factory.location if isinstance(use.factory, StateFactory) else None
