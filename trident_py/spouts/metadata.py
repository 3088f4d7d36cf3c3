"""Stores of spout metadata: a small map path -> txid -> JSON value.

The store lives in the driver process; tasks reach it as ``conf["trident.metadata"]``. A path belongs to one partition
of one spout and has one writer at a time. Source in Storm: TransactionalState and RotatingTransactionalState over
ZooKeeper.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Protocol
from urllib.parse import quote, unquote

from ..errors import SpoutError, ZombieError

DRIVER = "driver"  # the checkpoint's path for the driver that has it; on Spark also for what the last two batches read
TRIES = 5


class MetadataStore(Protocol):
    """Metadata by path and txid. A value read back is the value written, after a round trip through JSON."""

    def get(self, path: str, txid: int) -> Any:
        """Returns the value, or None if there is none."""

    def previous(self, path: str, txid: int) -> Any:
        """Returns the value of the closest earlier txid, or None if there is none."""

    def put(self, path: str, txid: int, value: Any) -> None:
        """Writes the value. It is durable when the call returns (if the store is durable)."""

    def put_all(self, txid: int, values: dict[str, Any]) -> None:
        """Writes a value for each path. All are durable when the call returns; a crash may leave the first ones."""

    def seize(self, path: str, change: Callable[[dict[int, Any]], tuple[int, Any]]) -> None: ...

    def has_later(self, path: str, txid: int) -> bool: ...

    def remove(self, path: str, txid: int) -> None: ...

    def cleanup_before(self, path: str, txid: int) -> None:
        """Drops entries older than txid, but never the newest one: a restart begins from it."""

    def paths(self, prefix: str) -> list[str]: ...


def other_driver(seen: str) -> ZombieError:
    """The error for a driver that is not alone on its checkpoint. ``seen``: which checkpoint, and what tells so."""
    return ZombieError(
        f"another driver runs on the checkpoint{seen}. Run one driver per checkpoint, or give the other topology "
        "another name"
    )


def taken_by(where: str, record: dict | None) -> ZombieError:
    """The error for a driver whose checkpoint another one has taken. ``record``: who, as `DRIVER` has it."""
    if record is None:
        return other_driver(f" {where}: it was converted, moved or deleted while this one ran. Nothing more is written")
    other = record.get("driver", {})
    return other_driver(
        f" {where}: process {other.get('pid')} on host {other.get('host')} has taken it over since this one "
        "started. Nothing more is written"
    )


def taken_over(file: object) -> ZombieError:
    """The error for a write over another driver's."""
    return other_driver(f": it has changed {file} since this one read it. Nothing is written")


def to_json(value: Any, whose: str) -> str:
    """Returns the value as JSON text. Raises SpoutError that names whose metadata cannot be written."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise SpoutError(
            f"{whose}: metadata must be a JSON value (None, bool, int, float, str, list, dict), got {value!r}: {error}"
        ) from error


class MemoryMetadataStore:
    """Keeps metadata in memory, for the life of this object. Thread safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._entries: dict[str, dict[int, Any]] = {}

    def get(self, path: str, txid: int) -> Any:
        with self._lock:
            return _copy(self._read(path).get(txid))

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
        """As `put`. A store may make it durable later; see `trident_py.spouts.journal`."""
        self.put(path, txid, value)

    def put_all(self, txid: int, values: dict[str, Any]) -> None:
        with self._lock:
            *others, last = values
            for path in others:
                self.note(path, txid, values[path])
            self.put(last, txid, values[last])

    def seize(self, path: str, change: Callable[[dict[int, Any]], tuple[int, Any]]) -> None:
        """Writes the txid and value that ``change`` makes of the path's newest entries, also over another driver's."""
        with self._lock:
            self.put(path, *change(dict(self._read(path))))

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
            kept = {stored: value for stored, value in entries.items() if stored >= txid}
            if not kept and entries:
                kept = {max(entries): entries[max(entries)]}
            self._forget(path, kept)

    def paths(self, prefix: str) -> list[str]:
        with self._lock:
            return sorted(path for path in self._all() if path.startswith(prefix))

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

    def __init__(self) -> None:
        super().__init__()
        self._running: IO[str] | None = None

    def reread(self, path: str) -> None:
        """Reads the path anew at its next use: what another driver has written then counts as read."""
        with self._lock:
            self._entries.pop(path, None)

    def reread_but(self, *kept: str) -> None:
        """`reread` for all paths but these."""
        with self._lock:
            for path in self._entries.keys() - set(kept):
                self.reread(path)

    def changed(self, path: str) -> bool:
        """Whether another driver has written the path since this store read or wrote it."""
        with self._lock:
            self._read(path)
            return self._differs(path)

    def newest(self, path: str) -> Any:
        """The path's value of the highest txid, as it is stored now; None if there is none."""
        self.reread(path)
        return self.previous(path, sys.maxsize)

    def seize(self, path: str, change: Callable[[dict[int, Any]], tuple[int, Any]]) -> None:
        """Raises ZombieError if another driver writes the path at the same moment."""
        for last in reversed(range(TRIES)):
            try:
                super().seize(path, change)
                return
            except ZombieError:
                if not last:
                    raise
                self.reread(path)

    def close(self) -> None:
        """Called when the run ends."""
        if self._running is not None:
            self._running.close()
            self._running = None

    def occupy(self, alone: bool = False) -> bool:
        """Says, as long as this process lives, that it uses the folder. Returns False if a process uses it ``alone``,
        or if this one wants to and another process uses it. A folder of another machine cannot tell."""
        return True

    def _differs(self, path: str) -> bool:
        """Whether what is stored is not what was read."""
        raise NotImplementedError


class FileMetadataStore(SharedMetadataStore):
    """Keeps metadata in a folder, a small file per path. A write syncs a new file and renames it over the old one.

    A reader sees the old entries or the new ones, also after a crash. Raises SpoutError for a damaged file, and
    ZombieError for a write over a file that another driver has written since: it would drop that driver's batches, and
    they would be emitted again. If several drivers write at the same moment, one succeeds.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__()
        self._texts: dict[str, str | None] = {}
        self._folder = Path(folder)
        make_folder(self._folder)

    def occupy(self, alone: bool = False) -> bool:
        if self._running is None:
            self._running = occupied(self._folder, alone)
        return self._running is not None

    def entries(self, path: str) -> dict[int, Any]:
        """Everything that is stored under a path, by txid."""
        with self._lock:
            return dict(self._read(path))

    def _differs(self, path: str) -> bool:
        return _text(self._file(path)) != self._texts.get(path)

    def _file(self, path: str) -> Path:
        return self._folder / (quote(path, safe="") + ".json")

    def _read(self, path: str) -> dict[int, Any]:
        if path not in self._entries:
            file = self._file(path)
            text = _text(file)
            try:
                self._entries[path] = {int(txid): value for txid, value in json.loads(text or "{}").items()}
                self._texts[path] = text
            except (ValueError, AttributeError) as error:
                raise SpoutError(f"spout metadata {file} is damaged: {error}; restore the file from a copy") from error
        return self._entries[path]

    def _write(self, path: str, entries: dict[int, Any]) -> None:
        file = self._file(path)
        text = json.dumps({str(txid): entries[txid] for txid in sorted(entries)})
        with self._locked():
            if self._differs(path):
                raise taken_over(file)
            scratch = file.with_suffix(".tmp")
            with scratch.open("w", encoding="utf-8") as out:
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
            scratch.replace(file)
            sync_folder(self._folder)
        self._entries[path], self._texts[path] = entries, text

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Locks the folder against all other stores, also those of this process. A dead process holds no lock."""
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _all(self) -> list[str]:
        return [unquote(file.name.removesuffix(".json")) for file in self._folder.glob("*.json")]


def occupied(folder: Path, alone: bool) -> IO[str] | None:
    """The folder's file ``running``, locked until it is closed or the process ends; None if that cannot be. Processes
    that do not want it ``alone`` share it."""
    file = (folder / "running").open("w")
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def make_folder(folder: Path) -> None:
    """Makes the folder and those around it, so that they are there after a power loss too."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync_folder(each.parent)


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some file systems refuse to sync a folder
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else json.loads(json.dumps(value))
