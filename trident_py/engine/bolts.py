"""Groups nodes into bolts and orders the nodes of a bolt, as Storm's planner does.

A bolt waits for all of its inputs, and if it updates a state also for the commit phase. Then its nodes finish one after
the other. The bolts therefore decide whether a query of a state sees the values before or after the state's update.
Source in Storm: TridentTopology.build, GraphGrouper, SubtopologyBolt.prepare.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from ..model.plan import Node, Plan, ProcessorNode

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
    """Storm's GraphGrouper: merges each group that has a single neighbour on one side with it, in a fixed order.

    A merged group goes to the end, as in Storm's set of groups, and the search begins again at the first one. Only what
    has lost a neighbour since can have become one to merge, so only that is looked at again.
    """

    def __init__(self, graph: _Graph) -> None:
        together = list(graph.states.values())
        using = {step for steps in together for step in steps}
        self.steps = groups = dict(enumerate([*together, *([step] for step in graph.before if step not in using)]))
        self.place = {group: group for group in groups}
        of: dict[Step | None, int | None] = {step: group for group, steps in groups.items() for step in steps}
        of[None] = None
        self.behind, self.before = (
            {group: {of[other] for step in steps for other in side[step]} - {group} for group, steps in groups.items()}
            for side in (graph.behind, graph.before)
        )

    def merge(self) -> list[list[Step]]:
        last, todo = len(self.place), [(place, group) for group, place in self.place.items()]
        while todo:
            place, group = heappop(todo)
            if self.place.get(group) != place:  # it was merged
                continue
            alone = (side[group] for side in (self.behind, self.before) if len(side[group]) == 1)
            neighbour = next((other for (other,) in alone if other is not None), None)
            if neighbour is not None:
                kept, fewer = self._merge_two(group, neighbour)
                self.place[kept] = last
                last += 1
                for other in {kept, *fewer}:
                    heappush(todo, (self.place[other], other))
        return [self.steps[group] for group in sorted(self.place, key=self.place.__getitem__)]

    def _merge_two(self, one: int, other: int) -> tuple[int, set[int]]:
        """Merge two groups: the smaller into the other. Returns that, and the groups that have a neighbour less."""
        gone, kept = sorted((one, other), key=self._size)
        self.steps[kept] += self.steps.pop(gone)
        del self.place[gone]
        fewer: set[int] = set()
        for near, far in ((self.behind, self.before), (self.before, self.behind)):
            for neighbour in near.pop(gone) - {kept}:
                near[kept].add(neighbour)
                if neighbour is not None:
                    far[neighbour].remove(gone)
                    if kept in far[neighbour]:
                        fewer.add(neighbour)
                    far[neighbour].add(kept)
            near[kept].discard(gone)
        return kept, fewer

    def _size(self, group: int) -> int:
        return len(self.steps[group]) + len(self.behind[group]) + len(self.before[group])
