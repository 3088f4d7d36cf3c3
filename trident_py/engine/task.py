"""A task: one partition of one level of a program."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, wait
from functools import partial
from typing import Any, Protocol

from ..metrics import IMetricsContext
from ..model.chunks import Chunk
from ..model.context import with_context
from ..model.fault_points import steps_of
from ..model.partitioning import Partitioner, Route
from ..model.pickling import dumps
from ..model.plan import Node, PartitionNode, ProcessorNode, SpoutNode, describe
from ..model.resources import close_all
from ..operations.base import TridentOperationContext
from ..spouts.coordination import Descriptor
from .hooks import T
from .lowering import Exchange, TaskStage
from .parallel_commit import await_commit, can_commit_concurrently, start_commits
from .phases import measure_calls, profile
from .processors.base import NodeContext, Processor, no_collection
from .processors.spout import SpoutProcessor
from .program import (
    FAILURE,
    REPORT,
    AttemptOutcome,
    BatchInfo,
    NodeReport,
    Program,
    Row,
    encode_failure,
    failure_of,
    failure_rows,
    outcome,
)
from .stages import inputs_of

ERROR_VALUES = "topology.error.values"
DEEPEST = 32
"""So many processors call each other. Each takes up to seven frames of Python's stack, beside those of the user."""


class StateSource(Protocol):
    """Provides a task with the partitions of its states."""

    def state(self, program: Program, node: ProcessorNode, index: int, count: int, batch: BatchInfo) -> Any: ...

    def metrics_of(self, program: Program, node: ProcessorNode, index: int) -> IMetricsContext | None: ...

    def keep(self, kind: Callable[[], T]) -> T:
        """Return what the run keeps once in this process for the watches of its tasks."""


class LevelTask:
    """One partition of one level: the processors of its stages, wired to each other and to the exchanges.

    ``encodes``: chunks leave as bytes; otherwise as they are, for a level in the same thread.
    """

    def __init__(
        self, memory: StateSource, program: Program, level: int, partition: int, encodes: bool = True
    ) -> None:
        self.memory = memory
        self.encodes = encodes
        self.program = program
        self.level = level
        self.partition = partition
        self.batch = BatchInfo(0, 0)
        self.out: list[Row] = []
        self.failed = False
        self.sent: dict[int, int] = {}
        self.depth = 0
        self.waiting: deque[tuple[Node, Chunk]] = deque()
        self.begun: dict[TaskStage, tuple[Node, Future[None]]] = {}
        self.watch = program.watch(memory.keep)
        self.steps = steps_of(program.conf)
        self.last_level = level == self.program.level_count - 1
        self.decode = Chunk.decode
        self.profiled = profile(program.conf)
        if self.profiled:
            self._profile()
        self._wire()

    def _profile(self) -> None:
        """Make what happens with every chunk and report count for a phase of the batch."""
        self.decode = measure_calls(self.decode, "exchange read", "decode")
        self._send = measure_calls(self._send, "exchange write", "encode")  # type: ignore[method-assign]
        self._report = measure_calls(self._report, "reports", "pickled")  # type: ignore[method-assign]
        self._measure = measure_calls(self._measure, "reports", "metrics")  # type: ignore[method-assign]

    def _wire(self) -> None:
        lowered = self.program.lowered
        self.stages = [stage for stage in lowered.levels[self.level] if self.partition < stage.partitions]
        self.stage_of = {node_id: stage for stage in self.stages for node_id in stage.nodes}
        self.nodes: list[Node] = [lowered.plan.by_id[node_id] for node_id in self.stage_of]
        self.exchanges: dict[int, list[Exchange]] = {}
        self.partitioners: dict[int, Partitioner] = {}
        self.arriving: dict[int, Exchange] = {}
        for exchange in lowered.exchanges:
            self.exchanges.setdefault(exchange.source, []).append(exchange)
            if exchange.level == self.level:
                self.arriving[exchange.tag] = exchange
        self.contexts = {stage: TridentOperationContext(self.partition, stage.partitions) for stage in self.stages}
        self.processors: dict[int, Processor] = {}
        self.children = {node.id: self._children(node) for node in self.nodes}
        self.fed_by = {stage: self._stages_fed(stage) for stage in self.stages}
        free = [stage for stage in self.stages if not any(other.commits for other in self.fed_by[stage])]
        self.may_be_apart = [stage for stage in free if stage.commits and can_commit_concurrently(lowered.plan, stage)]
        self.spouts = [node.id for node in lowered.plan.nodes if isinstance(node, SpoutNode)]

    def _children(self, node: Node) -> list[tuple[int, int]]:
        """Return the nodes of this task that read the node, directly or through a repartition that stays in the
        task."""
        plan, children = self.program.lowered.plan, []
        for child, port in plan.children(node):
            readers = plan.children(child) if isinstance(child, PartitionNode) else [(child, port)]
            children += [(reader.id, number) for reader, number in readers if reader.id in self.stage_of]
        return children

    def _stages_fed(self, stage: TaskStage) -> set[TaskStage]:
        """Return the other stages of this task that send tuples to it."""
        plan = self.program.lowered.plan
        sources = [source.id for node in stage.nodes for _, source, _ in inputs_of(plan, plan.by_id[node])]
        return {self.stage_of[source] for source in sources if source in self.stage_of} - {stage}

    def execute(self, batch: BatchInfo, rows: Iterable[tuple[int, Any]]) -> Iterator[Row]:
        """Run the batch phase: all arriving rows flow through, and the stages that do not commit finish.

        After a failure, here or in an earlier level, the task processes nothing more of the batch: its aggregates,
        queries and commits would be incomplete.
        """
        self._start(batch)
        for tag, block in rows:
            self._arrive(tag, block)
            yield from self._drain()
        for stage in self.stages:
            if not (stage.commits or self.failed):
                self._finish(stage.nodes)
        if self.failed:
            self._measure()
        yield from self._drain()

    def commit(self) -> Iterator[Row]:
        """Run the commit phase: stages that update states, and the stages behind them, finish one after the other,
        unless a commit was begun before.

        A stage that fails stops the stages it feeds. The others go on, as in Storm: their input is complete.
        """
        if self.batch.dry:
            yield from self._end_dry()
            return
        broken: set[TaskStage] = set()
        counted = self.failed
        for stage in [] if self.failed else self.stages:
            if stage.commits and (not broken.isdisjoint(self.fed_by[stage]) or not self._finish_commit(stage)):
                broken.add(stage)
        if self.watch is not None and not self.failed:
            for difference in self.watch.end():
                self._report(difference.node, "unsteady", difference.text)
        if not counted:
            self._measure()
        yield from self._drain()

    def concurrent_stages(self) -> list[TaskStage]:
        """Return the stages whose commits may run beside others. A measured or watched run has one after the other."""
        return [] if self.failed or self.batch.dry or self.watch is not None or self.profiled else self.may_be_apart

    def begin_commit(self, stage: TaskStage, pool: Executor) -> None:
        """Finish what comes before the stage's state, and begin its commit in the pool; `commit` waits for it."""
        plan = self.program.lowered.plan
        *before, last = map(plan.by_id.__getitem__, stage.nodes)
        node, begun = last, Future[None]()
        try:
            for node in before:
                self._processor(node).finish()
        except BaseException as error:
            begun.set_exception(error)
        else:
            node, begun = last, pool.submit(self._processor(last).finish)
        self.begun[stage] = (node, begun)

    def _finish_commit(self, stage: TaskStage) -> bool:
        if stage not in self.begun:
            return self._finish(stage.nodes)
        node, begun = self.begun.pop(stage)
        own = begun.cancel()  # no thread of the pool has come to it
        return self._guard(node, self._processor(node).finish if own else partial(await_commit, begun))

    def _end_dry(self) -> Iterator[Row]:
        """End an attempt that commits nothing: what finishes before the first commit finishes."""
        unreached, counted = self.program.lowered.unreached, self.failed
        for stage in self.stages:
            if stage.commits and not self.failed:
                self._finish(node_id for node_id in stage.nodes if node_id not in unreached)
        if not counted:
            self._measure()
        yield from self._drain()

    def _measure(self) -> None:
        """Report what is new in the metrics of this task's operations, spouts and states, once for each attempt."""
        for node in self.nodes:
            processor = self.processors.get(node.id)
            contexts = list(processor.context.metrics) if processor is not None else []
            of_state = isinstance(node, ProcessorNode) and self.memory.metrics_of(self.program, node, self.partition)
            if of_state:
                contexts.append(of_state)
            for context in contexts:
                for metric in context.take(partial(self._warn_unmeasured, node)):
                    try:
                        self._report(node, "metric", metric)
                    except Exception as error:  # a gauge's value that cannot be pickled
                        self._warn_unmeasured(node, metric.name, error)

    def _warn_unmeasured(self, node: Node, name: str, error: Exception) -> None:
        self._report(node, "error", f"the metric {name!r} has no value: {error!r}")

    def _start(self, batch: BatchInfo) -> None:
        self.batch, self.failed = batch, False
        self.out, self.sent = [], {}
        if self.begun:  # an attempt ended by an error of our own
            wait([begun for _, begun in self.begun.values()])
            self.begun = {}
        for context in self.contexts.values():
            context.transaction = batch.transaction
        if self.watch is not None and batch.transaction is not None:
            self.watch.begin(batch.transaction)
        for node in self.nodes:
            if not self.failed:
                self._guard(node, partial(self._begin, node))

    def _begin(self, node: Node) -> None:
        self._processor(node).start(self.batch.id)

    def _processor(self, node: Node) -> Processor:
        processor = self.processors.get(node.id)
        if processor is None:
            processor = self.processors[node.id] = self._make(node)
            processor.emit = lambda chunk: self._forward(node, chunk)
            if self.profiled:
                processor.watch(describe(node))
        return processor

    def _make(self, node: Node) -> Processor:
        lowered, stage = self.program.lowered, self.stage_of[node.id]
        inputs = tuple(lowered.plan.by_id[parent].fields for parent in node.parents)
        context = NodeContext(
            self.program.conf,
            self.contexts[stage],
            inputs,
            node.fields,
            lowered.wanted[node.id],
            bool(self.children[node.id] or self.exchanges.get(node.id)),
            lambda: self.memory.state(self.program, node, self.partition, stage.partitions, self.batch),  # type: ignore[arg-type]
            lambda kind, value: self._report(node, kind, value),
            node.state.name if isinstance(node, ProcessorNode) and node.state is not None else "",
        )
        if isinstance(node, SpoutNode):
            info = self.program.spouts[self.spouts.index(node.id)]
            share = lambda: self.batch.share(info.id, self.partition)  # noqa: E731
            return SpoutProcessor(info, context, self.partition, self._conf, share)
        assert isinstance(node, ProcessorNode)
        context.letters = lambda spout: self.batch.letters(spout, self.partition)
        try:
            return node.spec.make(context) if self.watch is None else self.watch.make(node, context)
        except BaseException as error:  # another operation of the node may be open
            close_all([context.cleanup], error)
            raise

    def _conf(self) -> dict:
        return with_context(self.program.conf, run=self.batch.run, lineage=self.batch.lineage)

    def _arrive(self, tag: int, block: Any) -> None:
        if tag == FAILURE:
            if self.partition == 0:
                self._broadcast_failure(bytes(block))
            self.failed = True
            return
        if tag == REPORT or (self.level > 0 and tag not in self.arriving):
            passed = block if isinstance(block, Chunk) else bytes(block)
            self.out.append((self.partition if tag >= 0 else 0, tag, passed))
            return
        if self.failed:
            return
        if self.level == 0:
            self._emit_spout(tag, block)
            return
        chunk = block if isinstance(block, Chunk) else self.decode(block)
        with no_collection():
            for node_id, port in self.arriving[tag].receivers:
                if node_id in self.stage_of:
                    self._deliver(node_id, port, chunk)

    def _emit_spout(self, spout: int, block: Any) -> None:
        """Emit a descriptor's batch; a chunk is what the spout has emitted."""
        node = self.program.lowered.plan.by_id[self.spouts[spout]]
        if isinstance(block, Chunk):
            self._guard(node, lambda: self._forward(node, block))
            return
        self._guard(node, partial(self._emit_described, node, block))

    def _emit_described(self, node: Node, block: Any) -> None:
        """Emit what a descriptor says."""
        processor = self._processor(node)
        assert isinstance(processor, SpoutProcessor) and isinstance(node, SpoutNode)
        self.steps("emit", node.spout_id, self.partition, self.batch.txid)
        processor.emit_batch(Descriptor.decode(block).payload)

    def _deliver(self, node_id: int, port: int, chunk: Chunk) -> None:
        node = self.program.lowered.plan.by_id[node_id]
        if chunk.length and not self.failed:
            self._guard(node, lambda: self._processor(node).execute(port, chunk))

    def _forward(self, node: Node, chunk: Chunk) -> None:
        """Pass a chunk on. Processors call each other, but for a chain that is too deep: there the chunk waits until
        the first call of the chain comes back. The chunks of a node stay in their order."""
        if self.depth == DEEPEST:
            self.waiting.append((node, chunk))
            return
        self.depth += 1
        try:
            self._pass_on(node, chunk)
            while self.depth == 1 and self.waiting:
                self._pass_on(*self.waiting.popleft())
        finally:
            self.depth -= 1
            if self.depth == 0:
                self.waiting.clear()  # after a failure

    def _pass_on(self, node: Node, chunk: Chunk) -> None:
        for node_id, port in self.children[node.id]:
            self._deliver_within(node_id, port, chunk)
        for exchange in self.exchanges.get(node.id, ()):
            self._send(exchange, chunk)

    def _deliver_within(self, node_id: int, port: int, chunk: Chunk) -> None:
        """Call the next processor. A failure ends the whole chain of calls in the task, as in Storm; see `_guard`."""
        node = self.program.lowered.plan.by_id[node_id]
        if chunk.length:
            try:
                self._processor(node).execute(port, chunk)
            except _Failed:
                raise
            except BaseException as error:  # sys.exit() in a function is a failure too
                raise _Failed(node, error) from error

    def _send(self, exchange: Exchange, chunk: Chunk) -> None:
        before = self.sent.get(exchange.tag, 0)
        self.sent[exchange.tag] = before + chunk.length
        route = Route(self.batch.txid, self.partition, before, exchange.partitions)
        for target, part in self._partitioner(exchange).split(chunk, route):
            sent = part.only(exchange.fields)
            self.out.append((target, exchange.tag, sent.encode() if self.encodes else sent))

    def _partitioner(self, exchange: Exchange) -> Partitioner:
        """Return this task's own partitioner."""
        found = self.partitioners.get(exchange.tag)
        if found is None:
            context = self.contexts[self.stage_of[exchange.source]]
            stream = self.program.lowered.plan.by_id[exchange.source].name or ""
            found = exchange.partitioner.prepare(context, stream, exchange.partitions)
            self.partitioners[exchange.tag] = found
        return found

    def _report(self, node: Node, kind: str, value: Any) -> None:
        self.out.append((0, REPORT, dumps(NodeReport(node.id, self.partition, kind, value))))

    def _finish(self, nodes: Iterable[int]) -> bool:
        """Finish the nodes in order. Stops at the first that fails, and returns False."""
        found = map(self.program.lowered.plan.by_id.__getitem__, nodes)
        return all(self._guard(node, self._processor(node).finish) for node in found)

    def _guard(self, node: Node, action: Callable[[], Any]) -> bool:
        """Run user code. If it raises, records a failure of the node and returns False."""
        try:
            action()
            return True
        except _Failed as failed:
            self._fail(failed.node, failed.error)
        except BaseException as error:
            self._fail(node, error)
        return False

    def _fail(self, node: Node, error: BaseException) -> None:
        values = self.program.conf.get(ERROR_VALUES, True) is not False
        failure = failure_of(describe(node), self.partition, error, values)._replace(level=self.level)
        self._broadcast_failure(encode_failure(failure))
        self.failed = True

    def _broadcast_failure(self, block: bytes) -> None:
        """Send the failure towards the driver, through the partitions 0. The other tasks get an empty row, once: they
        need to know only that they must not commit."""
        others = 1 if self.last_level or self.failed else self.program.partitions(self.level + 1)
        self.out += failure_rows(block, others)

    def _drain(self) -> Iterator[Row]:
        rows, self.out = self.out, []
        yield from rows

    def close(self) -> None:
        close_all(processor.close for processor in self.processors.values())


def run_attempt(
    program: Program,
    task_for: Callable[[int, int], LevelTask],
    batch: BatchInfo,
    rows: Iterable[Row],
) -> AttemptOutcome:
    """Run one attempt in this process, level after level. In each level all tasks execute first, then all commit.

    ``task_for(level, partition)`` gives a task. ``rows``: what arrives at level 0.
    """
    with no_collection():
        for level in range(program.level_count):
            tasks = [task_for(level, partition) for partition in range(program.partitions(level))]
            rows = list(_run_level(tasks, batch, rows))
    return outcome((tag, block) for _, tag, block in rows)


def _run_level(tasks: list[LevelTask], batch: BatchInfo, rows: Iterable[Row]) -> Iterator[Row]:
    arriving: list[list[tuple[int, bytes]]] = [[] for _ in tasks]
    for target, tag, block in rows:
        arriving[target].append((tag, block))
    for task, arrived in zip(tasks, arriving, strict=True):
        yield from task.execute(batch, arrived)
    if not any(task.failed for task in tasks):
        start_commits(tasks, tasks[0].program.conf)
        for task in tasks:
            yield from task.commit()


class _Failed(Exception):
    """Carries the failing node through the calls between the processors of one task."""

    def __init__(self, node: Node, error: BaseException) -> None:
        super().__init__()
        self.node = node
        self.error = error
