"""The program of a lowered component. A task runs one partition of one level of one attempt of a batch.

Both clusters run the same tasks. Tasks exchange rows: the target partition in the next level, a tag, and a block of
bytes. Tags from 0 on are exchanges of the plan. Negative tags are control rows: failures, which keep every later task
from committing, and reports, which go to the driver. User exceptions never leave a task; they become failures.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import cloudpickle

from ..config import Config
from ..errors import FailedException, TopologyError, TridentError
from ..model.names import join_names
from ..model.partitioning import ROUTING_VERSION
from ..model.pickling import loads
from ..model.plan import DRPCNode, Node, PartitionNode, Plan, ProcessorNode, SpoutNode
from ..model.user_traceback import blame, describe_error, note, notes_of
from ..spouts import Descriptor, SpoutNodeInfo
from ..tuples import BatchId, RichSpoutBatchId, TransactionAttempt
from .hooks import Kept, MakeWatch, TaskWatch, watches_of
from .lowering import Lowered, Lowering
from .processors import Excluded, Share

_LONGEST = 120


def digest_routing(lowered: Lowered) -> dict[str, str]:
    """Return for each state a digest of how its tuples are routed, then a readable summary.

    Called once for each submission, on the driver. The digest covers everything before the state: spouts with their
    partitions, steps, groupings, the partition count of every stage, field types, and the version of the hash. It does
    not cover what users' functions do.
    """
    plan, counts = lowered.plan, lowered.partitions
    return {state.name: _digest(plan.before(node), counts) for node, state in plan.updates()}


def _digest(nodes: list[Node], counts: dict[int, int]) -> str:
    places = {node.id: place for place, node in enumerate(nodes)}
    steps = [
        [*_identify(node), counts.get(node.id), [places[parent] for parent in node.parents], node.fields.declarations()]
        for node in nodes
    ]
    text = json.dumps([ROUTING_VERSION, steps])
    behind = {node.id for node in nodes for parent in node.parents if isinstance(nodes[places[parent]], PartitionNode)}
    words = ", ".join(word for node in nodes if (word := _describe(node, counts, node.id in behind)))
    if len(words) > _LONGEST:
        words = f"{words[: _LONGEST // 2]}...{words[-_LONGEST // 2 :]}"
    return f"{hashlib.sha256(text.encode()).hexdigest()[:32]} {words}"


def _identify(node: Node) -> list[Any]:
    if isinstance(node, SpoutNode):
        return ["spout", node.spout_id, type(node.spout).__name__]
    if isinstance(node, PartitionNode):
        return ["partition", node.partitioner.name]
    assert isinstance(node, ProcessorNode)
    return ["step", type(node.spec).__name__]


def _describe(node: Node, counts: dict[int, int], sent: bool) -> str:
    """Return the word for a node in the summary; "" if its tuples stay in their partition."""
    if isinstance(node, PartitionNode):
        return str(node.partitioner.shown)
    if isinstance(node, SpoutNode):
        return f"{node.spout_id} x{counts[node.id]}"
    if isinstance(node, ProcessorNode) and node.committer:
        return f"state x{counts[node.id]}"
    return f"x{counts[node.id]}" if sent else ""


FAILURE = -1
REPORT = -2
Row = tuple[int, int, Any]


@dataclass(frozen=True)
class BatchInfo:
    """One attempt of one batch, sent to each of its tasks as JSON.

    ``previous``: txid and attempt of the attempt before this one. A task may keep its states only if it saw that.
    ``shared``: what spouts share with every task, by spout id. ``time``: the driver's clock at the attempt's begin, in
    milliseconds since 1970.

    ``dry``: the attempt commits nothing; what is behind a commit is not reached. ``kept``: the ranges of tuples that
    take part, by spout and partition; None: all but the ``excluded``. ``asked``: (spout, partition, index) of the
    tuples whose content is reported.
    """

    txid: int
    attempt: int
    lineage: str = ""
    generations: dict[str, int] = field(default_factory=dict)
    run: str = ""
    previous: tuple[int, int] = (0, 0)
    shared: dict[str, Any] = field(default_factory=dict)
    time: int = 0
    dry: bool = False
    kept: dict[str, dict[str, list[list[int]]]] | None = None
    excluded: tuple[Excluded, ...] = ()
    asked: tuple[tuple[str, int, int], ...] = ()

    def share(self, spout: str, partition: int) -> Share:
        """Return what of a spout's partition takes part."""
        kept = None if self.kept is None else self.kept.get(spout, {}).get(str(partition), [])
        place = (spout, partition)
        excluded = {row.index: row.digest for row in self.excluded if row.place == place}
        asked = frozenset(index for *at, index in self.asked if tuple(at) == place)
        return Share(None if kept is None else [(start, end) for start, end in kept], excluded, asked)

    def letters(self, spout: str, partition: int) -> list[list[Any]]:
        """Return the dead letters of a spout's partition."""
        return [row.letter(self.txid) for row in self.excluded if row.place == (spout, partition)]

    @property
    def transaction(self) -> TransactionAttempt | None:
        """The transaction that states and user code belong to; None if there is none."""
        return TransactionAttempt(self.txid, self.attempt)

    @property
    def id(self) -> BatchId:
        """The batch id that aggregators get."""
        return TransactionAttempt(self.txid, self.attempt)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> BatchInfo:
        values = json.loads(text)
        values["excluded"] = tuple(Excluded(**row) for row in values["excluded"])
        values["asked"] = tuple((spout, partition, index) for spout, partition, index in values["asked"])
        return cls(**{**values, "previous": tuple(values["previous"])})


@dataclass(frozen=True)
class RequestInfo(BatchInfo):
    """One DRPC request. ``txid`` is only a number that chooses a partition for `batchGlobal`: there is no transaction.
    """

    transaction = None

    @property
    def id(self) -> BatchId:
        return RichSpoutBatchId(self.txid)


class Failure(NamedTuple):
    """A failure in a task: the step, the partition and the user's exception. ``replay``: it is a FailedException.

    ``origin``: the user's line that raised it, or "". ``trace``: the traceback, without frames of trident_py.
    ``level``: the task's level; a failure in a later level may be a consequence of one in an earlier level.
    ``partition``: None outside of tasks.
    """

    operation: str
    partition: int | None
    error: BaseException
    replay: bool
    origin: str
    trace: str
    level: int = 0


class NodeReport(NamedTuple):
    """A report of a node to the driver about an attempt: node, partition, kind and value."""

    node: int
    partition: int
    kind: str
    value: Any


@dataclass(frozen=True)
class AttemptOutcome:
    """The result of one attempt, on the driver. ``where`` it ran, in words; "" if that goes without saying."""

    failures: list[Failure]
    reports: list[NodeReport]
    where: str = ""


@dataclass(frozen=True)
class Program:
    """One lowered component of a topology; picklable. ``component`` names it in checkpoints. ``routes``: for each state
    that it updates, how its tuples are routed (see `digest_routing`). ``watches``: what extras put into its tasks."""

    component: str
    lowered: Lowered
    conf: dict
    spouts: tuple[SpoutNodeInfo, ...]
    routes: dict[str, str] = field(default_factory=dict)
    watches: tuple[MakeWatch, ...] = ()

    @property
    def level_count(self) -> int:
        return len(self.lowered.levels)

    def partitions(self, level: int) -> int:
        """Return the number of tasks of a level: the most that any of its stages, or a row passing through, needs."""
        passing = [exchange.partitions for exchange in self.lowered.exchanges if exchange.level > level > 0]
        return max([stage.partitions for stage in self.lowered.levels[level]] + passing)

    def updates_beside(self, node: ProcessorNode) -> bool:
        """Return whether the node's level updates its state. If so, a task of the level sees every write to its
        partition."""
        level = next(level for level in self.lowered.levels if any(node.id in stage.nodes for stage in level))
        nodes = [self.lowered.plan.by_id[node_id] for stage in level for node_id in stage.nodes]
        return any(isinstance(n, ProcessorNode) and n.committer and n.state == node.state for n in nodes)

    def watch(self, kept: Kept) -> TaskWatch | None:
        """Return the watch of a task. A task has one: the first that there is."""
        return next((watch for make in self.watches if (watch := make(self.conf, kept)) is not None), None)

    def states(self) -> dict[str, Any]:
        """Return the factories of the states that this component updates, by state name."""
        return {state.name: state.factory for _, state in self.lowered.plan.updates()}


def _compile(component: Plan, lowering: Lowering, conf: dict, watches: tuple[MakeWatch, ...] = ()) -> Program:
    """Return the program of one connected component."""
    lowered = lowering.lower(component)
    spouts = tuple(
        SpoutNodeInfo(node.spout_id, node.spout, lowered.partitions[node.id], node.fields)
        for node in component.nodes
        if isinstance(node, SpoutNode)
    )
    return Program(
        join_names("+", sorted(info.id for info in spouts)), lowered, conf, spouts, digest_routing(lowered), watches
    )


def compile_plan(plan: Plan, conf: dict) -> list[Program]:
    """Return the programs of all components that have a spout of batches; each has its own sequence of txids.

    Raises DefinitionError if partition counts contradict each other, or if a setting needs an extra that is missing.
    """
    components, watches = [part for part in plan.components() if any(map(_has_batches, part.nodes))], watches_of(conf)
    lowering = Lowering(plan, conf.get(Config.TOPOLOGY_MAX_TASK_PARALLELISM))
    return [_compile(component, lowering, conf, watches) for component in components]


def compile_functions(plan: Plan, conf: dict) -> list[Program]:
    """Return the programs of the DRPC functions, each named by its function. They have no batches and no txids."""
    components = [part for part in plan.components() if any(isinstance(node, DRPCNode) for node in part.nodes)]
    lowering = Lowering(plan, conf.get(Config.TOPOLOGY_MAX_TASK_PARALLELISM))
    return [_compile(component, lowering, conf) for component in components]


def _has_batches(node: Node) -> bool:
    return isinstance(node, SpoutNode) and not isinstance(node, DRPCNode)


def encode_failure(failure: Failure) -> bytes:
    """Pickle a failure. An exception that cannot be pickled is replaced by its text."""
    try:
        block = cloudpickle.dumps(failure)
        loads(block)
        return block
    except Exception:
        kind = FailedException if failure.replay else TridentError
        substitute = kind(describe_error(failure.error))
        for line in notes_of(failure.error):
            substitute.add_note(line)
        return cloudpickle.dumps(failure._replace(error=substitute))


def failure_of(operation: str, partition: int | None, error: BaseException, values: bool = True) -> Failure:
    """Make a failure where the exception was caught: tracebacks do not travel, but the notes added here do.

    ``values``: the notes also show the arguments of the user's code.
    """
    origin = blame(error, values)
    note(error, origin)
    return Failure(operation, partition, error, isinstance(error, FailedException), origin.origin, origin.trace)


def topology_error(failure: Failure, txid: int | None, tries: str = "") -> TopologyError:
    """Return the error that ends a run: the user's exception, lines and values, and the step that failed. What is
    not known of txid and partition is left out."""
    places = {"txid": txid, "partition": failure.partition}
    known = [f"{name} {value}" for name, value in places.items() if value is not None]
    where = ", ".join([f"in {failure.operation}", *known]) + tries
    message = "\n  ".join([describe_error(failure.error), *notes_of(failure.error), where])
    return TopologyError(message, failure.operation, txid, failure.partition, failure.trace)


def outcome(rows: Iterable[tuple[int, Any]]) -> AttemptOutcome:
    """Decode the rows (tag, block) that left the last level, on the driver."""
    failures: dict[bytes, Failure] = {}
    reports: list[NodeReport] = []
    for tag, block in rows:
        if tag == FAILURE:
            failures.setdefault(bytes(block), loads(block))
        elif tag == REPORT:
            reports.append(loads(block))
    return AttemptOutcome(list(failures.values()), reports)


def failure_rows(block: bytes, partitions: int) -> list[Row]:
    """Return the rows that tell a level of a failure: partition 0 passes it on, the others need only know of it."""
    return [(0, FAILURE, block), *((target, FAILURE, b"") for target in range(1, partitions))]


def descriptor_rows(descriptors: Iterable[Descriptor]) -> Iterator[Row]:
    """Return the rows that start level 0: a descriptor for each spout partition. The tag is the spout's number."""
    for descriptor in descriptors:
        yield descriptor.partition, descriptor.spout, descriptor.encode()
