"""One coordinator class per kind of spout. Source in Storm: the *Executor classes of trident.spout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..context import with_context
from ..errors import DefinitionError, FailedException, SpoutError
from ..names import escaped
from ..tuples import TransactionAttempt
from .descriptors import SpoutNodeInfo
from .homespouts import BatchSpoutCoordinator, Instances, RichSpoutCoordinator, Rows, SpoutCoordinator
from .inspection import configuration, ended, is_home, optional, snapshot
from .interfaces import (
    IBatchSpout,
    ICommitterTridentSpout,
    IRichSpout,
    ITridentSpout,
    SpoutContext,
)
from .metadata import MetadataStore
from .partitioned import IOpaquePartitionedTridentSpout, IPartitionedTridentSpout


def make_coordinator(
    info: SpoutNodeInfo, conf: dict, store: MetadataStore, report: Callable[..., Any] | None = None
) -> SpoutCoordinator:
    """Opens the coordinator of a spout. Raises DefinitionError for a spout that cannot run here (SparkSpout)."""
    conf = conf | configuration(info.spout)
    if isinstance(info.spout, IBatchSpout):
        return BatchSpoutCoordinator(info, conf, report)
    if isinstance(info.spout, IRichSpout):
        return RichSpoutCoordinator(info, conf, report)
    if isinstance(info.spout, ITridentSpout):
        return TridentSpoutCoordinator(info, conf, report)
    if isinstance(info.spout, IPartitionedTridentSpout | IOpaquePartitionedTridentSpout):
        return PartitionedCoordinator(info, conf, store)
    raise DefinitionError(f"spout {info.id!r}: {info.spout!r} runs on SparkCluster only")


class TridentSpoutCoordinator(SpoutCoordinator):
    """Drives an ITridentSpout. Holds the emitters of spouts that emit here: ICommitterTridentSpout and the feeders."""

    def __init__(self, info: SpoutNodeInfo, conf: dict, report: Callable[..., Any] | None) -> None:
        self.home = is_home(info.spout)
        self._id = info.id
        self._committer = isinstance(info.spout, ICommitterTridentSpout)
        self._tasks = Instances(info, report)
        self._spout = snapshot(info.spout)
        count = len(self._tasks.contexts)
        reported = with_context(conf, report=lambda error: report(info.id, error) if report is not None else None)
        self._coordinator = self._spout.getCoordinator(info.id, reported, SpoutContext(info.id, 0, count))
        contexts = self._tasks.contexts if self.home else []
        self._emitters = [self._spout.getEmitter(info.id, conf, context) for context in contexts]
        self._active: dict[int, TransactionAttempt] = {}

    def restore(self, txid: int, metadata: Any) -> None:
        optional(self._coordinator, "restore")(txid, metadata)

    def ready(self, txid: int) -> bool:
        return bool(self._coordinator.isReady(txid))

    def ended(self, txid: int) -> bool:
        return ended(self._coordinator, txid) or ended(self._spout, txid)

    def initialize(self, tx: TransactionAttempt, previous: Any, current: Any) -> Any:
        return self._coordinator.initializeTransaction(tx.txid, previous, current)

    def emit(self, tx: TransactionAttempt, metadata: Any) -> Rows:
        rows = self._tasks.emit(tx, lambda index, out: self._emitters[index].emitBatch(tx, metadata, out))
        self._active[tx.txid] = tx
        return rows

    def pending(self) -> bool:
        return bool(optional(self._coordinator, "isPending")())

    def backlog(self) -> dict[str, int]:
        return optional(self._coordinator, "backlog")() or {}

    def commit(self, tx: TransactionAttempt, reports: list) -> None:
        if not self._committer:
            return
        if self._active.get(tx.txid) != tx:
            raise _other_attempt(self._id, tx)
        for emitter in self._emitters:
            emitter.commit(tx)

    def success(self, txid: int) -> None:
        self._coordinator.success(txid)
        tx = self._active.get(txid)
        self._active = {known: active for known, active in self._active.items() if known > txid}
        for emitter in self._emitters if tx is not None else ():
            optional(emitter, "success")(tx)

    def close(self) -> None:
        for emitter in self._emitters:
            optional(emitter, "close")()
        optional(self._coordinator, "close")()


class PartitionedCoordinator(SpoutCoordinator):
    """Drives a partitioned spout.

    Transactional: the list of partitions is fixed for each txid. Opaque: the list is read on every attempt, and the
    metadata that tasks report is written at commit. Positions live in the metadata store: `restore` does nothing.
    """

    def __init__(self, info: SpoutNodeInfo, conf: dict, store: MetadataStore) -> None:
        self._id = info.id
        self._opaque = isinstance(info.spout, IOpaquePartitionedTridentSpout)
        self._store = store
        self._spout = snapshot(info.spout)
        self._coordinator = self._spout.getCoordinator(conf, SpoutContext(info.id, 0, info.partitions))
        self._valid: list[str] | None = None

    def ready(self, txid: int) -> bool:
        return bool(self._coordinator.isReady(txid))

    def ended(self, txid: int) -> bool:
        return ended(self._coordinator, txid) or ended(self._spout, txid)

    def initialize(self, tx: TransactionAttempt, previous: Any, current: Any) -> Any:
        if current is not None and not self._opaque:
            return current
        return self._coordinator.getPartitionsForBatch()

    def emit(self, tx: TransactionAttempt, metadata: Any) -> Rows:
        raise SpoutError(f"spout {self._id!r} emits in tasks, not in the driver process")

    def commit(self, tx: TransactionAttempt, reports: list) -> None:
        if not self._opaque:
            return
        for report in reports:
            if report["attempt"] != list(tx):
                raise _other_attempt(self._id, tx)
        for report in reports:
            for partition, metadata in report["metadata"].items():
                self._store.put(partition_path(self._id, partition), tx.txid, metadata)
        if reports:
            self._drop_removed(tx.txid, reports[0]["partitions"])

    def _drop_removed(self, txid: int, valid: list[str]) -> None:
        """Removes this txid from partitions that no longer exist: a failed commit may have written it there."""
        if valid == self._valid:
            return
        self._valid = valid
        kept = {partition_path(self._id, partition) for partition in valid}
        for path in self._store.paths(partition_path(self._id, "")):
            if path not in kept:
                self._store.remove(path, txid)

    def success(self, txid: int) -> None:
        for path in self._store.paths(partition_path(self._id, "")):
            self._store.cleanup_before(path, txid)

    def close(self) -> None:
        optional(self._coordinator, "close")()


def _other_attempt(spout: str, tx: TransactionAttempt) -> FailedException:
    return FailedException(f"spout {spout!r}: Received commit for different transaction attempt {tx}")


def partition_path(spout: str, partition: str) -> str:
    """Returns the metadata path of one partition, unique to its spout. Storm: <txStateId>/user/<partition>."""
    return f"{escaped('/', spout)}/user/{partition}"
