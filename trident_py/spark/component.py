"""One component on Spark: its query, its foreachBatch calls, and the end of the query."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from ..engine.attempts import Execute
from ..engine.component import CHECK_WAIT, ComponentRun
from ..engine.phases import IN_DRIVER, JOB, BatchPhases, Seen, phase, profile
from ..engine.program import AttemptOutcome, BatchInfo, Program, Row, descriptor_rows, failure_of
from ..engine.program import outcome as outcome_of
from ..errors import TopologyError, TridentError, ZombieError
from ..model.context import RunContext, with_context
from ..model.retry import LONGEST, Stopped
from ..report.progress import RunningTopology
from ..rpc import service
from ..rpc.service import HomeService, Proxy
from ..spouts.coordination import Descriptor
from . import failures
from .checkpoint import Checkpoint
from .driver_execution import DriverExecution, StoppableCoordination, bounds_of
from .internals import Interrupted, source_offsets
from .jobs import check_stages, has_sources, job_of, python_spouts, source_of, with_streamed_spouts
from .pickle_by_value import import_paths
from .profiler import profiler_of
from .program_pickle import pickle_program
from .session import query_settings, workers_seed
from .stage import BATCH, RETRY, RUNS, load_program
from .txids import MicroBatch, Txids
from .worker_logs import driver_levels


class ActiveRuns:
    """The active runs, as JSON with a number that rises with each change. Thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: set[str] = set()
        self._number = 0

    def begin(self, run: str) -> None:
        """Called before the first job of the run."""
        with self._lock:
            self._runs.add(run)
            self._number += 1

    def end(self, run: str) -> None:
        """Called when the run starts no job any more."""
        with self._lock:
            self._runs.discard(run)
            self._number += 1

    def to_json(self) -> str:
        with self._lock:
            return json.dumps([self._number, sorted(self._runs)])


active_runs = ActiveRuns()


LOST_ATTEMPTS = 4
OLDER_WAIT = 15.0
OLDER_PAUSE = 0.5
DESCRIPTION = "spark.job.description"  # what Spark's UI shows for jobs and stages
STOP_GRACE = "topology.stop.grace.secs"


class SparkComponent:
    """Runs one component of a submission. Pickles the program; raises DefinitionError if that is not possible. `run`
    blocks until the component ends; `wake` makes it notice a stop."""

    def __init__(
        self,
        spark: SparkSession,
        service: HomeService,
        program: Program,
        running: RunningTopology,
        run: str,
        checkpoint: Checkpoint,
        available_now: bool,
    ) -> None:
        self.spark = spark
        self.service = service
        self.running = running
        self.run_id = run
        self.key = f"{run}/{program.component}"
        self.title = f"{program.conf['topology.name']}/{program.component}"
        self.program = program
        self.checkpoint = checkpoint
        self.available_now = available_now
        self._python = python_spouts(program)
        self._streamed = has_sources(program)
        sent = pickle_program(with_streamed_spouts(self._for_workers(program)), spark)
        self.profiler = profiler_of(self.title, program.conf)
        more = import_paths(spark), self.title, driver_levels(), profile(program.conf)
        self.shipped = load_program(spark, self.key, sent, *more)
        store = checkpoint.batches.store
        slots = min(spark.sparkContext.defaultParallelism, max(map(program.partitions, range(program.level_count))))
        self.inline = DriverExecution(sent, store, bounds_of(spark, program), slots, running.stopping, self._grace)
        self.error: BaseException | None = None
        self.query: Any = None
        self._started = threading.Event()
        self._finished = _Waking()
        self._over = threading.Event()
        self._busy = threading.Lock()
        self._lost: tuple[int, int] = (0, 0)
        self._older: tuple[int, float] = (0, 0.0)  # until when to wait for an older driver, before this txid

    @property
    def _grace(self) -> float:
        """Seconds that a stop gives the running batch."""
        given = self.program.conf.get(STOP_GRACE)
        return 10.0 if given is None else float(min(given, LONGEST))

    def _for_workers(self, program: Program) -> Program:
        """Return the program whose tasks reach the metadata store here. Only transactional partitioned spouts call
        it."""
        called = Proxy(RunContext.of(program.conf).home, f"{self.key}/metadata")
        return replace(program, conf=with_context(program.conf, metadata=called))

    def run(self) -> None:
        """Run until the spouts are exhausted or the run is stopped. Raises TopologyError if an error ends it."""
        self.service.register(f"{self.key}/metadata", self.checkpoint.batches.store)
        spouts = [self.program.spouts[i] for i in self._python]
        coordinate = partial(StoppableCoordination, self.inline)
        details = self.checkpoint.batches, self.running, self.run_id, coordinate
        try:
            self.batches = ComponentRun(self.program, spouts, *details)
            self.batches.ended = self.inline.ended
            with self.batches:
                try:
                    self._run()
                finally:
                    self._end_calls()
        finally:
            self.inline.close()
            service.forget(self.key)

    def phases_of(self, seen: Sequence[Seen]) -> list[BatchPhases]:
        """Return where the time of these batches went. Empty without ``topology.profile``."""
        return self.profiler.batches(self.spark, seen)

    def wake(self) -> None:
        """Called when the run is being stopped."""
        self._finished.wake.set()

    def _run(self) -> None:
        self.batches.open()  # before Spark writes anything
        self.txids = Txids(self.batches, self.available_now, bool(self._python), self._finished)
        watcher = threading.Thread(target=self._watch, name=f"trident-stop-{self.program.component}", daemon=True)
        watcher.start()
        ended_by = self._one_query()
        while self._may_go_on(ended_by):
            ended_by = self._one_query()
        self._end_calls()
        watcher.join()
        self._raise(ended_by)

    def _end_calls(self) -> None:
        """End a call that goes on without its query, as when Java was killed."""
        self.inline.ended.set()
        self._over.set()
        self._finished.wake.set()
        if self._busy.acquire(timeout=self._grace):
            self._busy.release()

    def _one_query(self) -> BaseException | None:
        """Run a query to its end and return the error that ended it, if any."""
        try:
            self.query = self._start()
            self._started.set()
            self.query.awaitTermination()
        except BaseException as error:
            return error
        return None

    def _may_go_on(self, ended_by: BaseException | None) -> bool:
        """Return whether another query may follow: one with sources of Spark found that an older driver writes its
        checkpoint too, which ends when it notices this one. Waits a moment for that."""
        if ended_by is None or self.error is not None or self._finished.wake.is_set():
            return False
        if not failures.is_second_driver(failures.chain_of(ended_by)):
            return False
        try:
            self.checkpoint.batches.check()
        except ZombieError as error:
            self.error = error
            return False
        txid = self.batches.txid + 1
        if self._older[0] != txid:
            self._older = txid, time.monotonic() + OLDER_WAIT
        return time.monotonic() < self._older[1] and not self.running.stopping.wait(OLDER_PAUSE)

    def _start(self) -> Any:
        more = self.profiler.settings
        with query_settings(self.spark, self.checkpoint.settings | more):
            with workers_seed(self.spark):
                source = source_of(self.spark, self.program, self.shipped.paths)
            writer = source.writeStream.foreachBatch(self._batch)
            writer = writer.option("checkpointLocation", self.checkpoint.location).queryName(self._query_name())
            if self.available_now and not self._python:
                writer = writer.trigger(availableNow=True)
            return writer.start()

    def _query_name(self) -> str:
        """Return topology and component, with the run if a query of that name is active, since Spark takes a name
        once."""
        active = {query.name for query in self.spark.streams.active}
        return self.title if self.title not in active else f"{self.title} {self.run_id[:8]}"

    def _watch(self) -> None:
        """Stop the query when the spouts are exhausted or the run is stopped: after the current batch, or in its
        middle if it takes longer than the grace. A query that is just starting is stopped once it has begun."""
        while not self._finished.wake.wait(CHECK_WAIT):
            self._notice_newer()
            self._notice_stop()
        while not self._over.is_set():
            if self._started.is_set():
                self._stop_query()
            self._over.wait(0.1)

    def _notice_newer(self) -> None:
        """End this run if another driver has taken the log. A component waits for Spark's sources without asking."""
        try:
            self.checkpoint.batches.check()
        except ZombieError as error:
            self.error = self.error or error
            self._finished.wake.set()
        except TridentError:
            pass  # its store does not answer: the next batch will tell

    def _notice_stop(self) -> None:
        """End a call that waits while the run is paused, and whose query was stopped from outside."""
        with suppress(Exception):  # Java may be gone, which the call notices itself
            if self.running.inactive.is_set() and self._busy.locked() and not self.query.isActive:
                self.inline.ended.set()

    def _stop_query(self) -> None:
        if self._busy.acquire(timeout=self._grace):
            self._busy.release()
        try:
            self.query.stop()
        except Exception as error:
            self.error = self.error or error

    def _raise(self, ended_by: BaseException | None) -> None:
        error = self.error
        if isinstance(error, TopologyError):
            raise error
        if error is not None:
            gone = failures.find_gone(self.spark, error)
            place, raised = ("", error) if gone is None else ("Spark", gone)
            raise self.running.explain_end(self.program.component, raised, place) from raised
        if self.running.stopping.is_set():
            return
        if ended_by is None and not (self.available_now and not self._python) and not self._finished.is_set():
            ended_by = TridentError("the query was stopped from outside this topology")
        if ended_by is not None:
            raised = failures.translate(failures.chain_of(ended_by), self.checkpoint.location)
            raise self.running.explain_end(self.program.component, raised, "Spark") from raised

    def _batch(self, frame: DataFrame, batch_id: int) -> None:
        """Run as the foreachBatch function. Returns only if its batches are committed; else raises Interrupted."""
        self._started.wait()
        with self._busy:
            try:
                with self.profiler.batch(self.query, batch_id):
                    self._run_micro_batch(frame, batch_id)
            except Stopped:
                raise Interrupted from None
            except BaseException as error:
                if self.error is None and not self.running.stopping.is_set():
                    self.error = error
                raise Interrupted from None

    def _run_micro_batch(self, frame: DataFrame, batch_id: int) -> None:
        execute = self._executor(frame)
        if not self._streamed:
            self.txids.run_turn(MicroBatch(str(self.query.id), batch_id), execute)
            return
        many = len(self.program.spouts) - len(self._python)
        begins, ends = (source_offsets(self.query, number, many) for number in (batch_id - 1, batch_id))
        micro_batch = MicroBatch(str(self.query.id), batch_id, begins, ends)
        self.txids.run_rows(micro_batch, execute)

    def _executor(self, frame: DataFrame) -> Execute:
        """Return a function that runs attempts of one batch, here or as a job."""

        def execute(batch: BatchInfo, descriptors: list[Descriptor]) -> AttemptOutcome:
            rows = list(descriptor_rows(map(self._renumber, descriptors)))
            began = time.monotonic()
            self.profiler.begin(batch.txid)
            if self.inline.takes(batch, self.batches.coordination.tuples(self.batches.loop.metadata)):
                with phase(IN_DRIVER):
                    outcome = self.inline.run(batch, rows)
            else:
                outcome = self._job(frame, batch, rows)
            if not outcome.failures:
                self.inline.saw(batch, outcome, time.monotonic() - began)
            return outcome

        return execute

    def _renumber(self, descriptor: Descriptor) -> Descriptor:
        """Renumber a descriptor's spout: the coordination counts only Python spouts, the program all spouts."""
        return descriptor._replace(spout=self._python[descriptor.spout])

    def _job(self, frame: DataFrame, batch: BatchInfo, descriptors: list[Row]) -> AttemptOutcome:
        """Run an attempt on Spark's executors."""
        session = frame.sparkSession
        try:
            with phase(JOB):
                self._announce(session.sparkContext, batch)
                with workers_seed(session):
                    job = job_of(session, self.program, self.shipped, descriptors, frame if self._streamed else None)
                rows = job.collect()
                check_stages(session, self._description(batch))
            self.profiler.ran(batch.txid, job)
            with phase("receipts"):
                return self._outcome(batch, rows)
        except Exception as error:
            return self._engine_failed(error, batch)

    def _announce(self, context: SparkContext, batch: BatchInfo) -> None:
        """Tell the job's tasks which batch it is."""
        context.setLocalProperty(BATCH, batch.to_json())
        context.setLocalProperty(RUNS, active_runs.to_json())
        context.setLocalProperty(DESCRIPTION, self._description(batch))

    def _description(self, batch: BatchInfo) -> str:
        return f"{self.title}: txid {batch.txid}, attempt {batch.attempt}"

    def _outcome(self, batch: BatchInfo, rows: list[Any]) -> AttemptOutcome:
        for row in rows:
            if row.tag == RETRY:
                retry = bytes(row.block).decode()
                self.running.event(self.program.component, "task-retry", batch.txid, batch.attempt, retry)
        return outcome_of((row.tag, row.block) for row in rows)

    def _engine_failed(self, error: Exception, batch: BatchInfo) -> AttemptOutcome:
        """Return the outcome of a job that failed in Spark. A lost process replays the batch, a few times in a row; any
        other error ends the run. Raises Stopped if a stop cancelled the job."""
        texts = failures.chain_of(error)
        if failures.is_cancelled(texts) and self.running.stopping.wait(2):
            raise Stopped
        if failures.is_lost_task(texts):
            lost = failures.worker_loss_failure(texts, str(self.spark.sparkContext.pythonExec))
            if (times := self._times_lost(batch.txid)) < LOST_ATTEMPTS:
                return AttemptOutcome([failure_of("task", None, lost)], [])
            fatal = TridentError(f"{lost}; it happened {times} times in a row")
        else:
            gone = failures.find_gone(self.spark, error)
            fatal = failures.translate(texts, self.checkpoint.location) if gone is None else gone
        return AttemptOutcome([failure_of("Spark", None, fatal)], [])

    def _times_lost(self, txid: int) -> int:
        """Count the lost processes in a row of one batch."""
        self._lost = (txid, self._lost[1] + 1 if self._lost[0] == txid else 1)
        return self._lost[1]


class _Waking(threading.Event):
    """The event that the spouts have ended. Also wakes who waits for the end of the run, whatever ends it."""

    def __init__(self) -> None:
        super().__init__()
        self.wake = threading.Event()

    def set(self) -> None:
        super().set()
        self.wake.set()
