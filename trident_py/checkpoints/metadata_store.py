"""Stores of spout metadata: a small map path -> txid -> JSON value.

The store lives in the driver process; tasks reach it as ``conf["trident.metadata"]``. A path belongs to one partition
of one spout and has one writer at a time. Source in Storm: TransactionalState and RotatingTransactionalState over
ZooKeeper.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from ..errors import FailedException, SpoutError, ZombieError
from ..tuples import TransactionAttempt

KEPT = "topology.txid.kept"  # how many batches a run can be taken back (docs/txid_command.md)
IMPORTED = "moved"  # what an import has noted of where the log began
LOG = "log"  # the checkpoint's path for its owner and its batches: see `trident_py.checkpoints.batch_log`
TRIES = 100  # a driver in full run writes every few milliseconds, and each of its writes may come in between


class MetadataStore(Protocol):
    """Metadata by path and txid. A value read back is the value written, after a round trip through JSON."""

    def get(self, path: str, txid: int) -> Any:
        """Return the value, or None if there is none."""

    def previous(self, path: str, txid: int) -> Any:
        """Return the value of the closest earlier txid, or None if there is none."""

    def put(self, path: str, txid: int, value: Any) -> None:
        """Write the value. It is durable when the call returns (if the store is durable)."""

    def put_all(self, txid: int, values: dict[str, Any]) -> None:
        """Write a value for each path. All are durable when the call returns; a crash may leave the first ones."""

    def admit(self, attempt: TransactionAttempt) -> None:
        """Called in the driver before an attempt is emitted: from then on `record` takes from it alone."""

    def record(self, attempt: TransactionAttempt, values: dict[str, Any]) -> None:
        """Called in a task that has emitted new batches: `put_all` what they are. Raises FailedException, and writes
        nothing, if the driver has given the attempt up, or if a path has another value: another task has emitted other
        tuples."""

    def has_later(self, path: str, txid: int) -> bool: ...

    def remove(self, path: str, txid: int) -> None: ...

    def cleanup_before(self, path: str, txid: int) -> None:
        """Drop entries that no run needs that goes on after txid, or later: all but the newest one up to there."""

    def paths(self, prefix: str) -> list[str]: ...


def other_driver_error(seen: str) -> ZombieError:
    """Return the error that another driver uses this checkpoint. ``seen``: the evidence."""
    return ZombieError(
        f"another driver runs on the checkpoint{seen}. Run one driver per checkpoint, or give the other topology "
        "another name"
    )


def ownership_error(where: str, record: dict | None) -> ZombieError:
    """Return the error for a driver whose checkpoint another one has taken. ``record``: who, as `LOG` has it."""
    if record is None:
        return other_driver_error(f" {where}: it was moved or deleted while this one ran. Nothing more is written")
    other = record.get("driver", {})
    return other_driver_error(
        f" {where}: process {other.get('pid')} on host {other.get('host')} has taken it over since this one "
        "started, by a start or by `trident txid fence`. Nothing more is written"
    )


def overwrite_error(file: object) -> ZombieError:
    """Return the error for a write over another driver's."""
    return other_driver_error(f": it has changed {file} since this one read it. Nothing is written")


def read_kept(conf: Mapping[str, Any]) -> int:
    """Return how many batches a run can be taken back."""
    kept = conf.get(KEPT)
    return 20 if kept is None else int(kept)


def to_json(value: Any, whose: str) -> str:
    """Return the value as JSON text. Raises SpoutError that names whose metadata cannot be written."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise SpoutError(
            f"{whose}: metadata must be a JSON value (None, bool, int, float, str, list, dict), got {value!r}: {error}"
        ) from error


class MemoryMetadataStore:
    """Keeps metadata in memory, for the life of this object. Thread safe."""

    def __init__(self, entries: dict[str, dict[int, Any]] | None = None) -> None:
        self._lock = threading.RLock()
        self._entries = entries or {}
        self._admitted: TransactionAttempt | None = None

    def get(self, path: str, txid: int) -> Any:
        return _copy(self.peek(path, txid))

    def peek(self, path: str, txid: int) -> Any:
        """Return the stored value itself, which nobody may change."""
        with self._lock:
            return self._read(path).get(txid)

    def previous(self, path: str, txid: int) -> Any:
        with self._lock:
            entries = self._read(path)
            earlier = max((stored for stored in entries if stored < txid), default=None)
            return None if earlier is None else _copy(entries[earlier])

    def put(self, path: str, txid: int, value: Any) -> None:
        text = to_json(value, path)
        with self._lock:
            self._write(path, self._read(path) | {txid: json.loads(text)})

    def note(self, path: str, txid: int, value: Any) -> None:
        """Put. A store may make it durable later; see `trident_py.checkpoints.append_log`."""
        self.put(path, txid, value)

    def put_all(self, txid: int, values: dict[str, Any]) -> None:
        with self._lock:
            *others, last = values
            for path in others:
                self.note(path, txid, values[path])
            self.put(last, txid, values[last])

    def admit(self, attempt: TransactionAttempt) -> None:
        with self._lock:
            self._admitted = attempt

    def record(self, attempt: TransactionAttempt, values: dict[str, Any]) -> None:
        with self._lock:
            if self._admitted not in (None, attempt):
                raise FailedException(f"{attempt} was given up: {self._admitted} runs, and records what it emits")
            for path, value in values.items():
                stored = self.get(path, attempt.txid)
                if stored is not None and stored != json.loads(to_json(value, path)):
                    raise FailedException(f"{path}: another task has emitted {attempt} with metadata {stored!r}")
            self.put_all(attempt.txid, values)

    def seize(self, path: str, change: Callable[[dict[int, Any]], tuple[int, Any]]) -> None:
        """Write the txid and value that ``change`` makes of the path's newest entries, also over another driver's."""
        with self._lock:
            self.put(path, *change(dict(self._read(path))))

    def take_over(self, path: str, change: Callable[[dict[int, Any]], tuple[int, Any]]) -> None:
        """Seize the path; from then on another driver can write no other path either."""
        self.seize(path, change)

    def has_later(self, path: str, txid: int) -> bool:
        with self._lock:
            return any(stored > txid for stored in self._read(path))

    def remove(self, path: str, txid: int) -> None:
        with self._lock:
            entries = self._read(path)
            if txid in entries:
                self._write(path, {stored: value for stored, value in entries.items() if stored != txid})

    def cleanup_before(self, path: str, txid: int) -> None:
        with self._lock:
            entries = self._read(path)
            least = max((stored for stored in entries if stored <= txid), default=txid)
            self._forget(path, {stored: value for stored, value in entries.items() if stored >= least})

    def txids(self, path: str) -> list[int]:
        """Return the txids of which the path has an entry."""
        with self._lock:
            return sorted(self._read(path))

    def paths(self, prefix: str) -> list[str]:
        with self._lock:
            return sorted(path for path in self._all() if path.startswith(prefix))

    def has_changed(self, path: str) -> bool:
        """Return whether another driver has written the path since this store read or wrote it."""
        return False

    def newest(self, path: str) -> Any:
        """Return the path's stored value of the highest txid; None if there is none."""
        return self.previous(path, sys.maxsize)

    def settle(self) -> None:
        """Make durable what was noted."""

    def close(self) -> None:
        """Called when the run ends. What was noted is durable when it returns."""

    def _read(self, path: str) -> dict[int, Any]:
        return self._entries.get(path, {})

    def _write(self, path: str, entries: dict[int, Any]) -> None:
        self._entries[path] = entries

    def _forget(self, path: str, kept: dict[int, Any]) -> None:
        # Correctness does not need old entries to be gone: in a file they go with the next write.
        self._entries[path] = kept

    def _all(self) -> list[str]:
        return list(self._entries)


class SharedMetadataStore(MemoryMetadataStore):
    """Keeps metadata where another driver may write too: a write over what that one has written is refused."""

    def reread(self, path: str) -> None:
        """Read the path anew at its next use: what another driver has written then counts as read."""
        with self._lock:
            self._entries.pop(path, None)

    def has_changed(self, path: str) -> bool:
        with self._lock:
            self._read(path)
            return self._differs(path)

    def seize(self, path: str, change: Callable[[dict[int, Any]], tuple[int, Any]]) -> None:
        """Raise ZombieError if another driver writes the path at the same moment."""
        for last in reversed(range(TRIES)):
            try:
                super().seize(path, change)
                return
            except ZombieError:
                if not last:
                    raise
                self.reread(path)

    def _differs(self, path: str) -> bool:
        """Return whether what is stored is not what was read."""
        raise NotImplementedError


def make_folder(folder: Path) -> None:
    """Make the folder and those around it, so that they are there after a power loss too."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync_folder(each.parent)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some file systems refuse to sync a folder
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else json.loads(json.dumps(value))
