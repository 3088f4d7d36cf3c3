"""Groups nodes into bolts and orders the nodes of a bolt, as Storm's planner does.

A bolt waits for all of its inputs, and if it updates a state also for the commit phase. Then its nodes finish one after
the other. The bolts therefore decide whether a query of a state sees the values before or after the state's update.
Source in Storm: TridentTopology.build, GraphGrouper, SubtopologyBolt.prepare.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..plan import Node, Plan, ProcessorNode

Step = tuple[int, int]
"""A node of Storm's graph: a node id, and a number, since one node here may stand for several of Storm's."""


@dataclass(frozen=True)
class Bolts:
    """For each processor node of a plan: its bolt (``of``), and its place in the order in which bolts finish nodes."""

    of: dict[int, int]
    place: dict[int, int]


def bolts_of(plan: Plan) -> Bolts:
    """Return the bolts of a whole plan. All nodes that use a state are in one bolt, even nodes of several
    components."""
    graph = _Graph(plan)
    bolts = _Grouping(graph).merge()
    order = [step for bolt in bolts for step in graph.finishing(bolt)]
    of = {step[0]: number for number, bolt in enumerate(bolts) for step in bolt}
    return Bolts(of, {node: place for place, (node, step) in enumerate(order) if step == graph.works[node]})


class _Graph:
    """The steps of the processor nodes in the order of their definition, with the steps before and behind each.

    A repartition or a spout ends a bolt: it appears as None among the steps before or behind.
    """

    def __init__(self, plan: Plan) -> None:
        self.before: dict[Step, list[Step | None]] = {}
        self.behind: dict[Step, list[Step | None]] = {}
        self.states: dict[str, list[Step]] = {}
        self.works: dict[int, int] = {}
        last: dict[int, Step | None] = {}
        for node in plan.nodes:
            last[node.id] = self._add(node, [last[parent] for parent in node.parents])
        self._colocate(plan)

    def _add(self, node: Node, parents: list[Step | None]) -> Step | None:
        """Add the node and return its last step; None for a repartition or a spout."""
        if not isinstance(node, ProcessorNode):
            for parent in parents:
                if parent is not None:
                    self.behind[parent].append(None)
            return None
        self.works[node.id] = node.spec.works_in
        for number in range(node.spec.steps):
            step = (node.id, number)
            self.before[step], self.behind[step] = parents, []
            for parent in parents:
                if parent is not None:
                    self.behind[parent].append(step)
            parents = [step]
        return step

    def _colocate(self, plan: Plan) -> None:
        """Collect the nodes of each state. The states come in the order of their definition."""
        used = [node for node in plan.nodes if isinstance(node, ProcessorNode) and node.state is not None]
        for node in sorted(used, key=lambda node: (node.state.defined, not node.state.static)):  # type: ignore[union-attr]
            assert node.state is not None
            self.states.setdefault(node.state.id, []).append((node.id, 0))

    def finishing(self, bolt: Iterable[Step]) -> list[Step]:
        """Return the steps breadth first from the bolt's inputs, ties in the order of definition. This is jgrapht's
        order."""
        members = set(bolt)
        waits = {step: sum(before in members for before in self.before[step]) for step in sorted(members)}
        ready = deque(step for step, inputs in waits.items() if inputs == 0)
        order = []
        while ready:
            order.append(ready.popleft())
            for behind in self.behind[order[-1]]:
                if behind in waits:
                    waits[behind] -= 1
                    if waits[behind] == 0:
                        ready.append(behind)
        return order


class _Grouping:
    """Storm's GraphGrouper: merges each group that has a single neighbour on one side with it, in a fixed order."""

    def __init__(self, graph: _Graph) -> None:
        self.graph = graph
        together = list(graph.states.values())
        using = {step for steps in together for step in steps}
        groups: Sequence[list[Step]] = [*together, *([step] for step in graph.before if step not in using)]
        self.groups = dict(enumerate(groups))
        self.group_of: dict[Step, int] = {step: number for number, steps in self.groups.items() for step in steps}

    def merge(self) -> list[list[Step]]:
        while self._merge_two():
            pass
        return list(self.groups.values())

    def _merge_two(self) -> bool:
        for group in self.groups:
            for side in (self.graph.behind, self.graph.before):
                neighbours = self._neighbours(group, side)
                if len(neighbours) == 1 and None not in neighbours:
                    self._merge(group, neighbours.pop())  # type: ignore[arg-type]
                    return True
        return False

    def _neighbours(self, group: int, side: dict[Step, list[Step | None]]) -> set[int | None]:
        steps = [step for member in self.groups[group] for step in side[member]]
        return {None if step is None else self.group_of[step] for step in steps} - {group}

    def _merge(self, group: int, neighbour: int) -> None:
        """Merge two groups. The new group goes to the end, as in Storm's set of groups."""
        steps = self.groups.pop(group) + self.groups.pop(neighbour)
        number = max(self.group_of.values()) + 1
        self.groups[number] = steps
        self.group_of.update(dict.fromkeys(steps, number))

