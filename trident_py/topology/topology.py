"""TridentTopology: the fluent builder. It makes frozen nodes and runs nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..errors import DefinitionError
from ..guarantees import Guarantees, guarantees
from ..lowering import lower
from ..operations.base import GroupedMultiReducer, MultiReducer
from ..plan import Node, Plan, ProcessorNode, SpoutNode, StateUse, explain
from ..processors import Joiner, Merge, MultiReduce
from ..spouts.inspection import MAX_PARALLELISM, SPOUTS, configuration, output_fields, snapshot
from ..state import StateFactory, StateSpec
from ..tuples import Fields, FieldsLike
from .arguments import check_object, is_fields, not_there_yet
from .grouped import GroupedStream
from .owners import check_owners
from .places import check_places
from .state import TridentState
from .stream import Stream


class JoinType(Enum):
    """The type of one side of a join: OUTER means that this side may be missing."""

    INNER = "INNER"
    OUTER = "OUTER"

    @staticmethod
    def mixed(*types: JoinType) -> list[JoinType]:
        return list(types)


class JoinOutFieldsMode(Enum):
    """COMPACT: the key, then each side's other fields. PRESERVE: all fields of each side in their order."""

    COMPACT = "COMPACT"
    PRESERVE = "PRESERVE"


@dataclass(frozen=True)
class Topology:
    """A finished topology, what a cluster runs. Made by ``TridentTopology.build()``."""

    plan: Plan

    def explain(self) -> str:
        """The nodes as text, a line for each."""
        return explain(self.plan)

    def guarantees(self, conf: Mapping[str, Any] | None = None) -> Guarantees:
        """For each state what it can be trusted for, why, and what would raise it. Printed, it is a table.

        On the driver, at any time; nothing is started. Reads the source of the operations; of the configuration
        ``topology.determinism.trust`` counts. Raises DefinitionError where partition counts contradict, or for a
        factory whose own ``guarantees`` cannot be read.
        """
        return guarantees(self.plan, conf)


class TridentTopology:
    """A graph of streams under construction. Source in Storm: org.apache.storm.trident.TridentTopology."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._static = 0

    def newStream(self, txId: str, spout: Any) -> Stream:
        """A stream of the spout's batches. ``txId`` names the spout's place in the checkpoint; keep it unique.

        The spout is taken as it is now: later changes of the object have no effect (a feeder is a handle).
        """
        if not isinstance(txId, str) or not txId:
            raise DefinitionError(f"newStream's first argument is a name, got {txId!r}")
        taken = snapshot(check_object("newStream", spout, *SPOUTS))
        fields, limit = output_fields(taken), configuration(taken).get(MAX_PARALLELISM)
        return self._stream(SpoutNode(self._next_id(), fields, (), None, None, txId, taken, limit))

    def newDRPCStream(self, function: str, drpc: Any = None) -> Stream:
        """Not there yet. Raises DefinitionError."""
        raise not_there_yet("newDRPCStream", "read a state from its store, or by newStaticState")

    def setResourceDefaults(self, *defaults: Any) -> TridentTopology:
        """Accepted for ported lines; Spark places tasks itself."""
        return self

    def setMasterCoordResources(self, *resources: Any) -> TridentTopology:
        """Accepted for ported lines; there is no coordinator to be placed."""
        return self

    def newStaticState(self, factory: StateFactory | StateSpec) -> TridentState:
        """A state that nothing in this topology updates, for stateQuery."""
        self._static += 1
        return TridentState(self, None, self.state_use(-self._static, factory, None, static=True))

    def multiReduce(self, *args: Any) -> Stream:
        """Reduces several streams together: plain streams as they are, grouped ones by group.

        ``multiReduce(s1, s2, reducer, outputFields)``, ``multiReduce(fields1, s1, fields2, s2, reducer,
        outputFields)``, ``multiReduce([s...], reducer, outputFields)`` or ``multiReduce([fields...], [s...],
        reducer, outputFields)``. Without input fields a reducer sees the whole tuples.
        """
        if len(args) < 3:
            raise DefinitionError("multiReduce takes streams, a reducer and output fields")
        *sources, reducer, outputs = args
        inputs, streams = _pairs(sources)
        fields = tuple(
            stream.getOutputFields() if given is None else stream.check(given)
            for stream, given in zip(streams, inputs, strict=True)
        )
        check_object("multiReduce", reducer, MultiReducer, GroupedMultiReducer)
        if not isinstance(reducer, MultiReducer | GroupedMultiReducer):
            raise DefinitionError(f"multiReduce takes a MultiReducer or a GroupedMultiReducer, got {reducer!r}")
        if all(isinstance(stream, GroupedStream) for stream in streams):
            return self._grouped_reduce(fields, streams, reducer, Fields.of(outputs))
        return self._join_nodes(list(streams), MultiReduce(reducer, fields, Fields.of(outputs)), Fields.of(outputs))

    def _grouped_reduce(self, inputs: tuple[Fields, ...], streams: Any, reducer: Any, outputs: Fields) -> Stream:
        groups = tuple(stream.getGroupFields() for stream in streams)
        sources = [stream.toStream().partitionBy(stream.getGroupFields()) for stream in streams]
        return self._join_nodes(sources, MultiReduce(reducer, inputs, outputs, groups), outputs)

    def _join_nodes(self, streams: list[Any], spec: Any, outputs: Fields) -> Stream:
        streams = [stream.toStream() for stream in streams]
        name = "-".join(stream.getName() for stream in streams if stream.getName()) or None
        parents = tuple(stream.node_id for stream in streams)
        return self._stream(ProcessorNode(self._next_id(), outputs, parents, name, None, spec))

    def merge(self, *args: Any) -> Stream:
        """The union of streams; names are those given first, else the first stream's; values by position."""
        outputs = None
        if args and (isinstance(args[0], str | Fields) or _is_names(args[0])):
            outputs, args = Fields.of(args[0]), args[1:]
        streams = list(args[0]) if len(args) == 1 and isinstance(args[0], list | tuple) else list(args)
        if not streams:
            raise DefinitionError("merge needs at least one stream")
        inputs = tuple(stream.getOutputFields() for stream in streams)
        if outputs is None:
            same = {name: ddl for name, ddl in inputs[0].types.items() if all(ddl == t for t in _types(inputs, name))}
            outputs = Fields([f"{name} {same[name]}" if name in same else name for name in inputs[0]])
        return self._join_nodes(streams, Merge(inputs, outputs), outputs)

    def join(self, *args: Any, **options: Any) -> Stream:
        """Joins the tuples of a batch on equal values of the join fields, by position.

        ``join(s1, fields1, s2, fields2, outFields[, type or [types]][, mode])`` or ``join([s...], [fields...],
        outFields, ...)``. A null key is a key like any other. A side of JoinType.OUTER may be missing.
        """
        if args and isinstance(args[0], list | tuple):
            streams, keys, rest = list(args[0]), list(args[1]), args[2:]
        else:
            streams, keys, rest = [args[0], args[2]], [args[1], args[3]], args[4:]
        given = options.pop("outFields", None)
        outputs, rest = (Fields.of(rest[0]), rest[1:]) if given is None else (Fields.of(given), rest)
        types, mode = _join_options(rest, options, len(streams))
        return self._join(streams, keys, outputs, types, mode)

    def _join(
        self, streams: list[Stream], keys: list[FieldsLike], outputs: Fields, types: list[JoinType], mode: Any
    ) -> Stream:
        groups = [stream.check(key) for stream, key in zip(streams, keys, strict=True)]
        others = tuple(s.getOutputFields().without(group) for s, group in zip(streams, groups, strict=True))
        preserve = JoinOutFieldsMode(mode) is JoinOutFieldsMode.PRESERVE
        places = tuple(
            tuple((group.names + rest.names).index(name) for name in stream.getOutputFields())
            for stream, group, rest in zip(streams, groups, others, strict=True)
        )
        outer = tuple(JoinType(t) is JoinType.OUTER for t in types)
        joiner = Joiner(outer, tuple(map(len, others)), preserve, places)
        made = sum(map(len, others)) + (sum(map(len, groups)) if preserve else len(groups[0]))
        if len(outputs) < made:
            raise DefinitionError(f"the join makes {made} values, but there are {len(outputs)} output fields {outputs}")
        grouped = [stream.groupBy(group) for stream, group in zip(streams, groups, strict=True)]
        return self._grouped_reduce(others, grouped, joiner, outputs)

    def build(self) -> Topology:
        """The finished topology. Raises DefinitionError for one that cannot run."""
        plan = self.plan()
        plan.check()
        for component in plan.components():
            check_places(lower(component, plan))
        check_owners(plan)
        return Topology(plan)

    def plan(self) -> Plan:
        return Plan(tuple(self._nodes))

    def explain(self) -> str:
        """The topology as text, one line for each node."""
        return explain(self.plan())

    def guarantees(self, conf: Mapping[str, Any] | None = None) -> Guarantees:
        """As ``Topology.guarantees()``, for what is defined so far."""
        return guarantees(self.plan(), conf)

    # -- for streams ------------------------------------------------------------------------------------------

    def _next_id(self) -> int:
        return len(self._nodes)

    def _stream(self, node: Node) -> Stream:
        self._nodes.append(node)
        return Stream(self, node.id, node.name)

    def node(self, node_id: int) -> Node:
        return self._nodes[node_id]

    def add(self, kind: type[Node], fields: Fields, parent: Stream, **more: Any) -> Stream:
        """Adds a node behind a stream; the stream's name goes with it."""
        return self._stream(kind(self._next_id(), fields, (parent.node_id,), parent.getName(), None, **more))

    def hint(self, node_id: int, parallelism: int) -> None:
        if not isinstance(parallelism, int) or parallelism < 1:
            raise DefinitionError(f"parallelismHint takes a number of partitions from 1 on, got {parallelism!r}")
        self._nodes[node_id] = dataclasses.replace(self._nodes[node_id], hint=parallelism)

    def state_use(self, node_id: int, factory: Any, name: str | None, static: bool = False) -> StateUse:
        """A state of this topology. The name: as given, else the factory's own, else its table or topic."""
        required = None
        if isinstance(factory, StateSpec):
            factory, required = factory.stateFactory, factory.requiredNumPartitions
        if required is None:
            required = getattr(factory, "requiredNumPartitions", None)
        check_object("a state", factory, StateFactory)
        if not hasattr(factory, "makeState"):
            raise DefinitionError(f"{factory!r} is no StateFactory: it has no makeState")
        state_id = f"static{-node_id}" if static else f"state{node_id}"
        found = name or next(
            (v for v in (getattr(factory, key, None) for key in ("stateName", "table", "topic")) if isinstance(v, str)),
            state_id,
        )
        return StateUse(state_id, found, factory, required, static, self._next_id())


def _types(inputs: Sequence[Fields], name: str) -> list[str | None]:
    place = inputs[0].index(name)
    return [fields.types.get(fields[place]) if place < len(fields) else None for fields in inputs]


def _is_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


def _pairs(sources: list[Any]) -> tuple[list[Any], list[Any]]:
    """Input fields and streams of multiReduce's forms."""
    if len(sources) == 1:
        return [None] * len(sources[0]), list(sources[0])
    if len(sources) == 2 and isinstance(sources[0], list | tuple) and isinstance(sources[1], list | tuple):
        return [Fields.of(fields) for fields in sources[0]], list(sources[1])
    if is_fields(sources[0]):
        return [Fields.of(fields) for fields in sources[0::2]], sources[1::2]
    return [None] * len(sources), sources


def _join_options(rest: tuple, options: dict[str, Any], sides: int) -> tuple[list[JoinType], Any]:
    types = options.pop("types", options.pop("type", None))
    mode = options.pop("mode", options.pop("outFieldsMode", None))
    for value in rest:
        if isinstance(value, JoinOutFieldsMode):
            mode = value
        elif isinstance(value, JoinType | list | tuple):
            types = value
        else:
            raise DefinitionError(f"Unsupported out-fields mode: {value!r}; there are COMPACT and PRESERVE")
    types = JoinType.INNER if types is None else types
    types = list(types) if isinstance(types, list | tuple) else [types] * sides
    return types, JoinOutFieldsMode.COMPACT if mode is None else mode
