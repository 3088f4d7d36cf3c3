"""The batches of one component on the driver, one after the other, over its log. Both clusters run them with it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Self, TypeVar

from ..checkpoints.batch_log import BatchLog
from ..checkpoints.metadata_store import read_kept
from ..errors import LineageError, TridentError, ZombieError
from ..model.context import with_context
from ..model.resources import close_all, closing_if_failed
from ..model.retry import Stopped
from ..report.progress import RunningTopology
from ..spouts.coordination import Coordination
from ..spouts.inspection import SpoutNodeInfo
from ..state.roles import EndsWithProcess
from .attempts import Execute
from .batch_loop import BatchLoop
from .phases import phase
from .program import Program, failure_of, topology_error
from .store_position import CheckpointState

log = logging.getLogger("trident_py")

T = TypeVar("T")
PAUSE = 0.002  # seconds between two questions whether a spout is ready
SETTLE_WAIT = 0.2  # seconds without a batch before the end of the last one is made durable
CHECK_WAIT = 5.0  # seconds without a batch between two looks for another driver


def take_over(
    log: BatchLog,
    program: Program | None,
    examine: Callable[[CheckpointState], object],
    open_states: Callable[[CheckpointState], T],
) -> tuple[CheckpointState, T]:
    """Take the log and open the states, as every start does: older drivers are shut out. One that is refused changes
    nothing. Only where the refusal may come of an older driver that goes on, the log is taken from it to compare."""
    standing = log.read_state(program)
    try:
        examine(standing)
    except LineageError as error:
        if not (error.momentary and log.has_moved()):
            raise
    log.take()
    standing = log.read_state(program)
    try:
        return standing, open_states(standing)
    except LineageError:
        log.check()  # if another driver has taken the log since, what the stores have is its work
        raise


def _call(operation: str, txid: int | None, call: Callable[[], T]) -> T:
    """Return the result of a call of the user's code. Raises TopologyError with what that raises."""
    try:
        return call()
    except Stopped:
        raise
    except BaseException as error:
        raise topology_error(failure_of(operation, None, error), txid) from error


class ComponentRun:
    """One run of one component: `open` it, then `await_next` and `run_next` in turn, then `close` it. A context manager
    that closes it.

    ``spouts``: those that the driver coordinates; ``batches``: the component's log; ``coordinate`` makes the
    coordination. Used by one thread at a time.
    """

    def __init__(
        self,
        program: Program,
        spouts: Sequence[SpoutNodeInfo],
        batches: BatchLog,
        running: RunningTopology,
        run: str,
        coordinate: Callable[..., Coordination] = Coordination,
    ) -> None:
        self.program = replace(program, conf=with_context(program.conf, metadata=batches.store))
        self.running = running
        self.log = batches
        self.log.kept = read_kept(program.conf)
        with closing_if_failed([batches]):
            self.coordination = coordinate(spouts, self.program.conf, batches.store, self._report)
        with closing_if_failed([self]):
            self.loop = BatchLoop(self.program, self.coordination, running, run)
        self.loop.begun = batches.begin
        self.loop.check_owner = batches.check
        self.ended = threading.Event()  # set by the cluster when nobody waits for batches any more
        self.txid = 0  # the last one that is over
        self._metadata: dict | None = None
        self._begun: dict | None = None
        self._without = False  # the next batch has begun, and its spouts have no metadata of it
        self._settled = True
        self._settles = self._checks = time.monotonic() + CHECK_WAIT  # when it is time for either

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close(error)

    def open(self) -> None:
        """Open the states and take the log."""
        standing, agreed = take_over(self.log, self.program, self.loop.examine, self.loop.open)
        self.txid = agreed.txid
        self._restore(standing)
        self._compare_order()
        self._compare_memory()
        self.running.event(self.program.component, "started", self.txid, None)

    def await_next(self, until: float | None = None, pending_until: float = 0.0) -> bool:
        """Wait until the next batch can run. False at the time ``until``, or at ``pending_until`` while a spout expects
        tuples; and if there will be none: see `is_over`."""
        with phase("waiting"):
            while not self.is_over:
                if self._is_ready():
                    return True
                now = time.monotonic()
                if until is not None and now >= until and not (now < pending_until and self.coordination.is_pending()):
                    return False
                self._idle(now)
                self.running.stopping.wait(PAUSE)
        return False

    def _is_ready(self) -> bool:
        """Return whether the next batch can run. One that has begun need not wait for a spout that has ended."""
        return (
            self._begun is not None
            or self._ask(self.coordination.ready)
            or (self._without and self._ask(self.coordination.is_exhausted))
        )

    def _ask(self, question: Callable[[int], bool]) -> bool:
        """Ask the spouts about the next batch. Raises TopologyError with what a spout raises."""
        txid = self.txid + 1
        return _call("spout", txid, partial(question, txid))

    def _idle(self, now: float) -> None:
        """Called while no spout is ready: the end of the last batch becomes durable, and another driver is noticed. If
        the log's store does not answer, it is asked later: nothing has been emitted that it does not have."""
        try:
            if not self._settled and now > self._settles:
                self._settles = now + CHECK_WAIT
                self.log.settle()
                self._settled = True
            if now > self._checks:
                self._checks = now + CHECK_WAIT
                self.log.check()
        except ZombieError:
            raise
        except TridentError as error:
            log.warning("the checkpoint %s does not answer: %s", self.log.where, error)

    @property
    def is_over(self) -> bool:
        """Whether no batch will run any more: the run is stopped, or every spout has ended."""
        if self.running.stopping.is_set() or self.ended.is_set():
            return True
        return self._begun is None and not self._without and self._ask(self.coordination.is_exhausted)

    def run_next(self, execute: Execute) -> None:
        """Run the next batch until it is committed, once the run is active. Raises as `BatchLoop.run`, and ZombieError
        if another driver has taken the log."""
        self._await_active()
        txid, self._begun, self._without = self.txid + 1, None, False
        with phase("driver rest"):
            metadata = self.loop.run(txid, execute, self._metadata)
        with phase("checkpoint"):
            self.log.end(txid, metadata)
        self.txid, self._metadata = txid, metadata
        self._settled, self._settles = False, time.monotonic() + SETTLE_WAIT

    def _await_active(self) -> None:
        """Raise Stopped if the run is stopped meanwhile."""
        while self.running.inactive.is_set():
            if self.ended.is_set() or self.running.stopping.wait(PAUSE):
                raise Stopped
            self._idle(time.monotonic())

    def close(self, error: BaseException | None = None) -> None:
        """Called when the run ends, with what ended it, which is raised again. If nothing did, raises TopologyError
        with what could not be closed. The log goes last: coordinators may write to its store."""

        def call(what: str, close: Callable[[], object]) -> None:
            _call(f"close of {what}", None, close)

        log_closed = partial(call, f"the checkpoint {self.log.where}", self.log.close)
        close_all([partial(self.coordination.close, call), log_closed], None if isinstance(error, Stopped) else error)

    def _restore(self, standing: CheckpointState) -> None:
        """Give the spouts their position."""
        last, begun = self.log.last(), self.log.find_begun(self.txid + 1)
        self._metadata = None if last is None else last.metadata
        known = begun is not None and any(value is not None for value in (begun.metadata or {}).values())
        if begun is not None and (known or standing.decided):
            self._begun = begun.metadata
        self._without = begun is not None and self._begun is None
        self.coordination.restore(self.txid, self._metadata, self._begun)

    def _compare_order(self) -> None:
        """Warn if a process with another order of sets may have started the next batch."""
        txid = self.txid + 1
        begun = self.log.find_begun(txid)
        if begun is not None and begun.order is not None and begun.order["order"] != self.log.order["order"]:
            text = (
                f"a process with another hash seed may have begun batch {txid} and ended before its commit: results "
                "of your functions that depend on the order of a set, or on hash(), may differ now. Set "
                "PYTHONHASHSEED=0 for every start"
            )
            self.loop.warn(txid, text)

    def _compare_memory(self) -> None:
        """Warn of states in memory that an earlier process has taken with it: the checkpoint has outlived them."""
        factories = self.program.states().items() if self.txid else ()
        for name, factory in factories:
            if isinstance(factory, EndsWithProcess) and factory.is_empty(self.program.conf):
                text = (
                    f"state {name} is in memory and begins empty, while the checkpoint {self.log.where} goes on after "
                    f"txid {self.txid}: what earlier batches brought is neither there nor sent again. Keep it in a "
                    "database, or start without a checkpoint"
                )
                self.loop.warn(None, text)

    def _report(self, spout: str, error: BaseException) -> None:
        self.running.event(self.program.component, "reported", None, None, f"spout {spout}: {error!r}")
