"""A digest of how a state's tuples are routed: everything that decides which tuple reaches which partition, and when.

A state that recognizes a replay by its partition number records the digest with the txid before it writes, so that rows
of two routings are never mixed in one batch. A topology has the same digest on every cluster and in every process.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ..model.partitioning import ROUTING_VERSION
from ..model.plan import Node, PartitionNode, ProcessorNode, SpoutNode
from .lowering import Lowered

_LONGEST = 120


def routing_digests(lowered: Lowered) -> dict[str, str]:
    """Return for each state a digest of how its tuples are routed, then a readable summary.

    Called once for each submission, on the driver. The digest covers everything before the state: spouts with their
    partitions, steps, groupings, the partition count of every stage, field types, and the version of the hash. It does
    not cover what users' functions do.
    """
    plan, counts = lowered.plan, lowered.partitions
    return {state.name: _digest(plan.before(node), counts) for node, state in plan.updates()}


def _digest(nodes: list[Node], counts: dict[int, int]) -> str:
    places = {node.id: place for place, node in enumerate(nodes)}
    steps = [
        [*_identify(node), counts.get(node.id), [places[parent] for parent in node.parents], node.fields.declarations()]
        for node in nodes
    ]
    text = json.dumps([ROUTING_VERSION, steps])
    behind = {node.id for node in nodes for parent in node.parents if isinstance(nodes[places[parent]], PartitionNode)}
    words = ", ".join(word for node in nodes if (word := _describe(node, counts, node.id in behind)))
    if len(words) > _LONGEST:
        words = f"{words[: _LONGEST // 2]}...{words[-_LONGEST // 2 :]}"
    return f"{hashlib.sha256(text.encode()).hexdigest()[:32]} {words}"


def _identify(node: Node) -> list[Any]:
    if isinstance(node, SpoutNode):
        return ["spout", node.spout_id, type(node.spout).__name__]
    if isinstance(node, PartitionNode):
        return ["partition", node.partitioner.name]
    assert isinstance(node, ProcessorNode)
    return ["step", type(node.spec).__name__]


def _describe(node: Node, counts: dict[int, int], sent: bool) -> str:
    """Return the word for a node in the summary; "" if its tuples stay in their partition."""
    if isinstance(node, PartitionNode):
        return str(node.partitioner.name)
    if isinstance(node, SpoutNode):
        return f"{node.spout_id} x{counts[node.id]}"
    if isinstance(node, ProcessorNode) and node.committer:
        return f"state x{counts[node.id]}"
    return f"x{counts[node.id]}" if sent else ""
