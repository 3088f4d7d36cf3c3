"""A topology as data: frozen nodes of three kinds, spout, processor and partition, as in Storm's planner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..errors import DefinitionError
from ..state.roles import is_in_object
from ..tuples import Fields


@dataclass(frozen=True)
class StateUse:
    """A state that a node updates or queries. All nodes of one state run in the same partitions.

    ``defined``: the number of nodes that the topology had before it.
    """

    id: str
    name: str
    factory: Any
    required_partitions: int | None = None
    static: bool = False
    defined: int = 0

    @property
    def kind(self) -> str:
        """The factory's kind of state; "unknown" if a user's factory does not declare one."""
        return getattr(self.factory, "kind", None) or "unknown"  # a user's factory need not have it

    @property
    def in_object(self) -> bool:
        """Whether what it stores counts as kept in its objects, so that one object must serve all batches."""
        return not self.static and is_in_object(self.factory)


@dataclass(frozen=True)
class Node:
    """One step. ``parents`` are node ids by input number; ``fields`` are the output fields."""

    id: int
    fields: Fields
    parents: tuple[int, ...] = ()
    name: str | None = None
    hint: int | None = None


@dataclass(frozen=True)
class SpoutNode(Node):
    """A source of batches. ``spout_id`` is the first argument of newStream."""

    spout_id: str = ""
    spout: Any = None
    max_partitions: int | None = None


@dataclass(frozen=True)
class DRPCNode(SpoutNode):
    """The source of a DRPC function, named by ``spout_id``: one tuple for each request, with the field ``args``. It has
    no batches and no txids. ``drpc``: the LocalDRPC that answers the function, None for the process's own."""

    drpc: Any = None


@dataclass(frozen=True)
class ProcessorNode(Node):
    """A step that processes the tuples of one partition. ``committer``: it updates a state.

    ``spec`` is a frozen, picklable `processors.base.Spec`: it names the operation, declares the fields it reads, and
    makes the processor of each partition.
    """

    spec: Any = None
    state: StateUse | None = None
    committer: bool = False


@dataclass(frozen=True)
class PartitionNode(Node):
    """A repartition; see `partitioning`."""

    partitioner: Any = None


class DisjointSets:
    """Sets of keys, joined two at a time. A key that was never joined is alone."""

    def __init__(self) -> None:
        self._next: dict[Any, Any] = {}

    def root(self, key: Any) -> Any:
        """Return the key that stands for all of its set."""
        above = self._next
        while (other := above.setdefault(key, key)) != key:
            above[key] = key = above[other]  # halves the way for the next call
        return key

    def join(self, key: Any, other: Any) -> None:
        self._next[self.root(key)] = self.root(other)


@dataclass(frozen=True)
class Plan:
    """A whole topology: its nodes in the order in which they were defined, so parents come first."""

    nodes: tuple[Node, ...]
    by_id: dict[int, Node] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {node.id: node for node in self.nodes})

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan, (self.nodes,)

    @cached_property
    def _children(self) -> dict[int, list[tuple[Node, int]]]:
        children: dict[int, list[tuple[Node, int]]] = {node.id: [] for node in self.nodes}
        for child in self.nodes:
            for port, parent in enumerate(child.parents):
                children[parent].append((child, port))
        return children

    def children(self, node: Node) -> Sequence[tuple[Node, int]]:
        """Return the nodes that read this node's output, each with the number of the input."""
        return self._children[node.id]

    def before(self, node: Node) -> list[Node]:
        """Return the node and all nodes before it, in the order of their definition."""
        ids, todo = {node.id}, [node]
        while todo:
            new = set(todo.pop().parents) - ids
            ids |= new
            todo += [self.by_id[parent] for parent in new]
        return [self.by_id[node_id] for node_id in sorted(ids)]

    def components(self) -> list[Plan]:
        """Return the connected components. Each has its own sequence of txids. Sharing a state does not connect
        nodes."""
        sets = DisjointSets()
        for node in self.nodes:
            for parent in node.parents:
                sets.join(parent, node.id)
        parts: dict[Any, list[Node]] = {}
        for node in self.nodes:
            parts.setdefault(sets.root(node.id), []).append(node)
        return [Plan(tuple(nodes)) for nodes in parts.values()]

    def without_requests(self) -> Plan:
        """Return the components that workers may run: without those of DRPC streams, which the driver answers."""
        parts = [part for part in self.components() if not any(isinstance(node, DRPCNode) for node in part.nodes)]
        ids = {node.id for part in parts for node in part.nodes}
        return Plan(tuple(node for node in self.nodes if node.id in ids))

    def updates(self) -> list[tuple[ProcessorNode, StateUse]]:
        """Return the nodes that update a state, each with the state."""
        processors = [node for node in self.nodes if isinstance(node, ProcessorNode) and node.committer]
        return [(node, node.state) for node in processors if node.state is not None]

    def check(self) -> None:
        """Raise DefinitionError if two streams have the same name."""
        names: set[str] = set()
        for node in self.nodes:
            if isinstance(node, SpoutNode) and not isinstance(node, DRPCNode):
                if node.spout_id in names:
                    error = DefinitionError(
                        f"two streams are named {node.spout_id!r}; newStream's first argument names the spout's "
                        "place in the checkpoint and must be unique"
                    )
                    error.node = node.id
                    raise error
                names.add(node.spout_id)


def operations_of(node: Node) -> list[Any]:
    """Return the user code that determines a node's output. (A consumer of ``peek`` does not.)"""
    if isinstance(node, PartitionNode):
        return list(node.partitioner.operations)
    return list(node.spec.operations) if isinstance(node, ProcessorNode) else []


def explain(plan: Plan) -> str:
    """Return the plan as text, one line for each node. Untyped fields have a question mark."""
    lines = []
    for node in plan.nodes:
        inputs = ", ".join(f"#{parent}" for parent in node.parents)
        fields = ", ".join(f"{name} {node.fields.types.get(name, '?')}" for name in node.fields)
        label = f" ({node.name})" if node.name else ""
        hint = f" x{node.hint}" if node.hint is not None else ""
        lines.append(f"#{node.id} {describe(node)}{label}{hint}{' <- ' + inputs if inputs else ''}: [{fields}]")
    return "\n".join(lines)


def describe(node: Node) -> str:
    """Return a short description of a node."""
    if isinstance(node, DRPCNode):
        return f"DRPC {node.spout_id}"
    if isinstance(node, SpoutNode):
        return f"spout {node.spout_id}: {type(node.spout).__name__}"
    if isinstance(node, PartitionNode):
        return f"partition {node.partitioner}"
    if isinstance(node, ProcessorNode):
        state = f" state {node.state.name}" if node.state is not None else ""
        return f"{node.spec.operation}{state}"
    return "node"
