"""TridentTopology: the fluent builder. It makes the frozen nodes of a plan and runs nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from .. import config
from ..drpc import LocalDRPC
from ..engine.lowering import Lowering
from ..engine.phases import PROFILE, profile
from ..engine.poison import is_on
from ..engine.processors import Join, Joiner, Merge, MultiReduce
from ..entry_points import load
from ..errors import DefinitionError
from ..model.names import check_folder_name
from ..model.plan import DRPCNode, Plan, ProcessorNode, SpoutNode
from ..operations.base import GroupedMultiReducer, MultiReducer
from ..report.explain import render
from ..report.guarantees import Guarantees, announce, guarantees
from ..spouts.inspection import MAX_PARALLELISM, SPOUTS, configuration, output_fields, snapshot
from ..spouts.requests import DRPCSpout
from ..tuples import Fields, FieldsLike
from .arguments import JoinOutFieldsMode, JoinType, arguments, check_object
from .checks import check_owners, check_places
from .graph import Graph
from .requests import check_function, with_answers
from .roles import AnyFactory, AnySpout
from .stream import GroupedStream, Stream, TridentState

log = logging.getLogger("trident_py")

AnyStream = Stream | GroupedStream
_ALSO = {"types": "type", "joinType": "type", "outFieldsMode": "mode"}


@dataclass(frozen=True)
class Topology:
    """A finished topology for submitTopology. ``TridentTopology.build()`` returns it."""

    plan: Plan

    def explain(self, form: str = "text") -> str:
        """Return the topology as it will run: its steps with their fields (``?``: untyped), stages, partitions,
        exchanges, states and guarantees.

        ``form``: "text"; "mermaid" or "dot", texts that draw a picture; or "svg", if graphviz's ``dot`` is on the PATH.
        Starts nothing. Raises DefinitionError for another form, and TridentError for "svg" without graphviz.
        """
        return render(self.plan, form)

    def guarantees(self, conf: Mapping[str, Any] | None = None) -> Guarantees:
        """Return for each state the guarantee, the reason, and what would raise it. Prints as a table.

        Call it on the driver at any time; it starts nothing. It reads the source code of the operations, and
        ``topology.determinism.trust`` of the configuration. Raises DefinitionError if partition counts contradict each
        other, or if a factory's own ``guarantees`` cannot be read.
        """
        return guarantees(self.plan, conf)


class TridentTopology(Graph):
    """A graph of streams under construction. Source in Storm: org.apache.storm.trident.TridentTopology."""

    def newStream(self, txId: str, spout: AnySpout) -> Stream:
        """Return a stream of the spout's batches. ``txId`` names the spout in the checkpoint; keep it unique.

        The call copies the spout: later changes to the object have no effect, except for a feeder, which is a handle.
        """
        if not isinstance(txId, str) or not txId:
            raise DefinitionError(f"newStream's first argument must be a name, got {txId!r}")
        taken = snapshot(check_object("newStream", spout, *SPOUTS))
        fields, limit = output_fields(taken), configuration(taken).get(MAX_PARALLELISM)
        return Stream(self, self.add(SpoutNode, fields, (), None, spout_id=txId, spout=taken, max_partitions=limit))

    def newDRPCStream(self, function: str, drpc: Any = None) -> Stream:
        """Return a stream of the requests for a function: each request is a batch of one tuple, with the field
        ``args``.

        ``drpc``: the LocalDRPC through which the function is called; without it, the process's own. The answer is the
        last statement of this stream, all its fields, as a list of rows; docs/drpc.md says which statement that is if
        the stream branches. A request is answered in the driver, beside the batches. It has no txid: it queries states
        and updates none. Raises DefinitionError for anything but a name.
        """
        if drpc is not None and not isinstance(drpc, LocalDRPC):
            raise DefinitionError(f"newDRPCStream takes a LocalDRPC as its second argument, got {drpc!r}")
        name, source = check_function(function), DRPCSpout()
        fields = source.getOutputFields()
        return Stream(self, self.add(DRPCNode, fields, (), None, spout_id=name, spout=source, drpc=drpc))

    def setResourceDefaults(self, *defaults: Any) -> TridentTopology:
        """Accept for ported code and ignore: Spark places tasks itself."""
        return self

    def setMasterCoordResources(self, *resources: Any) -> TridentTopology:
        """Accept for ported code and ignore: there is no coordinator to place."""
        return self

    def newStaticState(self, factory: AnyFactory) -> TridentState:
        """Return a state that nothing in this topology updates, for stateQuery."""
        return TridentState(self, None, self.state_use(factory, None, static=True))

    @overload
    def multiReduce(self, s1: Stream, s2: Stream, function: MultiReducer, outputFields: FieldsLike) -> Stream: ...
    @overload
    def multiReduce(
        self, s1: GroupedStream, s2: GroupedStream, function: GroupedMultiReducer, outputFields: FieldsLike
    ) -> Stream: ...
    @overload
    def multiReduce(
        self,
        inputFields1: FieldsLike,
        s1: Stream,
        inputFields2: FieldsLike,
        s2: Stream,
        function: MultiReducer,
        outputFields: FieldsLike,
    ) -> Stream: ...
    @overload
    def multiReduce(
        self,
        inputFields1: FieldsLike,
        s1: GroupedStream,
        inputFields2: FieldsLike,
        s2: GroupedStream,
        function: GroupedMultiReducer,
        outputFields: FieldsLike,
    ) -> Stream: ...
    @overload
    def multiReduce(self, streams: Sequence[Stream], function: MultiReducer, outputFields: FieldsLike) -> Stream: ...
    @overload
    def multiReduce(
        self, streams: Sequence[GroupedStream], function: GroupedMultiReducer, outputFields: FieldsLike
    ) -> Stream: ...
    @overload
    def multiReduce(
        self,
        inputFields: Sequence[FieldsLike],
        streams: Sequence[Stream],
        function: MultiReducer,
        outputFields: FieldsLike,
    ) -> Stream: ...
    @overload
    def multiReduce(
        self,
        inputFields: Sequence[FieldsLike],
        streams: Sequence[GroupedStream],
        function: GroupedMultiReducer,
        outputFields: FieldsLike,
    ) -> Stream: ...
    def multiReduce(self, *args: Any, **named: Any) -> Stream:
        """Reduce several streams together: plain streams by partition, grouped ones by group.

        ``multiReduce(s1, s2, reducer, outputFields)``, ``multiReduce(fields1, s1, fields2, s2, reducer,
        outputFields)``, ``multiReduce([s...], reducer, outputFields)`` or ``multiReduce([fields...], [s...],
        reducer, outputFields)``. Without input fields the reducer sees whole tuples. Grouped streams are repartitioned
        by their groups, plain ones not at all. Output fields: ``outputFields`` alone.
        """
        call = arguments(TridentTopology.multiReduce, args, named)
        streams = _sides("multiReduce", call.get("streams", [call.get("s1"), call.get("s2")]))
        inputs = call.get("inputFields", [call.get("inputFields1"), call.get("inputFields2")])
        if len(inputs) != len(streams) and "inputFields" in call:
            raise DefinitionError(f"multiReduce got {len(inputs)} lists of fields for {len(streams)} streams")
        inputs = inputs if any(fields is not None for fields in inputs) else [None] * len(streams)
        fields = tuple(
            stream.getOutputFields() if names is None else stream.check(names)
            for stream, names in zip(streams, inputs, strict=True)
        )
        outputs, reducer = Fields.of(call["outputFields"]), _reducer(call["function"], streams)
        if isinstance(reducer, GroupedMultiReducer):
            return self._by_group(MultiReduce, fields, streams, reducer, outputs)
        return self._join_nodes(streams, MultiReduce(reducer, fields, outputs), outputs)

    def _by_group(
        self, kind: type[MultiReduce], inputs: tuple[Fields, ...], streams: Any, reducer: Any, outputs: Fields
    ) -> Stream:
        self.check_own(stream.toStream() for stream in streams)
        groups = tuple(stream.getGroupFields() for stream in streams)
        sources = [stream.toStream().partitionBy(stream.getGroupFields()) for stream in streams]
        return self._join_nodes(sources, kind(reducer, inputs, outputs, groups), outputs)

    def _join_nodes(self, streams: list[Any], spec: Any, outputs: Fields) -> Stream:
        streams = [stream.toStream() for stream in streams]
        self.check_own(streams)
        name = "-".join(stream.getName() for stream in streams if stream.getName()) or None
        parents = tuple(stream.node_id for stream in streams)
        return Stream(self, self.add(ProcessorNode, outputs, parents, name, spec=spec), name)

    @overload
    def merge(self, stream: AnyStream, *streams: AnyStream) -> Stream: ...
    @overload
    def merge(self, streams: Sequence[AnyStream]) -> Stream: ...
    @overload
    def merge(self, outputFields: FieldsLike, stream: AnyStream, *streams: AnyStream) -> Stream: ...
    @overload
    def merge(self, outputFields: FieldsLike, streams: Sequence[AnyStream]) -> Stream: ...
    def merge(self, *args: Any, **named: Any) -> Stream:
        """Return the union of streams: ``merge([outputFields,] s1, s2, ...)`` or ``merge([outputFields,] [s...])``.

        The names are ``outputFields``, else the first stream's; values match by position. Nothing is repartitioned.
        """
        call = arguments(TridentTopology.merge, args, named)
        streams = _sides("merge", [call["stream"], *call["streams"]] if "stream" in call else call["streams"])
        inputs = tuple(stream.getOutputFields() for stream in streams)
        outputs = Fields.of(call["outputFields"]) if "outputFields" in call else _common(inputs)
        for fields in inputs:
            if len(fields) < len(outputs):
                lacking = outputs.without(outputs.names[: len(fields)])
                log.warning("merge: the stream of %s has no value for %s", fields, lacking)
        return self._join_nodes(streams, Merge(inputs, outputs), outputs)

    @overload
    def join(
        self,
        s1: AnyStream,
        joinFields1: FieldsLike,
        s2: AnyStream,
        joinFields2: FieldsLike,
        outFields: FieldsLike,
        type: JoinType | Sequence[JoinType] = JoinType.INNER,
        mode: JoinOutFieldsMode = JoinOutFieldsMode.COMPACT,
    ) -> Stream: ...
    @overload
    def join(
        self,
        s1: AnyStream,
        joinFields1: FieldsLike,
        s2: AnyStream,
        joinFields2: FieldsLike,
        outFields: FieldsLike,
        mode: JoinOutFieldsMode,
    ) -> Stream: ...
    @overload
    def join(
        self,
        streams: Sequence[AnyStream],
        joinFields: Sequence[FieldsLike],
        outFields: FieldsLike,
        type: JoinType | Sequence[JoinType] = JoinType.INNER,
        mode: JoinOutFieldsMode = JoinOutFieldsMode.COMPACT,
    ) -> Stream: ...
    @overload
    def join(
        self,
        streams: Sequence[AnyStream],
        joinFields: Sequence[FieldsLike],
        outFields: FieldsLike,
        mode: JoinOutFieldsMode,
    ) -> Stream: ...
    def join(self, *args: Any, **named: Any) -> Stream:
        """Join the tuples of a batch on equal values of the join fields, by position.

        ``join(s1, fields1, s2, fields2, outFields[, type or [types]][, mode])`` or ``join([s...], [fields...],
        outFields, ...)``. A null key is a key like any other. A side of JoinType.OUTER may be missing; its values are
        then null. Each side is partitioned by its join fields. Output in COMPACT mode: the key, then each side's other
        fields; in PRESERVE mode: all fields of each side. Raises DefinitionError if there are too few output fields.
        """
        named = {_ALSO.get(name, name): value for name, value in named.items()}
        call = arguments(TridentTopology.join, args, named)
        streams = _sides("join", call.get("streams", [call.get("s1"), call.get("s2")]))
        keys = call.get("joinFields", [call.get("joinFields1"), call.get("joinFields2")])
        if len(keys) != len(streams):
            raise DefinitionError(f"join got join fields for {len(keys)} of {len(streams)} streams")
        types, mode = call.get("type", JoinType.INNER), call["mode"]
        if not isinstance(mode, JoinOutFieldsMode):
            raise DefinitionError(f"Unsupported out-fields mode: {mode!r}; there are COMPACT and PRESERVE")
        sides = [types] * len(streams) if isinstance(types, JoinType) else list(types)
        return self._join(streams, keys, Fields.of(call["outFields"]), sides, mode)

    def _join(
        self,
        streams: list[AnyStream],
        keys: Sequence[FieldsLike],
        outputs: Fields,
        types: list[JoinType],
        mode: JoinOutFieldsMode,
    ) -> Stream:
        groups = [stream.check(key) for stream, key in zip(streams, keys, strict=True)]
        if len(set(map(len, groups))) > 1:
            lists = ", ".join(map(str, groups))
            raise DefinitionError(f"a join compares join fields by position, but their numbers differ: {lists}")
        others = tuple(s.getOutputFields().without(group) for s, group in zip(streams, groups, strict=True))
        preserve = mode is JoinOutFieldsMode.PRESERVE
        places = tuple(
            tuple((group.names + rest.names).index(name) for name in stream.getOutputFields())
            for stream, group, rest in zip(streams, groups, others, strict=True)
        )
        outer = tuple(side is JoinType.OUTER for side in types)
        joiner = Joiner(outer, tuple(map(len, others)), preserve, places)
        values = sum(map(len, others)) + (sum(map(len, groups)) if preserve else len(groups[0]))
        if len(outputs) < values:
            raise DefinitionError(f"the join makes {values} values for the {len(outputs)} output fields {outputs}")
        grouped = [stream.toStream().groupBy(group) for stream, group in zip(streams, groups, strict=True)]
        return self._by_group(Join, others, grouped, joiner, outputs)

    def build(self) -> Topology:
        """Return the finished topology. Raises DefinitionError if it cannot run."""
        plan = with_answers(self.plan())
        plan.check()
        lowering = Lowering(plan)
        for component in plan.components():
            check_places(lowering.lower(component))
        check_owners(plan)
        return Topology(plan)

    def explain(self, form: str = "text") -> str:
        """Return ``Topology.explain()`` for the topology as defined so far."""
        return render(self.plan(), form)

    def guarantees(self, conf: Mapping[str, Any] | None = None) -> Guarantees:
        """Return ``Topology.guarantees()`` for the topology as defined so far."""
        return guarantees(self.plan(), conf)


def _common(inputs: Sequence[Fields]) -> Fields:
    """Return the first stream's fields, with the types on which all streams agree."""
    first = inputs[0]
    same = [name for name, ddl in first.types.items() if {ddl} == set(_types(inputs, name))]
    return Fields.of_names(first, {name: first.types[name] for name in same})


def _types(inputs: Sequence[Fields], name: str) -> list[str | None]:
    place = inputs[0].index(name)
    return [fields.types.get(fields[place]) if place < len(fields) else None for fields in inputs]


def _sides(call: str, streams: Sequence[Any]) -> list[Any]:
    """Return the streams as a list. Raises DefinitionError if there are none, or if one is not a stream."""
    if not streams:
        raise DefinitionError(f"{call} needs at least one stream")
    for stream in streams:
        if not isinstance(stream, AnyStream):
            raise DefinitionError(f"{call} takes streams, got {stream!r}")
    return list(streams)


def _reducer(reducer: Any, streams: Sequence[AnyStream]) -> MultiReducer | GroupedMultiReducer:
    """Return the reducer. Raises DefinitionError if it does not fit these streams."""
    check_object("multiReduce", reducer, MultiReducer, GroupedMultiReducer)
    if not isinstance(reducer, MultiReducer | GroupedMultiReducer):
        raise DefinitionError(f"multiReduce takes a MultiReducer or a GroupedMultiReducer, got {reducer!r}")
    kind = GroupedStream if isinstance(reducer, GroupedMultiReducer) else Stream
    if not all(isinstance(stream, kind) for stream in streams):
        raise DefinitionError(
            "multiReduce takes a MultiReducer over streams, or a GroupedMultiReducer over grouped streams; "
            f"got {type(reducer).__name__} over {', '.join(type(stream).__name__ for stream in streams)}"
        )
    return reducer


def check_submission(name: Any, conf: Any, topology: Any) -> None:
    """Check the arguments of submitTopology and log the topology's guarantees.

    Raises DefinitionError for arguments in the wrong order, a topology that is not built, names that cannot name a
    folder, an invalid configuration, a ``topology.poison`` that cannot keep its promise, a ``topology.profile`` without
    the extra `profile`, or states below ``conf["topology.guarantee"]``.
    """
    if isinstance(topology, TridentTopology):
        raise DefinitionError("submitTopology takes a built topology: submitTopology(name, conf, topology.build())")
    if not isinstance(topology, Topology) or not isinstance(name, str) or not name:
        got = ", ".join(type(argument).__name__ for argument in (name, conf, topology))
        raise DefinitionError(f"submitTopology takes a name, a configuration and a built topology; got {got}")
    check_folder_name("the topology", name)
    for node in topology.plan.nodes:
        if isinstance(node, SpoutNode) and not isinstance(node, DRPCNode):
            check_folder_name("a stream of the topology", node.spout_id)
    config.check(conf)
    if is_on(conf or {}):
        load(config.Config.TOPOLOGY_POISON, "poison").check_poison(topology.plan)
    if profile(conf or {}):
        load(PROFILE, "profile")
    announce(name, conf, topology.plan)
