"""The stages of one component: its spouts and bolts, each behind the stages that feed it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..plan import Node, PartitionNode, Plan, ProcessorNode
from .bolts import Bolts

Name = tuple[str, int]
Input = tuple[int, Node, PartitionNode | None]
"""An input of a node: its number, its source node, and the repartition in between, if any."""


class Staging:
    """The stage of each node (``of``), the stages that commit (``committing``), and those and all behind (``behind``).

    If bolts feed each other in a circle, Storm waits for ever. Here each of their nodes becomes a stage of its own, and
    a node that queries a state updated by this component waits for the commit phase, as the bolt would.
    ``ordered``: the nodes of each stage in the order in which they finish. The stages of the batch phase come first.
    """

    def __init__(self, plan: Plan, bolts: Bolts) -> None:
        self._plan = plan
        self._bolts = bolts
        nodes = [node for node in plan.nodes if not isinstance(node, PartitionNode)]
        self.of: dict[int, Name] = {
            node.id: ("bolt", bolts.of[node.id]) if node.id in bolts.of else ("node", node.id) for node in nodes
        }
        circular = self._circular()
        self.of = {node: ("node", node) if stage in circular else stage for node, stage in self.of.items()}
        self.committing = self._committing()
        self.behind = self._stages_behind()
        self.ordered = [self._finishing(stage) for stage in self._sort()]

    def inputs(self, nodes: Iterable[int]) -> Iterator[Input]:
        """Return the inputs of these nodes from other stages; the first element is the node's id, not the input's
        number."""
        for node_id in nodes:
            for _, source, through in inputs_of(self._plan, self._plan.by_id[node_id]):
                if through is not None or self.of[source.id] != self.of[node_id]:
                    yield node_id, source, through

    def _stages_fed(self) -> dict[Name, set[Name]]:
        fed_by: dict[Name, set[Name]] = {stage: set() for stage in self.of.values()}
        for node_id, source, _ in self.inputs(self.of):
            fed_by[self.of[node_id]].add(self.of[source.id])
        return fed_by

    def _circular(self) -> set[Name]:
        """Return the stages on circles: removes stages without an input or an output, from both ends, until none is
        left."""
        fed_by = self._stages_fed()
        feeding = {stage: {other for other in fed_by if stage in fed_by[other]} for stage in fed_by}
        left = set(fed_by)
        while loose := {stage for stage in left if not (fed_by[stage] & left and feeding[stage] & left)}:
            left -= loose
        return left

    def _committing(self) -> set[Name]:
        users = [node for node in self._plan.nodes if isinstance(node, ProcessorNode) and node.state is not None]
        updated = {node.state.id for node in users if node.committer}  # type: ignore[union-attr]
        return {
            self.of[node.id]
            for node in users
            if node.committer or (self.of[node.id][0] == "node" and node.state.id in updated)  # type: ignore[union-attr]
        }

    def _stages_behind(self) -> set[Name]:
        fed_by, behind = self._stages_fed(), set(self.committing)
        while more := {stage for stage in fed_by if stage not in behind and fed_by[stage] & behind}:
            behind |= more
        return behind

    def _sort(self) -> list[Name]:
        """Return the stages, each after its inputs. Of several ready ones: batch phase first, then in order of
        definition."""
        fed_by = self._stages_fed()
        todo = sorted(fed_by, key=self._rank)
        done: list[Name] = []
        while todo:
            done.append(next(stage for stage in todo if fed_by[stage] <= set(done)))
            todo.remove(done[-1])
        return done

    def _rank(self, stage: Name) -> tuple[bool, int, int]:
        """Return the sort key of a stage. The nodes of a divided bolt keep the order in which the bolt would finish."""
        nodes = self._nodes(stage)
        return stage in self.behind, self._first_node(min(nodes)), min(self._bolts.place.get(node, 0) for node in nodes)

    def _first_node(self, node: int) -> int:
        """Return the number of the first node in the node's bolt."""
        bolt = self._bolts.of.get(node)
        return node if bolt is None else min(other for other in self.of if self._bolts.of.get(other) == bolt)

    def _nodes(self, stage: Name) -> list[int]:
        return [node for node, stage_of_node in self.of.items() if stage_of_node == stage]

    def _finishing(self, stage: Name) -> tuple[int, ...]:
        return tuple(sorted(self._nodes(stage), key=lambda node: self._bolts.place.get(node, 0)))


def inputs_of(plan: Plan, node: Node) -> Iterator[Input]:
    """Return the inputs of a node."""
    for port, parent_id in enumerate(node.parents):
        parent = plan.by_id[parent_id]
        if isinstance(parent, PartitionNode):
            yield port, plan.by_id[parent.parents[0]], parent
        else:
            yield port, parent, None
