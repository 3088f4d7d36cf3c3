"""A driver process of the kit: builds the user's topology, runs it, reads what its states hold."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import cloudpickle

from ...engine.program import compile_plan
from ...errors import DefinitionError, TridentError
from ...local import LocalCluster
from ...model.context import with_context
from ...model.plan import DRPCNode, Plan, ProcessorNode, SpoutNode
from ...model.requirements import needs_of
from ...report.guarantees import guarantees
from ...report.guarantees.matrix import EXACTLY, IN_EFFECT
from ...state.roles import Shows
from ...topology import Topology
from ..memory_states import LRUMemoryMapState, MemoryMapState
from .feed import Feed
from .kill_point import KillPoint

NAME = "tested"
CHECKPOINTS = "checkpoints"
Build = Callable[[Any, str], Topology]
Readings = Mapping[str, Callable[[str], Any]]
"""By the name of a state, or another one: returns what there is, given the store."""
Contents = dict[str, Any]
"""State or reading -> what it holds."""


@dataclass(frozen=True)
class Run:
    """One start of a driver. ``wider``: with one partition more everywhere. ``other``, ``longer``:
    of an opaque spout (`FedOpaqueSpout`). ``read``: afterwards the states are read."""

    folder: str
    store: str
    feed: Feed
    tripwire: KillPoint
    number: int = 1
    cluster: str = "local"
    conf: tuple[tuple[str, Any], ...] = ()
    wider: bool = False
    other: int = 0
    longer: bool = False
    read: bool = True
    seconds: float = 120

    @property
    def outcome(self) -> Path:
        return Path(self.folder) / f"outcome-{self.number}"


@dataclass(frozen=True)
class Promise:
    """What `guarantees()` says of a state. ``promised``: its content after a disturbed run is that of an undisturbed
    one. ``in_memory``: while the driver process lives."""

    state: str
    guarantee: str
    reason: str
    partitions: int
    in_memory: bool
    readable: bool

    @property
    def promised(self) -> bool:
        return self.guarantee in (EXACTLY, IN_EFFECT)


@dataclass(frozen=True)
class Outcome:
    """How a run has ended. ``error``: "" if it came to its end."""

    error: str = ""
    kind: str = ""
    contents: Contents = field(default_factory=dict)
    promises: tuple[Promise, ...] = ()


def drive(run: Run, build: Build, readings: Readings) -> None:
    """Execute one run in the driver process, whose `Outcome` is a file afterwards; not if the process is killed."""
    try:
        outcome = _run_to_end(run, build, readings)
    except TridentError as error:
        cause = error.__cause__ or error
        outcome = Outcome(str(error), type(cause).__name__)
    except BaseException:
        outcome = Outcome(traceback.format_exc(), "broken")
    scratch = run.outcome.with_suffix(".tmp")
    scratch.write_bytes(cloudpickle.dumps(outcome))
    scratch.replace(run.outcome)


def _run_to_end(run: Run, build: Build, readings: Readings) -> Outcome:
    topology = build(run.feed.spouts(run.other, run.longer), run.store)
    if not isinstance(topology, Topology):
        raise DefinitionError(f"build must return a built topology (topology.build()), got {type(topology).__name__}")
    if run.wider:
        topology = Topology(_wider(topology.plan))
    with _cluster(run) as (cluster, processes):
        wire = replace(run.tripwire, processes=processes, labels=tuple(_labels(topology).items()))
        conf = with_context(dict(run.conf), watcher=wire)
        running = cluster.submitTopology(NAME, conf, topology)
        if not running.awaitTermination(run.seconds):
            raise TridentError(f"the run did not end in {run.seconds:g} s. Its spouts must be finite")
        contents = _contents(topology, run.store, readings) if run.read else {}
    return Outcome(contents=contents, promises=_promises(topology, dict(run.conf), readings))


@contextmanager
def _cluster(run: Run) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """The cluster, and the processes that die with this one."""
    checkpoints = str(Path(run.folder) / CHECKPOINTS)
    if run.cluster == "local":
        with LocalCluster(checkpoints) as local:
            yield local, ()
        return
    from ...spark.cluster import SparkCluster
    from ...spark.internals import java_process
    from ...spark.session import OwnSession

    own = OwnSession({"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"})
    try:
        with SparkCluster(own.spark, checkpoints) as spark:
            yield spark, (os.getpid(), java_process(own.spark).pid)
    finally:
        own.stop()


def _contents(topology: Topology, store: str, readings: Readings) -> Contents:
    """Return what the states and the user's own readings hold."""
    shown = {name: factory.stored() for name, factory in _factories(topology).items()
             if name not in readings and isinstance(factory, Shows)}  # fmt: skip
    return shown | {name: read(store) for name, read in readings.items()}


def _factories(topology: Topology) -> dict[str, Any]:
    labels = _labels(topology)
    return {labels[state.name]: state.factory for _, state in topology.plan.updates()}


def _labels(topology: Topology) -> dict[str, str]:
    """Return the name of each state in reports: a memory state's own name is another one in each process."""
    labels: dict[str, str] = {}
    for _, state in topology.plan.updates():
        drawn = isinstance(state.factory, LRUMemoryMapState.Factory | MemoryMapState.Factory)
        own = drawn and state.name == state.factory.stateName
        labels.setdefault(state.name, f"memory-{len(labels)}" if own else state.name)
    return labels


def _promises(topology: Topology, conf: dict, readings: Readings) -> tuple[Promise, ...]:
    partitions: dict[str, int] = {}
    labels = _labels(topology)
    for program in compile_plan(topology.plan, conf):
        for node, state in program.lowered.plan.updates():
            partitions[labels[state.name]] = program.lowered.partitions[node.id]
    made, factories = [], _factories(topology)
    for row in guarantees(topology.plan, conf):
        name = labels[row.state]
        factory = factories[name]
        readable = name in readings or isinstance(factory, Shows)
        made.append(Promise(name, row.guarantee, row.reason, partitions[name], needs_of(factory).home, readable))
    return tuple(made)


def _wider(plan: Plan) -> Plan:
    """Return every stage with one partition more: those with a hint, and those that update a state."""

    def wide(node: Any) -> Any:
        counts = isinstance(node, SpoutNode) or (isinstance(node, ProcessorNode) and node.committer)
        if isinstance(node, DRPCNode) or not (counts or node.hint is not None):
            return node
        return replace(node, hint=(node.hint or 1) + 1)

    return Plan(tuple(wide(node) for node in plan.nodes))
