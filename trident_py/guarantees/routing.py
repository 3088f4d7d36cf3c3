"""Whether a replay sends the same tuples to the same partitions. A state that keeps its txid by partition needs this.

Routes by content always do. A route by position (`shuffle`) does if the positions are the spout's own; behind an
exchange rows arrive in no fixed order. A source of Spark distributes its rows as Spark splits them.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..operations.determinism import Judge, judge
from ..partitioning import BatchGlobal, Broadcast, Custom, FieldsPartition, Global, Identity, Shuffle
from ..plan import Node, PartitionNode, Plan, ProcessorNode, SpoutNode, describe
from ..processors import Merge, MultiReduce
from ..run.lowering import lower
from ..spouts.sparkspout import SparkSpout

_SPLIT = "Spark splits what {} reads by its number of cores"
_BY_CONTENT = FieldsPartition | Global | BatchGlobal | Broadcast


def unsteady(plan: Plan, node: Node, judge: Judge = judge) -> str | None:
    """Why a replay may send the tuples of this node to other partitions; None if it cannot."""
    component = next(part for part in plan.components() if node.id in part.by_id)
    return _Routes(component, plan, judge).placement(node)


class _Routes:
    """The nodes of one component with their partition counts."""

    def __init__(self, component: Plan, plan: Plan, judge: Judge) -> None:
        self.plan = component
        self.judge = judge
        stages = [stage for level in lower(component, plan).levels for stage in level]
        self.counts = {node_id: stage.partitions for stage in stages for node_id in stage.nodes}

    def placement(self, node: Node) -> str | None:
        """Why a tuple of this node may be in another partition on a replay; None if it cannot."""
        if self.counts.get(node.id) == 1:
            return None
        if isinstance(node, SpoutNode):
            split = isinstance(node.spout, SparkSpout)
            return _SPLIT.format(node.spout_id) if split else None
        if isinstance(node, PartitionNode) and not isinstance(node.partitioner, Identity):
            return self._sent(node)
        return self._first(self.placement(parent) for parent in self._parents(node))

    def _sent(self, node: PartitionNode) -> str | None:
        if isinstance(node.partitioner, _BY_CONTENT):
            return None
        if isinstance(node.partitioner, Custom):
            verdict = self.judge(node.partitioner.grouping)
            return None if verdict.deterministic else f"the custom grouping {verdict.why}"
        parent = self._parents(node)[0]
        why = self.placement(parent) or self.order(parent)
        kind = "shuffle" if isinstance(node.partitioner, Shuffle) else describe(node)
        return f"{kind} goes by position, and {why}" if why else None

    def order(self, node: Node) -> str | None:
        """Why the tuples of a partition of this node may come in another order on a replay; None if they cannot."""
        if isinstance(node, SpoutNode):
            return _SPLIT.format(node.spout_id) if isinstance(node.spout, SparkSpout) else None
        parents = self._parents(node)
        if isinstance(node, PartitionNode):
            if not isinstance(node.partitioner, Identity) and self.counts.get(node.parents[0], 0) > 1:
                return "rows from several partitions have no fixed order"
        elif isinstance(node, ProcessorNode) and isinstance(node.spec, Merge | MultiReduce):
            return "rows of several streams have no fixed order"
        return self._first(self.order(parent) for parent in parents)

    def _parents(self, node: Node) -> list[Node]:
        return [self.plan.by_id[parent] for parent in node.parents]

    def _first(self, found: Iterable[str | None]) -> str | None:
        return next((why for why in found if why), None)
