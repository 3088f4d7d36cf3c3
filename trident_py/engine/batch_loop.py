"""Runs batches on the driver, for both clusters: attempts, commits, replays.

Source in Storm: MasterBatchCoordinator. Batches run one at a time, in txid order.
"""

from __future__ import annotations

import logging
import operator
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..checkpoints.metadata_store import read_kept
from ..errors import ReportedFailedException, StateError, TopologyError, TridentError
from ..model.context import RunContext
from ..model.fault_points import steps_of_driver
from ..model.plan import SpoutNode, describe
from ..model.retry import TOLD, Patience, ReadOnlyFor, Stopped, back_off_seconds, start_wait, until_stopped
from ..model.user_traceback import text_of
from ..report.progress import RunningTopology, Stopwatch
from ..spouts.coordination import Coordination, Descriptor
from .attempts import Attempted, ChosenTuples, Execute, Work, make_policy
from .empty_batches import EmptyBatches
from .execution_mode import NeedsExecutors
from .hooks import Start, StartInfo, wrap_start
from .phases import REPORTED, Seen, phase, take
from .processors import Excluded
from .program import AttemptOutcome, BatchInfo, Failure, NodeReport, Program, failure_of, topology_error
from .recovery import Agreement
from .startup import Startup, participants_of
from .store_position import CheckpointState
from .two_phase import MAX_ATTEMPTS, Publisher, Receipts

log = logging.getLogger("trident_py")

CLOCK = "topology.clock"


def decisive_failure(failures: list[Failure]) -> Failure:
    """Return the failure that decides what happens to a batch: one of the earliest level; a request for a replay wins.

    Levels run one after the other, so a failure in a later level may be a consequence. Failures of one level are
    independent; if the other one was no accident, the replay shows it again.
    """
    first = min(failure.level for failure in failures)
    return min((failure for failure in failures if failure.level == first), key=lambda failure: not failure.replay)


def patience_of(program: Program, running: RunningTopology) -> Patience:
    """Return the Patience with which this component's start waits for stores. It reports events of kind "waiting"."""

    def tell(line: str) -> None:
        running.event(program.component, "waiting", None, None, line)

    return Patience(start_wait(program.conf), running.stopping, tell)


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000


def _read(clock: Callable[[], Any]) -> int:
    """Return the time of a clock that may be the user's. Raises TridentError for what is no whole number."""
    now = clock()
    try:
        return operator.index(now)
    except TypeError:
        raise TridentError(
            f"{CLOCK} returned {now!r}; it returns whole milliseconds since 1970, as time.time_ns() // 1_000_000 is"
        ) from None


class BatchLoop:
    """Runs the batches of one component, each until one of its attempts commits.

    ``begun(txid, metadata)`` records a batch's metadata before its first tuple is emitted; ``check_owner()`` raises
    ZombieError if another driver owns the checkpoint; ``records``: see `Startup`.
    """

    def __init__(self, program: Program, coordination: Coordination, running: RunningTopology, run: str) -> None:
        self.program = program
        self.coordination = coordination
        self.running = running
        self.run_id = run
        self.participants = participants_of(program)
        self.generations: dict[str, int] | None = None
        self.lineage = ""
        self.previous = (0, 0)
        self.progress = running.progress[program.component]
        self.limit = program.conf.get(MAX_ATTEMPTS)
        self.clock: Callable[[], int] = program.conf.get(CLOCK) or _milliseconds
        self.metadata: dict = {}
        self.publisher = Publisher(program, self.participants, running)
        self.policy = make_policy(self, RunContext.of(program.conf).metadata)
        self._first = True
        self._step = steps_of_driver(program.conf)
        self.begun: Callable[[int, dict], None] = lambda txid, metadata: None
        self.check_owner: Callable[[], None] = lambda: None
        self.records = True
        plan = program.lowered.plan
        self._names = {node.id: state.name for node, state in plan.updates()}
        self._spouts = {node.id: node.spout_id for node in plan.nodes if isinstance(node, SpoutNode)}
        self._empty = EmptyBatches(read_kept(program.conf))

    def open(self, standing: CheckpointState) -> Agreement:
        """Called once before the first batch: checks the stores against the checkpoint and raises every generation.

        Raises LineageError, before it changes anything, if they disagree. Waits for an unavailable store
        (`trident_py.model.retry`). Raises Stopped if the run is stopped meanwhile.
        """
        self.lineage = standing.lineage
        opening = self._make_startup(standing)
        agreed, self.generations = self._start(opening).open()
        self.progress.generations = self.generations
        self.publisher.open(self.generations)
        self.policy.open(agreed.txid, self.run_id, standing.begun and not opening.is_untouched(agreed.txid))
        self._step("opened", agreed.txid)
        return agreed

    def examine(self, standing: CheckpointState) -> None:
        """Raise LineageError as `open` does. Changes nothing, in no store and not in the checkpoint."""
        self._start(self._make_startup(standing)).examine()

    def _make_startup(self, standing: CheckpointState) -> Startup:
        patience, store = patience_of(self.program, self.running), RunContext.of(self.program.conf).metadata
        return Startup(self.program, self.participants, patience, store, standing, self.check_owner, self.records)

    def _start(self, opening: Startup) -> Start:
        """Return the opening, with what extras put round it."""
        info = StartInfo(self.program.lowered.plan, self.program.conf, opening.standing, opening.store, self.warn)
        return wrap_start(opening, info)

    def warn(self, txid: int | None, text: str) -> None:
        log.warning("%s", text, extra=TOLD)
        self.running.event(self.program.component, "reported", txid, None, text)

    def run(self, txid: int, execute: Execute, previous: dict | None = None) -> dict:
        """Run one batch until it is committed and return its metadata.

        ``previous``: the metadata of the batch before, if the coordination does not remember it. Raises TopologyError
        if the batch fails for good, and Stopped if the run is stopped.
        """
        self.metadata = self.coordination.read_metadata(txid)[1] or {}
        if self._finish_decided(txid, previous):
            return self.metadata
        work = Work(txid, execute, previous, ReadOnlyFor(start_wait(self.program.conf)))
        self.policy.begin(work)
        while not self.running.stopping.is_set():
            if self.policy.commit(work):
                return self.metadata
            if work.failures > 1:  # the first replay does not wait
                self.running.stopping.wait(back_off_seconds(work.failures - 1))
        raise Stopped

    def attempt(self, work: Work, excluded: tuple[Excluded, ...] = ()) -> Attempted:
        """Run one attempt. It has committed if it has no failure; else the batch must be replayed."""
        watch = Stopwatch()
        batch = replace(self._info(work), excluded=excluded)
        descriptors, failure = self._begin(batch, work)
        if failure is not None:
            return self._describe_abort(batch, failure)
        emit = watch.lap()
        outcome = self._execute(work, batch, descriptors)
        process = watch.lap()
        self._record(batch, outcome, emit + process)
        failure = decisive_failure(outcome.failures) if outcome.failures else self._finish_commit(batch, outcome)
        if failure is not None:
            return self._describe_abort(batch, failure)
        self._record_success(batch, outcome, {"emit": emit, "process": process, "commit": watch.lap(), **work.seconds})
        self._step("over", batch.txid)
        return Attempted(batch, None, outcome.reports)

    def dry_attempt(self, work: Work, chosen: ChosenTuples) -> Attempted:
        """Run an attempt that commits nothing. To the states it is one that failed before its commit."""
        batch = replace(self._info(work), dry=True, **chosen._asdict())
        descriptors, failure = self._begin(batch, work)
        if failure is not None:
            return self._describe_abort(batch, failure)
        outcome = self._execute(work, batch, descriptors)
        self.running.record_attempt(self.program.component, batch.txid, batch.attempt, [])
        failure = decisive_failure(outcome.failures) if outcome.failures else None
        return self._describe_abort(batch, failure, outcome.reports)

    def _finish_commit(self, batch: BatchInfo, outcome: AttemptOutcome) -> Failure | None:
        """End an attempt whose tasks have all committed. Returns a failure if the batch must be replayed."""
        try:
            self._step("processed", batch.txid)
            self._commit(batch, outcome)
        except (Stopped, TopologyError):
            raise
        except BaseException as error:
            return failure_of("commit", None, error)
        return None

    def _execute(self, work: Work, batch: BatchInfo, descriptors: list[Descriptor]) -> AttemptOutcome:
        return work.execute(replace(batch, shared=self.coordination.share(batch.txid)), descriptors)

    def _info(self, work: Work) -> BatchInfo:
        """Return what the tasks of the next attempt are told."""
        txid, attempt = work.txid, work.attempt
        work.attempt += 1
        known = txid, attempt, self.lineage, self.generations or {}, self.run_id, self.previous
        self.previous = (txid, attempt)
        self.progress.begun, self.progress.attempt = txid, attempt
        return BatchInfo(*known, time=_read(self.clock))

    def _begin(self, batch: BatchInfo, work: Work) -> tuple[list[Descriptor], Failure | None]:
        """Return the descriptors of what the spout partitions emit. An attempt's metadata is input to that of the next
        one. A store that has begun a batch finds it in the checkpoint, with the end of the one before."""
        at = "spout"
        partitions = {name: self.program.lowered.partitions[node_id] for node_id, name in self._names.items()}
        try:
            with phase("source planner"):
                self.metadata = self.coordination.initialize(batch.txid, batch.attempt, work.previous)
            at = "checkpoint"
            with phase("checkpoint"):
                self.begun(batch.txid, self.metadata)
            self._step("recorded", batch.txid)
            for name, participant in self.participants.items():
                at = f"begin of state {name}"
                with phase("ledger prepare", name):
                    participant.prepare(batch.txid, batch.attempt, partitions[name])
            at = "spout"
            with phase("source planner"):
                return self.coordination.descriptors(batch.txid, batch.attempt, self.metadata), None
        except Stopped:
            raise
        except BaseException as error:
            return [], failure_of(at, None, error)

    def _commit(self, batch: BatchInfo, outcome: AttemptOutcome) -> None:
        """Commit the spout metadata first, so that a published batch is never emitted with other metadata."""
        reports = [report.value[2] for report in outcome.reports if report.kind == "spout"]
        if self.coordination.has_committer:
            self.check_owner()  # an older driver that wakes up would move back what a newer one has committed
        with phase("metadata"):
            self.coordination.commit(batch.txid, batch.attempt, reports)
        receipts: Receipts = {name: [] for name in self.participants}
        for report in outcome.reports:
            if report.kind == "persisted" and report.value[2] is not None and self._names[report.node] in receipts:
                receipts[self._names[report.node]].append(report.value[2])
        self.publisher.publish(batch, receipts, self.metadata)

    def _finish_decided(self, txid: int, previous: dict | None) -> bool:
        """Publish a batch that an earlier driver decided and perhaps did not publish. True if there was one."""
        first, self._first = self._first, False
        decision = self.publisher.decision(txid) if first else None
        if decision is None:
            return False
        batch = BatchInfo(txid, decision["attempt"], self.lineage, self.generations or {}, self.run_id)
        watch = Stopwatch()
        self.metadata = self._restore_spouts(batch, previous, decision["metadata"])
        try:
            self.publisher.insist(batch, decision["receipts"])
        except StateError:
            return False  # no row of the batch is visible, so it may run again
        self._record_success(batch, AttemptOutcome([], []), {"emit": 0.0, "process": 0.0, "commit": watch.lap()})
        return True

    def _restore_spouts(self, batch: BatchInfo, previous: dict | None, metadata: dict | None) -> dict:
        """Give the spouts their position after a batch that is not emitted again, and return its metadata. An opaque
        spout that describes the batch otherwise now does not change what was decided."""
        described = until_stopped(
            partial(self.coordination.initialize, batch.txid, batch.attempt, previous, metadata),
            self.running.stopping,
            lambda error, failures: self.tell("reported", batch, f"spout: {error}"),
        )
        if metadata is None or described == metadata:
            return described
        self.coordination.restore(batch.txid, metadata)
        return metadata

    def _record(self, batch: BatchInfo, outcome: AttemptOutcome, seconds: float) -> None:
        reports = [report for report in outcome.reports if report.kind == "collected"]
        collected = [(report.value[0], report.partition, report.value[1]) for report in reports]
        self.running.record_attempt(self.program.component, batch.txid, batch.attempt, collected)
        for report in outcome.reports:
            if report.kind == "error":
                self.tell("reported", batch, report.value)
        metrics = [(report.partition, report.value) for report in outcome.reports if report.kind == "metric"]
        of_spouts = self.coordination.collect_metrics(lambda text: self.tell("reported", batch, text))
        self.progress.add([*metrics, *of_spouts], seconds)
        self._unsteady(batch, [report for report in outcome.reports if report.kind == "unsteady"])

    def _unsteady(self, batch: BatchInfo, reports: list[NodeReport]) -> None:
        """Report the determinism check's differences, the plan's first operation first: it may cause the others."""
        if not reports:
            return
        nodes = self.program.lowered.plan.by_id
        first = min(reports, key=lambda report: (report.node, report.partition))
        others = [describe(nodes[node]) for node in sorted({report.node for report in reports} - {first.node})]
        more = f" (also: {', '.join(others)})" if others else ""
        reason = f"{describe(nodes[first.node])} in partition {first.partition} {first.value}{more}"
        log.warning("txid %d: %s", batch.txid, reason, extra=TOLD)
        self.tell("unsteady", batch, reason)

    def _notice_empty(self, txid: int, tuples: int) -> None:
        always_ready = self._empty.add(tuples, self.coordination.woken_by, time.monotonic())
        if always_ready is not None:
            self.warn(txid, always_ready)

    def _record_success(self, batch: BatchInfo, outcome: AttemptOutcome, seconds: dict[str, float]) -> None:
        progress = self.progress
        progress.receipts, progress.commits = {}, {}
        tuples = 0
        for report in outcome.reports:
            if report.kind == "emitted":
                progress.count(progress.emitted, self._spouts[report.node], report.partition, report.value)
                tuples += report.value
            elif report.kind == "persisted":
                name, (count, new_values, receipt, took) = self._names[report.node], report.value
                progress.count(progress.persisted, name, report.partition, count)
                progress.commits[name] = max(took, progress.commits.get(name, 0.0))
                progress.new_values[name] = progress.new_values.get(name, 0) + new_values
                progress.receipts.setdefault(name, []).append(receipt)
        self._notice_empty(batch.txid, tuples)
        progress.txid, progress.seconds = batch.txid, seconds
        progress.dead_letters += len(batch.excluded)
        progress.backlog = self.coordination.backlog()
        progress.batches += 1
        self._tell_spouts(batch.txid)
        if (measured := take()) is not None:
            tasks = [report.value for report in outcome.reports if report.kind == REPORTED]
            progress.profiled.append(Seen(batch.txid, batch.attempt, measured, tasks))
        with phase("events"):
            self.tell("committed", batch, outcome.where)

    def _tell_spouts(self, txid: int) -> None:
        """Tell the spouts that the batch is committed. Raises TopologyError with what they raise."""
        try:
            self.coordination.success(txid)
        except BaseException as error:
            raise topology_error(failure_of("spout", None, error), txid, " after its commit") from error

    def fail(self, work: Work, attempted: Attempted) -> None:
        """Called after a failed attempt. Returns if the batch may be replayed; else raises TopologyError."""
        batch, failure, _ = attempted
        assert failure is not None
        if isinstance(failure.error, NeedsExecutors):
            self.tell("moved", batch, str(failure.error))
            return
        if isinstance(failure.error, ReportedFailedException):
            self.tell("reported", batch, text_of(failure.error))
        why = work.read_only.too_long(failure.error)
        if failure.replay and not why and not self.is_last(work):
            self.replay(work, attempted)
            return
        tries = f" after {work.failures + 1} attempts ({MAX_ATTEMPTS})" if failure.replay else ""
        raise topology_error(failure, batch.txid, why or tries) from failure.error

    def is_last(self, work: Work) -> bool:
        """Return whether a request for a replay comes too late."""
        return self.limit is not None and work.failures + 1 >= self.limit

    def replay(self, work: Work, attempted: Attempted) -> None:
        """Run the batch again."""
        batch, failure, _ = attempted
        assert failure is not None
        work.failures += 1
        at = "" if failure.partition is None else f" in partition {failure.partition}"
        reason = f"{failure.operation} failed{at}: {text_of(failure.error)}"
        reason += f" (at {failure.origin})" if failure.origin else ""
        self.progress.failed_partition = failure.partition
        log.warning("replaying txid %d after attempt %d: %s", batch.txid, batch.attempt, reason, extra=TOLD)
        self.tell("replay", batch, reason)

    def _describe_abort(
        self, batch: BatchInfo, failure: Failure | None, reports: Sequence[NodeReport] = ()
    ) -> Attempted:
        self._abort(batch)
        return Attempted(batch, failure, list(reports))

    def _abort(self, batch: BatchInfo) -> None:
        """Make the participants clean up. An error must not hide the failure; the next attempt or driver cleans up."""
        for name, participant in self.participants.items():
            try:
                participant.abort(batch.txid, batch.attempt)
            except BaseException as error:
                log.warning(
                    "txid %d: state %s could not clean up after attempt %d: %s", batch.txid, name, batch.attempt, error
                )

    def tell(self, kind: str, batch: BatchInfo, reason: str) -> None:
        """Report an event of the run."""
        self.running.event(self.program.component, kind, batch.txid, batch.attempt, reason)
