"""The way of a state's tuples, as text: everything that decides which tuple reaches which partition, in which order.

A state that recognizes a replay by its partition number records the way with the txid before it writes, so that rows of
two ways are never mixed in one batch. The same topology has the same way on every cluster and in every process.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ..partitioning import ROUTING_VERSION
from ..plan import Node, PartitionNode, ProcessorNode, SpoutNode
from .lowering import Lowered

_LONGEST = 120


def ways(lowered: Lowered) -> dict[str, str]:
    """The way of each state that the component updates, by state name: a digest, then a readable summary.

    Called once for each submission, on the driver. The digest covers everything before the state: spouts with their
    partitions, steps, groupings, the partition count of every stage, field types, and the version of the hash. It does
    not cover what users' functions do.
    """
    return {state.name: _way(lowered.plan.before(node), lowered.partitions) for node, state in lowered.plan.updates()}


def _way(nodes: list[Node], counts: dict[int, int]) -> str:
    places = {node.id: place for place, node in enumerate(nodes)}
    steps = [
        [*_step(node), counts.get(node.id), [places[parent] for parent in node.parents], node.fields.declarations()]
        for node in nodes
    ]
    text = json.dumps([ROUTING_VERSION, steps])
    behind = {node.id for node in nodes for parent in node.parents if isinstance(nodes[places[parent]], PartitionNode)}
    words = ", ".join(word for node in nodes if (word := _word(node, counts, node.id in behind)))
    if len(words) > _LONGEST:
        words = f"{words[: _LONGEST // 2]}...{words[-_LONGEST // 2 :]}"
    return f"{hashlib.sha256(text.encode()).hexdigest()[:32]} {words}"


def _step(node: Node) -> list[Any]:
    if isinstance(node, SpoutNode):
        return ["spout", node.spout_id, type(node.spout).__name__]
    if isinstance(node, PartitionNode):
        return ["partition", node.partitioner.name]
    assert isinstance(node, ProcessorNode)
    return ["step", type(node.spec).__name__]


def _word(node: Node, counts: dict[int, int], sent: bool) -> str:
    """The word for a node in the summary; "" if its tuples stay in their partition."""
    if isinstance(node, PartitionNode):
        return str(node.partitioner.name)
    if isinstance(node, SpoutNode):
        return f"{node.spout_id} x{counts[node.id]}"
    if isinstance(node, ProcessorNode) and node.committer:
        return f"state x{counts[node.id]}"
    return f"x{counts[node.id]}" if sent else ""
