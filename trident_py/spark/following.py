"""Batches that follow one another within one foreachBatch call, and so in one micro-batch of Spark.

Spark's own work around a micro-batch takes longer than a small batch. So when a batch has run in the driver process,
the next ones run there too, without going back to Spark, as `LocalCluster` runs its batches: described by the
coordinators, recorded in a log of the checkpoint (`trident_py.checkpoints.following`), emitted, committed. After
``topology.inline.follow.millis``, or when a batch ran as a job, Spark has its turn.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ..checkpoints.following import Followed, FollowingLog, first_txid
from ..config import Config
from ..phases import profiled
from ..run.batch_loop import BatchLoop, Execute
from .inline import Inline
from .planner import BatchPlanner

FOLLOW_MILLIS = 1000


def follow_seconds(conf: Mapping[str, Any]) -> float:
    """How long batches may follow in one call. A profile measures each batch with Spark's work around it."""
    given = conf.get(Config.TOPOLOGY_INLINE_FOLLOW_MILLIS)
    return 0.0 if profiled(conf) else (FOLLOW_MILLIS if given is None else given) / 1000


class Following:
    """The batches of one component that follow others. Made after the checkpoint was taken.

    ``base``: the txid before the first batch of the checkpoint; ``last``: what the log says of the newest micro-batch;
    ``seconds``: how long batches may follow in one call, 0 for none; ``waits``: whether the run goes on when no spout
    has tuples.
    """

    def __init__(
        self,
        log: FollowingLog,
        loop: BatchLoop,
        planner: BatchPlanner,
        inline: Inline,
        base: int,
        last: Followed | None,
        seconds: float,
        waits: bool,
    ) -> None:
        self._log = log
        self._loop = loop
        self._planner = planner
        self._inline = inline
        self._base = base
        self._last = last
        self._seconds = seconds if inline.is_possible else 0.0
        self._waits = waits
        self._micro_batch, self._first = -1, 0
        self._logged: tuple[dict | None, dict] = None, {}
        self._changed = False
        loop.begun = self._begun
        if last is not None and last.begun is None:
            planner.past(last.txid, last.metadata)
        elif last is not None:
            planner.resume(last.txid, last.metadata, last.begun)

    def begin(self, micro_batch: int) -> int:
        """Called first in a foreachBatch call. Returns the txid of the batch that Spark's offset log has."""
        self._micro_batch, self._first = micro_batch, first_txid(micro_batch, self._base, self._last)
        return self._first

    @property
    def is_first_over(self) -> bool:
        """Whether an earlier driver has run the first batch of this micro-batch, and Spark has not committed it."""
        return self._last is not None and self._last.micro_batch == self._micro_batch

    def run_first(self, execute: Execute) -> None:
        """Runs the batch that Spark's offset log has. Its metadata goes into this log too if a replay changes it."""
        previous, metadata = self._loop.coordination.remembered(self._first)
        self._logged = previous, self._planner.logged(self._first)
        self._changed = self._last is not None and self._last.begun is not None
        self._begun(self._first, metadata or {})
        self._loop.run(self._first, execute, carried=True)

    def run(self, execute: Execute) -> None:
        """Called when the first batch is over and the spouts had a part in it. Runs what follows it."""
        until = time.monotonic() + self._seconds
        if not self.is_first_over:
            self._changed |= self._loop.metadata != self._logged[1]
            if not (self._seconds or self._changed):
                return
            self._over(self._first, self._loop.metadata)
        while (last := self._last) is not None and (last.begun is not None or self._follows(last.txid + 1, until)):
            self._planner.check()
            self._planner.begun(last.txid + 1)
            self._over(last.txid + 1, self._loop.run(last.txid + 1, execute, last.metadata))
        if last is not None and (last.txid > last.first or self._changed):
            self._log.ended(last)

    def _follows(self, txid: int, until: float) -> bool:
        """Whether another batch follows."""
        if not self._inline.ran_last or time.monotonic() >= until:
            return False
        return self._planner.awaits(txid, until, self._waits)

    def _begun(self, txid: int, metadata: dict) -> None:
        """Records what an attempt will emit, unless Spark's offset log says it."""
        if txid == self._first:
            previous, logged = self._logged
            if self._changed or metadata != logged:
                self._changed = True
                self._log.begun(Followed(self._micro_batch, txid, txid - 1, previous or {}, metadata))
        elif self._last is not None:
            self._log.begun(self._last._replace(begun=metadata))

    def _over(self, txid: int, metadata: dict) -> None:
        self._last = Followed(self._micro_batch, self._first, txid, metadata, None)
        self._log.over(self._last)
        self._planner.past(txid, metadata)
