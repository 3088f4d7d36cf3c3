"""Lowers a plan to levels of stages: which nodes run together, in how many partitions, and which tuples go where.

A *stage* is a spout or a bolt (see `stages`): its nodes run in one task and finish together, in Storm's order. Nodes
that no repartition separates, and all nodes of one state, have the same number of partitions: the largest hint, capped
by the spout and by the configuration, or the number of a StateSpec. A repartition to other partitions begins the next
level. States commit in the last level of the batch phase or later, so that a failing function fails the batch before
any state commits.
Source in Storm: TridentTopology.build, getGroupParallelisms.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from ..errors import DefinitionError
from ..model.partitioning import Identity, Partitioner
from ..model.plan import DisjointSets, Node, PartitionNode, Plan, ProcessorNode, SpoutNode, describe
from ..tuples import Fields
from .stages import Staging, bolts_of, inputs_of


@dataclass(frozen=True)
class Exchange:
    """The tuples of one node that go to a later level. ``receivers`` are pairs of node and input number."""

    tag: int
    source: int
    partitioner: Partitioner
    fields: tuple[str, ...]
    level: int
    partitions: int
    receivers: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class TaskStage:
    """Nodes that run together in one task, in the order in which they finish: parents first.

    ``commits``: the stage updates a state, or comes behind one that does. It finishes in the commit phase.
    """

    partitions: int
    nodes: tuple[int, ...]
    commits: bool


@dataclass(frozen=True)
class Lowered:
    """One component of a topology, ready to run: its levels of stages and the exchanges between them.

    ``wanted``: for each node, the output fields that a later node reads.
    """

    plan: Plan
    levels: tuple[tuple[TaskStage, ...], ...]
    exchanges: tuple[Exchange, ...]
    wanted: dict[int, frozenset[str]]

    @cached_property
    def partitions(self) -> dict[int, int]:
        """The partition count of each node but repartitions, in the order in which the nodes finish."""
        return {node_id: stage.partitions for level in self.levels for stage in level for node_id in stage.nodes}

    @cached_property
    def unreached(self) -> frozenset[int]:
        """The nodes that an attempt without a commit does not reach: those that update a state, those that query such a
        state in the commit phase, and all behind them."""
        late = {node_id for level in self.levels for stage in level if stage.commits for node_id in stage.nodes}
        updated = {state.id for _, state in self.plan.updates()}
        found: set[int] = set()
        for node in self.plan.nodes:
            uses = isinstance(node, ProcessorNode) and node.state is not None and node.state.id in updated
            if (uses and node.id in late) or found & set(node.parents):
                found.add(node.id)
        return frozenset(found)


def lower(plan: Plan, whole: Plan, most: int | None = None) -> Lowered:
    """Lower one connected component of a whole plan, as `Lowering` does."""
    return Lowering(whole, most).lower(plan)


class Lowering:
    """Lowers the connected components of a whole plan. If a state is updated by another component, its partition count
    applies to the queries of this one. ``most``: the most partitions of a node. Raises DefinitionError if partition
    counts contradict each other."""

    def __init__(self, whole: Plan, most: int | None = None) -> None:
        self._counted = _PartitionCounts(whole, most)
        self._bolts = bolts_of(whole)

    def lower(self, plan: Plan) -> Lowered:
        steps, stages = [node for node in plan.nodes if not isinstance(node, PartitionNode)], Staging(plan, self._bolts)
        partitions = {node.id: self._counted.partitions(node) for node in steps}
        levels, wanted = _levels(plan, stages, partitions), _fields_wanted(plan)
        by_level: list[list[TaskStage]] = [[] for _ in range(max(levels.values(), default=0) + 1)]
        for nodes in stages.ordered:
            commits = stages.of[nodes[0]] in stages.behind
            by_level[levels[nodes[0]]].append(TaskStage(partitions[nodes[0]], nodes, commits))
        exchanges = tuple(_exchanges(plan, partitions, levels, wanted))
        return Lowered(plan, tuple(map(tuple, by_level)), exchanges, wanted)


class _PartitionCounts:
    """How many partitions each node has: one number for all that no repartition separates, and for all of one state."""

    def __init__(self, plan: Plan, most: int | None) -> None:
        self.caps = [] if most is None else [most]
        self.sets = DisjointSets()
        for node in plan.nodes:
            for parent in map(plan.by_id.__getitem__, node.parents):
                if not _repartitions(parent) and not _repartitions(node):
                    self.sets.join(node.id, parent.id)
            if isinstance(node, ProcessorNode) and node.state is not None:
                self.sets.join(node.id, ("state", node.state.id))
        members: dict[object, list[Node]] = {}
        for node in plan.nodes:
            if not isinstance(node, PartitionNode):
                members.setdefault(self.sets.root(node.id), []).append(node)
        self._counts = {root: self._count(nodes) for root, nodes in members.items()}

    def partitions(self, node: Node) -> int:
        return self._counts[self.sets.root(node.id)]

    def _count(self, members: list[Node]) -> int:
        of_spouts = [node.max_partitions for node in members if isinstance(node, SpoutNode)]
        caps = self.caps + [most for most in of_spouts if most is not None]
        fixed = {
            node.state.required_partitions
            for node in members
            if isinstance(node, ProcessorNode) and node.state is not None and node.state.required_partitions
        }
        if len(fixed) > 1:
            raise DefinitionError("Cannot have one group have fixed parallelism of two different values")
        if fixed and caps and min(caps) < min(fixed):
            raise DefinitionError(
                f"Parallelism is fixed to {min(fixed)} but max parallelism is less than that: {min(caps)}"
            )
        hinted = max([node.hint for node in members if node.hint is not None], default=1)
        return fixed.pop() if fixed else min([hinted, *caps])


def _repartitions(node: Node) -> bool:
    return isinstance(node, PartitionNode) and not isinstance(node.partitioner, Identity)


def _crosses(partitions: dict[int, int], source: Node, through: PartitionNode | None, to: Node) -> bool:
    """Return whether tuples may leave their task here. From one partition to one partition they never do."""
    if through is None or isinstance(through.partitioner, Identity):
        return False
    return partitions[source.id] > 1 or partitions[to.id] > 1


def _levels(plan: Plan, stages: Staging, partitions: dict[int, int]) -> dict[int, int]:
    """Return the level of each node. Committing stages wait for the whole batch phase; the stages behind them come
    later."""
    levels: dict[int, int] = {}
    last = 0
    for nodes in stages.ordered:
        least = last if stages.of[nodes[0]] in stages.committing else 0
        for node_id, source, through in stages.inputs(nodes):
            least = max(least, levels[source.id] + _crosses(partitions, source, through, plan.by_id[node_id]))
        levels.update(dict.fromkeys(nodes, least))
        if stages.of[nodes[0]] not in stages.behind:
            last = max(last, least)
    return levels


def _exchanges(
    plan: Plan, partitions: dict[int, int], levels: dict[int, int], wanted: dict[int, frozenset[str]]
) -> Iterable[Exchange]:
    """Return one exchange for each source, partition node, target level and target partition count."""
    receivers_of: dict[tuple, list[tuple[int, int]]] = {}
    for node in plan.nodes:
        if isinstance(node, PartitionNode):
            continue
        for port, source, through in inputs_of(plan, node):
            if levels[source.id] != levels[node.id]:
                key = (source.id, through.id if through else None, levels[node.id], partitions[node.id])
                receivers_of.setdefault(key, []).append((node.id, port))
    for tag, ((source_id, through_id, level, count), receivers) in enumerate(receivers_of.items()):
        partitioner = plan.by_id[through_id].partitioner if through_id is not None else Identity()  # type: ignore[attr-defined]
        if partitions[source_id] == 1 == count:
            partitioner = Identity()
        names = {name for node_id, port in receivers for name in _fields_read(plan, plan.by_id[node_id], port, wanted)}
        fields = tuple(name for name in plan.by_id[source_id].fields if name in names)
        yield Exchange(tag, source_id, partitioner, fields, level, count, tuple(receivers))


def _fields_read(plan: Plan, node: Node, port: int, wanted: dict[int, frozenset[str]]) -> set[str]:
    """Return the fields of an input that a node needs: the fields it reads, and the fields it passes on."""
    fields: Fields = plan.by_id[node.parents[port]].fields
    if isinstance(node, PartitionNode):
        return {name for name in fields if name in wanted[node.id] or name in node.partitioner.reads}
    assert isinstance(node, ProcessorNode), describe(node)
    needed = set(node.spec.reads(port))
    return needed | {name for name in fields if name in wanted[node.id]} if node.spec.passes else needed


def _fields_wanted(plan: Plan) -> dict[int, frozenset[str]]:
    """Return for each node the output fields that a later node reads."""
    wanted: dict[int, frozenset[str]] = {}
    needed: dict[int, set[str]] = {node.id: set() for node in plan.nodes}
    for node in reversed(plan.nodes):
        wanted[node.id] = frozenset(needed[node.id])
        for port, parent in enumerate(node.parents):
            needed[parent] |= _fields_read(plan, node, port, wanted)
    return wanted
