"""What the factories of states are told of their place when a topology is built, for those that ask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..partitioning import Identity
from ..plan import Node, PartitionNode, ProcessorNode, SpoutNode
from ..run.lowering import Lowered
from ..state import StatePlace
from ..state.roles import ChecksPlace


def check_places(lowered: Lowered) -> None:
    """Asks every factory with ``check_place``. Raises the DefinitionError of one that cannot work where it stands."""
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
    """The query functions that ask the state in the same batch after its update."""
    order = [node_id for level in lowered.levels for stage in level for node_id in stage.nodes]
    behind = [lowered.plan.by_id[node_id] for node_id in order[order.index(update.id) + 1 :]]
    return tuple(
        node.spec.query
        for node in behind
        if isinstance(node, ProcessorNode) and node.state is not None and node.state == update.state
    )


def _routes(lowered: Lowered, node: Node, counts: dict[int, int], crossed: bool) -> Iterator[tuple[str, bool]]:
    """The spouts before a node, each with whether tuples may change their partition on the way."""
    if isinstance(node, SpoutNode):
        yield node.spout_id, crossed
    for parent_id in node.parents:
        parent = lowered.plan.by_id[parent_id]
        yield from _routes(lowered, parent, counts, crossed or _moves(parent, node, counts))


def _moves(parent: Node, node: Node, counts: dict[int, int]) -> bool:
    if not isinstance(parent, PartitionNode) or isinstance(parent.partitioner, Identity):
        return False
    return counts[parent.parents[0]] > 1 or counts[node.id] > 1
