"""Builds a case of the oracle with the public API, runs it on a cluster and writes its result down.

The format of cases and results is that of the oracle for real Storm Trident; `ops` and `states` hold what the
steps name.
"""

from __future__ import annotations

import itertools
import tempfile
from typing import Any

from states.sql import SqlWindowsStoreFactory
from trident_py import (
    Config,
    JoinOutFieldsMode,
    JoinType,
    TopologyError,
    TridentError,
    TridentTopology,
)
from trident_py.operations import Aggregator
from trident_py.operations.builtin import FirstN
from trident_py.testing import collect
from trident_py.windowing import InMemoryWindowsStoreFactory, SlidingCountWindow, TumblingCountWindow

from . import ops, states
from .requests import Requests
from .spout import CaseSpout

TIMEOUT = 300
_runs = itertools.count()


class Interpreter:
    """The steps of one case as calls of the fluent API."""

    def __init__(self, case: dict[str, Any], folder: str = "") -> None:
        self.case = case
        self.folder = folder
        self.topology = TridentTopology()
        self.script = ops.Script(case.get("fail", []))
        self.by: dict[str, Any] = {}
        self.sinks: dict[str, list[str]] = {}
        self.peeks: list[str] = []
        self.states: dict[str, states.CaseState] = {}
        self.batches = max((len(s["batches"]) for s in case["spouts"].values()), default=0)
        self.requests = Requests(case.get("drpc", []), self.batches, case["spouts"])

    def build(self) -> Any:
        for step in self.case["steps"]:
            made = getattr(self, step["op"])(step)
            if "parallelism" in step and hasattr(made, "parallelismHint"):
                made = made.parallelismHint(step["parallelism"])
            if "id" in step:
                self.by[step["id"]] = made
        return self.topology.build()

    # ------------------------------------------------------------------ helpers
    def input(self, step: dict) -> Any:
        return self.by[step["in"]]

    def inputs(self, step: dict) -> list[Any]:
        return [self.by[name] for name in step["in"]]

    def op(self, kind: Any, step: dict, key: str = "fn") -> Any:
        return kind(self.script, step["id"], step[key], len(step.get("out") or []))

    def state(self, step: dict) -> Any:
        spec = step["state"]
        made = states.CaseState(spec["name"], spec["kind"], spec.get("size", 100), self.script)
        self.states[spec["name"]] = made
        return made.spec(spec.get("partitions"))

    # ------------------------------------------------------------------ sources
    def newStream(self, step: dict) -> Any:
        name = step["spout"]
        spec = self.case["spouts"][name]
        stream = self.topology.newStream(name, CaseSpout(name, spec, self.batches, self.script, self.requests))
        partitions = spec.get("partitions", 1)
        return stream.parallelismHint(partitions) if partitions > 1 else stream

    def newDRPCStream(self, step: dict) -> Any:
        return self.topology.newDRPCStream(step["function"], self.requests.drpc)

    def newStaticState(self, step: dict) -> Any:
        return self.topology.newStaticState(states.StaticFactory(step.get("entries", []), step.get("snapshot")))

    # ------------------------------------------------------------------ one tuple after the other
    def each(self, step: dict) -> Any:
        fields = (step["fields"],) if step.get("fields") is not None else ()
        return self.input(step).each(*fields, self.op(ops.Fn, step), step.get("out") or [])

    def filter(self, step: dict) -> Any:
        fields = (step["fields"],) if step.get("fields") is not None else ()
        return self.input(step).filter(*fields, ops.filter_of(self.script, step["id"], step["fn"]))

    def map(self, step: dict) -> Any:
        out = (step["out"],) if step.get("out") is not None else ()
        return self.input(step).map(self.op(ops.MapFn, step), *out)

    def flatMap(self, step: dict) -> Any:
        out = (step["out"],) if step.get("out") is not None else ()
        return self.input(step).flatMap(self.op(ops.FlatMapFn, step), *out)

    def peek(self, step: dict) -> Any:
        self.peeks.append(step["id"])
        return self.input(step).peek(ops.Peek(self.script, step["id"], {"name": "peek"}))

    def project(self, step: dict) -> Any:
        return self.input(step).project(step["fields"])

    def name(self, step: dict) -> Any:
        return self.input(step).name(step["name"])

    def toStream(self, step: dict) -> Any:
        return self.input(step).toStream()

    def groupBy(self, step: dict) -> Any:
        return self.input(step).groupBy(step["fields"])

    # ------------------------------------------------------------------ aggregation
    def aggregate(self, step: dict) -> Any:
        return self.input(step).aggregate(step.get("fields"), ops.aggregator(step["agg"]), step["out"])

    def partitionAggregate(self, step: dict) -> Any:
        source, made = self.input(step), ops.aggregator(step["agg"])
        if isinstance(made, Aggregator) or not hasattr(source, "getGroupFields"):
            return source.partitionAggregate(step.get("fields"), made, step["out"])
        return source.chainedAgg().partitionAggregate(step.get("fields"), made, step["out"]).chainEnd()

    def chainedAgg(self, step: dict) -> Any:
        chain = self.input(step).chainedAgg()
        for part in step["aggs"]:
            call = chain.partitionAggregate if part["kind"] == "partitionAggregate" else chain.aggregate
            chain = call(part.get("fields"), ops.aggregator(part["agg"]), part["out"])
        return chain.chainEnd()

    def minBy(self, step: dict) -> Any:
        return self.input(step).minBy(step["field"], *self.reverse(step))

    def maxBy(self, step: dict) -> Any:
        return self.input(step).maxBy(step["field"], *self.reverse(step))

    def reverse(self, step: dict) -> tuple:
        return (ops.ByValue(step["reverse"]),) if step.get("reverse") is not None else ()

    def min(self, step: dict) -> Any:
        return self.input(step).min(ops.ByField(step["by"], step.get("reverse") is True))

    def max(self, step: dict) -> Any:
        return self.input(step).max(ops.ByField(step["by"], step.get("reverse") is True))

    def firstN(self, step: dict) -> Any:
        reverse = (step["reverse"],) if step.get("reverse") is not None else ()
        return self.input(step).applyAssembly(FirstN(step.get("n", 1), step.get("sort"), *reverse))

    # ------------------------------------------------------------------ windows
    def tumblingWindow(self, step: dict) -> Any:
        return self._window(step, TumblingCountWindow.of(step["count"]))

    def slidingWindow(self, step: dict) -> Any:
        return self._window(step, SlidingCountWindow.of(step["count"], step["slide"]))

    def _window(self, step: dict, config: Any) -> Any:
        store = () if step.get("store") is False else (self._store(step),)
        call = step.get("fields"), ops.aggregator(step["agg"]), step["out"]
        return self.input(step).window(config, *store, *call)

    def _store(self, step: dict) -> Any:
        if not step.get("durable"):
            return InMemoryWindowsStoreFactory()
        return SqlWindowsStoreFactory(f"sqlite:///{self.folder}/windows.db", f"window_{step['id']}")

    # ------------------------------------------------------------------ states
    def persistentAggregate(self, step: dict) -> Any:
        made = ops.aggregator(step["agg"])
        spec = self.state(step)
        return self.input(step).persistentAggregate(spec, step.get("fields"), made, step["out"])

    def partitionPersist(self, step: dict) -> Any:
        spec, out = self.state(step), step.get("out") or []
        updater = states.Updater(self.script, step["state"]["name"], step["updater"]["name"], len(out))
        return self.input(step).partitionPersist(spec, step.get("fields"), updater, out)

    def newValuesStream(self, step: dict) -> Any:
        return self.input(step).newValuesStream()

    def stateQuery(self, step: dict) -> Any:
        fields = (step["fields"],) if step.get("fields") is not None else ()
        query = states.query(step["query"]["name"])
        return self.input(step).stateQuery(self.by[step["state"]], *fields, query, step["out"])

    # ------------------------------------------------------------------ several streams
    def merge(self, step: dict) -> Any:
        out = (step["out"],) if step.get("out") is not None else ()
        return self.topology.merge(*out, self.inputs(step))

    def join(self, step: dict) -> Any:
        types = step.get("types") or "INNER"
        kinds = [JoinType[t] for t in types] if isinstance(types, list) else JoinType[types]
        mode = JoinOutFieldsMode[step.get("mode", "COMPACT")]
        return self.topology.join(self.inputs(step), step["joinFields"], step["out"], kinds, mode)

    def multiReduce(self, step: dict) -> Any:
        streams = self.inputs(step)
        grouped = hasattr(streams[0], "getGroupFields")
        reducer = self.op(ops.GMulti if grouped else ops.Multi, step, "reducer")
        fields = (step["inFields"],) if step.get("inFields") is not None else ()
        return self.topology.multiReduce(*fields, streams, reducer, step["out"])

    # ------------------------------------------------------------------ partitions
    def shuffle(self, step: dict) -> Any:
        return self.input(step).shuffle()

    def localOrShuffle(self, step: dict) -> Any:
        return self.input(step).localOrShuffle()

    def partitionBy(self, step: dict) -> Any:
        return self.input(step).partitionBy(step["fields"])

    def broadcast(self, step: dict) -> Any:
        return self.input(step).broadcast()

    def batchGlobal(self, step: dict) -> Any:
        return self.input(step).batchGlobal()

    def identityPartition(self, step: dict) -> Any:
        return self.input(step).identityPartition()

    def parallelismHint(self, step: dict) -> Any:
        return self.input(step).parallelismHint(step.get("n", 1))

    # ------------------------------------------------------------------ outputs
    def sink(self, step: dict) -> Any:
        source, name = self.input(step), step["name"]
        stream = source.toStream() if hasattr(source, "getGroupFields") else source
        fields = stream.getOutputFields()
        self.sinks[name] = list(fields)
        collect(stream, name)
        if any(fail["where"] == "batch" for fail in self.script.fails):
            stream.partitionAggregate(fields, ops.FailAtEnd(self.script, name), [])
        return source


setattr(Interpreter, "global", lambda self, step: self.input(step).global_())


def run(case: dict[str, Any], cluster: Any) -> dict[str, Any]:
    """What the cluster does with the case, in the oracle's format; after an error with what it did before."""
    with tempfile.TemporaryDirectory(prefix="storm-case-") as folder:
        return _run(Interpreter(case, folder), cluster)


def _run(made: Interpreter, cluster: Any) -> dict[str, Any]:
    case = made.case
    nothing: dict[str, Any] = {"outputs": {}, "sinkFields": {}, "states": {}, "calls": {}, "drpc": []}
    try:
        topology = made.build()
    except TridentError as error:
        return {"name": case["name"], **nothing, "error": _error(error, "build")}
    conf = Config()
    conf["topology.trident.batch.emit.interval.millis"] = 0
    running = cluster.submitTopology(f"{case['name']}-{next(_runs)}", conf, topology, **_options(cluster, case))
    error = None
    try:
        if not running.awaitTermination(TIMEOUT):
            raise TimeoutError(f"{case['name']} still runs after {TIMEOUT} s at txid {running.txid}")
        made.requests.ask(None)
    except TridentError as failed:
        error = _error(failed, "run")
    finally:
        running.stop()
    return {"name": case["name"], "error": error, **_result(made, running)}


def _result(made: Interpreter, running: Any) -> dict[str, Any]:
    fired, peeks = made.script.book({}).all()
    rows = {name: _outputs(running.collected_by_partition(name)) for name in made.sinks}
    return {
        "outputs": {name: found for name, (found, _) in rows.items()},
        "sinkFields": made.sinks,
        "sinkPartitions": {name: partitions for name, (_, partitions) in rows.items()},
        "states": {name: state.result() for name, state in made.states.items()},
        "calls": {log: calls for state in made.states.values() for log, calls in state.logs().items()},
        "attempts": {str(txid): attempt for txid, attempt in running.attempts.items()},
        "failsFired": fired,
        "drpc": made.requests.answers(),
        "peeks": {step: [[*seen] for seen in peeks.get(step, [])] for step in made.peeks},
    }


def on_spark(cluster: Any) -> bool:
    return type(cluster).__name__ == "SparkCluster"


def _options(cluster: Any, case: dict[str, Any]) -> dict[str, Any]:
    """With requests a spout waits for the others before a batch, which `availableNow` would take for its end."""
    return {"availableNow": True} if on_spark(cluster) and not case.get("drpc") else {}


def _outputs(batches: dict[int, dict[int, list[tuple]]]) -> tuple[list[list], list[int]]:
    """The rows ``[txid, values]``, and the partition of each."""
    found = [(txid, p, row) for txid, parts in sorted(batches.items()) for p, rows in parts.items() for row in rows]
    return [[txid, list(row)] for txid, _, row in found], [partition for _, partition, _ in found]


def _error(error: BaseException, phase: str) -> dict[str, Any]:
    """The user's or our own exception at its root, as Storm's worker reports it, and the batch it came in."""
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
    txid = error.txid if isinstance(error, TopologyError) else None
    operation = error.operation if isinstance(error, TopologyError) else None
    said = {"class": type(root).__name__, "message": str(root), "phase": phase}
    return {**said, "txid": txid, "operation": operation, "text": str(error)}
