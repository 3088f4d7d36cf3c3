"""DRPC streams when a topology is built: what they may not do, and which statement of each is the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..engine.processors import Answer, Collect, Keep, Peek
from ..errors import DefinitionError
from ..model.partitioning import Identity
from ..model.plan import DRPCNode, Node, PartitionNode, Plan, ProcessorNode, SpoutNode, StateUse, describe
from ..state import Reading, StateFactory


def check_function(function: Any) -> str:
    """Return the function's name. Raises DefinitionError for one that cannot be part of an HTTP path."""
    if not isinstance(function, str) or not function or "/" in function:
        raise DefinitionError(f"newDRPCStream's first argument must be the name of a function, got {function!r}")
    return function


def with_answers(plan: Plan) -> Plan:
    """Return the plan with an answer behind the last statement of each DRPC stream. Raises DefinitionError for a DRPC
    stream that cannot answer requests."""
    nodes = list(plan.nodes)
    _check_names([node for node in nodes if isinstance(node, DRPCNode)])
    updated = {state.id for _, state in plan.updates()}
    for component in plan.components():
        sources = [node for node in component.nodes if isinstance(node, DRPCNode)]
        if sources:
            _check(component, sources, updated)
            nodes += _answer(sources[0], last_statement(component, sources[0]), len(nodes))
    return Plan(tuple(nodes))


def last_statement(component: Plan, source: Node) -> Node:
    """Return the node whose tuples answer the requests of a DRPC stream: the end of its line.

    Where the stream branches, branches that only look at tuples (`_find_observers`) are beside the line; of the others
    it goes on with the one that was written first. So a statement that is added later changes the answer only if it
    follows the answer, or if the line only looked from the branch on.
    """
    node: Node = source
    looking = _find_observers(component)
    while children := [child for child, _ in component.children(node)]:
        node = next((child for child in children if child.id not in looking), children[0])
    return node


def _find_observers(component: Plan) -> set[int]:
    """Return the nodes that only filter, peek or record, as all behind them: such a branch has no rows of its own."""
    looking: set[int] = set()
    for node in reversed(component.nodes):
        looks = isinstance(node, PartitionNode) or (
            isinstance(node, ProcessorNode) and isinstance(node.spec, Keep | Peek | Collect)
        )
        if looks and all(child.id in looking for child, _ in component.children(node)):
            looking.add(node.id)
    return looking


def _answer(source: DRPCNode, last: Node, number: int) -> list[Node]:
    """Return the nodes of the answer. They are in a bolt of their own, as in Storm, and so leave the bolts before them
    alone.
    """
    between = PartitionNode(number, last.fields, (last.id,), partitioner=Identity())
    spec = Answer(source.spout_id, last.fields)
    return [between, ProcessorNode(number + 1, last.fields, (number,), spec=spec)]


def _check_names(sources: Sequence[DRPCNode]) -> None:
    seen: set[str] = set()
    for source in sources:
        if source.spout_id in seen:
            raise DefinitionError(
                f"two DRPC streams answer the function {source.spout_id!r}, and a request has one answer. Give one of "
                "them another name, or branch the stream that the first newDRPCStream returned"
            )
        seen.add(source.spout_id)


def _check(component: Plan, sources: Sequence[DRPCNode], updated: set[str]) -> None:
    function = sources[0].spout_id
    if any(isinstance(node, SpoutNode) and not isinstance(node, DRPCNode) for node in component.nodes):
        raise DefinitionError(
            f"Cannot join DRPC stream with streams originating from other spouts: {function!r} meets "
            f"{_others(component)}. A request is a batch of its own; keep what it needs of them in a state, and ask "
            "that with stateQuery"
        )
    if len(sources) > 1:
        names = ", ".join(repr(source.spout_id) for source in sources)
        raise DefinitionError(f"the DRPC streams {names} are joined, but a request calls one function only")
    for node in component.nodes:
        if isinstance(node, ProcessorNode) and node.state is not None:
            _check_state(function, node, node.state, updated)


def _others(component: Plan) -> str:
    spouts = [n for n in component.nodes if isinstance(n, SpoutNode) and not isinstance(n, DRPCNode)]
    return ", ".join(map(describe, spouts))


def _check_state(function: str, node: ProcessorNode, state: StateUse, updated: set[str]) -> None:
    if node.committer:
        raise DefinitionError(
            f"the DRPC stream {function!r} would update the state {state.name!r}, but a request has no txid: it could "
            "not be recognized when it comes again. Send what should be kept to a spout's source, such as a topic"
        )
    factory = state.factory
    unseen = factory.reading is Reading.NOTHING if isinstance(factory, StateFactory) else state.in_object
    if state.id in updated and unseen:
        raise DefinitionError(
            f"the DRPC stream {function!r} asks the state {state.name!r}, which cannot be read from the driver: "
            f"{factory!r} only writes, or keeps its data in the object that updates it. If its data is elsewhere, say "
            "so (StateFactory.location); else keep what is asked in a state that can be read, such as SqlMapState, "
            "CompactedTopicState or MemoryMapState"
        )
