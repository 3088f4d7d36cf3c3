"""The stages of one component: its spouts and bolts, each behind the stages that feed it, as in Storm's planner.

A bolt waits for all of its inputs, and if it updates a state also for the commit phase. Then its nodes finish one after
the other. The bolts therefore decide whether a query of a state sees the values before or after the state's update.
Source in Storm: TridentTopology.build, GraphGrouper, SubtopologyBolt.prepare.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from ..model.plan import Node, PartitionNode, Plan, ProcessorNode

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
    order = [step for bolt in bolts for step in graph.traverse(bolt)]
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

    def traverse(self, bolt: Iterable[Step]) -> list[Step]:
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
        self.committing = self._find_committing()
        self.behind = self._stages_behind()
        self.ordered = [tuple(sorted(self._nodes[stage], key=self._place)) for stage in self._sort()]

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

    def _find_committing(self) -> set[Name]:
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


def inputs_of(plan: Plan, node: Node) -> Iterator[Input]:
    """Return the inputs of a node."""
    for port, parent_id in enumerate(node.parents):
        parent = plan.by_id[parent_id]
        if isinstance(parent, PartitionNode):
            yield port, plan.by_id[parent.parents[0]], parent
        else:
            yield port, parent, None
