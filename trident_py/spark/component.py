"""One component on Spark: its query, its foreachBatch calls, and the end of the query."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from .. import home
from ..context import RunContext, with_context
from ..errors import LineageError, TopologyError, TridentError, ZombieError
from ..home import HomeService, Proxy
from ..patience import Stopped
from ..phases import BatchPhases, Seen, phase, profiled
from ..run.batch_loop import BatchLoop
from ..run.program import AttemptOutcome, BatchInfo, Program, failure_of, topology_error
from ..run.program import outcome as outcome_of
from ..run.progress import RunningTopology
from ..run.standing import Standing
from ..spouts.coordination import Coordination, Descriptor
from . import failures
from .checkpoint import Checkpoint
from .following import Following, follow_seconds
from .inline import Inline, inline_limit
from .internals import Interrupted, first_source_offset, java_answers, logged_offsets
from .planner import BatchPlanner, Planned
from .profiling import HERE, JOB, PROGRESS, Profiler
from .runs import active_runs
from .session import query_settings
from .shipping import pickled
from .stage import BATCH, RETRY, RUNS, Shipped
from .streaming_plan import python_spouts, replay_plan, streaming_plan, with_streamed_spouts
from .travelling import import_paths
from .worker_logs import driver_levels

LOST_ATTEMPTS = 4
LOG_WAIT = 5.0
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
        source: str,
        program: Program,
        running: RunningTopology,
        run: str,
        checkpoint: Checkpoint,
        available_now: bool,
    ) -> None:
        self.spark = spark
        self.service = service
        self.source = source
        self.running = running
        self.run_id = run
        self.key = f"{run}/{program.component}"
        self.title = f"{program.conf['topology.name']}/{program.component}"
        checkpoint.require_kind()
        self.store = checkpoint.store
        self.program = replace(program, conf=with_context(program.conf, metadata=self.store))
        sent = pickled(with_streamed_spouts(self._for_workers(program)), spark)
        self.profiler = Profiler(self.title) if profiled(program.conf) else None
        self.shipped = Shipped(self.key, sent, import_paths(spark), self.title, driver_levels(), bool(self.profiler))
        self.inline = Inline(sent, self.store, inline_limit(spark, program), running.stopping, self._grace)
        self.checkpoint = checkpoint
        self.available_now = available_now
        self.error: BaseException | None = None
        self.query: Any = None
        self._begun = threading.Event()
        self._wake = threading.Event()
        self._over = threading.Event()
        self._busy = threading.Lock()
        self._done: int | None = None
        self._lost: tuple[int, int] = (0, 0)
        self._older: tuple[int, float] = (0, 0.0)  # until when to wait for an older driver, before this txid

    @property
    def _python(self) -> str:
        return str(self.spark.sparkContext.pythonExec)

    @property
    def _grace(self) -> float:
        """Seconds that a stop gives the running batch."""
        return float(self.program.conf.get(STOP_GRACE, 10))

    def _for_workers(self, program: Program) -> Program:
        """The program whose tasks reach the metadata store here. Only transactional partitioned spouts call it."""
        called = Proxy(RunContext.of(program.conf).home, f"{self.key}/metadata")
        return replace(program, conf=with_context(program.conf, metadata=called))

    # -- the life of the query ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Runs until the spouts are exhausted or the run is stopped. Raises TopologyError if an error ends it."""
        self.service.register(f"{self.key}/metadata", self.store)
        infos = [self.program.spouts[i] for i in python_spouts(self.program)]
        coordination = Coordination(infos, self.program.conf, self.store, self._reported)
        try:
            self._run(coordination, Coordination([], self.program.conf, self.store))
        finally:
            self._over.set()
            self._wake.set()
            self.inline.close()
            home.forget(self.key)
            coordination.close()
            self.checkpoint.close()

    def phases_of(self, seen: Sequence[Seen]) -> list[BatchPhases]:
        """Where the time of these batches went. Empty without ``topology.profile``."""
        return [] if self.profiler is None else self.profiler.batches(self.spark, seen)

    def wake(self) -> None:
        """Called when the run is being stopped."""
        self._wake.set()

    def _run(self, coordination: Coordination, nobody: Coordination) -> None:
        self.loop = BatchLoop(self.program, coordination, self.running, self.run_id)
        standing, at = self._opened()  # before Spark writes anything
        # counted as of the standing: an older driver may still commit until it notices this one
        self.base = at - (0 if standing.record is None else standing.committed - standing.record["base"])
        self.planner = BatchPlanner(self.program, coordination, self.base, at, self.running.stopping)
        self.planner.on_finished = self._wake.set
        self.planner.on_refused = self._refused
        self.planner.check = self.checkpoint.check
        self.coordination, self.nobody = coordination, nobody
        self.following = self._following()
        seen = self.planner if self.profiler is None else self.profiler.watched(self.planner)
        self.service.register(f"{self.key}/planner", seen)
        watcher = threading.Thread(target=self._watch, name=f"trident-stop-{self.program.component}", daemon=True)
        watcher.start()
        ended_by = self._one_query()
        while self._may_go_on(ended_by):
            ended_by = self._one_query()
        self._over.set()
        self._wake.set()
        watcher.join()
        self._raise(ended_by)

    def _opened(self) -> tuple[Standing, int]:
        """Takes the checkpoint and opens the states; returns what it says, and the last committed txid. A start that is
        refused changes nothing, unless an older driver goes on meanwhile: then the checkpoint must be taken from it to
        compare. After that the older one can only end the batch in its hands."""
        standing = self.checkpoint.standing(self.program)
        try:
            self.loop.examine(standing)
        except LineageError:
            if not self._has_moved(standing):
                raise
        self.checkpoint.take()
        while True:
            standing = self.checkpoint.standing(self.program)
            try:
                return standing, self.loop.open(standing).txid
            except LineageError:
                if not self._has_moved(standing):
                    raise

    def _has_moved(self, since: Standing) -> bool:
        """Whether another driver has recorded something in the checkpoint."""
        now = self.checkpoint.standing(self.program)
        known, read = ((each.record, each.committed, each.begun, each.decided) for each in (since, now))
        return read != known

    def _following(self) -> Following:
        """Made when this driver has the checkpoint: from now on an older one records no batch."""
        log, last = self.checkpoint.following, self.checkpoint.followed()
        how = follow_seconds(self.program.conf), not self.available_now
        return Following(log, self.loop, self.planner, self.inline, self.base, last, *how)

    def _one_query(self) -> BaseException | None:
        """Runs a query to its end and returns the error that ended it, if any. A query that could not start because its
        planner process died counts as ended."""
        try:
            self.planner.forget()
            self.query = self._start()
        except Exception as error:
            texts = failures.chain_of(error)
            if failures.passes(texts):
                return error
            raise
        if not self._begun.is_set():
            self._begun.set()
            self.running.event(self.program.component, "started", self.planner.last_txid, None)
        try:
            self.query.awaitTermination()
        except BaseException as error:
            return error
        return None

    def _may_go_on(self, ended_by: BaseException | None) -> bool:
        """Whether another query may follow: Spark gave up this one between two batches, for a reason that passes."""
        if ended_by is None or self.error is not None or self.planner.fatal is not None or self._wake.is_set():
            return False
        texts = failures.chain_of(ended_by)
        if not failures.passes(texts) or not self._is_between():
            return False
        return self._outlasts_the_older() if failures.is_second_driver(texts) else self._lost_the_planner(texts)

    def _outlasts_the_older(self) -> bool:
        """Whether the other driver is an older one, which ends when it notices this one: waits a moment for that."""
        try:
            self.checkpoint.check()
        except ZombieError as error:
            self.error = error
            return False
        txid = self.planner.last_txid + 1
        if self._older[0] != txid:
            self._older = txid, time.monotonic() + OLDER_WAIT
        return time.monotonic() < self._older[1] and not self.running.stopping.wait(OLDER_PAUSE)

    def _lost_the_planner(self, texts: list[str]) -> bool:
        """Whether it is not yet too often that Spark's planner process died or started too late: a few times in a row,
        as with lost tasks."""
        txid, lost = self.planner.last_txid + 1, failures.lost_planner(texts, self._python)
        if (times := self._times_lost(txid)) >= LOST_ATTEMPTS:
            self.error = TridentError(f"{lost}; it happened {times} times in a row")
            return False
        self.running.event(self.program.component, "replay", txid, 0, str(lost))
        return True

    def _times_lost(self, txid: int) -> int:
        """Counts the lost processes in a row of one batch."""
        self._lost = (txid, self._lost[1] + 1 if self._lost[0] == txid else 1)
        return self._lost[1]

    def _is_between(self) -> bool:
        """Whether Spark has recorded the last batch of this query as committed."""
        return self._done is None or self.checkpoint.is_committed(self._done)

    def _start(self) -> Any:
        more = {} if self.profiler is None else PROGRESS
        with query_settings(self.spark, self.checkpoint.settings | more):
            plan = streaming_plan(self.spark, self.program, self.source, self.shipped)
            writer = plan.writeStream.foreachBatch(self._batch)
            writer = writer.option("checkpointLocation", self.checkpoint.location).queryName(self._query_name())
            if self.available_now:
                writer = writer.trigger(availableNow=True)
            try:
                return writer.start()
            except Exception as error:
                texts = failures.chain_of(error)
                if failures.passes(texts):
                    raise
                raise failures.translated(texts, self.checkpoint.where) from error

    def _query_name(self) -> str:
        """Topology and component; with the run if a query of that name is active, since Spark takes a name once."""
        active = {query.name for query in self.spark.streams.active}
        return self.title if self.title not in active else f"{self.title} {self.run_id[:8]}"

    def _watch(self) -> None:
        """Stops the query when the spouts are exhausted or the run is stopped: after the current batch, or in its
        middle if it takes longer than the grace. A query that is just starting is stopped once it has begun."""
        self._wake.wait()
        while not self._over.is_set():
            if self._begun.is_set():
                self._stop_query()
            self._over.wait(0.1)

    def _stop_query(self) -> None:
        if self._busy.acquire(timeout=self._grace):
            self._busy.release()
            with suppress(TridentError):  # its store does not answer: then the next start may repeat the batch
                self._logged_by_spark()
        try:
            self.query.stop()
        except Exception as error:
            self.error = self.error or error

    def _logged_by_spark(self) -> None:
        """Waits until Spark has recorded the last batch as committed; a query stopped earlier would repeat it."""
        deadline = time.monotonic() + LOG_WAIT
        while self._done is not None and time.monotonic() < deadline:
            if self._over.is_set() or self.checkpoint.is_committed(self._done):
                return
            self._over.wait(0.005)

    def _raise(self, ended_by: BaseException | None) -> None:
        error = self.error or self.planner.fatal
        if isinstance(error, TopologyError):
            raise error
        if error is not None:
            self._raise_if_java_is_gone(error)
            taken = isinstance(error, ZombieError)
            operation = "spout" if error is self.planner.fatal and not taken else "start"
            raise topology_error(failure_of(operation, 0, error), None) from error
        if self.running.stopping.is_set():
            return
        if ended_by is None and not self.available_now and not self.planner.finished.is_set():
            ended_by = TridentError("the query was stopped from outside this topology")
        if ended_by is not None:
            raised = failures.translated(failures.chain_of(ended_by), self.checkpoint.where)
            raise topology_error(failure_of("Spark", 0, raised), None) from raised

    def _raise_if_java_is_gone(self, error: BaseException) -> None:
        """Whatever asked Java first says only that nobody answered."""
        if not isinstance(error, TridentError) and not java_answers(self.spark):
            gone = failures.java_is_gone()
            raise topology_error(failure_of("Spark", 0, gone), None) from gone

    def _refused(self, txid: int, error: BaseException) -> None:
        reason = f"spout failed before the batch began: {error}"
        self.running.event(self.program.component, "replay", txid, 0, reason)

    def _reported(self, spout: str, error: BaseException) -> None:
        self.running.event(self.program.component, "reported", None, None, f"spout {spout}: {error!r}")

    # -- one batch ----------------------------------------------------------------------------------------------

    def _batch(self, frame: DataFrame, batch_id: int) -> None:
        """The foreachBatch function. Returns only if the batch is committed; else raises Interrupted."""
        with self._busy:
            try:
                with self._profiling(frame, batch_id):
                    self._commit(frame, batch_id)
                self._done = batch_id
            except Stopped:
                raise Interrupted from None
            except BaseException as error:
                if self.error is None and not self.running.stopping.is_set():
                    self.error = error
                raise Interrupted from None

    def _profiling(self, frame: DataFrame, batch_id: int) -> AbstractContextManager[None]:
        return nullcontext() if self.profiler is None else self.profiler.batch(self.query, frame, batch_id)

    def _commit(self, frame: DataFrame, batch_id: int) -> None:
        """Runs the batch that Spark's offset log has, and those that follow it."""
        self._begun.wait()
        txid, execute = self.following.begin(batch_id), self._executor(frame)
        if self.profiler is not None:
            self.profiler.begun(txid, batch_id)
        with phase("checkpoint"):
            self.checkpoint.begin(batch_id, lambda: logged_offsets(self.spark, self.query, batch_id))
        if not self.following.is_first_over:
            with phase("checkpoint"):
                python = self._has_python_spouts(txid, batch_id)
            self.loop.coordination = self.coordination if python else self.nobody
            self.planner.begun(txid)
            self.following.run_first(execute)
            if not python:
                return
        self.loop.coordination = self.coordination
        self.following.run(execute)

    def _has_python_spouts(self, txid: int, batch_id: int) -> bool:
        """Whether Python spouts have a part in this batch. If so, the coordination remembers its metadata.

        This process did not plan a batch that began before the restart; its offsets are in Spark's log. A batch without
        Python spouts ends at the offset where it starts, and so does one whose description Spark has lost. Raises
        LineageError if the log has another txid.
        """
        if not self.planner.has_planned(txid) and python_spouts(self.program):
            end = first_source_offset(self.query, batch_id)
            start = first_source_offset(self.query, batch_id - 1) or self.planner.initial()
            if end is not None and end["txid"] != start["txid"]:
                if end["txid"] != txid:
                    raise LineageError(
                        f"the checkpoint {self.checkpoint.where} is damaged: offsets/{batch_id} has the txid "
                        f"{end['txid']} where {txid} is expected. Restore it from a copy. No tuple was emitted"
                    )
                self.planner.again(start, end)
            else:
                self.planner.begun_without(txid)
        return self.coordination.remembered(txid)[1] is not None

    def _executor(self, frame: DataFrame) -> Callable[[BatchInfo, list[Descriptor] | None], AttemptOutcome]:
        """A function that runs attempts of one batch, here or as a job: the first on the query's own plan, later ones
        on plans whose source is the new descriptors. So is the first after a restart: Spark would make a task ask the
        driver."""

        def execute(batch: BatchInfo, descriptors: list[Descriptor] | None) -> AttemptOutcome:
            again = self._again(batch.txid, descriptors)
            planned = again or self.planner.planned(batch.txid)
            began = time.monotonic()
            if self.inline.takes(batch, planned):
                with phase(HERE):
                    outcome = self.inline.run(batch, planned)
            else:
                outcome = self._job(frame, batch, again)
            if not outcome.failures:
                self.inline.saw(outcome, time.monotonic() - began)
            return outcome

        return execute

    def _again(self, txid: int, descriptors: list[Descriptor] | None) -> Planned | None:
        """What starts an attempt that the query's own plan does not run."""
        if descriptors is None:
            return self.planner.planned_again(txid)
        return Planned(txid, self.planner.rows_of(descriptors), self.coordination.tuples(self.loop.metadata))

    def _job(self, frame: DataFrame, batch: BatchInfo, again: Planned | None) -> AttemptOutcome:
        """Runs an attempt on Spark's executors."""
        try:
            with phase(JOB):
                self._announce(frame.sparkSession.sparkContext, batch)
                if again is not None:
                    frame = replay_plan(frame.sparkSession, self.query, self.program, self.shipped, again.rows)
                rows = frame.collect()
            with phase("receipts"):
                return self._outcome(batch, rows)
        except Exception as error:
            return self._engine_failed(error, batch)

    def _announce(self, context: SparkContext, batch: BatchInfo) -> None:
        """Tells the job's tasks which batch it is."""
        context.setLocalProperty(BATCH, batch.to_json())
        context.setLocalProperty(RUNS, active_runs.to_json())
        context.setLocalProperty(DESCRIPTION, f"{self.title}: txid {batch.txid}, attempt {batch.attempt}")

    def _outcome(self, batch: BatchInfo, rows: list[Any]) -> AttemptOutcome:
        for row in rows:
            if row.tag == RETRY:
                retry = bytes(row.block).decode()
                self.running.event(self.program.component, "task-retry", batch.txid, batch.attempt, retry)
        return outcome_of((row.tag, row.block) for row in rows)

    def _engine_failed(self, error: Exception, batch: BatchInfo) -> AttemptOutcome:
        """The outcome of a job that failed in Spark. A lost process replays the batch, a few times in a row; any other
        error ends the run. Raises Stopped if a stop cancelled the job."""
        texts = failures.chain_of(error)
        if failures.is_cancelled(texts) and self.running.stopping.wait(2):
            raise Stopped
        if failures.is_lost_task(texts):
            lost = failures.lost_task(texts, self._python)
            if (times := self._times_lost(batch.txid)) < LOST_ATTEMPTS:
                return AttemptOutcome([failure_of("task", 0, lost)], [])
            fatal = TridentError(f"{lost}; it happened {times} times in a row")
        else:
            fatal = failures.translated(texts, self.checkpoint.where)
        return AttemptOutcome([failure_of("Spark", 0, fatal)], [])
