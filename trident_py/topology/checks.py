"""Checks of a topology's states: each fits its updater and its queries, works in its place, and owns its location."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

from ..engine.lowering import Lowered
from ..errors import DefinitionError
from ..model.partitioning import Identity
from ..model.plan import Node, PartitionNode, Plan, ProcessorNode, SpoutNode, StateUse
from ..state import Location, QueryFunction, StateFactory, StatePlace, StateSpec, StateUpdater
from ..state.fit import next_step
from ..state.roles import ChecksPlace, location_of
from ..state.updaters import MapGet
from ..tuples import Fields
from .arguments import check_object, near
from .graph import NodeHandle

Route = dict[tuple[str, bool], None]
"""An ordered set: the spouts behind a node, each with whether its tuples may have changed their partition."""


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


def check_fits(state: StateUse, user: Any, inputs: Fields, stream: NodeHandle) -> None:
    """Raise DefinitionError if the updater or query (``user``) calls a method that the factory's states lack or refuse,
    or if its input fields are not those that it needs for them."""
    factory = state.factory
    if not isinstance(factory, StateFactory) or not isinstance(user, StateUpdater | QueryFunction):
        return
    _check_calls(factory, user)
    key = factory.key_fields
    if key is not None and type(user) is MapGet and len(inputs) != len(key):
        raise DefinitionError(
            f"MapGet of state {state.name!r} needs one input field for each field of the key {key}, in that order; got "
            f"{inputs}"
        )
    for name in user.name_fields(factory).without(inputs):
        fields = stream.getOutputFields()
        why = f"which stream {_name(stream)!r} does not have; it has: {fields}{near(name, fields)}"
        if name in fields:
            why = f"which the input fields {inputs} leave out: add it to them"
        raise DefinitionError(f"{type(user).__name__} of state {state.name!r} needs the field {name!r}, {why}")


def _name(stream: NodeHandle) -> str:
    """Return the stream's label, else the names of those that it comes from."""
    plan, label = stream.graph.plan(), stream.getName()
    sources = [node.spout_id for node in plan.before(plan.by_id[stream.node_id]) if isinstance(node, SpoutNode)]
    return label or " + ".join(sources)


def _check_calls(factory: StateFactory, user: StateUpdater | QueryFunction) -> None:
    for call in user.calls:
        if call in factory.refused_calls:
            raise DefinitionError(f"{type(user).__name__} does not fit {factory!r}: {factory.refused_calls[call]}")
    kind = factory.state_type
    missing = [] if kind is None else [name for name in user.calls if name not in dir(kind)]
    if missing and kind is not None:
        raise DefinitionError(
            f"{type(user).__name__} does not fit {factory!r}: it calls {missing[0]}(), which {kind.__name__} does not "
            f"have. {_next_step(missing[0], kind)}"
        )


def _bare(factory: Any) -> Any:
    return factory.stateFactory if isinstance(factory, StateSpec) else factory


def _next_step(call: str, kind: type) -> str:
    if call == "insert":
        return "A map is updated by persistentAggregate, rows by states.RowUpdater()"
    return next_step(call, kind)


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
    routes, users = _routes(lowered), _users(lowered)
    for node, state in lowered.plan.updates():
        if isinstance(state.factory, ChecksPlace):
            queries = users[state.id][users[state.id].index(node) + 1 :]
            with _at(node):
                state.factory.check_place(_place(lowered, node, state, routes[node.id], queries))


@contextmanager
def _at(node: Node) -> Iterator[None]:
    """Note the node in the error that refuses it."""
    try:
        yield
    except DefinitionError as error:
        error.node = node.id
        raise


def _place(
    lowered: Lowered, node: ProcessorNode, state: StateUse, routes: Route, queries: list[ProcessorNode]
) -> StatePlace:
    """Describe the place. ``queries``: the nodes that query the state after its update in the same batch."""
    spouts = tuple(dict.fromkeys(spout for spout, _ in routes))
    inputs = lowered.plan.by_id[node.parents[0]].fields.only(node.spec.inputs)
    beside = tuple(spout for spout in spouts if (spout, True) not in routes)
    functions = tuple(query.spec.query for query in queries)
    partitions, updater = lowered.partitions[node.id], node.spec.updater
    return StatePlace(state.name, partitions, inputs, spouts, beside, functions, updater)


def _users(lowered: Lowered) -> dict[str, list[ProcessorNode]]:
    """Return the nodes that use each state, in the order in which they finish."""
    users: dict[str, list[ProcessorNode]] = {}
    for node in map(lowered.plan.by_id.__getitem__, lowered.partitions):
        if isinstance(node, ProcessorNode) and node.state is not None:
            users.setdefault(node.state.id, []).append(node)
    return users


def _routes(lowered: Lowered) -> dict[int, Route]:
    """Return the spouts that feed each node, and whether their tuples may change their partition on the way."""
    routes: dict[int, Route] = {}
    for node in lowered.plan.nodes:
        routes[node.id] = {(node.spout_id, False): None} if isinstance(node, SpoutNode) else {}
        for parent in map(lowered.plan.by_id.__getitem__, node.parents):
            moves = _moves(parent, node, lowered.partitions)
            routes[node.id] |= {(spout, crossed or moves): None for spout, crossed in routes[parent.id]}
    return routes


def _moves(parent: Node, node: Node, counts: dict[int, int]) -> bool:
    if not isinstance(parent, PartitionNode) or isinstance(parent.partitioner, Identity):
        return False
    return counts[parent.parents[0]] > 1 or counts[node.id] > 1


def check_owners(plan: Plan) -> None:
    """Raise DefinitionError if two updated states share a name or a location. A state that is only queried may share
    both."""
    named: dict[str, StateUse] = {}
    neighbours = _Neighbours()
    for node, state in plan.updates():
        with _at(node):
            location = location_of(state.factory)
            if location is not None:
                for other in neighbours.add(state, location):
                    raise _in_one_place(other, state, location)
            if named.setdefault(state.name, state) is not state:
                raise _of_one_name(state, location, location_of(named[state.name].factory))


class _Neighbours:
    """The states whose places are known, by what two places must have in common to meet (`Location.meets`)."""

    def __init__(self) -> None:
        self._named: dict[tuple[str, str], list[tuple[StateUse, Location]]] = {}
        self._inside: dict[tuple[str, str], list[tuple[StateUse, Location]]] = {}

    def add(self, state: StateUse, location: Location) -> list[StateUse]:
        """Add a state. Return those before it that may not write beside it."""
        names, folders = (list(product(location.stores, found)) for found in (location.names, location.within))
        found = [pair for name in names for held in (self._named, self._inside) for pair in held.get(name, ())]
        found += [pair for folder in folders for pair in self._named.get(folder, ())]
        for held, keys in ((self._named, names), (self._inside, folders)):
            for key in keys:
                held.setdefault(key, []).append((state, location))
        return [other for other, second in found if not second.admits(location)]


def _of_one_name(state: StateUse, location: Location | None, other: Location | None) -> DefinitionError:
    where = "Their data is in two places, so give"
    if location is not None and other is not None and location.meets(other):
        where = f"Both write {location.shown}: merge the streams before it (topology.merge), or give"
    return DefinitionError(
        f"two states are named {state.name!r}, but only the name keeps their txids apart. {where} one of them another "
        "name with stateName="
    )


def _in_one_place(state: StateUse, other: StateUse, second: Location) -> DefinitionError:
    both = f"the states {state.name!r} and {other.name!r} would both"
    if state.name == other.name:
        both = f"two states, both named {state.name!r}, would"
    return DefinitionError(
        f"{both} update {second.shown}. Each would take the other's writes for its own, so tuples would be lost or "
        "counted twice; another name does not help. Update it by one state: merge the streams before it "
        "(topology.merge), or give one of the two its own table, topic or factory. To query it from another stream, "
        "use stateQuery, with newStaticState if that stream is in another topology"
    )
