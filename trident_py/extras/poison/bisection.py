"""Poison tuples: which tuples of a batch make it fail, and the record of those that take no part in it.

A batch whose functions fail again and again is run in halves, without a commit, until the tuples that fail alone are
known. Which tuples a txid excludes is decided once and recorded in the checkpoint. Where a state cannot take back what
a failed attempt has committed, that happens before the first attempt that may commit: every batch first runs dry.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

from ...checkpoints.metadata_store import MetadataStore
from ...config import Config
from ...engine.attempts import Attempted, Attempts, ChosenTuples, Kept, RetryPolicy, Work
from ...engine.execution_mode import NeedsExecutors
from ...engine.poison import RECORDS, is_on, takes_back
from ...engine.processors import ChangedBatch, Excluded
from ...engine.processors.dead_letters import as_text
from ...engine.program import BatchInfo, Failure, Program, topology_error
from ...errors import SpoutError, StateError, ZombieError
from ...model.plan import ProcessorNode, SpoutNode, describe
from ...model.retry import TOLD, Stopped, back_off_seconds
from ...model.user_traceback import describe_error

log = logging.getLogger("trident_py")

CHECKS = "checks"  # the checkpoint's path for whether a batch is recorded in `RECORDS` before it may commit
ATTEMPTS, MOST = 3, 10
CHANGING = "its spout emits other tuples in each attempt"
NO_MORE = (
    "; topology.poison=bisect excludes no further tuple of this batch, of which an attempt may have committed a part. "
    "Correct the function, and start again"
)
LOOK = 1_000  # tuples of a batch that are compared between two attempts
NEVER = (StateError, SpoutError, MemoryError)  # the store, the source or the machine


class Span(NamedTuple):
    """Tuples of one spout partition, by their numbers; the end is exclusive."""

    spout: str
    partition: int
    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


Group = tuple[Span, ...]


class Unexplained(Exception):
    """No single tuples explain the failure; the text says why. ``failure``: what failed instead, if that was no
    operation but the store, the source or the machine."""

    def __init__(self, why: str, dry: Failure | None = None) -> None:
        super().__init__(why)
        self.failure = dry if dry is not None and not _is_own(dry.error) else None


RunDry = Callable[[ChosenTuples], Attempted]


def size(group: Group) -> int:
    return sum(span.length for span in group)


def ranges_of(group: Group) -> Kept:
    """Return the group as the ranges of a `BatchInfo`."""
    ranges: Kept = {}
    for span in group:
        ranges.setdefault(span.spout, {}).setdefault(str(span.partition), []).append([span.start, span.end])
    return ranges


def halves(group: Group) -> tuple[Group, Group]:
    """Return the group in two parts, in the order of its spans."""
    left, right, room = [], [], size(group) // 2
    for span in group:
        cut = span.start + min(span.length, room)
        room -= cut - span.start
        left += [span._replace(end=cut)] if cut > span.start else []
        right += [span._replace(start=cut)] if cut < span.end else []
    return tuple(left), tuple(right)


class Search:
    """The search in one batch that is known to fail. ``run`` runs a dry attempt; ``suspects`` tells whether a failure
    may come from a tuple; ``most``: more tuples than this are no poison."""

    def __init__(self, program: Program, run: RunDry, suspects: Callable[[Failure], bool], most: int) -> None:
        self.program, self.run, self.suspects, self.most = program, run, suspects, most
        self.whole: Group = ()

    def find(self) -> list[Excluded]:
        """Return the tuples that fail alone; the batch without them passes. Empty: the whole batch passes now.

        Raises Unexplained if there are none, or too many.
        """
        try:
            return self._search()
        except Unexplained as why:
            if self.whole and self._contents() != self._contents():
                raise Unexplained(CHANGING) from why
            raise

    def _contents(self) -> list[Any]:
        """Return what an attempt emits in which no tuple takes part: the numbers of tuples, and the digests of some."""
        places = [(span.spout, span.partition, index) for span in self.whole for index in range(span.start, span.end)]
        reports = self.run(ChosenTuples({}, asked=tuple(places[:: len(places) // LOOK + 1]))).reports
        emitted = [(report.node, report.partition, report.value) for report in reports if report.kind == "emitted"]
        return sorted(emitted) + sorted(report.value[:4] for report in reports if report.kind == "content")

    def _search(self) -> list[Excluded]:
        whole = self.whole = self._all()
        if self._fails(whole) is None:
            return []
        singles = self._singles(whole)
        if 1 < size(whole) == len(singles):
            raise Unexplained(f"all {len(singles)} tuples fail, so something that all tuples need has failed")
        found = sorted((self._confirm(span) for span in singles), key=lambda row: (row.place, row.index))
        rest = self.run(ChosenTuples(excluded=tuple(found))).failure
        if rest is not None and isinstance(rest.error, ChangedBatch):
            raise Unexplained(CHANGING)
        if rest is not None:
            one = f"without the {len(found)} tuples that fail alone" if len(found) > 1 else "without the one that does"
            raise Unexplained(f"the batch also fails {one}: tuples fail only together")
        return found

    def _all(self) -> Group:
        """Return every tuple of the batch, counted in an attempt in which none takes part."""
        dry = self.run(ChosenTuples({}))
        if dry.failure is not None:
            raise Unexplained("it also fails without any tuple", dry.failure)
        nodes = self.program.lowered.plan.nodes
        spouts = {node.id: node.spout_id for node in nodes if isinstance(node, SpoutNode)}
        counts: dict[tuple[str, int], int] = {}
        for report in dry.reports:
            if report.kind == "emitted":
                place = spouts[report.node], report.partition
                counts[place] = counts.get(place, 0) + report.value
        return tuple(Span(*place, 0, count) for place, count in sorted(counts.items()) if count)

    def _singles(self, whole: Group) -> list[Span]:
        """Halve all failing groups at once, so that too many are noticed before the first single one is reached."""
        groups, singles = [whole], []
        while groups:
            failing = [part for group in groups for part in self._find_failing(group)]
            singles += [part[0] for part in failing if size(part) == 1]
            groups = [part for part in failing if size(part) > 1]
            if len(singles) + len(groups) > self.most:
                raise Unexplained(
                    f"more than {self.most} parts of the batch fail ({Config.TOPOLOGY_POISON_MAX_TUPLES}), so "
                    "something that all tuples need has failed"
                )
        return singles

    def _find_failing(self, group: Group) -> list[Group]:
        if size(group) == 1:
            return [group]
        failing = [half for half in halves(group) if self._fails(half) is not None]
        if not failing:
            raise Unexplained(f"{size(group)} of its tuples fail together, and no half of them fails alone")
        return failing

    def _fails(self, group: Group) -> Failure | None:
        return self._suspect(self.run(ChosenTuples(ranges_of(group))))

    def _confirm(self, span: Span) -> Excluded:
        """Run a single tuple again and look at it."""
        dry = self.run(ChosenTuples(ranges_of((span,)), asked=(span[:3],)))
        failure, content = self._suspect(dry), [report for report in dry.reports if report.kind == "content"]
        if failure is None or not content:
            raise Unexplained("a tuple that failed alone did not fail again")
        assert failure.partition is not None  # what is suspected is a step, and fails in a task
        digest, text = content[0].value[3:]
        error = as_text(describe_error(failure.error))
        return Excluded(*span[:3], digest, text, failure.operation, failure.partition, error)

    def _suspect(self, dry: Attempted) -> Failure | None:
        if dry.failure is not None and not self.suspects(dry.failure):
            raise Unexplained(f"another failure came between: {describe_error(dry.failure.error)}", dry.failure)
        return dry.failure


class Poison:
    """What one component knows of poison tuples. Lives in the driver."""

    def __init__(self, program: Program, store: MetadataStore) -> None:
        conf, plan = program.conf, program.lowered.plan
        self.program, self.store = program, store
        self.on = is_on(conf)
        self.takes_back = takes_back(plan)
        self.checks = self.on and not self.takes_back
        self.attempts = conf.get(Config.TOPOLOGY_POISON_ATTEMPTS) or ATTEMPTS
        self.most = conf.get(Config.TOPOLOGY_POISON_MAX_TUPLES) or MOST
        steps = [node for node in plan.nodes if isinstance(node, ProcessorNode)]
        self.operations = {describe(node) for node in steps}
        self.stateless = {describe(node) for node in steps if node.state is None}
        self.txid, self.failed = 0, 0
        self.fixed: tuple[Excluded, ...] | None = None
        self._first = True

    def open(self, txid: int, run: str, touched: bool) -> None:
        """Called at the start, before the first batch, with the last committed txid. From now on an older driver can
        record nothing. ``touched``: a state may hold a part of the batch after that txid.

        If the run before did not check that batch, nothing may be excluded from it any more.
        """
        if self.on:
            self.store.put(RECORDS, 0, run)
        before = self.store.get(CHECKS, 0)
        if self.checks and touched and not before and self.store.get(RECORDS, txid + 1) is None:
            self.store.put(RECORDS, txid + 1, [])
        if bool(before) != self.checks:
            self.store.put(CHECKS, 0, self.checks)

    def begin(self, txid: int) -> None:
        """Begin a batch. The first one of a run keeps to what an earlier run decided, also if bisecting is off now.
        Raises SpoutError if the spout has no longer the partition of an excluded tuple, which may be in another one."""
        first, self._first = self._first, False
        record = self.store.get(RECORDS, txid) if first else None
        self.txid, self.failed = txid, 0
        self.fixed = None if record is None else tuple(Excluded(**row) for row in record)
        counts = {spout.id: spout.partitions for spout in self.program.spouts}
        gone = next((row for row in self.fixed or () if row.partition >= counts.get(row.spout, 0)), None)
        if gone is not None and not self.takes_back:
            raise SpoutError(
                f"batch {txid} excludes tuple {gone.index} of partition {gone.partition} of spout {gone.spout!r} as "
                f"poison, and the spout has {counts.get(gone.spout, 0)} partitions now. An earlier attempt may have "
                "committed the rest. Start once with the parallelism of that run, and change it behind this batch"
            )
        if gone is not None:
            self.unfix()

    @property
    def undecided(self) -> bool:
        """Whether an attempt must not commit yet."""
        return self.checks and self.fixed is None

    def fix(self, excluded: tuple[Excluded, ...]) -> None:
        """Decide what the batch excludes. Durable when the call returns."""
        self.store.put(RECORDS, self.txid, [asdict(row) for row in excluded])
        self.store.cleanup_before(RECORDS, self.txid)
        self.fixed = excluded

    def unfix(self) -> None:
        """Withdraw the decision: the spout emits other tuples, and every state takes back what an attempt left."""
        self.store.remove(RECORDS, self.txid)
        self.fixed, self.failed = None, 0

    def suspects(self, failure: Failure) -> bool:
        """Return whether the failure may come from a tuple: an exception of an operation, but not of a store, a spout
        or the machine, and no request for a replay."""
        return self.on and not failure.replay and failure.operation in self.operations and _is_own(failure.error)

    def suspects_again(self, failure: Failure) -> bool:
        """Judge as `suspects` does, once the batch has had all its attempts: a request for a replay may then come from
        a tuple. One of a step with a state counts as the store's."""
        asks = self.on and failure.replay and failure.operation in self.stateless
        return (asks and not isinstance(failure.error, NeedsExecutors)) or self.suspects(failure)

    def search(self, run: RunDry, suspects: Callable[[Failure], bool]) -> tuple[Excluded, ...]:
        return tuple(Search(self.program, run, suspects, self.most).find())


def _is_own(error: BaseException) -> bool:
    return not isinstance(error, NEVER)


class Bisection(RetryPolicy):
    """The attempts of a component's batches, without the tuples that are poison: those of the loop, and dry ones before
    the first that may commit or behind one that failed."""

    def __init__(self, attempts: Attempts, store: MetadataStore) -> None:
        super().__init__(attempts, store)
        self.poison = Poison(attempts.program, store)

    def open(self, txid: int, run: str, touched: bool) -> None:
        """Keep to what an earlier run has decided of the batch after ``txid``."""
        self.poison.open(txid, run, touched)

    def begin(self, work: Work) -> None:
        self.poison.begin(work.txid)
        if self.poison.on:
            work.seconds["check"] = 0.0

    def commit(self, work: Work) -> bool:
        if self.poison.undecided and not self._decide(work):
            return False
        attempted = self.attempts.attempt(work, self.poison.fixed or ())
        if attempted.failure is not None:
            self._examine(work, attempted, attempted.failure)
        return attempted.failure is None

    def _decide(self, work: Work) -> bool:
        """Run an attempt that does not commit. Returns whether the next one may."""
        dry = self._dry(work, ChosenTuples())
        if dry.failure is not None:
            self._examine(work, dry, dry.failure)
        else:
            self.poison.fix(())
        return self.poison.fixed is not None

    def _dry(self, work: Work, chosen: ChosenTuples) -> Attempted:
        began = time.monotonic()
        dry = self.attempts.dry_attempt(work, chosen)
        work.seconds["check"] += time.monotonic() - began
        return dry

    def _examine(self, work: Work, attempted: Attempted, failure: Failure) -> None:
        """Called after a failed attempt. Returns if the batch may be replayed; else raises TopologyError."""
        poison = self.poison
        if poison.fixed and poison.suspects(failure):
            failure = self._check_unchanged(work) or failure
            attempted = attempted._replace(failure=failure)
        if isinstance(failure.error, ChangedBatch) and poison.takes_back:
            poison.unfix()
            self.attempts.replay(work, attempted)
        elif poison.fixed is None and self.attempts.is_last(work) and poison.suspects_again(failure):
            self._bisect(work, attempted.batch, failure, poison.suspects_again)
        elif not poison.suspects(failure):
            self.attempts.fail(work, attempted)
        elif poison.fixed is not None:
            raise topology_error(failure, attempted.batch.txid, NO_MORE) from failure.error
        elif poison.failed + 1 < poison.attempts:
            poison.failed += 1
            self.attempts.replay(work, attempted)
        else:
            self._bisect(work, attempted.batch, failure, poison.suspects)

    def _check_unchanged(self, work: Work) -> Failure | None:
        """Return the failure if the spout does not emit the excluded tuples any more: then another one may have
        failed."""
        failure = self._dry(work, ChosenTuples({}, self.poison.fixed or ())).failure
        return failure if failure is not None and isinstance(failure.error, ChangedBatch) else None

    def _bisect(self, work: Work, batch: BatchInfo, failure: Failure, suspects: Callable[[Failure], bool]) -> None:
        """Find the tuples that make the batch fail and exclude them. Raises TopologyError if there are none."""
        log.warning("txid %d failed again in %s: looking for the tuple", batch.txid, failure.operation)
        try:
            found = self.poison.search(partial(self._probe, work, suspects), suspects)
            if not found and self.poison.takes_back:
                raise Unexplained("it passes without a commit, so it fails in the commit phase or behind it")
        except Unexplained as why:
            if why.failure is not None:
                reason = f"; topology.poison=bisect was looking for the tuple that makes {failure.operation} fail"
                raise topology_error(why.failure, batch.txid, reason) from why.failure.error
            reason = f"; topology.poison=bisect found no single tuple that makes it fail: {why}"
            raise topology_error(failure, batch.txid, reason) from failure.error
        self.poison.fix(found)
        work.failures = 0
        for row in found:
            where = f"tuple {row.index} of partition {row.partition} of spout {row.spout} is excluded as poison"
            text = f"{where}: {row.operation} failed in partition {row.at}: {row.error}"
            log.warning("txid %d: %s", batch.txid, text, extra=TOLD)
            self.attempts.running.progress[self.attempts.program.component].failed_partition = row.at
            self.attempts.tell("poison", batch, text)

    def _probe(self, work: Work, suspects: Callable[[Failure], bool], chosen: ChosenTuples) -> Attempted:
        """Run a dry attempt until it passes or fails. A request for a replay that is not suspect is granted. An older
        driver is told that it is one: no tuple has failed."""
        stopping = self.attempts.running.stopping
        while not stopping.is_set():
            dry = self._dry(work, chosen)
            if dry.failure is None or suspects(dry.failure):
                return dry
            if not dry.failure.replay and not isinstance(dry.failure.error, ZombieError):
                return dry
            self.attempts.fail(work, dry)
            stopping.wait(back_off_seconds(work.failures))
        raise Stopped
