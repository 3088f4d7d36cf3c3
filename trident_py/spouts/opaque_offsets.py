"""The positions of a partitioned spout: the metadata of its partitions, as the driver stores it and tasks get it."""

from __future__ import annotations

from typing import Any

from ..checkpoints.metadata_store import MetadataStore
from ..errors import FailedException
from ..model.names import escape
from ..tuples import TransactionAttempt


def partition_path(spout: str, partition: str) -> str:
    """Return the metadata path of one partition of a transactional spout. Storm: <txStateId>/user/<partition>."""
    return f"{escape('/', spout)}/user/{partition}"


def positions_path(spout: str) -> str:
    """Return the metadata path of all partitions of an opaque spout."""
    return f"{escape('/', spout)}/positions"


class OpaqueOffsets:
    """The driver's side of an opaque spout's positions: one value with the metadata of all partitions, so that a commit
    writes one file, however many partitions there are.

    A descriptor carries the last committed metadata of the partitions that its task had in the batch before, so a batch
    sends each position once. It carries all of them where the partitions may be dealt out differently: in the first
    batch, on replay, and when the coordinator's list has changed.
    """

    def __init__(self, spout: str, store: MetadataStore) -> None:
        self._spout = spout
        self.path = positions_path(spout)
        self._store = store
        self._dealt: dict[int, list[str]] = {}  # by task, as of the last commit
        self._listed: list[Any] = []  # the coordinator's list at that time, the only element
        self._now: Any = None

    def payloads(self, tx: TransactionAttempt, listed: Any, partitions: int) -> list[Any]:
        """Return the payloads of the tasks. Writes nothing: the batch may be one that a state has decided, which is
        described again after a restart but not emitted again."""
        self._now = listed
        last = self._last(tx.txid)
        if tx.attemptId > 0 or self._listed != [listed]:
            return [{"partitions": listed, "last": last, "all": True}] * partitions
        parts = [{name: last.get(name) for name in self._dealt.get(task, ())} for task in range(partitions)]
        return [{"partitions": listed, "last": part, "all": False} for part in parts]

    def _last(self, txid: int) -> dict[str, Any]:
        """Return the last committed metadata by partition, also of partitions that are not listed any more."""
        last = self._store.previous(self.path, txid)
        return self._read_old_layout(txid) if last is None else last

    def _read_old_layout(self, txid: int) -> dict[str, Any]:
        """Return the metadata in a checkpoint of an older version, which has a path for each partition."""
        prefix = partition_path(self._spout, "")
        return {path.removeprefix(prefix): self._store.previous(path, txid) for path in self._store.paths(prefix)}

    def commit(self, txid: int, reports: list[dict]) -> None:
        """Write the metadata that the tasks report, over what an earlier attempt may have written for this txid.
        Remembers which task had which partitions."""
        reported = {name: metadata for report in reports for name, metadata in report["metadata"].items()}
        if reported:
            self._store.put(self.path, txid, self._last(txid) | reported)
        else:
            self._store.remove(self.path, txid)
        self._dealt = {report["task"]: report["partitions"] for report in reports}
        self._listed = [self._now]


def last_metadata(spout: str, payload: dict, partition: str) -> Any:
    """Return the last committed metadata of a partition, in the task; None if it has none.

    Raises FailedException if the task got another partition than in the batch before although the list is the same: the
    replay gets the metadata of all.
    """
    last = payload["last"]
    if partition not in last and not payload["all"]:
        raise FailedException(
            f"spout {spout!r}: partition {partition!r} has moved to another task although the coordinator's list of "
            "partitions is the same; the replay gets the metadata of every partition"
        )
    return last.get(partition)
