"""Executes batches in the driver process, within their foreachBatch call: no Spark job, no Spark task."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any, Concatenate, ParamSpec, TypeVar

from pyspark.sql import SparkSession

from ..checkpoints.metadata_store import MetadataStore
from ..engine import phases
from ..engine.execution_mode import (
    MAX_BYTES,
    Durations,
    NeedsExecutors,
    max_seconds,
    max_tuples,
    needs_driver,
    needs_executors,
)
from ..engine.lowering import Exchange
from ..engine.phases import REPORTED, TaskPhases, phase, profile
from ..engine.poison import is_on
from ..engine.program import AttemptOutcome, BatchInfo, NodeReport, Program, Row
from ..engine.task import LevelTask, run_attempt
from ..engine.worker_cache import WorkerCache
from ..errors import DefinitionError
from ..model.chunks import Chunk, Column
from ..model.context import with_context
from ..model.pickling import loads
from ..model.plan import Node, SpoutNode
from ..model.retry import Stopped
from ..spouts.coordination import Coordination
from .stage import NO_NODE

P = ParamSpec("P")
T = TypeVar("T")

SETTING = "spark.trident.inline.max.tuples"
HERE = "in the driver"
NO_TASK = -1  # in the report of its phases
SAMPLE = 16  # values of a column
DOUBT = 0.97  # of the bytes of a tuple, after each batch that was a job
LOOK = 0.1  # seconds between two looks at whether the run is stopped


@dataclass(frozen=True)
class Bounds:
    """Which batches of a component may run here. ``always``: every one must, as a state is kept in its object.
    ``tuples``: the most of a batch; 0: none runs here; None: any number."""

    always: bool = False
    tuples: int | None = None


def bounds_of(spark: SparkSession, program: Program) -> Bounds:
    """Choose by the plan, then the topology's setting, then the session's."""
    if needs_driver(program.lowered.plan):
        return Bounds(always=True)
    if needs_executors(program.lowered.plan, program.conf):
        return Bounds(tuples=0)
    of_session = spark.conf.get(SETTING, "") or ""
    if of_session and not of_session.isdecimal():
        raise DefinitionError(f"{SETTING}={of_session!r} is no number of tuples. Name one, or 0: every batch is a job")
    return Bounds(tuples=max_tuples(program.conf, int(of_session) if of_session else None))


class DriverExecution:
    """The batches of one component that run in the driver process.

    ``sent``: the program as workers get it, so that its operations hold what they hold there. ``slots``: the tasks of
    Spark that run at a time. Workers and this process serve the same state partitions in turn: each keeps a state only
    if it saw the attempt before, as workers do among themselves.
    """

    def __init__(
        self,
        sent: bytes,
        store: MetadataStore,
        bounds: Bounds,
        slots: int,
        stopping: threading.Event,
        grace: float,
    ) -> None:
        self._sent = sent
        self._store = store
        self._bounds = bounds
        self._stopping = stopping
        self.ended = threading.Event()  # set by the component when its query has ended
        self._grace = grace
        self._program: Program | None = None
        self._memory = WorkerCache()
        self._meter = _Meter(bounds.tuples)
        self._thread: _Thread | None = None
        self._refused = 0
        self._emitted: int | None = None
        self._bytes_each = 0.0
        self._durations = Durations(slots)

    def takes(self, batch: BatchInfo, tuples: int | None) -> bool:
        """Return whether this attempt runs here. ``tuples``: how many it has at most. If the spouts cannot tell, the
        batch before tells; the attempt fails if it gets larger."""
        if self._bounds.always:
            return True
        if self._bounds.tuples == 0 or batch.txid == self._refused:
            return False
        conf = self._load().conf
        expected = tuples if tuples is not None or is_on(conf) else self._emitted
        if expected is None:
            return not is_on(conf)
        if self._bounds.tuples is not None and expected > self._bounds.tuples:
            return False
        if expected * self._bytes_each > MAX_BYTES:
            return False
        return self._durations.prefer_driver(expected, max_seconds(conf))

    def run(self, batch: BatchInfo, rows: Sequence[Row]) -> AttemptOutcome:
        """Run an attempt that begins with these descriptors. Raises Stopped if it still runs when the run is stopped
        and the grace is over.
        """
        outcome = self.call(lambda: self._attempt(batch, rows))
        return self._examine(batch, outcome) if outcome.failures else replace(outcome, where=HERE)

    def saw(self, batch: BatchInfo, outcome: AttemptOutcome, seconds: float) -> None:
        """Called after each attempt without a failure, wherever it ran; ``seconds``: how long it took. One that commits
        nothing does not count. What a tuple holds is known only of batches that ran here, so after others it is taken
        for a little less each time: one huge tuple does not make every later batch a job."""
        if batch.dry:
            return
        self._emitted = sum(report.value for report in outcome.reports if report.kind == "emitted")
        if outcome.where == HERE:
            self._bytes_each = self._meter.bytes / max(1, self._emitted)
        else:
            self._bytes_each *= DOUBT
        self._durations.saw(outcome.where == HERE, self._emitted, seconds)

    def close(self) -> None:
        """Close what the batches have opened, in their thread. Waits for it no longer than the grace."""
        if self._thread is not None:
            self._thread.end(self._memory.close, self._grace)

    def _load(self) -> Program:
        if self._program is None:
            program: Program = loads(self._sent)
            self._program = replace(program, conf=with_context(program.conf, metadata=self._store))
        return self._program

    def call(self, work: Callable[[], T]) -> T:
        """Return the result of ``work``, from the thread that runs attempts. Raises Stopped as `run`."""
        if self._thread is None:
            self._thread = _Thread()
        return self._thread.call(work, lambda: self._stopping.is_set() or self.ended.is_set(), self._grace)

    def _attempt(self, batch: BatchInfo, rows: Sequence[Row]) -> AttemptOutcome:
        self._meter.begin()
        program, tasks = self._load(), self._memory.tasks

        def task_for(level: int, partition: int) -> LevelTask:
            key = (program.component, level, partition)
            if key not in tasks and self._bounds.always:
                tasks[key] = LevelTask(self._memory, program, level, partition)
            elif key not in tasks:
                tasks[key] = _DriverTask(self._meter, self._memory, program, level, partition)
            return tasks[key]

        phases.start(profile(program.conf))
        with phase("task rest"):
            outcome = run_attempt(program, task_for, batch, rows)
        if (taken := phases.take()) is None:
            return outcome
        measured = NodeReport(NO_NODE, 0, REPORTED, TaskPhases(0, 0, NO_TASK, taken))
        return replace(outcome, reports=[*outcome.reports, measured])

    def _examine(self, batch: BatchInfo, outcome: AttemptOutcome) -> AttemptOutcome:
        """Return a failed attempt as it is, or as one that executors must run. They may have a module that is missing
        here."""
        if self._bounds.always:
            return outcome
        moved = [failure for failure in outcome.failures if isinstance(failure.error, NeedsExecutors)]
        for failure in outcome.failures:
            if isinstance(failure.error, ImportError):
                self._bounds = Bounds(tuples=0)
                error = NeedsExecutors(f"{failure.operation} failed: {failure.error}. No batch runs here any more")
                moved.append(failure._replace(error=error, replay=True))
        if not moved:
            return outcome
        self._refused = batch.txid
        self._bytes_each = max(self._bytes_each, self._meter.bytes / max(1, self._meter.tuples))
        return replace(outcome, failures=moved)


def bytes_of(column: Column) -> int:
    """Estimate the memory of a column. Of a list a few values are looked at, and not what they hold in turn."""
    if not isinstance(column, list):
        return int(column.nbytes)
    sample = column[:: len(column) // SAMPLE + 1]
    return sum(map(sys.getsizeof, sample)) * len(column) // max(1, len(sample))


class _Meter:
    """What an attempt has emitted and sent so far."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self.begin()

    def begin(self) -> None:
        self.tuples = 0
        self.bytes = 0

    def add_chunk(self, chunk: Chunk) -> None:
        self.tuples += chunk.length
        if self._most is not None and self.tuples > self._most:
            raise NeedsExecutors(f"it has more than {self._most} tuples")
        self._add(sum(map(bytes_of, chunk.columns.values())))

    def add_rows(self, rows: Sequence[Row]) -> None:
        self._add(sum(len(block) for _, _, block in rows))

    def _add(self, size: int) -> None:
        self.bytes += size
        if self.bytes > MAX_BYTES:
            raise NeedsExecutors(f"its tuples and exchanges hold more than {MAX_BYTES >> 20} MB")


class _DriverTask(LevelTask):
    """A task that fails when the batch is too large for this process."""

    def __init__(self, meter: _Meter, memory: WorkerCache, program: Program, level: int, partition: int) -> None:
        self.meter = meter
        super().__init__(memory, program, level, partition)

    def _forward(self, node: Node, chunk: Chunk) -> None:
        if isinstance(node, SpoutNode):
            self.meter.add_chunk(chunk)
        super()._forward(node, chunk)

    def _send(self, exchange: Exchange, chunk: Chunk) -> None:
        before = len(self.out)
        super()._send(exchange, chunk)
        self.meter.add_rows(self.out[before:])


def _call_inline(method: Callable[Concatenate[StoppableCoordination, P], T]) -> Callable[Concatenate[Any, P], T]:
    def call(self: StoppableCoordination, *args: P.args, **named: P.kwargs) -> T:
        return self.inline.call(partial(method, self, *args, **named))

    return call


class StoppableCoordination(Coordination):
    """Calls spouts in the thread that runs attempts, from their first call to their last, as LocalCluster does: what
    they open may belong to one thread. One that blocks there holds up a stop no longer than the grace. Spark waits for
    its own call of foreachBatch without end."""

    def __init__(self, inline: DriverExecution, *details: Any) -> None:
        self.inline = inline
        inline.call(partial(super().__init__, *details))

    restore = _call_inline(Coordination.restore)
    ready = _call_inline(Coordination.ready)
    is_pending = _call_inline(Coordination.is_pending)
    is_exhausted = _call_inline(Coordination.is_exhausted)
    initialize = _call_inline(Coordination.initialize)
    descriptors = _call_inline(Coordination.descriptors)
    tuples = _call_inline(Coordination.tuples)
    share = _call_inline(Coordination.share)
    collect_metrics = _call_inline(Coordination.collect_metrics)
    commit = _call_inline(Coordination.commit)
    success = _call_inline(Coordination.success)
    backlog = _call_inline(Coordination.backlog)

    def close(self, *call: Any) -> None:
        """Close every spout. One that blocks is left alone when the grace after the end of the run is over."""
        with suppress(Stopped):
            self.inline.call(partial(super().close, *call))


class _Thread:
    """One thread for all attempts of a component: connections and the user's objects may belong to theirs. A daemon,
    since an attempt may never end. ``stuck``: a call was left alone."""

    def __init__(self) -> None:
        self.stuck = False
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="trident-inline", daemon=True)
        self._thread.start()

    def call(self, work: Callable[[], T], is_over: Callable[[], bool], grace: float) -> T:
        """Return the result of ``work``. Raises Stopped if it is not there when the grace after the end of the run is
        over, if an earlier call has not ended, or if the thread has."""
        if threading.current_thread() is self._thread:
            return work()
        if not self._thread.is_alive():
            raise Stopped
        answer: Future[T] = Future()
        self._work.put((work, answer))
        until = None
        while not wait([answer], LOOK).done:
            if is_over():
                until = monotonic() + grace if until is None else until
                if self.stuck or monotonic() >= until:
                    self.stuck = True
                    raise Stopped
        return answer.result()

    def end(self, last: Callable[[], None], grace: float) -> None:
        """End the thread after its work and ``last``, for which it waits no longer than the grace."""
        answer: Future[None] = Future()
        self._work.put((last, answer))
        self._work.put(None)
        wait([answer], 0 if self.stuck else grace)

    def _serve(self) -> None:
        while (item := self._work.get()) is not None:
            work, answer = item
            try:
                answer.set_result(work())
            except BaseException as error:
                answer.set_exception(error)
