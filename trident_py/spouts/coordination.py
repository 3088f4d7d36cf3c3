"""The driver side of spouts: which txid starts, what its batch is, and what happens after its commit.

One Coordination serves one component: its spouts share one txid sequence. It lives in the user's driver process.
Source in Storm: MasterBatchCoordinator, TridentSpoutCoordinator.
"""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ..checkpoints.metadata_store import MetadataStore, to_json
from ..errors import FailedException
from ..metrics import Reported
from ..model.fault_points import steps_of_driver
from ..model.resources import close_all, closing_if_failed
from ..tuples import TransactionAttempt
from .coordinators import Report, SpoutCoordinator, make_coordinator
from .inspection import SpoutNodeInfo
from .interfaces import ICommitterTridentSpout

log = logging.getLogger(__name__)


class Descriptor(NamedTuple):
    """What one spout partition must emit for a batch.

    ``payload`` is an encoded Chunk, the emitted rows, for a spout in the driver process, else the coordinator's
    metadata (a JSON value).
    """

    spout: int
    partition: int
    payload: Any

    def encode(self) -> bytes:
        return pickle.dumps(tuple(self), protocol=5)

    @classmethod
    def decode(cls, block: Any) -> Descriptor:
        return cls(*pickle.loads(block))  # noqa: S301  from the driver, by Spark


class Coordination:
    """The coordinators of one component, and the spouts that emit in the driver process.

    The constructor opens all coordinators. All methods but `ready` and `is_exhausted` are called with strictly
    increasing txids, apart from replays. ``report`` receives the errors that spouts pass to ``collector.reportError``.
    """

    def __init__(
        self, spouts: Sequence[SpoutNodeInfo], conf: dict, store: MetadataStore, report: Report = None
    ) -> None:
        self._spouts = tuple(spouts)
        self.has_committer = any(isinstance(info.spout, ICommitterTridentSpout) for info in spouts)
        self._next = 1
        self.woken_by = ""
        """The spout that was ready for the last batch."""
        self._store = store
        self._initialized: dict[int, tuple[dict | None, dict]] = {}
        self._emitted: dict[int, tuple[int, dict, list[Descriptor]]] = {}
        self._coordinators: list[SpoutCoordinator] = []
        self._step = steps_of_driver(conf)
        with closing_if_failed([self]):
            for info in self._spouts:
                self._coordinators.append(make_coordinator(info, conf, store, report))

    def restore(self, txid: int, metadata: dict | None, begun: dict | None = None) -> None:
        """Continue a run after ``txid``, whose metadata is ``metadata``. Called before anything else, or for a
        batch that was decided in an earlier run.

        ``begun`` is the metadata of the next txid if it has already begun: that batch stays as it is. Without it a
        spout that knows its position only from metadata (FileSpout) cannot tell an ended run from a new one before the
        next `initialize`, and one empty batch may run.
        """
        self._next = txid + 1
        if begun is not None:
            self._initialized[txid + 1] = metadata, begun
        for info, coordinator in self._pairs():
            coordinator.restore(txid, (metadata or {}).get(info.id))

    def ready(self, txid: int) -> bool:
        """Return whether a batch can start: any spout that has not ended is ready."""
        self._next = max(self._next, txid)
        ready = (info.id for info, spout in self._pairs() if not spout.has_ended(txid) and spout.ready(txid))
        found = next(ready, None)
        self.woken_by = found or self.woken_by
        return found is not None

    def is_pending(self) -> bool:
        """Return whether a spout that is not ready expects tuples, or cannot tell at the moment."""
        return any(coordinator.is_pending() for coordinator in self._coordinators)

    def is_exhausted(self, txid: int | None = None) -> bool:
        """Return whether all spouts are finite and have ended: neither txid nor any later one has a tuple.

        Without a txid: the one after the last txid that was initialized, asked for or restored.
        """
        at = self._next if txid is None else txid
        return all(coordinator.has_ended(at) for coordinator in self._coordinators)

    def read_metadata(self, txid: int) -> tuple[dict | None, dict | None]:
        """Return the metadata of the txid before this one, and of this one. Both are None unless the batch was
        initialized or restored, and has not ended."""
        return self._initialized.get(txid, (None, None))

    def initialize(
        self, txid: int, attempt: int, previous: dict | None = None, current: dict | None = None
    ) -> dict:
        """Return the metadata of a batch, a JSON value by spout id. Asks every coordinator, ready or not.

        ``previous`` is the metadata of the txid before. ``current`` is what this txid had at an earlier attempt or
        before a restart. None: what this object remembers. May be called for a txid that never starts.
        """
        self._next = max(self._next, txid + 1)
        self._store.admit(TransactionAttempt(txid, attempt))
        remembered = self.read_metadata(txid)
        previous = remembered[0] if previous is None else previous
        current = remembered[1] if current is None else current
        if current is not None:
            self._initialized[txid] = previous, current  # so the next attempt knows it, even if this call fails
        metadata = {}
        for info, coordinator in self._pairs():
            before, now = (previous or {}).get(info.id), (current or {}).get(info.id)
            value = coordinator.initialize(TransactionAttempt(txid, attempt), before, now)
            # Emitters must get the same value whether the metadata comes from the log or directly from here.
            metadata[info.id] = json.loads(to_json(value, f"spout {info.id!r}, txid {txid}"))
        self._initialized[txid] = previous, metadata
        self._step("described", txid)
        return metadata

    def descriptors(self, txid: int, attempt: int, metadata: dict) -> list[Descriptor]:
        """Return one descriptor per spout partition. Spouts in the driver process emit here, once per attempt.

        Raises whatever the spouts raise; a FailedException replays the batch.
        """
        last = self._emitted.get(txid)
        if last is not None and last[:2] == (attempt, metadata):
            return last[2]
        self._next = max(self._next, txid + 1)
        tx, descriptors = TransactionAttempt(txid, attempt), []
        for at, (info, coordinator) in enumerate(self._pairs()):
            payloads = self._payloads(info, coordinator, tx, metadata.get(info.id))
            descriptors += [Descriptor(at, partition, payload) for partition, payload in enumerate(payloads)]
        self._emitted[txid] = attempt, metadata, descriptors
        return descriptors

    def _payloads(
        self, info: SpoutNodeInfo, coordinator: SpoutCoordinator, tx: TransactionAttempt, metadata: Any
    ) -> list:
        try:
            return coordinator.payloads(tx, metadata, info.partitions)
        except BaseException as error:
            error.add_note(f"in spout {info.id!r}, txid {tx.txid}, attempt {tx.attemptId}")
            raise

    def tuples(self, metadata: dict) -> int | None:
        """Return how many tuples a batch has at most, after its `descriptors` were made; None if unknown."""
        counts = [coordinator.tuples(metadata.get(info.id)) for info, coordinator in self._pairs()]
        return None if None in counts else sum(count or 0 for count in counts)

    def share(self, txid: int) -> dict[str, Any]:
        """Return what the spouts share with all tasks during this txid, a JSON value by spout id."""
        values = {info.id: coordinator.share(txid) for info, coordinator in self._pairs()}
        return {spout: value for spout, value in values.items() if value is not None}

    def commit(self, txid: int, attempt: int, reports: Sequence[Any]) -> None:
        """Commit the spouts after all states: committer spouts commit, then opaque spouts' metadata is written.

        ``reports`` are the return values of the task emitters of this attempt, in any order; some are None.
        Raises FailedException if a spout cannot commit: the batch is replayed.
        """
        of_spout: dict[str, list] = {info.id: [] for info in self._spouts}
        for report in reports:
            if report is not None:
                of_spout[report["spout"]].append(report)
        tx = TransactionAttempt(txid, attempt)
        for info, coordinator in sorted(self._pairs(), key=lambda pair: not pair[1].home):
            coordinator.commit(tx, of_spout[info.id])

    def success(self, txid: int) -> None:
        """End the batch: notifies the spouts, drops older metadata. Only logs a FailedException."""
        for batches in (self._initialized, self._emitted):
            for over in [earlier for earlier in batches if earlier <= txid]:
                del batches[over]
        for info, coordinator in self._pairs():
            try:
                coordinator.success(txid)
            except FailedException as error:
                log.warning("spout %s failed after the commit of txid %d: %s", info.id, txid, error)

    def backlog(self) -> dict[str, dict[str, int]]:
        """Return the waiting tuples by spout and partition, for spouts that know them. Never raises."""
        backlogs: dict[str, dict[str, int]] = {}
        for info, coordinator in self._pairs():
            try:
                backlogs[info.id] = coordinator.backlog()
            except BaseException as error:
                log.warning("spout %s cannot report its backlog: %s", info.id, error)
        return {spout: waiting for spout, waiting in backlogs.items() if waiting}

    def collect_metrics(self, failed: Callable[[str], Any]) -> list[tuple[int, Reported]]:
        """Return what is new in the metrics of spouts that emit in the driver process, and of the coordinators, by
        partition. ``failed`` gets a text for each metric that raised an error."""
        return [
            (context.getPartitionIndex(), report)
            for info, coordinator in self._pairs()
            for context in coordinator.contexts
            for report in context.take(partial(_warn_unmeasured, failed, info.id))
        ]

    def close(self, call: Callable[[str, Callable[[], object]], object] = lambda name, close: close()) -> None:
        """Close every spout, even if one fails to close; then raises the first error. ``call``: gets what
        closes a spout, and its name."""
        coordinators, self._coordinators = self._coordinators, []
        spouts = zip(self._spouts, coordinators, strict=False)  # fewer are open if one could not be opened
        close_all(partial(call, f"spout {info.id!r}", coordinator.close) for info, coordinator in spouts)

    def _pairs(self) -> list[tuple[SpoutNodeInfo, SpoutCoordinator]]:
        return list(zip(self._spouts, self._coordinators, strict=True))


def _warn_unmeasured(failed: Callable[[str], Any], spout: str, name: str, error: Exception) -> None:
    failed(f"spout {spout}: the metric {name!r} has no value: {error!r}")
