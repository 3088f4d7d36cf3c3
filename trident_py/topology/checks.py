"""Checks of a topology's states: each fits its updater and its queries, works in its place, and owns its location."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from ..errors import DefinitionError
from ..partitioning import Identity
from ..plan import Node, PartitionNode, Plan, ProcessorNode, SpoutNode, StateUse
from ..run.lowering import Lowered
from ..state import QueryFunction, StateFactory, StatePlace, StateSpec, StateUpdater
from ..state.roles import ChecksPlace, location_of
from ..tuples import Fields
from .arguments import check_object


def own_updater(factory: Any) -> StateUpdater:
    """Return the factory's own updater. Raises DefinitionError if it has none."""
    factory = check_object("a state", _bare(factory), StateFactory)
    updater = factory.own_updater if isinstance(factory, StateFactory) else None
    if updater is None:
        raise DefinitionError(
            f"partitionPersist got no updater, and {factory!r} has none of its own: pass one, as in "
            "partitionPersist(factory, fields, updater). A map state is updated by persistentAggregate"
        )
    return updater


def check_fits(factory: Any, user: Any) -> None:
    """Raise DefinitionError if the updater or query (``user``) calls a method that the factory's states lack."""
    factory = _bare(factory)
    if not isinstance(factory, StateFactory) or not isinstance(user, StateUpdater | QueryFunction):
        return
    kind = factory.state_type
    missing = [] if kind is None else [name for name in user.calls if name not in dir(kind)]
    if missing and kind is not None:
        raise DefinitionError(
            f"{type(user).__name__} does not fit {factory!r}: it calls {missing[0]}(), which {kind.__name__} does not "
            f"have. {_next_step(missing[0])}"
        )


def _bare(factory: Any) -> Any:
    return factory.stateFactory if isinstance(factory, StateSpec) else factory


def _next_step(call: str) -> str:
    if call == "insert":
        return "A map is updated by persistentAggregate, rows by states.RowUpdater()"
    if call in ("multiUpdate", "update"):
        return "persistentAggregate needs a map state; rows are written by partitionPersist with states.RowUpdater()"
    return "Ask a state that can answer, such as a map state for MapGet"


def keys_of(factory: Any, group: Fields) -> Fields:
    """Return the group fields in the order of the state's key, matched by name. A key of one field may have any name.

    Raises DefinitionError if the state's key has other fields.
    """
    factory = _bare(factory)
    wanted = factory.key_fields if isinstance(factory, StateFactory) else None
    if wanted is None or (len(wanted) == 1 and len(group) == 1):
        return group
    if set(wanted) != set(group):
        raise DefinitionError(
            f"the stream is grouped by {group}, but the key of {factory!r} is {wanted}: they are matched by name. "
            "Group by the fields of the key, or name the key by the fields of the group"
        )
    return group.only(wanted)


def check_places(lowered: Lowered) -> None:
    """Call ``check_place`` of each factory that has it. Raises DefinitionError if a state cannot work in its place."""
    for node, state in lowered.plan.updates():
        if isinstance(state.factory, ChecksPlace):
            state.factory.check_place(_place(lowered, node, state))


def _place(lowered: Lowered, node: ProcessorNode, state: StateUse) -> StatePlace:
    routes = list(_routes(lowered, node, False))
    spouts = tuple(dict.fromkeys(spout for spout, _ in routes))
    moved = {spout for spout, crossed in routes if crossed}
    inputs = lowered.plan.by_id[node.parents[0]].fields.only(node.spec.inputs)
    beside = tuple(spout for spout in spouts if spout not in moved)
    queries = _queries_behind(lowered, node)
    return StatePlace(state.name, lowered.partitions[node.id], inputs, spouts, beside, queries)


def _queries_behind(lowered: Lowered, update: ProcessorNode) -> tuple[Any, ...]:
    """Return the functions that query the state after its update in the same batch."""
    order = list(lowered.partitions)
    behind = [lowered.plan.by_id[node_id] for node_id in order[order.index(update.id) + 1 :]]
    return tuple(
        node.spec.query
        for node in behind
        if isinstance(node, ProcessorNode) and node.state is not None and node.state == update.state
    )


def _routes(lowered: Lowered, node: Node, crossed: bool) -> Iterator[tuple[str, bool]]:
    """Return the spouts that feed a node, each with whether its tuples may change their partition on the way."""
    if isinstance(node, SpoutNode):
        yield node.spout_id, crossed
    for parent_id in node.parents:
        parent = lowered.plan.by_id[parent_id]
        yield from _routes(lowered, parent, crossed or _moves(parent, node, lowered.partitions))


def _moves(parent: Node, node: Node, counts: dict[int, int]) -> bool:
    if not isinstance(parent, PartitionNode) or isinstance(parent.partitioner, Identity):
        return False
    return counts[parent.parents[0]] > 1 or counts[node.id] > 1


def check_owners(plan: Plan) -> None:
    """Raise DefinitionError if two updated states share a name or a location. A state that is only queried may share
    both."""
    states = {state.id: state for _, state in plan.updates()}
    for state, other in combinations(states.values(), 2):
        _check_both(state, other)
        if state.name == other.name:
            raise DefinitionError(
                f"two states are named {state.name!r}, but only the name keeps their txids apart. Their data is in "
                "two places, so give one of them another name with stateName="
            )


def _check_both(state: StateUse, other: StateUse) -> None:
    location, second = location_of(state.factory), location_of(other.factory)
    if location is None or second is None or location.admits(second):
        return
    both = f"the states {state.name!r} and {other.name!r} would both"
    if state.name == other.name:
        both = f"two states, both named {state.name!r}, would"
    raise DefinitionError(
        f"{both} update {second.shown}. Each would take the other's writes for its own, so tuples would be lost or "
        "counted twice; another name does not help. Update it by one state: merge the streams before it "
        "(topology.merge), or give one of the two its own table, topic or factory. To query it from another stream, "
        "use stateQuery, with newStaticState if that stream is in another topology"
    )
