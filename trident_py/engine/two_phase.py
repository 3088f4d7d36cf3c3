"""Two-phase commit of a batch, on the driver: after all partitions have committed, decide, then publish in a fixed
order.

If a participant makes the batch visible only now, the batch is *decided* first: the receipts of the attempt go into the
checkpoint. From then on no driver runs another attempt of this txid, because an opaque spout would emit other tuples in
a replay, under a txid that readers may have seen.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ..errors import FailedException, LostCommits, StateError, TopologyError, ZombieError
from ..model.context import RunContext
from ..model.fault_points import steps_of_driver
from ..model.retry import ReadOnlyFor, start_wait, until_stopped
from ..report.progress import RunningTopology
from ..state.participants import BatchParticipant
from .phases import phase
from .program import BatchInfo, Program, failure_of, topology_error

Receipts = dict[str, list]
MAX_ATTEMPTS = "topology.max.batch.attempts"
DECIDED = "decided"
_NO_REPLAY = (
    ". Another state has decided the batch, so it is not replayed. Restore the store as it was when all partitions had "
    "committed, and start the topology again"
)


class Publisher:
    """Publishes batches to the participants of one component. Those that show a batch (``decides``) come first."""

    def __init__(
        self, program: Program, participants: dict[str, BatchParticipant], running: RunningTopology
    ) -> None:
        self.program = program
        self.running = running
        self.limit = program.conf.get(MAX_ATTEMPTS)
        self._step = steps_of_driver(program.conf)
        self.deciding = [name for name, participant in participants.items() if participant.decides]
        others = [name for name in participants if name not in self.deciding]
        self.participants = {name: participants[name] for name in [*self.deciding, *others]}

    @property
    def _store(self) -> Any:
        return RunContext.of(self.program.conf).metadata

    def open(self, generations: dict[str, int]) -> None:
        """Called at the start, after the generations are raised. From now on an older driver can decide nothing."""
        if self.deciding:
            self._store.put(DECIDED, 0, {"generations": generations})

    def publish(self, batch: BatchInfo, receipts: Receipts, metadata: dict | None) -> None:
        """Called after all states have committed. Raises what a participant raises; the batch may then run again.

        Raises TopologyError if it may not: the batch is decided, and stays decided for the next start.
        """
        if not self.deciding:
            self._publish_all(batch, receipts, [])
            return
        record = {"attempt": batch.attempt, "metadata": metadata}
        kept = [name for name, each in self.participants.items() if each.decides or each.keeps_receipts]
        record["receipts"] = {name: receipts[name] for name in kept}
        with phase("decision"):
            self._store.put(DECIDED, batch.txid, record)
            self._store.cleanup_before(DECIDED, batch.txid)  # it stays until the next batch is decided
        self._step("decided", batch.txid)
        self.insist(batch, receipts)

    def decision(self, txid: int) -> dict | None:
        """Return an earlier driver's decision on this batch: attempt, metadata, receipts. None if there is none."""
        return self._store.get(DECIDED, txid) if self.deciding else None

    def insist(self, batch: BatchInfo, receipts: Receipts) -> None:
        """Publish, with retries until it succeeds. Raises StateError if the decision is withdrawn."""

        read_only = ReadOnlyFor(start_wait(self.program.conf))

        def handle_failure(error: FailedException, failures: int) -> None:
            why = _NO_REPLAY if isinstance(error, LostCommits) else read_only.too_long(error)
            if why or failures == self.limit:
                raise _publish_error(batch, error, why) from error
            reason = f"publishing is retried: {error}"
            self.running.event(self.program.component, "reported", batch.txid, batch.attempt, reason)

        until_stopped(partial(self._publish_or_withdraw, batch, receipts), self.running.stopping, handle_failure)

    def _publish_or_withdraw(self, batch: BatchInfo, receipts: Receipts) -> None:
        """Raise FailedException if it may succeed later, StateError if it has withdrawn the decision."""
        published: list[str] = []
        try:
            self._publish_all(batch, receipts, published)
        except FailedException:
            raise
        except BaseException as error:
            refused = not published and isinstance(error, StateError) and not isinstance(error, ZombieError)
            if refused and self._withdraw(batch):
                raise
            raise _publish_error(batch, error) from error

    def _publish_all(self, batch: BatchInfo, receipts: Receipts, published: list[str]) -> None:
        """Call ``publish`` of each participant. ``published`` collects the names of those that returned."""
        for name, participant in self.participants.items():
            self._step("publish", batch.txid, name)
            with phase("ledger publish", name):
                participant.publish(batch.txid, batch.attempt, receipts.get(name, []))
            self._step("published", batch.txid, name)
            published.append(name)

    def _withdraw(self, batch: BatchInfo) -> bool:
        """Called when the first participant refuses the batch. Withdraws the decision if no row of it is visible, nor
        will be."""
        first = self.participants[self.deciding[0]]
        try:
            if not first.give_up(batch.txid):
                return False
            self._store.remove(DECIDED, batch.txid)
        except Exception:
            return False  # visibility is unknown, or the checkpoint takes nothing, so the batch stays decided
        return True


def _publish_error(batch: BatchInfo, error: BaseException, why: str = "") -> TopologyError:
    return topology_error(failure_of("commit", None, error), batch.txid, why)
