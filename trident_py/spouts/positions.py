"""The positions of a partitioned spout: the metadata of its partitions, as the driver stores it and tasks get it."""

from __future__ import annotations

from typing import Any

from ..errors import FailedException
from ..names import escaped
from ..tuples import TransactionAttempt
from .metadata import MetadataStore


def partition_path(spout: str, partition: str) -> str:
    """Returns the metadata path of one partition, unique to its spout. Storm: <txStateId>/user/<partition>."""
    return f"{escaped('/', spout)}/user/{partition}"


class OpaquePositions:
    """The driver's side of an opaque spout's positions.

    A descriptor carries the last committed metadata of the partitions that its task had in the batch before, so a batch
    sends each position once. It carries all of them where the partitions may be dealt out differently: in the first
    batch, on replay, and when the coordinator's list has changed.
    """

    def __init__(self, spout: str, store: MetadataStore) -> None:
        self._spout = spout
        self._store = store
        self._dealt: dict[int, list[str]] = {}  # by task, as of the last commit
        self._listed: list[Any] = []  # the coordinator's list at that time, the only element
        self._now: Any = None

    def payloads(self, tx: TransactionAttempt, listed: Any, partitions: int) -> list[Any]:
        """The payloads of the tasks. Drops what an earlier attempt has written for this txid: it did not commit."""
        self._now = listed
        prefix = partition_path(self._spout, "")
        last = {}
        for path in self._store.paths(prefix):
            self._store.remove(path, tx.txid)
            last[path.removeprefix(prefix)] = self._store.previous(path, tx.txid)
        if tx.attemptId > 0 or self._listed != [listed]:
            return [{"partitions": listed, "last": last, "all": True}] * partitions
        parts = [{name: last.get(name) for name in self._dealt.get(task, ())} for task in range(partitions)]
        return [{"partitions": listed, "last": part, "all": False} for part in parts]

    def commit(self, txid: int, reports: list[dict]) -> None:
        """Writes the metadata that the tasks report. Remembers which task had which partitions."""
        for report in reports:
            for partition, metadata in report["metadata"].items():
                self._store.put(partition_path(self._spout, partition), txid, metadata)
        self._dealt = {report["task"]: report["partitions"] for report in reports}
        self._listed = [self._now]


def last_metadata(spout: str, payload: dict, partition: str) -> Any:
    """The last committed metadata of a partition, in the task; None if it has none.

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
