"""A random topology built with the public API and run on a cluster."""

from __future__ import annotations

import itertools
from typing import Any

from semantics.support import Batches, bag, run

from trident_py import JoinOutFieldsMode, JoinType, TridentTopology
from trident_py.operations.builtin import FirstN, MapGet, SnapshotGet, TupleCollectionGet
from trident_py.state import TransactionalValue
from trident_py.testing import Crashing, LoggingBackingMap, MemoryMapState, collect, failing, stored

from .steps import Case, Step
from .usercode import (
    AGGREGATORS,
    ALL,
    FILTERS,
    AddAll,
    Callee,
    Explode,
    Fn,
    GroupTally,
    Keeps,
    Table,
    Tally,
    Turn,
    compare,
    exploded,
    place,
    turned,
)


class Engine:
    """Builds the streams of a case; ``outputs`` and ``states`` as `Naive` has them, after `run`."""

    def __init__(self, case: Case) -> None:
        self.steps = case.steps
        self.topology = TridentTopology()
        self.streams: dict[int, Any] = {}
        self.factories: dict[int, Any] = {}
        self.handles: dict[int, Any] = {}
        for step in case.steps:
            self._add(step)

    def _add(self, step: Step) -> None:
        stream = getattr(self, f"_{step.op}")(step, *[self.streams[i] for i in step.inputs])
        if step.hint is not None:
            stream.parallelismHint(step.hint)
        assert stream.getOutputFields().toList() == step.names
        self.streams[step.id] = collect(stream, f"s{step.id}") if step.collected else stream

    def run(self, cluster: Any) -> Engine:
        running = run(cluster, self.topology)
        self.outputs = {step.id: running.collected(f"s{step.id}") for step in self.steps if step.collected}
        self.states = {step_id: records(stored(factory)) for step_id, factory in self.factories.items()}
        return self

    # -- one tuple after the other --------------------------------------------------------------------------------

    def _source(self, step: Step) -> Any:
        fields = [field.declared for field in step.fields]
        spout: Any = Batches(fields, step.args["batches"], step.args["replays"])
        if step.args["fail"]:
            spout = failing(spout, {(txid, 0) for txid in step.args["fail"]})
        return self.topology.newStream(f"spout{step.id}", spout)

    def _each(self, step: Step, stream: Any) -> Any:
        made = Fn(step.args["fn"]) if step.args["form"] == "Function" else Callee(step.args["fn"])
        out = [field.declared for field in step.fields[len(stream.getOutputFields()) :]]
        given = [] if step.args["fields"] is None else [step.args["fields"]]
        return stream.each(*given, scripted(made, step), out)

    def _keep(self, step: Step, stream: Any) -> Any:
        name, fields = step.args["fn"], step.args["fields"]
        made = scripted(Keeps(name) if step.args["form"] == "Filter" else FILTERS[name], step)
        if fields is None:
            return stream.filter(made)
        return stream.filter(fields, made) if step.args["call"] == "filter" else stream.each(fields, made)

    def _map(self, step: Step, stream: Any) -> Any:
        made = scripted(Turn() if step.args["form"] == "Function" else turned, step)
        return stream.map(made, step.names) if step.args["renamed"] else stream.map(made)

    def _flatMap(self, step: Step, stream: Any) -> Any:
        return stream.flatMap(scripted(Explode() if step.args["form"] == "Function" else exploded, step), step.names)

    def _peek(self, step: Step, stream: Any) -> Any:
        return stream.peek(scripted(len, step))

    def _project(self, step: Step, stream: Any) -> Any:
        return stream.project(step.names)

    # -- repartitions ---------------------------------------------------------------------------------------------

    def _identity(self, step: Step, stream: Any) -> Any:
        return stream.identityPartition().project(step.names)

    def _partitionBy(self, step: Step, stream: Any) -> Any:
        return stream.partitionBy(step.args["fields"])

    def _custom(self, step: Step, stream: Any) -> Any:
        return stream.partition(place)

    def __getattr__(self, name: str) -> Any:
        """_shuffle, _localOrShuffle, _global_, _batchGlobal, _broadcast"""
        if not name.startswith("_") or name.startswith("__"):
            raise AttributeError(name)
        return lambda step, stream: getattr(stream, name[1:])()

    # -- aggregations ---------------------------------------------------------------------------------------------

    def _best(self, step: Step, stream: Any) -> Any:
        smallest, field = step.args["smallest"], step.args["field"]
        if field is None:
            return stream.min(compare) if smallest else stream.max(compare)
        return (stream.minBy(field) if smallest else stream.maxBy(field)).project(field)

    def _firstN(self, step: Step, stream: Any) -> Any:
        first = FirstN(step.args["n"], step.args["field"], step.args["reverse"])
        return stream.applyAssembly(first).project(step.names)

    def _aggregate(self, step: Step, stream: Any) -> Any:
        source = stream if step.args["group"] is None else stream.groupBy(step.args["group"])
        call = "aggregate" if step.args["mode"] == "aggregate" else "partitionAggregate"
        parts = [(fields, aggregator(name, step), out) for fields, name, out in step.args["parts"]]
        if len(parts) == 1:
            return getattr(source, call)(*parts[0]).toStream()
        chain = source.chainedAgg()
        for part in parts:
            chain = getattr(chain, call)(*part)
        return chain.chainEnd()

    # -- states ---------------------------------------------------------------------------------------------------

    def _factory(self, step: Step) -> Any:
        kind = step.args["kind"]
        factory = MemoryMapState.Factory() if kind == "memory" else LoggingBackingMap.Factory(kind)
        self.factories[step.id] = factory
        if step.args["crash"] is None:
            return factory
        at, when = step.args["crash"]
        return Crashing(factory, at, when)

    def _persist(self, step: Step, stream: Any) -> Any:
        source = stream if step.args["group"] is None else stream.groupBy(step.args["group"])
        fields, name, out = step.args["fields"], step.args["agg"], step.names[-1]
        self.handles[step.id] = source.persistentAggregate(self._factory(step), fields, ALL[name], out)
        return self.handles[step.id].newValuesStream()

    def _put(self, step: Step, stream: Any) -> Any:
        fields = step.args["fields"]
        self.handles[step.id] = stream.partitionBy(fields[0]).partitionPersist(
            self._factory(step), fields, AddAll(), step.names
        )
        return self.handles[step.id].newValuesStream()

    def _query(self, step: Step, stream: Any) -> Any:
        source = stream.groupBy(step.args["fields"]) if step.args["grouped"] else stream
        static, width = self.topology.newStaticState(Table()), len(stream.getOutputFields())
        query = TupleCollectionGet() if step.args["all"] else MapGet()
        return source.stateQuery(static, step.args["fields"], query, step.names[width:])

    def _ask(self, step: Step, stream: Any) -> Any:
        state, fields = self.handles[step.args["state"]], step.args["fields"]
        if not fields:
            return stream.global_().stateQuery(state, SnapshotGet(), step.names[-1])
        return stream.groupBy(fields).stateQuery(state, fields, MapGet(), step.names[-1])

    # -- several streams ------------------------------------------------------------------------------------------

    def _merge(self, step: Step, *streams: Any) -> Any:
        return self.topology.merge(step.names, *streams) if step.args["renamed"] else self.topology.merge(*streams)

    def _multi(self, step: Step, *streams: Any) -> Any:
        return self.topology.multiReduce(step.args["fields"], list(streams), scripted(Tally(), step), step.names)

    def _groupedMulti(self, step: Step, *streams: Any) -> Any:
        grouped = [s.groupBy(group) for s, group in zip(streams, step.args["groups"], strict=True)]
        return self.topology.multiReduce(step.args["fields"], grouped, scripted(GroupTally(), step), step.names)

    def _join(self, step: Step, *streams: Any) -> Any:
        types = [JoinType.OUTER if outer else JoinType.INNER for outer in step.args["outer"]]
        mode = JoinOutFieldsMode.PRESERVE if step.args["preserve"] else JoinOutFieldsMode.COMPACT
        if len(streams) > 2:
            return self.topology.join(list(streams), step.args["groups"], step.names, types, mode)
        pairs = itertools.chain(*zip(streams, step.args["groups"], strict=True))
        return self.topology.join(*pairs, step.names, types, mode)


def scripted(made: Any, step: Step) -> Any:
    """The operation, failing where the step says so."""
    return failing(made, step.args["fail"]) if step.args.get("fail") else made


def aggregator(name: str, step: Step) -> Any:
    return scripted(ALL[name], step) if name in AGGREGATORS else ALL[name]


def records(rows: dict) -> dict[str, Any]:
    """Stored rows as `Naive` has them."""
    return {
        repr(tuple(key)): tuple(value) if isinstance(value, TransactionalValue | tuple) else (value,)
        for key, value in rows.items()
    }


def shown(outputs: dict[int, dict[int, list]]) -> dict[int, dict[int, list[str]]]:
    """Rows without their order; batches without rows left out."""
    return {step: {txid: bag(rows) for txid, rows in found.items() if rows} for step, found in outputs.items()}
