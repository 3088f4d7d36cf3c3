"""The driver's side of the source: plans the next batch, its metadata and the descriptors of its tasks.

Each run of a component has one. Spark's planner process, on the driver's machine, calls it through the home service.
Exceptions of spouts become failure rows, so that they reach the batch loop like any other failure.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..checkpoints.sparklogs import Offset, metadata_of, offset_of
from ..errors import FailedException
from ..patience import back_off_seconds
from ..phases import phase
from ..run.deciding import MAX_ATTEMPTS
from ..run.program import Program, Row, descriptor_rows, encode_failure, failure_of, failure_rows
from ..spouts.coordination import Coordination, Descriptor
from .streaming_plan import python_spouts

READY_WAIT = 0.05
READY_PAUSE = 0.002
PENDING_WAIT = 5.0


class Planned(NamedTuple):
    """What starts level 0 of a batch's first attempt. ``tuples``: how many its spouts emit at most, None if unknown."""

    txid: int
    rows: list[Row]
    tuples: int | None


class BatchPlanner:
    """Plans batches one after the other: Spark asks for the next only when the last is committed.

    ``finished`` is set when every spout has ended and everything emitted is committed. ``fatal`` holds the exception
    of a coordinator that could not define a batch.
    """

    def __init__(
        self, program: Program, coordination: Coordination, base: int, last: int, stopping: threading.Event
    ) -> None:
        self.finished = threading.Event()
        self.fatal: BaseException | None = None
        self.on_finished: Callable[[], None] = lambda: None
        self.on_refused: Callable[[int, BaseException], None] = lambda txid, error: None
        self.check: Callable[[], None] = lambda: None
        self._refusals = 0
        self._stopping = stopping
        self._program = program
        self._python = python_spouts(program)
        self._coordination = coordination
        self._base = base
        self._last = last
        self._past: tuple[int, dict] | None = None
        self._begun: tuple[int, dict | None] = 0, None
        self._logged: tuple[int, dict] = 0, {}
        self._restored = False
        self._planned = Planned(0, [], None)
        self._again: Planned | None = None
        self._lock = threading.RLock()

    @property
    def last_txid(self) -> int:
        """The last txid that is committed or that Spark has begun."""
        return self._last

    def initial(self) -> Offset:
        """The offset before the first batch of a new checkpoint."""
        return offset_of(self._base, {})

    def past(self, txid: int, metadata: dict) -> None:
        """This batch is over, and Spark's offsets do not tell of it. Called for those that follow others."""
        self._past = txid, metadata

    def resume(self, txid: int, metadata: dict, begun: dict | None) -> None:
        """As `past`, before the first batch, in the middle of a micro-batch. ``begun``: the metadata of the next batch,
        if it has begun."""
        self.past(txid, metadata)
        self._begun = txid + 1, begun
        self._coordination.restore(txid, metadata, begun)
        self._restored = True

    def forget(self) -> None:
        """Called before another query: what Spark's offset log has of a batch is what counts, not what was planned."""
        with self._lock:
            self._planned, self._again, self._logged = Planned(0, [], None), None, (0, {})

    def awaits(self, txid: int, until: float, for_more: bool) -> bool:
        """Waits for a spout to be ready. False if none is at that time, none ever will be, or the run is stopped.
        ``for_more``: also if no spout expects tuples."""
        while not self._stopping.is_set() and not self._coordination.exhausted(txid):
            if self._coordination.ready(txid):
                return True
            if time.monotonic() >= until or not (for_more or self._coordination.pending()):
                return False
            time.sleep(READY_PAUSE)
        return False

    def next_batch(self, start: Offset) -> tuple[list[Row], Offset]:
        """The rows and the end offset of the next batch; no rows and ``start`` while no spout is ready."""
        with self._lock:
            self._restore(start)
            txid = max(int(start["txid"]), self._last) + 1
            described = self._coordination.remembered(txid)[1] is not None  # for a planner process that died
            with phase("waiting"):
                ready = described or self._wait_ready(txid)
            if not ready:
                return [], start
            try:
                self.check()
                metadata = self._coordination.initialize(txid, 0, self._before(start)[1])
            except BaseException as error:
                self._not_described(txid, error)
                return [], start
            self._refusals = 0
            self._logged = txid, metadata
            self._planned = self._described(txid, metadata)
            return self._planned.rows, offset_of(txid, metadata, self._coordination.backlog())

    def _not_described(self, txid: int, error: BaseException) -> None:
        """Called when a coordinator fails. Pauses, so that Spark asks for the same txid again, or ends the run."""
        self._refusals += 1
        if not isinstance(error, FailedException) or self._refusals == self._program.conf.get(MAX_ATTEMPTS):
            self.fatal = error
            self._finish()
            return
        self.on_refused(txid, error)
        self._stopping.wait(back_off_seconds(self._refusals))

    def again(self, start: Offset, end: Offset) -> list[Row]:
        """The rows of a batch that is in Spark's offset log but not committed. Called after a restart.

        Also called for the batch that Spark begins a query with, whether there is data or not. If no spout was ready,
        it ends where it starts and is empty: no offset would know of what is emitted here.
        """
        with self._lock:
            txid = int(end["txid"])
            if txid == int(start["txid"]):
                return []
            if self._again is None or self._again.txid != txid:
                self._restore(start)
                self._logged = txid, metadata_of(end)
                self._again = self._describe_again(txid, self._before(start)[1], metadata_of(end))
            return self._again.rows

    def begun_without(self, txid: int) -> None:
        """Called when Spark has begun this batch and knows of no Python spouts in it. If they have described it, and
        the answer was lost with Spark's planner process or a driver, it is described again."""
        previous, metadata = self._coordination.remembered(txid)
        if metadata is not None:
            with self._lock:
                self._again = self._describe_again(txid, previous or {}, metadata)

    def planned(self, txid: int) -> Planned | None:
        """This batch, if this process has planned it."""
        with self._lock:
            return self._planned if self._planned.txid == txid else None

    def logged(self, txid: int) -> dict:
        """The metadata that Spark's offset log has of this batch. Empty if no Python spout has a part in it."""
        with self._lock:
            return self._logged[1] if self._logged[0] == txid else {}

    def has_planned(self, txid: int) -> bool:
        """Whether this process knows this batch as the query that runs has it."""
        return self.planned(txid) is not None or self.planned_again(txid) is not None

    def planned_again(self, txid: int) -> Planned | None:
        """What `again` gave for this batch; None for a batch that this process has planned."""
        with self._lock:
            return self._again if self._again is not None and self._again.txid == txid else None

    def _describe_again(self, txid: int, previous: dict, current: dict) -> Planned:
        begun, metadata = self._begun
        if begun == txid and metadata is not None:  # a replay had other metadata than Spark has logged
            current = metadata
        try:
            metadata = self._coordination.initialize(txid, 0, previous, current)
        except BaseException as error:
            return self._failed(txid, error)
        return self._described(txid, metadata)

    def begun(self, txid: int) -> None:
        """Called when Spark has begun this batch, also if only a source of Spark had data."""
        self._last = max(self._last, txid)

    def rows_of(self, descriptors: Sequence[Descriptor]) -> list[Row]:
        """The rows that start level 0 in another attempt."""
        return list(descriptor_rows(map(self._numbered, descriptors)))

    def _wait_ready(self, txid: int) -> bool:
        """Waits a moment for a spout to be ready, unless the component also has sources of Spark."""
        mixed = len(self._python) < len(self._program.spouts)
        begun = time.monotonic()
        while not self._stopping.is_set() and not self.finished.is_set():
            if self._coordination.exhausted(txid):
                if not mixed:
                    self._finish()
                return False
            if self._coordination.ready(txid):
                return True
            waited = time.monotonic() - begun
            if mixed or waited >= (PENDING_WAIT if self._coordination.pending() else READY_WAIT):
                return False
            time.sleep(READY_PAUSE)
        return False

    def _finish(self) -> None:
        self.finished.set()
        self.on_finished()

    def _restore(self, start: Offset) -> None:
        txid, metadata = self._before(start)
        if not self._restored and txid > self._base:
            self._coordination.restore(txid, metadata)
        self._restored = True

    def _before(self, start: Offset) -> tuple[int, dict]:
        """The last batch that is over where a micro-batch starts at this offset."""
        txid = int(start["txid"])
        return self._past if self._past is not None and self._past[0] >= txid else (txid, metadata_of(start))

    def _described(self, txid: int, metadata: dict) -> Planned:
        try:
            rows = self.rows_of(self._coordination.descriptors(txid, 0, metadata))
            return Planned(txid, rows, self._coordination.tuples(metadata))
        except BaseException as error:
            return self._failed(txid, error)

    def _failed(self, txid: int, error: BaseException) -> Planned:
        """A batch whose tasks only pass on that its spout failed."""
        rows = failure_rows(encode_failure(failure_of("spout", 0, error)), self._program.partitions(0))
        return Planned(txid, rows, 0)

    def _numbered(self, descriptor: Descriptor) -> Descriptor:
        """Renumbers a descriptor's spout: the coordination counts only Python spouts, the program all spouts."""
        return descriptor._replace(spout=self._python[descriptor.spout])
