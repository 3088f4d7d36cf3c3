"""The graph under construction and the base classes of its handles; the fluent classes build on them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from typing import Any, Self

from ..engine.processors import Project
from ..errors import DefinitionError
from ..model.partitioning import Partitioner
from ..model.plan import Node, PartitionNode, Plan, ProcessorNode, StateUse
from ..operations.resources import ResourceDeclarer
from ..state import StateFactory, StateSpec
from ..state.roles import MakesState
from ..tuples import Fields, FieldsLike
from .arguments import check_fields, check_object, check_state_kind


class Graph:
    """The nodes defined so far, in the order of their numbers."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._static = 0
        self._unnamed: Counter[str] = Counter()

    def plan(self) -> Plan:
        return Plan(tuple(self._nodes))

    def node(self, node_id: int) -> Node:
        return self._nodes[node_id]

    def add(self, kind: type[Node], fields: Fields, parents: tuple[int, ...], name: str | None, **more: Any) -> int:
        """Add a node after its parents and return its number."""
        node = kind(len(self._nodes), fields, parents, name, None, **more)
        self._nodes.append(node)
        return node.id

    def hint(self, node_id: int, parallelism: int) -> None:
        if not isinstance(parallelism, int) or parallelism < 1:
            raise DefinitionError(f"parallelismHint takes a number of partitions, at least 1; got {parallelism!r}")
        self._nodes[node_id] = dataclasses.replace(self._nodes[node_id], hint=parallelism)

    def state_use(self, factory: Any, name: str | None, static: bool = False) -> StateUse:
        """Return the state that the next node updates, or a static one. Its name: ``name``, else the factory's
        ``stateName``, else its table or topic, else its class, numbered from the second one on."""
        spec = factory if isinstance(factory, StateSpec) else StateSpec(factory)
        factory, required = spec.stateFactory, spec.requiredNumPartitions
        if required is None:  # a user's factory may have it, as in Storm, whatever it inherits from
            required = getattr(factory, "requiredNumPartitions", None)
        check_object("a state", factory, StateFactory)
        if not isinstance(factory, MakesState):
            raise DefinitionError(f"{factory!r} is not a StateFactory: it has no makeState")
        check_state_kind(factory)
        self._static += static
        state_id = f"static{self._static}" if static else f"state{len(self._nodes)}"
        # any factory may have any of these attributes, and they may hold something else than a name
        names = (getattr(factory, key, None) for key in ("stateName", "table", "topic"))
        state_name = name or next((value for value in names if isinstance(value, str)), None) or self._label(factory)
        return StateUse(state_id, state_name, factory, required, static, len(self._nodes))

    def _label(self, factory: Any) -> str:
        scope = type(factory).__qualname__
        own = scope.rpartition("<locals>.")[2]
        if own == "Factory":  # Java's usual name, which says nothing without the class, function or module around it
            around = [*type(factory).__module__.split("."), *scope.replace(".<locals>", "").split(".")][-2]
            own = own if around == "__main__" else f"{around}.{own}"
        self._unnamed[own] += 1
        return own if self._unnamed[own] == 1 else f"{own}-{self._unnamed[own]}"

    def check_own(self, handles: Iterable[Handle]) -> None:
        """Raise DefinitionError for a stream or state of another topology: node numbers are unique in one only."""
        for handle in handles:
            if handle.graph is not self:
                raise DefinitionError(
                    f"a {handle.kind} of another TridentTopology cannot be used here. Make both with the newStream and "
                    "newStaticState of one topology; two topologies share data through a store or a topic"
                )


class Handle(ResourceDeclarer):
    """A part of one graph, returned by a fluent call. ``kind`` names it in errors."""

    kind = "stream"

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @property
    def topology(self) -> Any:
        """The TridentTopology, for assemblies that merge or join."""
        return self.graph


class NodeHandle(Handle):
    """A handle of one node. Operations add nodes after it, and its name passes on to them."""

    def __init__(self, graph: Graph, node_id: int, name: str | None = None) -> None:
        super().__init__(graph)
        self.node_id = node_id
        self._name = name

    def name(self, name: str) -> Self:
        """Label this stream for explain() and progress."""
        return type(self)(self.graph, self.node_id, name)

    def getName(self) -> str | None:
        return self._name

    def getOutputFields(self) -> Fields:
        return self.graph.node(self.node_id).fields

    def check(self, fields: FieldsLike | None) -> Fields:
        """Return the fields with their types in this stream. Raises DefinitionError if the stream lacks one."""
        return check_fields(Fields.of(fields), self.getOutputFields())

    def parallelismHint(self, parallelism: int) -> Self:
        """Set the partition count of this step and of all steps that no repartition separates from it."""
        self.graph.hint(self.node_id, parallelism)
        return self

    def _process(self, spec: Any, fields: Fields, **more: Any) -> Self:
        return self._add(ProcessorNode, fields, spec=spec, **more)

    def _partition(self, partitioner: Partitioner) -> Self:
        node = self.graph.node(self.node_id)
        source = self._process(Project(node.fields), node.fields) if isinstance(node, PartitionNode) else self
        return source._add(PartitionNode, node.fields, partitioner=partitioner)

    def _add(self, kind: type[Node], fields: Fields, **more: Any) -> Self:
        node_id = self.graph.add(kind, fields, (self.node_id,), self._name, **more)
        return type(self)(self.graph, node_id, self._name)
