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
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, unquote

from ..errors import SpoutError, ZombieError


class MetadataStore(Protocol):
    """Metadata by path and txid. A value read back is the value written, after a round trip through JSON."""

    def get(self, path: str, txid: int) -> Any:
        """Returns the value, or None if there is none."""

    def previous(self, path: str, txid: int) -> Any:
        """Returns the value of the closest earlier txid, or None if there is none."""

    def put(self, path: str, txid: int, value: Any) -> None:
        """Writes the value. It is durable when the call returns (if the store is durable)."""

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

    def reread(self, path: str) -> None:
        """Reads the path anew at its next use: what another driver has written then counts as read."""
        with self._lock:
            self._entries.pop(path, None)

    def changed(self, path: str) -> bool:
        """Whether another driver has written the path since this store read or wrote it."""
        with self._lock:
            self._read(path)
            return self._differs(path)

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
        self._folder.mkdir(parents=True, exist_ok=True)

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
            _sync_folder(self._folder)
        self._entries[path], self._texts[path] = entries, text

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Locks the folder against all other stores, also those of this process. A dead process holds no lock."""
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _all(self) -> list[str]:
        return [unquote(file.name.removesuffix(".json")) for file in self._folder.glob("*.json")]


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some file systems refuse to sync a folder
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else json.loads(json.dumps(value))
