"""One place for data has one owner: two states of a topology neither share a name nor what they update."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from ..errors import DefinitionError
from ..plan import Plan, ProcessorNode, StateUse
from ..state import Location, StateFactory


def check_owners(plan: Plan) -> None:
    """At build, for the states that the topology updates; one that is only asked may lie anywhere. Raises
    DefinitionError."""
    for one, other in combinations(_updated(plan), 2):
        _check_places(one, other)
        if one.name == other.name:
            raise DefinitionError(
                f"two states are named {one.name!r}; the name keeps their txids apart. They keep their data in two "
                "places, so give one of them another name with stateName="
            )


def _updated(plan: Plan) -> Iterator[StateUse]:
    uses = [node.state for node in plan.nodes if isinstance(node, ProcessorNode) and node.committer and node.state]
    yield from {use.id: use for use in uses}.values()


def _check_places(one: StateUse, other: StateUse) -> None:
    here, there = _location(one), _location(other)
    if here is None or there is None or here.admits(there):
        return
    both = f"the states {one.name!r} and {other.name!r} would both"
    if one.name == other.name:
        both = f"two states, both named {one.name!r}, would"
    raise DefinitionError(
        f"{both} update {there.shown}. Each takes what the other has written there for its own, so tuples would be "
        "lost or counted twice, and another name does not help. Let one state update it: merge the streams before it "
        "(topology.merge). Or give one of the two a table, topic or factory of its own. To ask it from another "
        "stream, use stateQuery, with newStaticState where the stream is in another topology"
    )


def _location(use: StateUse) -> Location | None:
    return use.factory.location if isinstance(use.factory, StateFactory) else None
