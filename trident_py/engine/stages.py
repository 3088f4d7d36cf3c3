"""The stages of one component: its spouts and bolts, each behind the stages that feed it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from ..model.plan import Node, PartitionNode, Plan, ProcessorNode
from .bolts import Bolts

Name = tuple[str, int]
Feeding = dict[Name, set[Name]]
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
        self._nodes: dict[Name, list[int]] = {}
        for node_id, stage in self.of.items():
            self._nodes.setdefault(stage, []).append(node_id)
        self.fed_by, self.feeds = self._neighbours()
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

    def _neighbours(self) -> tuple[Feeding, Feeding]:
        """Return for each stage those that feed it, and those that it feeds."""
        fed_by: Feeding = {stage: set() for stage in self.of.values()}
        feeds: Feeding = {stage: set() for stage in fed_by}
        for node_id, source, _ in self.inputs(self.of):
            fed_by[self.of[node_id]].add(self.of[source.id])
            feeds[self.of[source.id]].add(self.of[node_id])
        return fed_by, feeds

    def _circular(self) -> set[Name]:
        """Return the stages on circles: remove those without an input or an output, from both ends."""
        fed_by, feeds = self._neighbours()
        left = set(fed_by)
        todo = [stage for stage in left if not (fed_by[stage] and feeds[stage])]
        while todo:
            stage = todo.pop()
            left.discard(stage)
            for near, far in ((fed_by, feeds), (feeds, fed_by)):
                for neighbour in near.pop(stage, ()):
                    far[neighbour].discard(stage)
                    if not far[neighbour]:
                        todo.append(neighbour)
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
        behind, todo = set(self.committing), list(self.committing)
        while todo:
            new = self.feeds[todo.pop()] - behind
            behind |= new
            todo += new
        return behind

    def _sort(self) -> list[Name]:
        """Return the stages, each after its inputs. Of several ready ones: batch phase first, then in order of
        definition."""
        ranks, missing = self._ranks(), {stage: len(inputs) for stage, inputs in self.fed_by.items()}
        ready = sorted((ranks[stage], stage) for stage, count in missing.items() if count == 0)
        done: list[Name] = []
        while ready:
            done.append(heappop(ready)[1])
            for stage in self.feeds[done[-1]]:
                missing[stage] -= 1
                if missing[stage] == 0:
                    heappush(ready, (ranks[stage], stage))
        return done

    def _ranks(self) -> dict[Name, tuple[bool, int, int]]:
        """Return the sort key of each stage: its phase, then the number of the first node in its bolt. The nodes of a
        divided bolt keep the order in which the bolt would finish."""
        first: dict[int | None, int] = {}
        for node in self.of:  # in the order of definition
            first.setdefault(self._bolts.of.get(node), node)
        ranks = {}
        for stage, nodes in self._nodes.items():
            bolt = self._bolts.of.get(min(nodes))
            defined = min(nodes) if bolt is None else first[bolt]
            ranks[stage] = stage in self.behind, defined, min(map(self._place, nodes))
        return ranks

    def _place(self, node: int) -> int:
        return self._bolts.place.get(node, 0)

    def _finishing(self, stage: Name) -> tuple[int, ...]:
        return tuple(sorted(self._nodes[stage], key=self._place))


def inputs_of(plan: Plan, node: Node) -> Iterator[Input]:
    """Return the inputs of a node."""
    for port, parent_id in enumerate(node.parents):
        parent = plan.by_id[parent_id]
        if isinstance(parent, PartitionNode):
            yield port, plan.by_id[parent.parents[0]], parent
        else:
            yield port, parent, None
