"""What a replay keeps: the tuples of a spout, and the partitions that they go to.

For a source of Spark the source decides which kind of spout it is, not the declared kind. A state that keeps its txid
by partition needs the same tuples in the same partitions. Routes by content always send them there. A route by position
(`shuffle`) does if the positions are the spout's own; behind an exchange rows arrive in no fixed order. A source of
Spark distributes its rows as Spark splits them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from ...engine.lowering import Lowering
from ...engine.processors import Merge, MultiReduce
from ...model.partitioning import BatchGlobal, Broadcast, Custom, FieldsPartition, Global, Identity, Shuffle
from ...model.plan import Node, PartitionNode, Plan, ProcessorNode, SpoutNode, describe
from ...operations.determinism import Judge, judge
from ...spouts.interfaces import KINDS, NON_TRANSACTIONAL, OPAQUE, TRANSACTIONAL
from ...spouts.sparkspout import SparkSpout

_FILES = ("avro", "binaryfile", "csv", "json", "orc", "parquet", "text", "xml")
# rate keeps the time of its first start in the checkpoint and computes every row from that time and the offset
_COMPUTED = ("rate", "rate-micro-batch", "rate-v2")


class Replay(NamedTuple):
    """The kind that holds, and its condition."""

    kind: str
    remark: str = ""


def replay_of(spout: Any) -> Replay:
    """Return the kind of a spout, never better than the declared one."""
    if not isinstance(spout, SparkSpout):
        return Replay(spout.kind)
    able = _spark(spout.format.lower(), {key.lower(): str(value).lower() for key, value in spout.options.items()})
    if spout.kind == TRANSACTIONAL or KINDS.index(able.kind) > KINDS.index(spout.kind):
        return able
    return Replay(spout.kind)


def _spark(name: str, options: Mapping[str, str]) -> Replay:
    if name == "socket":
        return Replay(NON_TRANSACTIONAL, "rows from a socket cannot be read again")
    if name in _COMPUTED:
        return Replay(TRANSACTIONAL)
    if name == "kafka":
        if options.get("failondataloss") == "false":
            return Replay(OPAQUE, "failOnDataLoss=false lets a replay miss records that Kafka has deleted")
        return Replay(TRANSACTIONAL, "if the topic is not compacted")
    if name in _FILES:
        loose = [key for key in ("ignoremissingfiles", "ignorecorruptfiles") if options.get(key) == "true"]
        if loose:
            return Replay(OPAQUE, f"{loose[0]}=true lets a replay miss files")
        return Replay(TRANSACTIONAL, "as long as its files are neither changed nor deleted")
    promise = f"as you declared; check that the source {name!r} returns the same rows for the same offsets"
    return Replay(TRANSACTIONAL, promise)


# -- partitions -------------------------------------------------------------------------------------------------

_SPLIT = "Spark splits the data of {} by its number of cores"
_BY_CONTENT = FieldsPartition | Global | BatchGlobal | Broadcast
Reasons = Sequence[str | None]


class Routes:
    """The ways of a plan's tuples to their partitions. Nothing is lowered before the first question.

    Raises DefinitionError then, if partition counts contradict each other.
    """

    def __init__(self, plan: Plan, judge: Judge = judge) -> None:
        self.plan = plan
        self.judge = judge

    def unsteady(self, node: Node) -> str | None:
        """Return why a replay may send the tuples of this node to other partitions; None if it cannot."""
        return self._reasons[0][node.id]

    def find_disorder(self, node: Node) -> str | None:
        """Return why a replay may bring the tuples of this node in another order; None if it cannot."""
        return self._reasons[1][node.id]

    @cached_property
    def counts(self) -> dict[int, int]:
        lowering = Lowering(self.plan)
        parts = [lowering.lower(component).partitions for component in self.plan.components()]
        return {node_id: count for part in parts for node_id, count in part.items()}

    @cached_property
    def _reasons(self) -> tuple[dict[int, str | None], dict[int, str | None]]:
        """Return for each node why its placement may change, and why its order; parents come first."""
        placements: dict[int, str | None] = {}
        orders: dict[int, str | None] = {}
        for node in self.plan.nodes:
            before = [placements[parent] for parent in node.parents]
            orders_before = [orders[parent] for parent in node.parents]
            placements[node.id] = self._placement(node, before, orders_before)
            orders[node.id] = self._order(node, orders_before)
        return placements, orders

    def _placement(self, node: Node, before: Reasons, orders: Reasons) -> str | None:
        """Return why a tuple of this node may be in another partition on a replay; None if it cannot."""
        if self.counts.get(node.id) == 1:
            return None
        if isinstance(node, SpoutNode):
            split = isinstance(node.spout, SparkSpout)
            return _SPLIT.format(node.spout_id) if split else None
        if isinstance(node, PartitionNode) and not isinstance(node.partitioner, Identity):
            return self._explain_sending(node, before[0] or orders[0])
        return next(filter(None, before), None)

    def _explain_sending(self, node: PartitionNode, why: str | None) -> str | None:
        """Return why the repartition may send a tuple elsewhere. ``why``: the positions of its input may change."""
        if isinstance(node.partitioner, _BY_CONTENT):
            return None
        if isinstance(node.partitioner, Custom):
            verdict = self.judge(node.partitioner.grouping)
            return None if verdict.deterministic else f"the custom grouping {verdict.why}"
        kind = "shuffle" if isinstance(node.partitioner, Shuffle) else describe(node)
        return f"{kind} goes by position, and {why}" if why else None

    def _order(self, node: Node, before: Reasons) -> str | None:
        """Return why the tuples of a partition of this node may come in another order on a replay; None if they
        cannot."""
        if isinstance(node, SpoutNode):
            return _SPLIT.format(node.spout_id) if isinstance(node.spout, SparkSpout) else None
        if isinstance(node, PartitionNode):
            if not isinstance(node.partitioner, Identity) and self.counts.get(node.parents[0], 0) > 1:
                return "rows from several partitions have no fixed order"
        elif isinstance(node, ProcessorNode) and isinstance(node.spec, Merge | MultiReduce):
            return "rows of several streams have no fixed order"
        return next(filter(None, before), None)
